//! The line that is being typed, as far as its keys tell it.

use crate::core::keys::Piece;
use crate::core::shell::commands::record::CommandId;

/// The longest text that is kept, in bytes: no longer line is parsed.
const BYTES_MAX: usize = 16 * 1024;

const ENTERS: [char; 2] = ['\r', '\n'];
const INTERRUPT: char = '\u{3}';
const KILL: char = '\u{15}';
const ERASES: [char; 2] = ['\u{7f}', '\u{8}'];
/// Keys that end the input of a program, and change no line that ends where it is typed.
const ENDS_OF_PROGRAMS: [char; 2] = ['\u{4}', '\u{1c}'];

/// Two keys as keyboards encode them for programs that ask for it (kitty's protocol).
const ENCODED_INTERRUPT: &[u8] = b"\x1b[99;5u";
const ENCODED_KILL: &[u8] = b"\x1b[117;5u";

/// What was typed since the last line ended, by whomever, from when it was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSoFar {
    /// The text; `None` once another key may have changed the line.
    text: Option<String>,
    /// How many prompts the session's own shell had marked when the last line ended.
    ended_at: u64,
    /// A part of it was typed where nothing of it was shown, as a password is.
    unshown: bool,
    /// An Enter ended a line that such a key had changed, which may have made Enter a part of the line. A command that runs
    /// after this one says that it did not.
    unsure_since: Option<CommandId>,
    /// How often anything was typed or thrown away, so that two of these are told apart.
    turns: u64,
}

impl Default for LineSoFar {
    /// Nothing was typed yet.
    fn default() -> Self {
        let text = Some(String::new());
        Self { text, ended_at: 0, unshown: false, unsure_since: None, turns: 0 }
    }
}

/// How far the session's own shell is: its last command, and how many prompts it has marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellProgress {
    pub(super) command: CommandId,
    pub(super) prompts: u64,
}

/// What takes keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeysTaken {
    /// A shell, or a program that reads lines.
    AsLine,
    /// The same, but nothing of it is shown.
    Unshown,
    /// A program that reads single keys, of which none is left to the shell.
    AsKeys,
}

impl LineSoFar {
    /// Begins with a terminal that was just made, or was `found`: then it is unknown what was typed there before.
    pub(super) fn begin(found: bool) -> Self {
        if found { Self::unknown() } else { Self::default() }
    }

    /// It is unknown what was typed.
    pub fn unknown() -> Self {
        Self { text: None, ..Self::default() }
    }

    /// A line that was begun at an empty prompt, of which this was typed.
    #[cfg(test)]
    pub(crate) fn typed_at_prompt(text: &str) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// What was typed since the last line ended, if that is all that is on the line.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether it is all that is on the line at the newest of so many prompts of the session's own shell: the line before has
    /// surely ended there.
    pub fn is_at_prompt(&self, prompts: u64) -> bool {
        self.unsure_since.is_none() && prompts > self.ended_at
    }

    /// Whether it may be shown: no part of it was typed where a program shows none.
    pub fn may_be_shown(&self) -> bool {
        !self.unshown
    }

    /// How often anything was typed or thrown away.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Whether nothing was typed since the last line ended, and that is sure to have ended.
    pub(super) fn is_empty(&self, by_marks: bool) -> bool {
        self.text() == Some("") && (self.unsure_since.is_none() || !by_marks)
    }

    /// Notes the last command that was run.
    pub(super) fn on_commands(&mut self, last: CommandId) {
        self.unsure_since = self.unsure_since.filter(|since| *since >= last);
    }

    /// Notes that these keys are queued, after this command.
    pub(super) fn on_keys(&mut self, pieces: &[Piece], taken: KeysTaken, progress: ShellProgress) {
        self.turns += 1;
        let mut text = self.text.take();
        let mut in_paste = false;
        for piece in pieces {
            match piece {
                Piece::PasteStart => in_paste = true,
                Piece::PasteEnd => in_paste = false,
                Piece::Text(bytes) | Piece::Key(bytes) => {
                    let bytes = match bytes.as_slice() {
                        ENCODED_INTERRUPT => b"\x03",
                        ENCODED_KILL => b"\x15",
                        bytes => bytes,
                    };
                    for character in String::from_utf8_lossy(bytes).chars() {
                        self.on_character(&mut text, character, (in_paste, taken), progress);
                    }
                }
            }
        }
        self.text = text.filter(|text| text.len() <= BYTES_MAX);
    }

    fn on_character(
        &mut self,
        text: &mut Option<String>,
        character: char,
        (in_paste, taken): (bool, KeysTaken),
        progress: ShellProgress,
    ) {
        self.unshown |= taken == KeysTaken::Unshown;
        match character {
            // Within a paste they are a part of the line.
            it if in_paste && it.is_control() => *text = None,
            INTERRUPT => {
                // At an empty line it changes nothing, and not all shells mark another prompt for it.
                let was_empty = text.as_deref() == Some("") && self.is_at_prompt(progress.prompts);
                if !was_empty {
                    self.ended_at = progress.prompts;
                }
                *text = Some(String::new());
                (self.unshown, self.unsure_since) = (false, None);
            }
            it if ENTERS.contains(&it) => {
                if text.is_none() {
                    self.unsure_since = Some(progress.command);
                }
                *text = Some(String::new());
                (self.ended_at, self.unshown) = (progress.prompts, false);
            }
            _ if taken == KeysTaken::AsKeys => {}
            KILL => {
                if let Some(text) = text {
                    text.clear();
                }
            }
            it if ERASES.contains(&it) => erase(text),
            it if ENDS_OF_PROGRAMS.contains(&it) => {}
            it if it.is_control() || it == char::REPLACEMENT_CHARACTER => *text = None,
            it => {
                if let Some(text) = text {
                    text.push(it);
                }
            }
        }
    }

