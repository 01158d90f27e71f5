//! What the kernel tells of a terminal beside its modes: whose program is in front, whether that is
//! the session's shell, whether somebody waits in a read, and on which machine all of this is.
//!
//! It changes nothing; of processes all is read from `/proc`. Where the kernel keeps something to itself
//! the answer is that nobody knows.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

use crate::core::activity::{Foreground, KernelView};
use crate::session::pty::processes::{Process, told_of};
use crate::session::pty::{Evidence, ProcessId};

/// Programs that take commands from people.
const SHELLS: [&str; 10] =
    ["sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "yash", "zsh"];

/// Options of theirs that have a word of their own behind them.
const WITH_WORD: [&str; 6] = ["--rcfile", "--init-file", "-O", "+O", "-o", "--init-command"];

/// How many processes of a group are asked whether they read.
const PROCESSES_MAX: usize = 64;

/// What the kernel waits in for a terminal's input.
const READS: [&str; 2] = ["n_tty_read", "wait_woken"];

/// What it waits in for one of several things, as these names begin: compilers cut functions in two.
const POLLS: [&str; 5] =
    ["do_select", "do_poll", "do_sys_poll", "poll_schedule_timeout", "ep_poll"];

/// Whether the kernel was ever heard to say what a process waits in.
static TELLS_PLACES: AtomicBool = AtomicBool::new(false);

/// What this machine is called; none where the system does not say.
pub fn host_name() -> Option<Arc<str>> {
    nix::unistd::gethostname().ok()?.into_string().ok().map(Arc::from)
}

/// Looks around; who reads is looked for when the terminal has `settled`, since it takes longer.
pub fn look(evidence: Evidence, settled: bool) -> KernelView {
    let Evidence { leader, foreground, canonical, echo } = evidence;
    KernelView {
        foreground: foreground
            .map(|group| Foreground { group: group.0, program: program_name(group) }),
        shell_in_front: evidence.leader_in_front() && is_interactive_shell(leader),
        canonical,
        echo,
        reading: foreground.filter(|_| settled && canonical).and_then(anybody_reads),
    }
}

/// Whether a process waits for something to be read; none where the kernel does not say what processes
/// wait in.
pub fn waits_for_input(pid: ProcessId) -> Option<bool> {
    match waits_in(pid) {
        Some(place) => Some(
            READS.contains(&place.as_str()) || POLLS.iter().any(|poll| place.starts_with(poll)),
        ),
        // What runs waits in nothing. Asking for its state as well would tell another moment.
        None => TELLS_PLACES.load(Ordering::Relaxed).then_some(false),
    }
}

/// What a process waits in; none when it runs, and where the kernel does not say.
fn waits_in(pid: ProcessId) -> Option<String> {
    let place = told_of(pid, "wchan").filter(|place| !matches!(place.as_str(), "" | "0"))?;
    TELLS_PLACES.store(true, Ordering::Relaxed);
    Some(place)
}

fn program_name(pid: ProcessId) -> Option<Arc<str>> {
    let name = told_of(pid, "comm")?;
    let name: String = name.trim_end().chars().filter(|c| !c.is_control()).collect();
    Some(Arc::from(name)).filter(|name: &Arc<str>| !name.is_empty())
}

fn is_interactive_shell(pid: ProcessId) -> bool {
    let Some(line) = told_of(pid, "cmdline") else { return false };
    let words: Vec<&str> = line.split('\0').filter(|word| !word.is_empty()).collect();
    takes_commands(&words)
}

/// Whether a shell that was called with these words reads its commands from the terminal.
fn takes_commands(words: &[&str]) -> bool {
    let Some((name, args)) = words.split_first() else { return false };
    let name = name.trim_start_matches('-').rsplit('/').next().unwrap_or_default();
    if !SHELLS.contains(&name) {
        return false;
    }
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // fish takes `-C` for what it does before it reads commands.
        if WITH_WORD.contains(arg) || (name == "fish" && *arg == "-C") {
            args.next();
        } else if !arg.starts_with(['-', '+']) {
            return name == "busybox" && SHELLS.contains(arg);
        } else if !arg.starts_with("--") && arg.contains('c') {
            return false;
        }
    }
    true
}

/// Whether a process of the group, or one below its leader in the same group, waits in a read of
/// its terminal; none where the kernel does not say what processes wait in.
fn anybody_reads(group: ProcessId) -> Option<bool> {
    let mut left = vec![group];
    let (mut known, mut seen) = (false, 0);
    while let Some(pid) = left.pop() {
        seen += 1;
        if seen > PROCESSES_MAX {
            break;
        }
        if Process::find(pid).is_none_or(|process| process.group != group) {
            continue;
        }
        let place = waits_in(pid);
        known |= place.is_some();
        if place.is_some_and(|place| READS.contains(&place.as_str())) && reads_terminal(pid) {
            return Some(true);
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        left.extend(children.map(ProcessId));
    }
    known.then_some(false)
}

/// Whether the call that a process waits in, where that can be told, is a read of a terminal.
/// Sockets are waited for in the same place of the kernel.
fn reads_terminal(pid: ProcessId) -> bool {
    // `/dev/tty`, the terminal of whoever opens it, and the pseudoterminals:
    // Documentation/admin-guide/devices.txt of the kernel.
    let is_terminal = |device| match (libc::major(device), libc::minor(device)) {
        (5, 0) | (136..=143, _) => true,
        (_, _) => false,
    };
    let call = told_of(pid, "syscall").unwrap_or_default();
    let mut words = call.split_ascii_whitespace();
    let descriptor = match (words.next(), words.next()) {
        (Some(_), Some(first)) => {
            u64::from_str_radix(first.trim_start_matches("0x"), 16).unwrap_or(0)
        }
        (Some(_) | None, _) => 0,
    };
    let file = fs::metadata(format!("/proc/{pid}/fd/{descriptor}"));
    file.is_ok_and(|file| is_terminal(file.rdev()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(takes_commands(words), "{words:?}");
        }
        for words in [
            &["bash", "-c", "true"][..],
            &["bash", "-lc", "true"],
            &["sh", "script"],
            &["python3"],
            &["fish", "-c", "true"],
            &["busybox", "vi"],
            &[],
        ] {
            assert!(!takes_commands(words), "{words:?}");
        }
    }
}
