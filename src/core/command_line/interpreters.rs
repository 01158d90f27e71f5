//! Interpreters other than shells, and whether they read what they run from their input.

use crate::core::command_line::arguments::{after_options, lists};
use crate::core::command_line::shells::is_descriptor;
use crate::core::command_line::{LineWord, ShellLineReader};

/// A program that runs the file which it is given, or what it reads. An option that is in no list may have it read.
struct Interpreter {
    /// Without a version.
    names: &'static str,
    /// Options without a value.
    plain: &'static str,
    /// Options with a value.
    valued: &'static str,
    /// Options whose value it runs, or by which it runs a module.
    given: &'static str,
}

const INTERPRETERS: [Interpreter; 7] = [
    Interpreter {
        names: "python pypy ipython",
        plain: "B b d E I O P q s S u v x",
        valued: "W X",
        given: "c m",
    },
    Interpreter { names: "perl", plain: "a n p l w W t T U s", valued: "I M m", given: "e E" },
    Interpreter { names: "ruby", plain: "a l n p s v w W U", valued: "I r E C", given: "e" },
    Interpreter {
        names: "node nodejs",
        plain: "no-warnings trace-warnings enable-source-maps no-deprecation",
        valued: "r require import C conditions",
        given: "e p eval print",
    },
    Interpreter { names: "php", plain: "n q", valued: "c d z", given: "r f" },
    Interpreter { names: "lua luajit", plain: "E W", valued: "l", given: "e" },
    Interpreter {
        names: "R Rscript julia tclsh",
        plain: "s q vanilla no-save quiet",
        valued: "",
        given: "e f",
    },
];

/// Programs that read commands from their input if an argument says so.
const READ_IF_TOLD: &str = "deno bun awk gawk mawk nawk original-awk make gmake sed";

impl ShellLineReader {
    /// Notes that an interpreter runs what it reads, if it does. Returns whether the program is one.
    pub(super) fn interpreter(&mut self, name: &str, arguments: &[LineWord]) -> bool {
        let unversioned = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
        let known = INTERPRETERS.iter().find(|it| lists(it.names, unversioned));
        let is_read = match known {
            Some(interpreter) => interpreter.reads_input(arguments),
            None if lists(READ_IF_TOLD, name) => is_told_to_read(name, arguments),
            None => return false,
        };
        self.interpreter_reads |= is_read;
        true
    }
}

impl Interpreter {
    fn reads_input(&self, arguments: &[LineWord]) -> bool {
        let (rest, is_known) = after_options(arguments, [self.plain, self.valued]);
        let Some(LineWord::Known(first)) = rest.first() else { return true };
        match (is_known, first.strip_prefix('-')) {
            (true, None | Some("")) => is_input(first),
            // What follows `--` has no options.
            (true, Some(_)) => false,
            (false, Some(option)) => !self.is_given(option),
            (false, None) => true,
        }
    }

    /// Whether this option, behind its first dash, is one whose value is run.
    fn is_given(&self, option: &str) -> bool {
        if let Some(long) = option.strip_prefix('-') {
            let name = long.split('=').next().unwrap_or_default();
            return name.len() > 1 && lists(self.given, name);
        }
        let mut letters = option.chars().map(|it| it.to_string());
        letters.find(|it| !lists(self.plain, it)).is_some_and(|it| lists(self.given, &it))
    }
}

/// Whether a file is the standard input, or another open descriptor.
fn is_input(file: &str) -> bool {
    file == "-" || is_descriptor(file)
}

/// Whether a program that reads commands from a file, or all that deno runs, is its input.
fn is_told_to_read(name: &str, arguments: &[LineWord]) -> bool {
    let mut words = arguments.iter().filter_map(LineWord::text).peekable();
    while let Some(word) = words.next() {
        let names_file = matches!(word, "-f" | "--file" | "--makefile");
        let attached = word.split_once('=').map(|(_, file)| file).or(word.strip_prefix("-f"));
        let next = words.peek().is_some_and(|next| names_file && is_input(next));
        let is_script = matches!(name, "deno" | "bun") && is_input(word);
        if next || is_script || attached.is_some_and(is_input) {
            return true;
        }
    }
    false
}
