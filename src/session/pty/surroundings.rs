//! What the kernel knows about a terminal beyond its modes: the foreground program, whether that is the
//! session's shell, whether a process waits in a read, and the host name.
//! It only reads, mostly from `/proc`. Where the kernel does not answer, the result is unknown.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::killpg;
use nix::unistd::Pid;

use crate::core::shell::activity::{Foreground, KernelView, LeaderRest};
use crate::session::pty::processes::{Process, is_running, table, told_of};
use crate::session::pty::{ProcessId, TerminalEvidence};

/// Programs that take commands from people.
const SHELLS: [&str; 14] = [
    "sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "ksh2020", "ksh93", "lksh", "mksh",
    "oksh", "yash", "zsh",
];

/// Their options that take a separate value.
const WITH_WORD: [&str; 6] = ["--rcfile", "--init-file", "-O", "+O", "-o", "--init-command"];

/// The most processes of a group to check for reads.
const PROCESSES_MAX: usize = 64;

/// The kernel functions in which a process waits for terminal input.
const READS: [&str; 2] = ["n_tty_read", "wait_woken"];

/// The prefixes of kernel functions in which a process waits for several events. Compilers split functions,
/// so only the prefix is stable.
const POLLS: [&str; 5] =
    ["do_select", "do_poll", "do_sys_poll", "poll_schedule_timeout", "ep_poll"];

/// A shell that also waits there briefly before it runs a line, for its highlighting thread.
const PAUSING: &str = "fish";

/// Whether the kernel has ever reported where a process waits.
static TELLS_PLACES: AtomicBool = AtomicBool::new(false);

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

/// Reads all facts.
pub fn look(evidence: TerminalEvidence, search: ReaderSearch) -> KernelView {
    let TerminalEvidence { leader, foreground, canonical, echo, .. } = evidence;
    let shell_in_front = evidence.leader_in_front() && is_interactive_shell(leader);
    let asked = match search {
        ReaderSearch::Nowhere => None,
        ReaderSearch::Programs if shell_in_front => None,
        ReaderSearch::Programs | ReaderSearch::All => foreground,
    };
    let raw = asked.filter(|_| !canonical && !shell_in_front);
    let relaying = raw.is_some_and(anybody_relays);
    let asked = asked.filter(|_| !relaying);
    let asks = asked.map(|group| waiting_of(group, canonical)).unwrap_or_default();
    KernelView {
        foreground: foreground
            .map(|group| Foreground { group: group.0, program: program_name(group) }),
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

/// What a shell does after it has read all input.
pub fn rest_of(shell: ProcessId) -> LeaderRest {
    let polls = |place: &str| POLLS.iter().any(|poll| place.starts_with(poll));
    match waits_in(shell).as_deref() {
        Some(place) if READS.contains(&place) => LeaderRest::Waits,
        Some(place) if polls(place) => {
            let pauses = program_name(shell).as_deref() == Some(PAUSING);
            if pauses { LeaderRest::Pauses } else { LeaderRest::Waits }
        }
        Some(_) => LeaderRest::Works,
        // A running process waits nowhere. If the kernel reports no wait functions, only the process state is
        // known.
        None if TELLS_PLACES.load(Ordering::Relaxed) || is_running(shell) => LeaderRest::Works,
        None => LeaderRest::Unknown,
    }
}

/// The kernel function in which a process waits; `None` if it runs or the kernel does not say.
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

/// Whether a process is a shell that reads commands from the terminal, and runs no script.
pub fn is_interactive_shell(pid: ProcessId) -> bool {
    let Some(line) = told_of(pid, "cmdline") else { return false };
    let words: Vec<&str> = line.split('\0').filter(|word| !word.is_empty()).collect();
    takes_commands(&words)
}

/// Whether a shell with this command line reads commands from the terminal.
fn takes_commands(words: &[&str]) -> bool {
    let Some((name, args)) = words.split_first() else { return false };
    let name = name.trim_start_matches('-').rsplit('/').next().unwrap_or_default();
    if !SHELLS.contains(&name) {
        return false;
    }
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // fish has `-C` for commands that it runs first.
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

/// The leader of a group and its descendants in the same group.
fn members(group: ProcessId) -> impl Iterator<Item = ProcessId> {
    let mut left = vec![group];
    let next = move || {
        loop {
            let pid = left.pop()?;
            if Process::find(pid).is_none_or(|process| process.group != group) {
                continue;
            }
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            left.extend(children.map(ProcessId));
            return Some(pid);
        }
    };
    std::iter::from_fn(next).take(PROCESSES_MAX)
}

/// How the processes of a group wait for their terminal.
#[derive(Clone, Copy, Debug, Default)]
struct TerminalWait {
    /// One waits in a read of it; `None` if the kernel does not report wait functions.
    reads: Option<bool>,
    /// One waits for its standard input alone, as `read -t` does.
    selects: bool,
    /// One runs.
    works: bool,
}

/// A running process waits in no read. Where keys are read, other threads may work meanwhile.
fn waiting_of(group: ProcessId, lines: bool) -> TerminalWait {
    let (mut known, mut selects, mut works) = (false, false, false);
    for pid in members(group) {
        let mut place = waits_in(pid);
        let mut runs = place.is_none() && is_running(pid);
        if place.is_none() && !runs {
            // It may have gone to sleep in between. For some others the kernel never says.
            place = waits_in(pid);
            runs = place.is_none() && is_running(pid);
        }
        // Of a process that may be examined, no place means that it waits in none.
        let examined = || TELLS_PLACES.load(Ordering::Relaxed) && told_of(pid, "syscall").is_some();
        known |= place.is_some() || runs || examined();
        works |= runs;
        let place = place.unwrap_or_default();
        let reads = READS.contains(&place.as_str()) && reads_terminal(pid);
        if reads && (lines || is_single(pid)) {
            return TerminalWait { reads: Some(true), selects, works };
        }
        selects |= POLLS.iter().any(|poll| place.starts_with(poll)) && selects_input(pid);
    }
    TerminalWait { reads: (known || is_over(group)).then_some(false), selects, works }
}

/// Whether a group has no process that runs, so that nobody in it reads. It may stay in front for a while.
fn is_over(group: ProcessId) -> bool {
    let runs = |one: &Process| one.group == group && !one.ended;
    match Process::find(group) {
        Some(leader) => leader.ended && table().is_ok_and(|all| !all.iter().any(runs)),
        // The processes of others may be hidden.
        None => killpg(Pid::from_raw(group.0), None) == Err(Errno::ESRCH),
    }
}

/// Whether a process has one thread.
fn is_single(pid: ProcessId) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() == 1)
}

/// Whether a process waits for one descriptor, or selects among those below 1: only its standard input is.
fn selects_input(pid: ProcessId) -> bool {
    let call = told_of(pid, "syscall").unwrap_or_default();
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse().ok());
    let (first, second) = (words.next(), words.next());
    let one = match number {
        Some(libc::SYS_pselect6) => first,
        Some(libc::SYS_ppoll) => second,
        Some(number) if OLD_CALLS[0] == number => first,
        Some(number) if OLD_CALLS[1] == number => second,
        Some(_) | None => None,
    };
    one == Some("0x1") && reads_terminal_at(pid, 0)
}

