//! The command line that text and keys end: at the prompt of a session's own shell, in another shell that was started
//! there, or ahead, while a program runs.

use std::collections::BTreeSet;
use std::iter;

use serde_json::Value;

use crate::core::command_line::{ParsedCommandLine, UnknownPart};
use crate::core::frame::Frame;
use crate::core::keys::{Key, KeyCode, Modifiers, NamedKey};
use crate::core::shell::activity::{ActivityState, Foreground};
use crate::core::shell::line_so_far::LineSoFar;
use crate::gateway::judging::JudgedCall;
use crate::gateway::judging::seen::{SeenCall, SeenTerminal};
use crate::surface::terminal::send::{keys_in, of_base64};
use crate::surface::tool::ToolRuns;

/// Characters at which line editors run a line, or may: with `C-x` and Escape begin commands of theirs.
const ENDS: [char; 5] = ['\n', '\r', '\u{f}', '\u{18}', '\u{1b}'];

/// How many rows a line has at most that is read from the screen.
const ROWS_MAX: u64 = 100;

/// What is typed, if that is known.
type Typed = Option<String>;

/// Who reads a line that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineReader {
    /// The session's own shell.
    OwnShell,
    /// Another program, which is a shell by its name.
    OtherShell,
    /// A program that is none. What it does not read, the shell reads later.
    Program,
}

/// The line that a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedLine {
    pub(super) reader: LineReader,
    /// What reads it shows nothing of it, so that it may be a password.
    pub(super) is_unshown: bool,
    /// What was typed before the call.
    pub(super) before: LineBefore,
    /// What the call types.
    typed: Typed,
}

/// What stands on a line before what a call types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineBefore {
    /// This, or nothing. What was typed and what the screen shows agree.
    Known(String),
    /// That is not known. Output or keys may have changed what is on the line, or on the screen.
    Unknown {
        /// What was typed since the last line ended.
        typed: Typed,
        /// What the screen shows.
        shown: Option<ShownLine>,
    },
}

impl LineBefore {
    /// What was typed in front of a program of which nothing says where its line begins.
    fn of_typed(line: &LineSoFar) -> Self {
        match line.text() {
            Some("") => Self::Known(String::new()),
            typed => Self::Unknown { typed: typed.map(str::to_owned), shown: None },
        }
    }
}

/// What the screen shows between the prompt and the end of the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownLine {
    pub(super) before_cursor: String,
    /// Such as what is suggested.
    pub(super) after_cursor: String,
}

impl TypedLine {
    /// All of the line, if it is known.
    pub(super) fn whole(&self) -> Typed {
        let LineBefore::Known(before) = &self.before else { return None };
        self.typed.as_ref().map(|typed| joined(before, typed))
    }

    /// What the line runs. Of one that is not known, what it would run if what was typed, or what the screen shows, is true.
    pub(super) fn parse(&self) -> ParsedCommandLine {
        let found = match &self.before {
            LineBefore::Known(_) => self.whole().map(|whole| self.read(&whole)),
            LineBefore::Unknown { .. } => None,
        };
        let found = found.unwrap_or_else(|| {
            let unknown = [UnknownPart::Typing].into();
            let unknown = ParsedCommandLine { unknown, ..Default::default() };
            self.perhaps().iter().map(|text| self.read(text)).fold(unknown, ParsedCommandLine::and)
        });
        if self.is_unshown { found.unshown() } else { found }
    }

    fn read(&self, text: &str) -> ParsedCommandLine {
        let parsed = ParsedCommandLine::parse(text);
        match self.reader {
            LineReader::OwnShell | LineReader::OtherShell => parsed,
            LineReader::Program => parsed.for_later(),
        }
    }

    /// What a line that is not known may be.
    pub(super) fn perhaps(&self) -> BTreeSet<String> {
        let (LineBefore::Unknown { typed: before, shown }, Some(typed)) =
            (&self.before, &self.typed)
        else {
            return BTreeSet::new();
        };
        let shown = shown.as_ref().filter(|it| it.after_cursor.trim().is_empty());
        let shown = shown.map(|it| &it.before_cursor);
        before.iter().chain(shown).map(|before| joined(before, typed)).collect()
    }
}

fn joined(before: &str, typed: &str) -> String {
    format!("{before}{typed}").trim_end_matches(['\n', '\r']).to_owned()
}

impl SeenCall<'_> {
    /// The line that the call ends, with what was typed before.
    pub(super) fn typed_line(self) -> Option<TypedLine> {
        let (typed, is_ended) = self.judged.typed()?;
        if !is_ended {
            return None;
        }
        let terminal = self.terminal?;
        let is_unshown = terminal.frame.activity.value.state == ActivityState::SecretPrompt;
        let (reader, before) = begun(terminal)?;
        let typed = match reader {
            LineReader::OwnShell | LineReader::OtherShell => typed,
            // What it asks for is its own. It leaves what follows to the shell.
            LineReader::Program if is_unshown => {
                Some(typed?.split_once(['\n', '\r'])?.1.to_owned()).filter(|it| !it.is_empty())
            }
            LineReader::Program => typed,
        };
        // Of keys to a program, most are no text.
        if reader == LineReader::Program && typed.is_none() {
            return None;
        }
        Some(TypedLine { reader, is_unshown, before, typed })
    }
}

