//! What `tmux` and `screen` run. Most of their commands may run something.

use crate::core::command_line::arguments::{after_options, lists, lists_word};
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// What of `tmux` shows sessions, and begins one.
const TMUX_SHOWS: &str = "ls list-sessions a at attach attach-session has has-session lsw list-windows lsp list-panes \
    lsc list-clients info capturep capture-pane -V";
const TMUX_BEGINS: &str = "new new-session neww new-window";
const OF_TMUX_BEGINS: [&str; 2] = ["A a d D E P k S", "c F n s t x y"];
/// Options of `screen` that show sessions.
const SCREEN_SHOWS: &str = "-ls -list -x -r -d -D -R";

impl ShellLineReader {
    pub(super) fn screen(&mut self, arguments: &[LineWord]) {
        if !arguments.iter().all(shows_screens) {
            self.note(UnknownPart::Wrapper);
        }
    }

    /// Reads what `tmux` is to run in a new session. It takes `;` for the end of a command, and formats may run some.
    pub(super) fn tmux(&mut self, arguments: &[LineWord]) {
        let is_plain = |it: &str| !it.ends_with(';') && !it.contains("#(");
        let are_plain = arguments.iter().all(|it| it.text().is_some_and(is_plain));
        match arguments.split_first() {
            None => {}
            Some((first, _)) if are_plain && lists_word(TMUX_SHOWS, first) => {}
            Some((first, rest)) if are_plain && lists_word(TMUX_BEGINS, first) => {
                match after_options(rest, OF_TMUX_BEGINS) {
                    ([], true) => {}
                    (line @ [_], true) => self.joined("tmux", line),
                    (words, true) => self.inside("tmux", |reader| reader.call(words.to_vec())),
                    (_, false) => self.note(UnknownPart::Wrapper),
                }
            }
            Some(_) => self.note(UnknownPart::Wrapper),
        }
    }
}

/// Whether an argument of `screen` is a session, or an option that shows some.
fn shows_screens(word: &LineWord) -> bool {
    word.text().is_some_and(|it| !it.starts_with('-') || lists(SCREEN_SHOWS, it))
}
