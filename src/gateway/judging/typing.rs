//! The command line that text and keys end: at the prompt of a session's own shell, in another shell that was started
//! there, or ahead, while a program runs.

use std::iter;

use serde_json::Value;

use crate::core::command_line::{ParsedCommandLine, UnknownPart, is_shell};
use crate::core::frame::Frame;
use crate::core::keys::{Key, KeyCode, Modifiers, NamedKey};
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::EndsBy;
use crate::gateway::judging::JudgedCall;
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
    /// What was typed before the call, if that is known.
    pub(super) before: Typed,
    /// All of it, if that is known.
    pub(super) whole: Typed,
}

impl TypedLine {
    /// What the line runs.
    pub(super) fn parse(&self) -> ParsedCommandLine {
        match (&self.whole, self.reader) {
            (Some(text), LineReader::OwnShell | LineReader::OtherShell) => {
                ParsedCommandLine::parse(text)
            }
            (Some(text), LineReader::Program) => ParsedCommandLine::parse(text).for_later(),
            (None, _) => {
                ParsedCommandLine { unknown: [UnknownPart::Typing].into(), ..Default::default() }
            }
        }
    }
}

impl JudgedCall<'_> {
    /// The line that the call ends, with what was typed before.
    pub(super) fn typed_line(self) -> Option<TypedLine> {
        let (typed, is_ended) = self.typed()?;
        if !is_ended {
            return None;
        }
        let (reader, before) = begun(&self.session?.frame())?;
        // Of keys to a program, most are no text.
        if reader == LineReader::Program && typed.is_none() {
            return None;
        }
        let whole = before.as_ref().zip(typed).map(|(before, typed)| {
            let text = format!("{before}{typed}");
            text.trim_end_matches(['\n', '\r']).to_owned()
        });
        Some(TypedLine { reader, before, whole })
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

/// Who reads what is typed next, and what stands on the line before it, if that is known. None if a secret is typed.
fn begun(frame: &Frame) -> Option<(LineReader, Typed)> {
    let (shell, activity) = (&frame.shell, &frame.activity.value);
    if shell.at_empty_line {
        return Some((LineReader::OwnShell, Some(String::new())));
    }
    // The lines before have not been read yet, but they are whole.
    let of_whole_lines = || (!shell.half_line).then(String::new);
    match activity.state {
        ActivityState::Prompt if shell.readiness.ends_by() == Some(EndsBy::Marks) => {
            Some((LineReader::OwnShell, shown(frame)))
        }
        ActivityState::Prompt => Some((LineReader::OwnShell, of_whole_lines())),
        ActivityState::SecretPrompt | ActivityState::Exited => None,
        ActivityState::Running
        | ActivityState::NeedsInput
        | ActivityState::FullScreen
        | ActivityState::Unknown => {
            let program = activity.foreground.as_ref().and_then(|it| it.program.as_deref());
            Some(match program.is_some_and(is_shell) {
                true => (LineReader::OtherShell, of_whole_lines()),
                false => (LineReader::Program, Some(String::new())),
            })
        }
    }
}

/// What the screen shows between the prompt and the cursor, if nothing else of the line is elsewhere. A line may go on in
/// further rows where it reached the edge.
fn shown(frame: &Frame) -> Typed {
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
    let is_last = !line.wrapped && line.text_between(cursor.col, u16::MAX).trim().is_empty();
    text.push_str(line.text_between(column, cursor.col));
    // Blanks at the end of a row are no part of its text.
    let blanks = cursor.col.saturating_sub(line.columns().max(column));
    text.extend(iter::repeat_n(' ', blanks.into()));
    is_last.then_some(text)
}
