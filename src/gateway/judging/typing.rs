//! The command line that text and keys end at the prompt of a session's own shell.

use serde_json::Value;

use crate::core::command_line::{ParsedCommandLine, UnknownPart};
use crate::core::frame::Frame;
use crate::core::keys::{Key, KeyCode, Modifiers, NamedKey};
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::EndsBy;
use crate::gateway::judging::JudgedCall;
use crate::surface::terminal::send::{keys_in, of_base64};
use crate::surface::tool::ToolRuns;

/// Characters at which line editors run a line.
const ENDS: [char; 3] = ['\n', '\r', '\u{f}'];

/// What is typed, if that is known.
type Typed = Option<String>;

impl JudgedCall<'_> {
    /// The line that the call ends at the prompt of the session's own shell, with what was typed there before.
    pub(super) fn typed_line(self) -> Option<ParsedCommandLine> {
        let (typed, is_ended) = self.typed()?;
        if !is_ended {
            return None;
        }
        let frame = self.session?.frame();
        let before = begun(&frame)?;
        Some(match before.zip(typed) {
            Some((before, typed)) => {
                let text = before + &typed;
                ParsedCommandLine::parse(text.trim_end_matches(['\n', '\r']))
            }
            None => {
                ParsedCommandLine { unknown: [UnknownPart::Typing].into(), ..Default::default() }
            }
        })
    }

    /// What the call types, and whether a line ends in it.
    fn typed(self) -> Option<(Typed, bool)> {
        let ToolRuns::Text(name) = self.entry.runs else {
            return Some(of_keys(&keys_in(self.arguments.get("keys")?)?));
        };
        let is = |name: &str, value: Value| self.arguments.get(name) == Some(&value);
        let text = self.arguments.get(name)?.as_str()?;
        let text = match is("encoding", "base64".into()) {
            true => String::from_utf8_lossy(&of_base64(text).ok()?).into_owned(),
            false => text.to_owned(),
        };
        let is_ended = is("enter", Value::Bool(true)) || text.contains(ENDS);
        Some((Some(text), is_ended))
    }
}

/// The text that keys type, if they do nothing else, and whether a line ends in it.
fn of_keys(keys: &[Key]) -> (Typed, bool) {
    let character = |key: &Key| match key.code {
        KeyCode::Char(it) if [Modifiers::NONE, Modifiers::SHIFT].contains(&key.modifiers) => {
            Some(it)
        }
        KeyCode::Named(NamedKey::Enter) if key.modifiers == Modifiers::NONE => Some('\n'),
        KeyCode::Char(_) | KeyCode::Named(_) => None,
    };
    let ends = |key: &Key| match key.code {
        KeyCode::Char(it) => key.modifiers.ctrl && "jmo".contains(it),
        KeyCode::Named(it) => matches!(it, NamedKey::Enter | NamedKey::Keypad(_)),
    };
    (keys.iter().map(character).collect(), keys.iter().any(ends))
}

/// What stands on the line of the session's own shell before what is typed next, if that is known. None if the shell is
/// at no prompt.
fn begun(frame: &Frame) -> Option<Typed> {
    let shell = &frame.shell;
    if shell.at_empty_line {
        return Some(Some(String::new()));
    }
    if frame.activity.value.state != ActivityState::Prompt {
        return None;
    }
    if shell.readiness.ends_by() == Some(EndsBy::Marks) {
        return Some(shown(frame));
    }
    // The lines before have not been read yet, but they are whole.
    Some((!shell.half_line).then(String::new))
}

/// What the screen shows between the prompt and the cursor, if nothing else of the line is elsewhere.
fn shown(frame: &Frame) -> Typed {
    let (cursor, from) = (frame.cursor.value, frame.commands.value.reading_at()?);
    let line = &frame.line(cursor.row)?.value;
    let is_last = line.text_between(cursor.col, u16::MAX).trim().is_empty();
    // Blanks at the end of a row are no part of its text.
    let blanks = cursor.col.saturating_sub(line.columns().max(from.col));
    let text = || line.text_between(from.col, cursor.col).to_owned() + &" ".repeat(blanks.into());
    (from.row == cursor.row && is_last).then(text)
}
