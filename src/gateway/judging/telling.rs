//! What approvers are told that a call does.

use std::sync::Arc;

use serde_json::Value;

use crate::core::one_line::line_to_decide_by;
use crate::core::shell::activity::{ActivityState, Foreground};
use crate::gateway::judging::facts::JudgedLine;
use crate::gateway::judging::seen::SeenCall;
use crate::gateway::judging::typing::{LineBefore, TypedLine};
use crate::surface::tool::ToolRuns;

impl SeenCall<'_> {
    /// What the call does, for people, on one line and with all characters visible. Of a line that was typed in pieces, it
    /// says the whole. Of what a program does not show, it says no more than `rule`, which is about it.
    pub(super) fn what(self, line: &JudgedLine, rule: Option<&str>) -> Arc<str> {
        self.what_with(line, rule, || self.judged.told())
    }

    /// The same for those who look back, with no more of the arguments than the journal keeps.
    pub(super) fn recordable_what(self, line: &JudgedLine, rule: Option<&str>) -> Arc<str> {
        self.what_with(line, rule, || self.judged.recordable())
    }

    fn what_with(
        self,
        line: &JudgedLine,
        rule: Option<&str>,
        arguments: impl FnOnce() -> String,
    ) -> Arc<str> {
        let entry = self.judged.entry;
        let text = match entry.runs {
            ToolRuns::Line(name) => {
                self.judged.arguments.get(name).and_then(Value::as_str).map(str::to_owned)
            }
            ToolRuns::Input | ToolRuns::Text(_) => self.of_unshown(line, rule),
            ToolRuns::Nothing | ToolRuns::Program => None,
        };
        let ended = line.typed.as_ref().map(|typed| self.of_line(typed)).unwrap_or_default();
        let changing = match &*line.changing {
            [] => String::new(),
            names => format!("; these may change which programs run: {}", names.join(", ")),
        };
        let text =
            text.unwrap_or_else(|| format!("{} {}{ended}{changing}", entry.name, arguments()));
        Arc::from(line_to_decide_by(&text))
    }

    /// What is said of text and keys of which the terminal shows nothing.
    fn of_unshown(self, line: &JudgedLine, rule: Option<&str>) -> Option<String> {
        let activity = &self.terminal?.frame.activity.value;
        if activity.state != ActivityState::SecretPrompt {
            return None;
        }
        let is_shell = activity.foreground.as_ref().is_some_and(Foreground::is_shell);
        let taker = if is_shell { "shell" } else { "program" };
        let may_run = match (&line.typed, rule) {
            (Some(_), Some(rule)) => format!(", which may be a line for the rule `{rule}`"),
            (Some(_), None) | (None, _) => String::new(),
        };
        Some(format!("{} what a {taker} does not show{may_run}", self.judged.entry.name))
    }

    fn of_line(self, line: &TypedLine) -> String {
        let (before, whole) = (&line.before, line.whole());
        let may_be_shown = self.terminal.is_some_and(|it| it.line.may_be_shown());
        match (before, whole) {
            (LineBefore::Known(before), _) if before.is_empty() => String::new(),
            // What was typed at a password prompt may be on the line by now.
            _ if !may_be_shown => ", which ends a line that is not shown".to_owned(),
            (LineBefore::Known(_), Some(whole)) => format!(", which ends the line: {whole}"),
            (LineBefore::Known(before), None) => format!(", where the line begins with: {before}"),
            (LineBefore::Unknown { typed, shown }, _) => {
                let typed = typed.as_ref().filter(|it| !it.is_empty());
                let typed = typed.map(|it| format!("; before it was typed: {it}"));
                let shown =
                    shown.as_ref().map(|it| format!("{}{}", it.before_cursor, it.after_cursor));
                let shown = shown.filter(|it| !it.trim().is_empty());
                let shown = shown.map(|it| format!("; the screen shows: {it}"));
                let known = [typed, shown].map(Option::unwrap_or_default).concat();
                format!(", which ends a line that is not known{known}")
            }
        }
    }
}