/// The calls `select` and `poll`, which newer machines do not have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [i64; 2] = [libc::SYS_select, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [i64; 2] = [-1, -1];

/// Whether a process of the group has a socket or the master end of a terminal, as ssh and script have. A
/// process that cannot be inspected counts as one.
fn anybody_relays(group: ProcessId) -> bool {
    members(group).any(|pid| {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
        open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| {
            let target = target.to_string_lossy();
            target.starts_with("socket:") || target.ends_with("/ptmx")
        })
    })
}

/// Whether the system call that a process waits in is a read of a terminal. The kernel waits for sockets in
/// the same function.
fn reads_terminal(pid: ProcessId) -> bool {
    let call = told_of(pid, "syscall").unwrap_or_default();
    let mut words = call.split_ascii_whitespace();
    let descriptor = match (words.next(), words.next()) {
        (Some(_), Some(first)) => {
            u64::from_str_radix(first.trim_start_matches("0x"), 16).unwrap_or(0)
        }
        (Some(_) | None, _) => 0,
    };
    reads_terminal_at(pid, descriptor)
}

/// Whether a descriptor of a process is a terminal.
fn reads_terminal_at(pid: ProcessId, descriptor: u64) -> bool {
    // `/dev/tty` and the pseudoterminals, see Documentation/admin-guide/devices.txt of the kernel.
    let is_terminal = |device| match (libc::major(device), libc::minor(device)) {
        (5, 0) | (136..=143, _) => true,
        (_, _) => false,
    };
    let file = fs::metadata(format!("/proc/{pid}/fd/{descriptor}"));
    file.is_ok_and(|file| is_terminal(file.rdev()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What a program is told to do that is a child for so long.
    fn rest_while(script: &str) -> LeaderRest {
        let mut sh = Command::new("sh");
        let mut child = sh.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        // It is itself by then.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 1]).unwrap();
        let rest = rest_of(ProcessId(child.id().try_into().unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        rest
    }

    #[test]
    fn a_shell_that_does_something_is_not_at_rest_also_before_the_kernel_named_any_place() {
        for _ in 0..20 {
            assert_eq!(rest_while("echo; while :; do :; done"), LeaderRest::Works);
        }
    }

    #[test]
    fn in_a_group_that_has_ended_nobody_reads() {
        use std::os::unix::process::CommandExt;

        let mut child = Command::new("true").process_group(0).spawn().unwrap();
        let group = ProcessId(child.id().try_into().unwrap());
        let ended = || Process::find(group).is_none_or(|process| process.ended);
        while !ended() {
            std::thread::yield_now();
        }
        // Nobody has waited for it yet.
        assert_eq!(waiting_of(group, true).reads, Some(false));
        child.wait().unwrap();
        assert_eq!(waiting_of(group, true).reads, Some(false));
    }

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
