//! Programs that run another program, or a line, which they are given.
//!
//! An option that is not in a table may take a value or a command, so what follows it is not known.

use crate::core::command_line::{CALLS_MAX, LineWord, ProgramCall, ShellLineReader, UnknownPart};

/// Programs that run the command which follows their own options. Lists are separated by blanks.
struct Wrapper {
    names: &'static str,
    /// Options without a value.
    plain: &'static str,
    /// Options with a value, which may be the next word.
    valued: &'static str,
    /// How many operands come before the command.
    operands: usize,
}

const WRAPPERS: [Wrapper; 18] = [
    Wrapper { names: "builtin nohup busybox toybox noglob", plain: "", valued: "", operands: 0 },
    Wrapper { names: "command", plain: "p", valued: "", operands: 0 },
    Wrapper { names: "setsid", plain: "c f w ctty fork wait", valued: "", operands: 0 },
    Wrapper { names: "exec", plain: "c l", valued: "a", operands: 0 },
    Wrapper {
        names: "sudo",
        plain: "A b E H k n P S B N background preserve-env set-home non-interactive stdin askpass",
        valued: "u g h p C r t T U D R a user group host prompt close-from role type \
                 command-timeout other-user chdir chroot",
        operands: 0,
    },
    Wrapper { names: "doas", plain: "n", valued: "u", operands: 0 },
    Wrapper {
        names: "env",
        plain: "i 0 v ignore-environment null debug",
        valued: "u C a unset chdir argv0",
        operands: 0,
    },
    Wrapper {
        names: "nice ionice",
        plain: "t ignore",
        valued: "n c adjustment class classdata",
        operands: 0,
    },
    Wrapper {
        names: "time",
        plain: "p v a q append verbose portability quiet",
        valued: "f o format output",
        operands: 0,
    },
    Wrapper { names: "stdbuf", plain: "", valued: "i o e input output error", operands: 0 },
    Wrapper {
        names: "timeout",
        plain: "f v p foreground verbose preserve-status",
        valued: "k s kill-after signal",
        operands: 1,
    },
    Wrapper {
        names: "flock",
        plain: "s x e n u F o v shared exclusive nonblock unlock no-fork close verbose",
        valued: "w E timeout wait conflict-exit-code",
        operands: 1,
    },
    Wrapper {
        names: "strace ltrace",
        plain: "C D F T V Y Z c d f ff h i k n q qq r t tt ttt v w x xx y yy z S l",
        valued: "E I O P U X a b e o p s u output trace signal user string-limit",
        operands: 0,
    },
    Wrapper { names: "taskset", plain: "a c all-tasks cpu-list", valued: "", operands: 1 },
    Wrapper { names: "unbuffer", plain: "p", valued: "", operands: 0 },
    Wrapper {
        names: "valgrind",
        plain: "v q tool leak-check show-leak-kinds track-origins track-fds error-exitcode log-file xml xml-file \
                suppressions gen-suppressions trace-children num-callers main-stacksize callgrind-out-file \
                cachegrind-out-file massif-out-file dump-instr collect-jumps verbose quiet",
        valued: "",
        operands: 0,
    },
    Wrapper {
        names: "xvfb-run",
        plain: "a auto-servernum",
        valued: "e f n s w error-file auth-file server-num server-args wait",
        operands: 0,
    },
    Wrapper {
        names: "xargs",
        plain: "0 r t x p o null no-run-if-empty verbose exit interactive open-tty",
        valued: "I n P L d s a E max-args max-procs max-lines delimiter max-chars arg-file",
        operands: 0,
    },
];

const WATCH: [&str; 2] = [
    "b c C d e g p r t w beep color differences errexit chgexit precise no-rerun no-title no-wrap",
    "n q interval equexit",
];
/// Programs that run others, in ways that are not followed.
const NOT_FOLLOWED: &str = "unshare nsenter bwrap firejail proot fakeroot catchsegv \
    systemd-run runuser setpriv rlwrap parallel entr script expect screen tmux chroot start-stop-daemon \
    chrt numactl prlimit pkexec run0 dbus-run-session \
    setarch linux32 linux64 perf choom runcon sg gosu hyperfine at batch not and or nocorrect noglob";

/// What of `tmux` and `screen` runs no command.
const SHOWS_SESSIONS: &str = "ls list-sessions a at attach attach-session has has-session lsw list-windows lsp list-panes \
    lsc list-clients info -V -ls -list -x -r";

/// The options of `find` that run a command.
const FIND_RUNS: &str = "-exec -execdir -ok -okdir";

