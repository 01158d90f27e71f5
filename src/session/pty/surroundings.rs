//! What the kernel knows about a terminal beyond its modes: the foreground program, whether that is the
//! session's shell, whether a process waits in a read, and the host name.
//! It only reads, mostly from `/proc`. Where the kernel does not answer, the result is unknown.

use std::fs;
use std::sync::Arc;

use crate::core::shell::activity::{Foreground, Idleness, KernelView};
use crate::session::pty::leader_files::{LeaderFiles, line_of, name_of};
use crate::session::pty::processes::PAGE;
use crate::session::pty::terminal_wait::{self, all_members, shown_name, waiting_of};
use crate::session::pty::{ProcessId, TerminalEvidence};

/// Programs that take commands from people.
const SHELLS: [&str; 13] = [
    "sh", "ash", "bash", "dash", "fish", "ksh", "ksh2020", "ksh93", "lksh", "mksh", "oksh", "yash",
    "zsh",
];

/// Their options that take a separate value.
const WITH_WORD: [&str; 6] = ["--rcfile", "--init-file", "-O", "+O", "-o", "--init-command"];

/// The host name; `None` if the system does not say.
pub fn host_name() -> Option<Arc<str>> {
    nix::unistd::gethostname().ok()?.into_string().ok().map(Arc::from)
}

/// Among whom a look searches for one that waits for input, which takes longer than all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderSearch {
    Nowhere,
    /// Programs. Where the shell stands at its prompt, its marks say that it waits.
    Programs,
    /// The shell as well.
    All,
}

/// Reads all facts, by these open files of the leader where it is about that one.
pub fn look(
    evidence: TerminalEvidence,
    search: ReaderSearch,
    files: Option<&LeaderFiles>,
) -> KernelView {
    let TerminalEvidence { leader, foreground, canonical, echo, .. } = evidence;
    let (mut line, mut name) = ([0; PAGE], [0; PAGE]);
    let in_front = evidence.leader_in_front();
    let line = if in_front { line_of(leader, files, &mut line) } else { None };
    let shell_in_front = line.is_some_and(|line| is_of_interactive_shell(&line));
    let asked = match search {
        ReaderSearch::Nowhere => None,
        ReaderSearch::Programs if shell_in_front => None,
        ReaderSearch::Programs | ReaderSearch::All => foreground,
    };
    let raw = asked.filter(|_| !canonical && !shell_in_front);
    let relaying = raw.is_some_and(|group| anybody_relays(all_members(group)));
    let asked = asked.filter(|_| !relaying);
    let asks = asked.map(|group| waiting_of(group, canonical)).unwrap_or_default();
    let files = files.filter(|_| in_front);
    let program =
        foreground.and_then(|group| name_of(group, files, &mut name)).and_then(shown_name);
    KernelView {
        foreground: foreground.map(|group| Foreground { group: group.0, program }),
        shell_in_front,
        canonical,
        echo,
        reading: asks.reads,
        selects: asks.selects,
        works: asks.works,
        relaying,
    }
}

/// Reads only the modes. Valid if the `known` shell has just marked its prompt and so runs no other program.
/// `None` if another program is in the foreground.
pub fn look_again(evidence: TerminalEvidence, known: &KernelView) -> Option<KernelView> {
    let TerminalEvidence { leader, canonical, echo, .. } = evidence;
    let in_front = known.foreground.as_ref().is_some_and(|known| known.group == leader.0);
    let same = evidence.leader_in_front() && in_front && known.shell_in_front;
    let unlooked = KernelView {
        reading: None,
        selects: false,
        works: false,
        relaying: false,
        ..known.clone()
    };
    same.then_some(KernelView { canonical, echo, ..unlooked })
}

/// Whether a process is a shell that reads commands from the terminal, and runs no script.
pub fn is_interactive_shell(pid: ProcessId) -> bool {
    let mut page = [0; PAGE];
    line_of(pid, None, &mut page).is_some_and(|line| is_of_interactive_shell(&line))
}

