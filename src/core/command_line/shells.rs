//! Shells that are started by a line, and what their builtins run or change.
//!
//! A builtin that is not known to be harmless may do anything.

use crate::core::command_line::arguments::{after_options, lists, lists_word};
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// Shells that read POSIX syntax.
const SHELLS: &str = "sh bash dash zsh ksh mksh lksh ash yash rbash posh";
/// What fish reads in another way: backslashes in single quotes are escapes, parentheses have commands, and `>?` redirects.
/// Without these, a line of POSIX is the same line for it, or none at all.
const READ_OTHERWISE_BY_FISH: [&str; 5] = ["\\", "(", ")", "`", ">?"];
/// Shells of another syntax.
const OTHER_SHELLS: &str = "fish csh tcsh rc es pwsh nu elvish xonsh osh ysh";
/// The letters of shells' options that neither take a value nor say where commands come from.
const PLAIN_LETTERS: &str = "abefhiklmnprtuvxBCEHPT";
const PLAIN_LONG: &str = "login noprofile norc posix restricted verbose noediting";

/// Builtins that run nothing and change nothing but the place, the end and the jobs of a shell.
const HARMLESS: &str = ": true false echo cd pwd pushd popd dirs exit return break continue shift times umask ulimit \
    type logout suspend bg fg disown kill";
/// Settings that only say how a shell reports and ends.
const HARMLESS_SETTINGS: &str = "allexport errexit nounset pipefail xtrace verbose noclobber";
const HARMLESS_SHOPTS: &str = "-s -u -q nullglob globstar dotglob failglob nocaseglob nocasematch inherit_errexit lastpipe checkwinsize";
/// Builtins that set the variables which they are given.
const DECLARING: &str = "export readonly declare typeset local";
/// Other builtins of bash, zsh, ksh and mksh.
const BUILTINS: &str = "alias autoload bind bindkey caller cap clone compadd comparguments compcall compctl compdescribe \
    compfiles compgen compgroups complete compopt compquote compset comptags comptry compvalues coproc disable echotc \
    echoti emulate enable eval fc float functions getcap getln getopts hash history integer jobs let limit log mapfile \
    noglob print printf private r read readarray rehash repeat sched set setcap setopt shopt source stat strftime \
    syntax_highlighting test trap ttyctl unalias unfunction unhash unlimit unset unsetopt vared wait whence where which \
    zcompile zformat zftp zle zmodload zparseopts zprof zpty zregexparse zselect zsocket zstat zstyle zsystem ztcp \
    [ . hist nameref global rename wait-n";

/// Whether a program of this name is a shell that reads POSIX syntax.
pub fn is_shell(name: &str) -> bool {
    lists(SHELLS, name)
}

/// Whether this shell may read a line in another way than POSIX has it.
pub fn reads_otherwise(shell: &str, line: &str) -> bool {
    let is_otherwise_for_fish = || READ_OTHERWISE_BY_FISH.iter().any(|it| line.contains(it));
    lists(OTHER_SHELLS, shell) && (shell != "fish" || is_otherwise_for_fish())
}

/// Whether a shell runs this itself.
pub(super) fn is_builtin(name: &str) -> bool {
    [HARMLESS, DECLARING, BUILTINS].iter().any(|names| lists(names, name))
}