    /// Notes that a command is queued, which empties the line first.
    pub(super) fn on_command(&mut self) {
        (self.text, self.unshown) = (Some(String::new()), false);
        self.turns += 1;
    }

    /// Notes that this line goes on from one that nobody knows any more.
    pub(super) fn go_on_after(&mut self, turns: u64) {
        self.turns = turns + 1;
    }

    /// Notes that some of what was queued is not typed.
    pub(super) fn on_discarded(&mut self) {
        self.text = None;
        self.turns += 1;
    }
}

/// Removes the last character. What one key removes of others than ASCII, line editors do not agree on.
fn erase(text: &mut Option<String>) {
    let is_plain = |text: &String| text.is_empty() || text.ends_with(|it: char| it.is_ascii());
    *text = text.take().filter(is_plain);
    text.as_mut().and_then(String::pop);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell has run one command, and is at its second prompt.
    const AT: ShellProgress = ShellProgress { command: CommandId(1), prompts: 2 };

    /// A line that was begun at an empty prompt, after this was typed.
    fn typed(text: &str) -> LineSoFar {
        let mut line = LineSoFar::begin(false);
        line.on_keys(&[Piece::Text(text.as_bytes().to_vec())], KeysTaken::AsLine, AT);
        line
    }

    #[test]
    fn plain_text_is_the_line_and_other_keys_make_it_unknown() {
        for (keys, text) in [
            ("ls -l", Some("ls -l")),
            ("lss\u{7f}", Some("ls")),
            ("rm\u{15}ls", Some("ls")),
            ("ls\u{4}", Some("ls")),
            ("é\u{7f}", None),
            ("l\t", None),
            ("\u{1b}[A", None),
            ("a\u{1}b", None),
            ("\u{1b}[A\u{15}", None),
        ] {
            let line = typed(keys);
            assert_eq!((line.text(), line.is_at_prompt(2)), (text, true), "{keys:?}");
        }
        assert_eq!(typed("a\rb").text(), Some("b"));
        assert!(!typed("a\rb").is_at_prompt(2), "the prompt is still to come");
        assert!(typed("a\rb").is_at_prompt(3));
        assert!(!typed("\t\rb").is_at_prompt(3), "the line may go on");
        assert_eq!(typed("\t\u{3}b").text(), Some("b"));
        assert!(typed("\u{3}b").is_at_prompt(2), "some shells mark no other prompt");
        assert!(!typed("a\u{3}b").is_at_prompt(2), "some shells ignore it");
        assert!(!typed("a\u{1}\u{3}b").is_at_prompt(2), "some shells ignore it");
        assert_eq!(typed(&"x".repeat(BYTES_MAX + 1)).text(), None);
    }

    #[test]
    fn a_paste_is_text_unless_it_has_line_ends() {
        let paste = |text: &str| {
            let mut line = typed("a ");
            let text = Piece::Text(text.as_bytes().to_vec());
            line.on_keys(&[Piece::PasteStart, text, Piece::PasteEnd], KeysTaken::AsLine, AT);
            line
        };
        assert_eq!(paste("b").text(), Some("a b"));
        assert_eq!(paste("b\rc").text(), None);
        assert_eq!(paste("b\u{3}").text(), None);
    }

    #[test]
    fn what_a_program_takes_as_keys_is_no_text() {
        let mut line = typed("less x\r");
        line.on_keys(
            &[Piece::Key(b"\x1b[B".to_vec()), Piece::Text(b"q".to_vec())],
            KeysTaken::AsKeys,
            AT,
        );
        assert!(line.is_empty(true));
    }

    #[test]
    fn an_edited_line_has_ended_once_a_command_ran_or_it_was_interrupted() {
        let mut line = typed("\u{16}\r");
        assert!(!line.is_empty(true));
        line.on_commands(CommandId(1));
        assert!(!line.is_empty(true));
        line.on_commands(CommandId(2));
        assert!(line.is_empty(true));
        assert!(typed("\u{16}\r\u{3}").is_empty(true));
    }

    #[test]
    fn what_was_typed_where_nothing_shows_is_not_shown_until_its_line_ends() {
        let mut line = LineSoFar::begin(false);
        line.on_keys(&[Piece::Text(b"hunter2".to_vec())], KeysTaken::Unshown, AT);
        assert_eq!((line.text(), line.may_be_shown()), (Some("hunter2"), false));
        line.on_keys(&[Piece::Key(b"\r".to_vec())], KeysTaken::AsLine, AT);
        assert!(line.may_be_shown());
    }

    #[test]
    fn keys_that_are_encoded_in_another_way_are_the_same() {
        let mut line = typed("rm");
        line.on_keys(&[Piece::Key(ENCODED_KILL.to_vec())], KeysTaken::AsLine, AT);
        assert_eq!(line.text(), Some(""));
    }

    #[test]
    fn each_write_and_each_loss_is_another_state() {
        let mut line = typed("");
        for turn in 1..3 {
            assert_eq!(line.turns(), turn);
            line.on_keys(&[], KeysTaken::AsLine, AT);
        }
        line.on_discarded();
        assert_eq!((line.turns(), line.text()), (4, None));
    }
}
