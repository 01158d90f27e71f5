//! Programs that run another program or line which they are given.

use crate::core::command_line::{KnownWord, ProgramCall, ShellLineReader, UnknownPart};

/// From where a shell has its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellInput {
    /// It is typed, so the shell may take parts of it from its history.
    Interactive,
    Script,
}

/// A program that runs the command which follows its own options.
struct Wrapper {
    names: &'static [&'static str],
    /// Its options that take a value, which may be the next word.
    valued: &'static [&'static str],
    /// How many operands come before the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &[
            "command",
            "builtin",
            "nohup",
            "setsid",
            "busybox",
            "toybox",
            "noglob",
            "nocorrect",
        ],
        valued: &[],
        operands: 0,
    },
    Wrapper { names: &["exec"], valued: &["a"], operands: 0 },
    Wrapper {
        names: &["sudo"],
        valued: &[
            "u",
            "g",
            "h",
            "p",
            "C",
            "r",
            "t",
            "T",
            "U",
            "D",
            "R",
            "user",
            "group",
            "host",
            "prompt",
            "close-from",
            "role",
            "type",
            "command-timeout",
            "other-user",
            "chdir",
            "chroot",
        ],
        operands: 0,
    },
    Wrapper { names: &["doas"], valued: &["u", "C"], operands: 0 },
    Wrapper { names: &["env"], valued: &["u", "C", "unset", "chdir"], operands: 0 },
    Wrapper { names: &["nice"], valued: &["n", "adjustment"], operands: 0 },
    Wrapper { names: &["ionice"], valued: &["c", "n", "p", "class", "classdata"], operands: 0 },
    Wrapper { names: &["time"], valued: &["f", "o", "format", "output"], operands: 0 },
    Wrapper {
        names: &["stdbuf"],
        valued: &["i", "o", "e", "input", "output", "error"],
        operands: 0,
    },
    Wrapper { names: &["timeout"], valued: &["k", "s", "kill-after", "signal"], operands: 1 },
    Wrapper { names: &["chroot"], valued: &["userspec", "groups"], operands: 1 },
    Wrapper { names: &["taskset"], valued: &[], operands: 1 },
    Wrapper {
        names: &["flock"],
        valued: &["w", "E", "timeout", "conflict-exit-code"],
        operands: 1,
    },
    Wrapper {
        names: &[
            "unshare",
            "nsenter",
            "bwrap",
            "firejail",
            "proot",
            "fakeroot",
            "strace",
            "ltrace",
            "catchsegv",
            "systemd-run",
            "runuser",
            "setpriv",
            "unbuffer",
            "rlwrap",
            "parallel",
            "entr",
            "script",
            "expect",
            "screen",
            "tmux",
        ],
        valued: &[],
        operands: usize::MAX,
    },
    Wrapper {
        names: &["xargs"],
        valued: &[
            "I",
            "n",
            "P",
            "L",
            "d",
            "s",
            "a",
            "E",
            "max-args",
            "max-procs",
            "max-lines",
            "delimiter",
            "max-chars",
            "arg-file",
        ],
        operands: 0,
    },
];

/// Shells, which read a line with `-c`.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

/// The options of `ssh` that take a value.
const SSH_VALUED: &str = "bcDEeFIiJLlmOopQRSWw";

fn wrapper_of(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|it| it.names.contains(&name))
}

/// The arguments of a program that are not those of a program which it runs.
pub(super) fn own_arguments<'a>(name: &str, arguments: &'a [KnownWord]) -> &'a [KnownWord] {
    let rest = wrapper_of(name).map_or(0, |it| after_options(arguments, it.valued).0.len());
    &arguments[..arguments.len() - rest]
}

impl ShellLineReader {
    /// Reads what a call runs in turn.
    pub(super) fn inner_calls(&mut self, call: &ProgramCall) {
        let Some(name) = call.name.as_deref() else {
            return;
        };
        let arguments = &call.arguments;
        if let Some(wrapper) = wrapper_of(name) {
            return self.wrapped(name, wrapper, arguments);
        }
        match name {
            "eval" => self.joined(name, arguments, ShellInput::Script),
            "watch" => self.joined(
                name,
                after_options(arguments, &["n", "interval"]).0,
                ShellInput::Script,
            ),
            "ssh" => self.remote(arguments),
            "find" | "fd" | "fdfind" => self.found_files(name, arguments),
            "trap" if !arguments.is_empty() => {
                self.joined(name, &arguments[..1], ShellInput::Script)
            }
            "alias" | "unalias" | "enable" | "hash" | "bind" | "complete" | "set" | "shopt"
            | "zle" | "autoload" | "functions"
                if !arguments.is_empty() =>
            {
                self.note(UnknownPart::Definition);
            }
            "source" | "." => self.note(UnknownPart::Sourced),
            "su" => self.shell(name, arguments),
            _ if SHELLS.contains(&name) => self.shell(name, arguments),
            _ => {}
        }
    }