impl JudgedCall<'_> {
    /// Whether it types, and a line may end in that.
    pub(super) fn ends_line(self) -> bool {
        self.typed().is_some_and(|(_, is_ended)| is_ended)
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
        KeyCode::Char(it) => key.modifiers.alt || key.modifiers.ctrl && "jmox[".contains(it),
        KeyCode::Named(it) => {
            matches!(it, NamedKey::Enter | NamedKey::Escape | NamedKey::Keypad(_))
        }
    };
    (keys.iter().map(character).collect(), keys.iter().any(ends))
}

/// Who reads what is typed next, and what stands on the line before it. None if nobody does.
fn begun(terminal: &SeenTerminal) -> Option<(LineReader, LineBefore)> {
    let SeenTerminal { frame, line, .. } = terminal;
    let (shell, activity) = (&frame.shell, &frame.activity.value);
    let commands = &frame.commands.value;
    let goes_on = || {
        let typed = line.text().map(str::to_owned);
        LineBefore::Unknown { typed, shown: shown(frame) }
    };
    let of_program = || match activity.foreground.as_ref().is_some_and(Foreground::is_shell) {
        true if shell.goes_on => (LineReader::OtherShell, goes_on()),
        true => (LineReader::OtherShell, LineBefore::of_typed(line)),
        false => (LineReader::Program, LineBefore::Known(String::new())),
    };
    // Its own shell has read an Enter and not run the line: it asks for the rest, or gives the line back to be looked at.
    let is_in_line = activity.state == ActivityState::NeedsInput && commands.reading_at().is_some();
    // An Enter is on its way, or the shell did something else with it.
    let is_at_prompt = commands.reading_at().is_none() || line.is_at_prompt(commands.prompts());
    match activity.state {
        ActivityState::Exited => None,
        _ if is_in_line => Some((LineReader::OwnShell, goes_on())),
        _ if shell.at_empty_line && is_at_prompt && line.text() == Some("") => {
            Some((LineReader::OwnShell, LineBefore::Known(String::new())))
        }
        ActivityState::Prompt if commands.reading_at().is_some() => {
            Some((LineReader::OwnShell, at_prompt(terminal)))
        }
        ActivityState::Prompt => Some((LineReader::OwnShell, LineBefore::of_typed(line))),
        ActivityState::SecretPrompt
        | ActivityState::Running
        | ActivityState::NeedsInput
        | ActivityState::FullScreen
        | ActivityState::Unknown => Some(of_program()),
    }
}

/// What stands on a line at a prompt that is marked. Anything that runs may write to the screen, and a shell may make another
/// text of its keys, so that only what both say is known.
fn at_prompt(terminal: &SeenTerminal) -> LineBefore {
    let SeenTerminal { frame, line, .. } = terminal;
    let prompts = frame.commands.value.prompts();
    match (line.text(), shown(frame)) {
        (Some(typed), Some(shown))
            if line.is_at_prompt(prompts) && shown.before_cursor == typed =>
        {
            LineBefore::Known(typed.to_owned())
        }
        (typed, shown) => LineBefore::Unknown { typed: typed.map(str::to_owned), shown },
    }
}