/// Whether a word is in a list that is separated by blanks.
pub(super) fn lists(words: &str, word: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

fn lists_word(words: &str, word: &LineWord) -> bool {
    word.text().is_some_and(|it| lists(words, it))
}

fn wrapper_of(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|it| lists(it.names, name))
}

/// The arguments of a program that are not those of a program which it runs.
pub(super) fn own_arguments<'a>(name: &str, arguments: &'a [LineWord]) -> &'a [LineWord] {
    let is_run = |it: &LineWord| it.text().is_some_and(|it| lists(FIND_RUNS, it));
    let own = match wrapper_of(name) {
        Some(it) => arguments.len() - after_options(arguments, [it.plain, it.valued]).0.len(),
        None if name == "find" => arguments.iter().position(is_run).unwrap_or(arguments.len()),
        None => arguments.len(),
    };
    &arguments[..own]
}

impl ShellLineReader {
    /// Reads what a call runs in turn.
    pub(super) fn inner_calls(&mut self, call: &ProgramCall) {
        let Some(name) = call.name.as_deref() else { return };
        let arguments = &call.arguments;
        if let Some(wrapper) = wrapper_of(name) {
            return self.wrapped(name, wrapper, arguments);
        }
        match name {
            "watch" => match after_options(arguments, WATCH) {
                (line, true) => self.joined(name, line),
                (_, false) => self.note(UnknownPart::Wrapper),
            },
            "ssh" => self.ssh(arguments),
            "find" => self.found_files(arguments),
            "fd" | "fdfind" => {
                let runs = |it: &str| {
                    let is_cluster = it.starts_with('-') && !it.starts_with("--");
                    it.starts_with("--exec") || is_cluster && it.contains(['x', 'X'])
                };
                if arguments.iter().any(|it| it.text().is_none_or(runs)) {
                    self.note(UnknownPart::Wrapper);
                }
            }
            "git" => self.git(arguments),
            // With a file or its input, it sets what runs later.
            "crontab" if !arguments.iter().any(|it| it.text() == Some("-l")) => {
                self.note(UnknownPart::Wrapper);
            }
            "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
                self.interpreter(name, arguments);
                self.script_of_language(name, arguments);
            }
            "tmux" | "screen" if shows_sessions(arguments) => {}
            _ if lists(NOT_FOLLOWED, name) => self.note(UnknownPart::Wrapper),
            _ => {
                if !self.interpreter(name, arguments) {
                    self.builtin_or_shell(name, arguments);
                }
                self.run_by_options(name, arguments);
                self.suspect(call);
            }
        }
    }

    /// Reads what a wrapper runs.
    pub(super) fn inside(&mut self, name: &str, read: impl FnOnce(&mut Self)) {
        self.through.push(name.to_owned());
        read(self);
        self.through.pop();
    }

    fn wrapped(&mut self, name: &str, wrapper: &Wrapper, arguments: &[LineWord]) {
        let options = [wrapper.plain, wrapper.valued];
        if name == "command" && arguments.first().is_some_and(|it| lists_word("-v -V", it)) {
            return;
        }
        let (mut rest, mut known) = after_options(arguments, options);
        if matches!(name, "env" | "sudo" | "doas") {
            // `env -` is `env -i`, and sudo takes options behind variables too.
            while let Some(LineWord::Known(word)) = rest.first()
                && (word == "-" || word.contains('='))
            {
                if let Some((name, value)) = word.split_once('=') {
                    self.variable(name, Some(value));
                }
                let (after, is_known) = after_options(&rest[1..], options);
                (rest, known) = (after, known && is_known);
            }
        }
        let (own, rest) = rest.split_at(wrapper.operands.min(rest.len()));
        // What is not known may be several words.
        if !known || !own.iter().all(LineWord::is_known) {
            return self.note(UnknownPart::Wrapper);
        }
        let mut words = rest.to_vec();
        match name {
            // It reads a file instead of the terminal, or the variables of a shell.
            "exec" if words.is_empty() => return self.note(UnknownPart::Builtin),
            "flock" if words.first().is_some_and(|it| lists_word("-c --command", it)) => {
                return self.joined(name, &words[1..]);
            }
            "xargs" => {
                self.has_other_input = true;
                let options = &arguments[..arguments.len() - words.len()];
                let marks: Vec<&str> = marks(options).collect();
                for word in &mut words {
                    if word.text().is_some_and(|it| marks.iter().any(|mark| it.contains(mark))) {
                        *word = LineWord::unknown();
                    }
                }
                words.push(LineWord::unknown());
            }
            _ => {}
        }
        if !words.is_empty() {
            self.inside(name, |reader| reader.call(words));
        }
    }

    /// Reads a line that is given in several words.
    pub(super) fn joined(&mut self, name: &str, words: &[LineWord]) {
        let known: Option<Vec<&str>> = words.iter().map(LineWord::text).collect();
        match known {
            Some(words) => self.inside(name, |reader| reader.script(&words.join(" "))),
            None => self.note(UnknownPart::Evaluation),
        }
    }

    /// Reads the commands that are run for files which were found.
    fn found_files(&mut self, arguments: &[LineWord]) {
        let mut rest = arguments;
        // A word that is not known may be one that runs something.
        if rest.iter().any(|it| !it.is_known() && it.may_be_flag()) {
            self.note(UnknownPart::Wrapper);
        }
        let is_run = |it: &LineWord| it.text().is_some_and(|it| lists(FIND_RUNS, it));
        while let Some(at) = rest.iter().position(is_run)
            && self.found.calls.len() < CALLS_MAX
        {
            rest = &rest[at + 1..];
            let ends = |at: usize| match rest[at].text() {
                Some(";") => true,
                Some("+") => at > 0 && rest[at - 1].text() == Some("{}"),
                Some(_) | None => false,
            };
            let end = (0..rest.len()).find(|at| ends(*at)).unwrap_or(rest.len());
            let file = |it: &LineWord| match it.text() {
                Some(text) if text.contains("{}") => LineWord::unknown(),
                Some(_) | None => it.clone(),
            };
            let words = rest[..end].iter().map(file).collect();
            self.inside("find", |reader| reader.call(words));
            rest = &rest[end..];
        }
    }
}

