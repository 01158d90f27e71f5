//! Options of programs whose value is a command.

use crate::core::command_line::arguments::{lists, values};
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// Programs, and their options whose value is a command line.
const LINES: [(&str, &str); 10] = [
    (
        "tar bsdtar gtar",
        "I F use-compress-program to-command info-script new-volume-script rsh-command rmt-command checkpoint-action",
    ),
    ("man", "P H pager html"),
    ("rsync", "e rsh rsync-path"),
    ("scp sftp", "S"),
    ("sort gsort", "compress-program"),
    ("split gsplit", "filter"),
    ("zip", "TT unzip-command"),
    ("bat ack ag delta", "pager"),
    ("hyperfine", "p c s prepare cleanup setup conclude"),
    ("dpkg", "pre-invoke post-invoke status-logger"),
];

/// Programs, and their options whose value runs something in a language of its own, or names what does.
const NOT_FOLLOWED: [(&str, &str); 7] = [
    ("vi vim nvim view gvim ex rvim vimdiff nvim-qt", "c S s u cmd"),
    ("emacs", "f l eval execute funcall load script batch"),
    ("gdb lldb", "x ex ix iex o S command eval-command init-command init-eval-command"),
    ("rg", "pre hostname-bin"),
    ("apt apt-get aptitude", "o option c config-file"),
    ("rpm rpmbuild", "E eval D define pipe"),
    ("hg", "config"),
];

/// Programs that take a command behind `+`.
const RUNS_BEHIND_PLUS: &str = "vi vim nvim view gvim ex rvim vimdiff less more most";

impl ShellLineReader {
    /// Reads what a program is told to run by its options.
    pub(super) fn run_by_options(&mut self, name: &str, arguments: &[LineWord]) {
        let of = |table: &'static [(&str, &'static str)]| {
            table.iter().find(|(names, _)| lists(names, name)).map(|(_, options)| *options)
        };
        if let Some(options) = of(&LINES) {
            for value in values(arguments, options) {
                match value.text() {
                    Some(value) => {
                        let line = value.strip_prefix("exec=").unwrap_or(value);
                        self.shown_to(name, line);
                    }
                    None => self.note(UnknownPart::Evaluation),
                }
            }
        }
        if matches!(name, "scp" | "sftp") {
            self.settings(arguments);
        }
        let is_told = |options| !values(arguments, options).is_empty();
        let runs = |word: &str| {
            word.strip_prefix('+').is_some_and(|it| {
                !(it.is_empty()
                    || it.starts_with([
                        '/', 'G', 'F', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
                    ]))
                    || it.contains('!')
            })
        };
        let is_behind =
            lists(RUNS_BEHIND_PLUS, name) && arguments.iter().filter_map(LineWord::text).any(runs);
        if is_behind || of(&NOT_FOLLOWED).is_some_and(is_told) {
            self.note(UnknownPart::Wrapper);
        }
    }
}
