//! Programs that run another program, or a line, which they are given.
//!
//! An option that is not in a table may take a value or a command, so what follows it is not known.

use std::slice;

use crate::core::command_line::arguments::{
    after_options, between_options, lists, lists_word, values,
};
use crate::core::command_line::files::runs_for_files;
use crate::core::command_line::{LineWord, ProgramCall, ShellLineReader, UnknownPart};

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
    systemd-run runuser setpriv rlwrap parallel entr script expect chroot start-stop-daemon \
    chrt numactl prlimit pkexec run0 dbus-run-session \
    setarch linux32 linux64 choom runcon sg gosu at batch not and or nocorrect noglob";

/// `perf stat` and `perf record`.
const PERF: Wrapper = Wrapper {
    names: "perf",
    plain: "a d g v q i B n all-cpus detailed verbose quiet no-inherit",
    valued: "e F o c r p C x I event freq output count repeat cpu call-graph field-separator",
    operands: 0,
};
/// Options of `xargs` with which it takes its input apart at blanks, and puts it behind the command.
const XARGS_OF_BLANKS: [&str; 2] =
    ["r t no-run-if-empty verbose", "n P L max-args max-procs max-lines"];
const PERF_SHOWS: [&str; 2] = ["n stdio tui g no-children", "i s input sort percent-limit"];
/// Options of `hyperfine`, which stand between the lines that it runs. Some of them have a line as well.
const HYPERFINE: [&str; 2] = [
    "i N ignore-failure show-output",
    "w r m M n u p c s warmup runs min-runs max-runs command-name time-unit style sort prepare cleanup setup conclude \
     export-json export-markdown export-csv export-asciidoc export-orgmode",
];

fn wrapper_of(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|it| lists(it.names, name))
}

/// The arguments of a program that are not those of a program which it runs.
pub(super) fn own_arguments<'a>(name: &str, arguments: &'a [LineWord]) -> &'a [LineWord] {
    let own = match wrapper_of(name) {
        Some(it) => arguments.len() - after_options(arguments, [it.plain, it.valued]).0.len(),
        None if name == "find" => {
            arguments.iter().position(runs_for_files).unwrap_or(arguments.len())
        }
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
            // An alias may be a line.
            "gh" if arguments.first().is_some_and(|it| lists_word("alias", it))
                && !arguments.get(1).is_some_and(|it| lists_word("list delete", it)) =>
            {
                self.note(UnknownPart::Configuration);
            }
            // With a file or its input, it sets what runs later.
            "crontab" if !arguments.iter().any(|it| it.text() == Some("-l")) => {
                self.note(UnknownPart::Wrapper);
            }
            "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
                self.interpreter(name, arguments);
                self.script_of_language(name, arguments);
            }
            "tmux" => self.tmux(arguments),
            "screen" => self.screen(arguments),
            "perf" => self.perf(arguments),
            "hyperfine" => self.benchmarks(arguments),
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
                let splits_at_nul = options.iter().any(|it| lists_word("-0 -0r -r0 --null", it));
                let reads_file = !values(options, "a arg-file").is_empty();
                let is_plain = matches!(after_options(options, XARGS_OF_BLANKS), ([], true));
                let is_split = |input: &LineWord| match input.is_number() {
                    true => is_plain,
                    false => splits_at_nul && !reads_file,
                };
                let input = self.input.take().filter(is_split);
                words.push(input.unwrap_or_else(LineWord::unknown));
            }
            _ => {}
        }
        if !words.is_empty() {
            self.inside(name, |reader| reader.call(words));
        }
    }

    fn perf(&mut self, arguments: &[LineWord]) {
        match arguments.split_first() {
            Some((first, rest)) if lists_word("stat record", first) => {
                self.wrapped("perf", &PERF, rest);
            }
            Some((first, _)) if lists_word("list version", first) => {}
            Some((first, rest))
                if lists_word("report", first)
                    && matches!(after_options(rest, PERF_SHOWS), ([], true)) => {}
            Some(_) | None => self.note(UnknownPart::Wrapper),
        }
    }

    fn benchmarks(&mut self, arguments: &[LineWord]) {
        self.run_by_options("hyperfine", arguments);
        match between_options(arguments, HYPERFINE) {
            Some(lines) => {
                lines.iter().for_each(|it| self.joined("hyperfine", slice::from_ref(*it)))
            }
            None => self.note(UnknownPart::Wrapper),
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
}

/// What `xargs` may replace by what it reads, by its options.
fn marks(options: &[LineWord]) -> impl Iterator<Item = &str> {
    options.iter().enumerate().filter_map(|(at, option)| {
        let (letters, mark) = option.text()?.split_once('I')?;
        let next = || options.get(at + 1).and_then(LineWord::text);
        letters.starts_with('-').then_some(mark).filter(|it| !it.is_empty()).or_else(next)
    })
}