/// The words after the options, and whether all options are in these lists: those without a value, and those with one.
pub(super) fn after_options<'a>(
    arguments: &'a [LineWord],
    [plain, valued]: [&str; 2],
) -> (&'a [LineWord], bool) {
    let mut rest = arguments;
    while let Some((LineWord::Known(word), after)) = rest.split_first() {
        let takes_next = match word.strip_prefix('-') {
            None | Some("") => break,
            Some("-") => return (after, true),
            Some(long) if long.starts_with('-') => {
                let name = long[1..].split('=').next().unwrap_or_default();
                match (lists(plain, name), lists(valued, name)) {
                    (true, _) => false,
                    (false, true) => !long.contains('='),
                    (false, false) => return (rest, false),
                }
            }
            // `nice -10`.
            Some(digits) if lists(valued, "adjustment") && digits.parse::<u8>().is_ok() => false,
            Some(letters) => match first_valued(letters, plain, valued) {
                // The value is the rest of the word, or the next word.
                Ok(at) => at.is_some_and(|at| at + 1 == letters.len()),
                Err(()) => return (rest, false),
            },
        };
        rest = after;
        if takes_next {
            match rest.split_first() {
                Some((LineWord::Computed(_), _)) => return (rest, false),
                Some((LineWord::Known(_), after)) => rest = after,
                None => {}
            }
        }
    }
    (rest, true)
}

/// Whether a terminal multiplexer is only to show its sessions, or to begin one with a shell.
fn shows_sessions(arguments: &[LineWord]) -> bool {
    let is_new = |it: &str| lists("new new-session", it);
    match arguments.first().map(LineWord::text) {
        None => true,
        Some(Some(first)) if is_new(first) => {
            let (rest, is_known) =
                after_options(&arguments[1..], ["A d D E P X", "c e f F n s t x y"]);
            rest.is_empty() && is_known
        }
        Some(first) => first.is_some_and(|it| lists(SHOWS_SESSIONS, it)),
    }
}

/// What `xargs` may replace by what it reads, by its options.
fn marks(options: &[LineWord]) -> impl Iterator<Item = &str> {
    options.iter().enumerate().filter_map(|(at, option)| {
        let (letters, mark) = option.text()?.split_once('I')?;
        let next = || options.get(at + 1).and_then(LineWord::text);
        letters.starts_with('-').then_some(mark).filter(|it| !it.is_empty()).or_else(next)
    })
}

/// Where the first letter with a value is, unless a letter before it is in no list.
fn first_valued(letters: &str, plain: &str, valued: &str) -> Result<Option<usize>, ()> {
    for (at, letter) in letters.char_indices() {
        let letter = letter.to_string();
        if lists(valued, &letter) {
            return Ok(Some(at));
        }
        if !lists(plain, &letter) {
            return Err(());
        }
    }
    Ok(None)
}