impl ShellLineReader {
    pub(super) fn builtin_or_shell(&mut self, name: &str, arguments: &[LineWord]) {
        match name {
            "eval" => match arguments.first().and_then(LineWord::text) {
                Some("--") => self.joined(name, &arguments[1..]),
                Some(option) if option.starts_with('-') => self.note(UnknownPart::Evaluation),
                Some(_) | None => self.joined(name, arguments),
            },
            "trap" => self.trap(arguments),
            "source" | "." => self.note(match arguments.first() {
                Some(LineWord::Known(file)) if !is_descriptor(file) => UnknownPart::Sourced,
                Some(_) | None => UnknownPart::ShellInput,
            }),
            "set" if are_plain_settings(arguments) => {}
            "shopt" if arguments.iter().all(|it| lists_word(HARMLESS_SHOPTS, it)) => {}
            "read" => self.read_variables(arguments),
            "unset" => self.unset(arguments),
            "history" if arguments.iter().all(is_digits) => {}
            "alias" if arguments.iter().all(is_plain_name) => {}
            "test" | "[" => self.old_test(arguments),
            "printf" if arguments.first().is_none_or(|it| !it.may_be_flag()) => {
                let is_number = |it: &LineWord| {
                    it.text().is_none_or(|it| it.split('%').skip(1).any(begins_with_number))
                };
                if arguments.first().is_some_and(is_number)
                    && arguments[1..].iter().any(may_be_index)
                {
                    self.note(UnknownPart::Builtin);
                }
            }
            // zsh computes their arguments.
            "shift" | "exit" | "return" | "break" | "continue" | "logout"
                if arguments.iter().any(may_be_index) =>
            {
                self.note(UnknownPart::Builtin);
            }
            "wait" if arguments.iter().all(|it| !it.may_be_flag() || lists_word("-n -f", it)) => {}
            "jobs"
                if arguments
                    .iter()
                    .all(|it| !it.may_be_flag() || lists_word("-l -p -r -s", it)) => {}
            "which" | "where" | "stat" => {}
            "su" => self.other_user(arguments),
            _ if lists(DECLARING, name) => self.declared(arguments),
            _ if lists(HARMLESS, name) => {}
            _ if lists(BUILTINS, name) => self.note(UnknownPart::Builtin),
            _ if lists(SHELLS, name) => self.shell(name, arguments),
            _ if lists(OTHER_SHELLS, name) && arguments.is_empty() => self.shell_reads = true,
            _ if lists(OTHER_SHELLS, name) => self.note(UnknownPart::Wrapper),
            _ => {}
        }
    }

    fn trap(&mut self, arguments: &[LineWord]) {
        let arguments = match arguments.first().map(LineWord::text) {
            Some(Some("--")) => &arguments[1..],
            Some(_) | None => arguments,
        };
        match arguments.first() {
            Some(first) if first.may_be_flag() => self.note(UnknownPart::Builtin),
            Some(_) => self.joined("trap", &arguments[..1]),
            None => {}
        }
    }