/// What the screen shows behind the prompt. A line may go on in further rows where it reached the edge.
fn shown(frame: &Frame) -> Option<ShownLine> {
    let (cursor, from) = (frame.cursor.value, frame.commands.value.reading_at()?);
    if cursor.row.0.checked_sub(from.row.0)? > ROWS_MAX {
        return None;
    }
    let (mut text, mut row, mut column) = (String::new(), from.row, from.col);
    while row < cursor.row {
        let (line, changed) = frame.any_line(row)?;
        let (next, _) = frame.any_line(row.plus(1))?;
        // Of rows before the last resize, nobody knows how many blanks they had at their end.
        if !line.wrapped || changed < frame.size.changed {
            return None;
        }
        text.push_str(line.text_between(column, u16::MAX));
        text.extend(iter::repeat_n(' ', frame.omitted_blanks(&line.text, changed, &next.text)));
        (row, column) = (row.plus(1), 0);
    }
    let line = &frame.line(row)?.value;
    text.push_str(line.text_between(column, cursor.col));
    // Blanks at the end of a row are no part of its text.
    let blanks = cursor.col.saturating_sub(line.columns().max(column));
    text.extend(iter::repeat_n(' ', blanks.into()));
    let after_cursor = line.text_between(cursor.col, u16::MAX).to_owned();
    Some(ShownLine { before_cursor: text, after_cursor })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::core::frame::Size;
    use crate::core::ids::{RowNumber, Watermark};
    use crate::core::moment::Moment;
    use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
    use crate::core::shell::ShellView;
    use crate::core::shell::activity::Activity;
    use crate::core::shell::commands::mark::{Mark, MarkKind};
    use crate::core::shell::commands::record::{CommandId, Here, Position};
    use crate::core::shell::commands::{Commands, EndsBy, ShellPhase};
    use crate::core::shell::readiness::{Readiness, ReadyPrompt};
    use crate::gateway::judging::facts::JudgedLine;
    use crate::surface::call_arguments::CallArguments;
    use crate::surface::terminal::send::SendText;
    use crate::surface::tool::ToolEntry;

    /// A terminal whose shell reads a line: this was typed since its prompt, and this is shown behind it.
    fn terminal(typed: &str, shown: &str) -> SeenTerminal {
        let size = Size { rows: 5, cols: 60 };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        screen.feed(Moment::default(), format!("$ {shown}").as_bytes());
        let mut frame = Frame::clone(&screen.first_frame(Moment::default(), &Facts::default()));
        let position = Position { row: RowNumber(0), col: 2 };
        let (list, phase) = (VecDeque::new(), ShellPhase::Reading);
        let mut commands =
            Commands::restored(list, CommandId(1), phase, Some(position), (None, None));
        let (top, now, mark) = (position.row, Moment::default(), Watermark(1));
        let here = Here { position, top, now, mark };
        for kind in [MarkKind::PromptStart, MarkKind::PromptEnd] {
            let mark = Mark { kind, text: None, untold: false, bound: true };
            commands.on_mark(mark, &here, None, None, |_| String::new());
        }
        frame.commands.value = commands.into();
        let state = ActivityState::Prompt;
        frame.activity.value = Activity { state, ..Activity::default() }.into();
        let readiness = Readiness::Ready(ReadyPrompt { ends_by: EndsBy::Marks, edits: true });
        let line = LineSoFar::typed_at_prompt(typed);
        frame.shell = ShellView { readiness, ..ShellView::default() }.into();
        SeenTerminal { frame: Arc::new(frame), line, directory: None }
    }

    /// What an approver is told of a call that types this there, and the programs that it is judged by.
    fn told(terminal: &SeenTerminal, text: &str) -> (String, Vec<String>, bool) {
        let entry = ToolEntry::of::<SendText>();
        let arguments = json!({"text": text}).as_object().expect("an object").clone();
        let arguments = CallArguments::Values(arguments);
        let judged = JudgedCall { entry: &entry, arguments: &arguments, session: None };
        let seen = SeenCall { judged, terminal: Some(terminal) };
        let typed = seen.typed_line().expect("it ends a line");
        let parsed = typed.parse();
        let programs = parsed.calls.iter().filter_map(|call| call.name.clone()).collect();
        let is_known = parsed.unknown.is_empty();
        let line = JudgedLine { parsed: Some(parsed), typed: Some(typed), ..JudgedLine::default() };
        let what = seen.what(&line, None);
        (what.split_once(", which").expect("it says so").1.to_owned(), programs, is_known)
    }

    #[test]
    fn a_line_is_known_where_what_was_typed_and_what_is_shown_agree() {
        let line = terminal("rm -rf a ", "rm -rf a ");
        let (what, programs, is_known) = told(&line, "b\n");
        assert_eq!(what, " ends the line: rm -rf a b");
        assert_eq!((programs, is_known), (vec!["rm".to_owned()], true));
        // What a shell suggests behind the cursor is no part of it.
        let suggested = terminal("ls", "ls -la /srv\u{1b}[9D");
        assert_eq!(told(&suggested, "\n").0, " ends the line: ls");
    }

    #[test]
    fn a_line_that_was_typed_is_not_empty_though_the_terminal_still_seems_so() {
        let mut before = terminal("rm -rf b", "");
        let mut frame = Frame::clone(&before.frame);
        frame.shell = ShellView { at_empty_line: true, ..ShellView::clone(&frame.shell) }.into();
        before.frame = Arc::new(frame);
        let (_, programs, is_known) = told(&before, "\n");
        assert_eq!((programs, is_known), (vec!["rm".to_owned()], false));
    }

    #[test]
    fn a_line_that_the_shell_gives_back_is_not_known() {
        let mut given_back = terminal("", "rm -rf b");
        let mut frame = Frame::clone(&given_back.frame);
        let state = ActivityState::NeedsInput;
        frame.activity.value = Activity { state, ..Activity::default() }.into();
        given_back.frame = Arc::new(frame);
        let (_, programs, is_known) = told(&given_back, "\n");
        assert_eq!((programs, is_known), (vec!["rm".to_owned()], false));
    }

    #[test]
    fn a_line_that_output_has_changed_is_not_known_and_judged_by_all_that_it_may_be() {
        let erased = terminal("touch a; rm -rf b", "touch a; rm -rf b\u{1b}[10D\u{1b}[K");
        let (what, programs, is_known) = told(&erased, "\n");
        let typed = "before it was typed: touch a; rm -rf b";
        assert_eq!(
            what,
            format!(" ends a line that is not known; {typed}; the screen shows: touch a")
        );
        assert_eq!((programs.contains(&"rm".to_owned()), is_known), (true, false));
        let replaced = terminal("gco main", "rm -rf main");
        assert!(told(&replaced, "\n").1.contains(&"rm".to_owned()));
    }
}