    fn inside<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.through.push(name.to_owned());
        let read = read(self);
        self.through.pop();
        read
    }

    fn wrapped(&mut self, name: &str, wrapper: &Wrapper, arguments: &[KnownWord]) {
        if wrapper.operands == usize::MAX {
            return self.note(UnknownPart::Evaluation);
        }
        let (mut rest, has_split) = after_options(arguments, wrapper.valued);
        if name == "env" && has_split {
            self.note(UnknownPart::Evaluation);
        }
        if matches!(name, "env" | "sudo" | "doas") {
            while let Some(Some(word)) = rest.first()
                && let Some((variable, _)) = word.split_once('=')
            {
                self.found.sets.insert(variable.to_owned());
                rest = &rest[1..];
            }
        }
        rest = rest.get(wrapper.operands..).unwrap_or_default();
        let mut words = rest.to_vec();
        if words.is_empty() {
            return;
        }
        if name == "xargs" {
            // More arguments come from its input.
            words.push(None);
        }
        self.inside(name, |reader| reader.call(words));
    }

    /// Reads a line that is given in several words.
    fn joined(&mut self, name: &str, words: &[KnownWord], input: ShellInput) {
        let known: Option<Vec<&str>> = words.iter().map(Option::as_deref).collect();
        match known {
            Some(words) => self.inside(name, |reader| reader.line(&words.join(" "), input)),
            None => self.note(UnknownPart::Evaluation),
        }
    }

    fn remote(&mut self, arguments: &[KnownWord]) {
        let valued: Vec<&str> = SSH_VALUED.split("").filter(|it| !it.is_empty()).collect();
        let is_command = |word: &KnownWord| {
            word.as_ref().is_some_and(|it| it.starts_with("-o") || it.starts_with("-F"))
        };
        // An option or a file of options can name a command that runs here.
        if arguments.iter().any(is_command) {
            self.note(UnknownPart::Evaluation);
        }
        let (rest, _) = after_options(arguments, &valued);
        let (host, line) =
            rest.split_first().map_or((None, rest), |(host, line)| (Some(host), line));
        if host.is_some() && !line.is_empty() {
            // Options may follow the host, too.
            let (line, _) = after_options(line, &valued);
            self.joined("ssh", line, ShellInput::Script);
        }
    }

    /// Reads the commands that are run for files which were found.
    fn found_files(&mut self, name: &str, arguments: &[KnownWord]) {
        const RUNS: [&str; 8] =
            ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
        let mut rest = arguments;
        while let Some(at) =
            rest.iter().position(|it| it.as_deref().is_some_and(|it| RUNS.contains(&it)))
        {
            rest = &rest[at + 1..];
            let ends = |it: &KnownWord| matches!(it.as_deref(), Some(";" | "+"));
            let end = rest.iter().position(ends).unwrap_or(rest.len());
            let file = |it: &KnownWord| it.clone().filter(|it| !it.contains("{}"));
            let mut words: Vec<KnownWord> = rest[..end].iter().map(file).collect();
            if name != "find" {
                words.push(None);
            }
            self.inside(name, |reader| reader.call(words));
            rest = &rest[end..];
        }
    }

    /// Reads what a shell is started for.
    fn shell(&mut self, name: &str, arguments: &[KnownWord]) {
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(word) = word else {
                return self.note(UnknownPart::Evaluation);
            };
            let letters = word.strip_prefix(['-', '+']);
            match letters {
                Some("-command") => return self.given_line(name, rest.next()),
                Some(long) if long.starts_with('-') && long.len() > 1 => {
                    match long.strip_prefix("-command=") {
                        Some(line) => return self.given_line(name, Some(&Some(line.to_owned()))),
                        // A file with commands, unlike the other long options.
                        None if matches!(long, "-rcfile" | "-init-file" | "-init-command") => {
                            return self.note(UnknownPart::Sourced);
                        }
                        None => {}
                    }
                }
                // `-O` and `-o` take a value.
                Some(letters) if letters.ends_with(['o', 'O']) && !letters.contains('c') => {
                    _ = rest.next()
                }
                Some(letters) if letters.contains('c') && word.starts_with('-') => {
                    return self.given_line(name, rest.next());
                }
                Some(letters) if letters.contains('s') => {
                    return self.note(UnknownPart::ShellInput);
                }
                Some(_) => {}
                // The name of a user, or a file of commands that another process reads.
                None if name == "su" => {}
                None => return,
            }
        }
        if name != "su" {
            self.note(UnknownPart::ShellInput);
        }
    }

    fn given_line(&mut self, name: &str, line: Option<&KnownWord>) {
        match line {
            Some(Some(line)) if name == "fish" && !is_common(line) => {
                self.note(UnknownPart::Syntax)
            }
            Some(Some(line)) => self.inside(name, |reader| reader.line(line, ShellInput::Script)),
            Some(None) | None => self.note(UnknownPart::Evaluation),
        }
    }
}

/// Whether fish reads a line as other shells do: words, lists and pipelines only.
pub(super) fn is_common(line: &str) -> bool {
    !line.contains(['(', ')', '{', '}', '$', '`', '\\', '<', '>', '^', '~', '%', '#', '='])
}

/// The words after the options, and whether one of them was a line to split (`env -S`).
fn after_options<'a>(arguments: &'a [KnownWord], valued: &[&str]) -> (&'a [KnownWord], bool) {
    let mut rest = arguments;
    let mut has_split = false;
    while let Some((Some(word), after)) = rest.split_first() {
        let takes_next = match word.strip_prefix('-') {
            None | Some("") => break,
            Some("-") => {
                rest = after;
                break;
            }
            Some(long) if long.starts_with('-') => {
                has_split |= long.starts_with("-split-string");
                valued.contains(&&long[1..])
            }
            Some(letters) => {
                has_split |= letters.contains('S');
                let is_valued = |letter: char| valued.contains(&letter.to_string().as_str());
                // The value of the first such letter is the rest of the word, or the next word.
                letters.find(is_valued).is_some_and(|at| at + 1 == letters.len())
            }
        };
        rest = after;
        if takes_next {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    (rest, has_split)
}