    /// Takes the variables of a builtin that sets them.
    fn declared(&mut self, arguments: &[LineWord]) {
        for whole_word in arguments {
            let word = whole_word.beginning();
            let is_plain = |letter: char| matches!(letter, 'x' | 'g' | 'r');
            if word.strip_prefix('-').is_some_and(|it| !it.is_empty() && it.chars().all(is_plain)) {
                continue;
            }
            let (whole, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let name = whole.trim_end_matches('+');
            let is_appended = name != whole;
            let is_name =
                !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
            // The value of some variables is computed.
            match (is_name, value) {
                (true, None) => _ = self.found.sets.insert(name.to_owned()),
                (true, Some(value)) => {
                    if value.contains('[') {
                        self.note(UnknownPart::Builtin);
                    }
                    let value = whole_word.behind(word.len() - value.len());
                    let is_sure = self.is_sure && self.through.is_empty() && !is_appended;
                    let sure = Some(&value).filter(|_| is_sure).cloned();
                    self.variables.set_to(name, value.is_number(), sure);
                    self.variable(name, value.text());
                }
                (false, _) => self.note(UnknownPart::Builtin),
            }
        }
    }

    /// Takes the variables that `read` sets.
    fn read_variables(&mut self, arguments: &[LineWord]) {
        let mut rest = arguments;
        loop {
            let (after, is_known) = after_options(rest, ["r s e", "p t n N d u"]);
            let Some((word, after)) = after.split_first() else { return };
            if !is_known || !is_plain_name(word) {
                return self.note(UnknownPart::Builtin);
            }
            let name = word.text().unwrap_or_default();
            self.variables.set(name, false);
            self.variable(name, None);
            rest = after;
        }
    }

    fn unset(&mut self, arguments: &[LineWord]) {
        for word in arguments {
            match word.text() {
                Some("-v") => {}
                Some(name) if is_plain_name(word) => {
                    self.variables.set(name, false);
                    self.variable(name, None);
                }
                Some(_) | None => self.note(UnknownPart::Builtin),
            }
        }
    }

    /// `test` evaluates the index of an array, and in some shells numbers as arithmetic.
    fn old_test(&mut self, arguments: &[LineWord]) {
        const COMPARES: &str = "-eq -ne -lt -le -gt -ge";
        let words: Vec<&str> = arguments.iter().filter_map(LineWord::text).collect();
        let compares = words.iter().any(|word| lists(COMPARES, word));
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let is_fine = |word: &&str| match compares {
            true => is_number(word) || word.starts_with('-') || matches!(*word, "]" | "!"),
            false => !word.contains('[') && !matches!(*word, "-v" | "-R"),
        };
        if !words.iter().all(is_fine) {
            self.note(UnknownPart::Builtin);
        }
    }

    /// Reads what a shell is started for.
    fn shell(&mut self, name: &str, arguments: &[LineWord]) {
        let mut rest = arguments.iter();
        let (mut has_line, mut reads_input, mut values) = (false, false, 0);
        let first = loop {
            let Some(word) = rest.next() else { break None };
            let Some(word) = word.text() else { return self.note(UnknownPart::Evaluation) };
            let Some(letters) = word.strip_prefix(['-', '+']) else { break Some(word) };
            match letters {
                "" | "-" => break rest.next().and_then(LineWord::text),
                long if long.starts_with('-') && lists(PLAIN_LONG, &long[1..]) => {}
                "-rcfile" | "-init-file" => return self.note(UnknownPart::Sourced),
                // bash takes long names behind one dash too.
                long if lists(PLAIN_LONG, long) || lists("rcfile init-file", long) => {
                    return self.note(UnknownPart::Wrapper);
                }
                letters => {
                    for letter in letters.chars() {
                        match letter {
                            'c' => has_line = true,
                            's' => reads_input = true,
                            'o' | 'O' => values += 1,
                            plain if PLAIN_LETTERS.contains(plain) => {}
                            _ => return self.note(UnknownPart::Wrapper),
                        }
                    }
                    while values > 0 {
                        values -= 1;
                        rest.next();
                    }
                }
            }
        };
        match first {
            Some(line) if has_line => self.inside(name, |reader| reader.script(line)),
            None if has_line => self.note(UnknownPart::Evaluation),
            Some(file) if !reads_input && !is_descriptor(file) => {}
            Some(_) => self.note(UnknownPart::ShellInput),
            // At a terminal, where what is typed is judged when it comes.
            None => self.shell_reads = true,
        }
    }

    /// Reads the line of `su`, if that is its only option but for a login.
    fn other_user(&mut self, arguments: &[LineWord]) {
        let mut rest = arguments.iter();
        let (mut line, mut is_known) = (None, true);
        while let Some(word) = rest.next() {
            match word.text() {
                Some("-" | "-l" | "--login") => {}
                Some("-c" | "--command") if line.is_none() => {
                    line = rest.next().and_then(LineWord::text).map(str::to_owned);
                    is_known &= line.is_some();
                }
                Some(given) if given.starts_with("--command=") && line.is_none() => {
                    line = given.split_once('=').map(|(_, line)| line.to_owned());
                }
                Some(option) if option.starts_with('-') => is_known = false,
                Some(_) => {}
                None => is_known = false,
            }
        }
        match line {
            Some(line) if is_known => self.inside("su", |reader| reader.script(&line)),
            Some(_) => self.note(UnknownPart::Evaluation),
            None if is_known => self.shell_reads = true,
            None => self.note(UnknownPart::Evaluation),
        }
    }
}

/// Whether `set` only says how a shell reports and ends, or sets parameters.
fn are_plain_settings(arguments: &[LineWord]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text() {
            Some("--") => return true,
            Some("-o" | "+o") => match words.next() {
                Some(name) if lists_word(HARMLESS_SETTINGS, name) => {}
                Some(_) | None => return false,
            },
            Some(word) => {
                let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
                let takes_name = letters.strip_suffix('o');
                let plain = takes_name.unwrap_or(letters);
                if plain.is_empty() || !plain.chars().all(|it| "aeuxvC".contains(it)) {
                    return false;
                }
                if takes_name.is_some()
                    && !words.next().is_some_and(|it| lists_word(HARMLESS_SETTINGS, it))
                {
                    return false;
                }
            }
            None => return false,
        }
    }
    true
}

fn is_digits(word: &LineWord) -> bool {
    word.text().is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a word can name a variable.
fn is_plain_name(word: &LineWord) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let begins = |it: &str| it.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    word.text().is_some_and(|it| begins(it) && it.chars().all(is_part))
}

/// Whether a word has an index of an array, which zsh computes where it wants a number.
fn may_be_index(word: &LineWord) -> bool {
    word.text().is_some_and(|it| it.contains('['))
}

/// Whether this part of a format, behind its `%`, writes a number.
fn begins_with_number(part: &str) -> bool {
    let letter = part.trim_start_matches(|it: char| it.is_ascii_digit() || "#-+ .*'".contains(it));
    letter.starts_with(['d', 'i', 'o', 'u', 'x', 'X', 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A'])
}

/// Whether a file is an open descriptor, such as standard input.
pub(super) fn is_descriptor(file: &str) -> bool {
    file.starts_with("/dev/") || file.starts_with("/proc/")
}