fn is_of_interactive_shell(line: &str) -> bool {
    takes_commands(line.split('\0').filter(|word| !word.is_empty()))
}

/// Whether a shell with this command line reads commands from the terminal.
fn takes_commands<'a>(mut words: impl Iterator<Item = &'a str>) -> bool {
    let Some(word) = words.next() else { return false };
    let mut name = word.trim_start_matches('-').rsplit('/').next().unwrap_or_default();
    if name == "busybox" {
        // Its first argument says what it is.
        name = words.next().unwrap_or_default();
    }
    if !SHELLS.contains(&name) {
        return false;
    }
    while let Some(arg) = words.next() {
        // fish has `-C` for commands that it runs first.
        if WITH_WORD.contains(&arg) || (name == "fish" && arg == "-C") {
            words.next();
        } else if !arg.starts_with(['-', '+']) || !arg.starts_with("--") && arg.contains('c') {
            return false;
        }
    }
    true
}

/// Whether the group in front has done all that it does about what was typed, if it has read all of it.
pub fn idleness_of(front: ProcessId) -> Idleness {
    let idleness = terminal_wait::idleness(front);
    // It waits for whoever it passes on to as well.
    let relays = idleness == Idleness::Sleeps && anybody_relays(all_members(front));
    if relays { Idleness::Works } else { idleness }
}

/// Whether one of these has a socket or the master end of a terminal, as ssh and script have. A process that cannot
/// be inspected counts as one.
pub fn anybody_relays(mut processes: impl Iterator<Item = ProcessId>) -> bool {
    processes.any(|pid| {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
        open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| {
            let target = target.to_string_lossy();
            target.starts_with("socket:") || target.ends_with("/ptmx")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_was_in_front_is_asked_for_no_more_than_the_modes() {
        let shell = ProcessId(7);
        let evidence = TerminalEvidence {
            leader: shell,
            foreground: Some(shell),
            canonical: false,
            echo: true,
            enter_ends_line: true,
            line_kill: None,
        };
        let foreground = Foreground { group: 7, program: Some("zsh".into()) };
        let known = KernelView {
            foreground: Some(foreground),
            shell_in_front: true,
            canonical: true,
            echo: false,
            reading: Some(true),
            selects: false,
            works: false,
            relaying: false,
        };
        let now = KernelView { canonical: false, echo: true, reading: None, ..known.clone() };
        assert_eq!(look_again(evidence, &known), Some(now));
        let others = [
            (TerminalEvidence { foreground: Some(ProcessId(8)), ..evidence }, known.clone()),
            (TerminalEvidence { leader: ProcessId(8), ..evidence }, known.clone()),
            (evidence, KernelView { shell_in_front: false, ..known.clone() }),
            (evidence, KernelView { foreground: None, ..known }),
        ];
        for (evidence, known) in others {
            assert_eq!(look_again(evidence, &known), None, "{evidence:?} {known:?}");
        }
    }

    #[test]
    fn a_shell_takes_commands_unless_it_was_given_some() {
        for words in [
            &["bash"][..],
            &["-zsh"],
            &["/bin/bash", "-l", "-i"],
            &["bash", "--rcfile", "/run/x"],
            &["fish", "-C", "source x"],
            &["fish", "--init-command", "source x"],
            &["busybox", "sh"],
            &["dash"],
        ] {
            assert!(takes_commands(words.iter().copied()), "{words:?}");
        }
        for words in [
            &["bash", "-c", "true"][..],
            &["bash", "-lc", "true"],
            &["sh", "script"],
            &["python3"],
            &["fish", "-c", "true"],
            &["busybox", "vi"],
            &["busybox", "sh", "script"],
            &["busybox", "ash", "-c", "true"],
            &["busybox"],
            &[],
        ] {
            assert!(!takes_commands(words.iter().copied()), "{words:?}");
        }
    }
}
