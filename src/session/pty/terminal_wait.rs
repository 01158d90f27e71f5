//! How processes wait for their terminal: in a read of it, or for it alone among several events.
//! It only reads, from `/proc`. Where the kernel does not answer, the result is unknown.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::killpg;
use nix::unistd::Pid;

use crate::core::shell::activity::LeaderRest;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::{Process, is_running, table, told_of};

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

/// Shells whose command `read` takes a time.
const TIMED_READERS: [&str; 10] =
    ["ash", "bash", "busybox", "ksh", "ksh93", "lksh", "mksh", "oksh", "sh", "zsh"];

/// Whether the kernel has ever reported where a process waits.
static TELLS_PLACES: AtomicBool = AtomicBool::new(false);

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

pub fn program_name(pid: ProcessId) -> Option<Arc<str>> {
    let name = told_of(pid, "comm")?;
    let name: String = name.trim_end().chars().filter(|c| !c.is_control()).collect();
    Some(Arc::from(name)).filter(|name: &Arc<str>| !name.is_empty())
}

/// The leader of a group and its descendants in the same group.
pub fn members(group: ProcessId) -> impl Iterator<Item = ProcessId> {
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
pub struct TerminalWait {
    /// One waits in a read of it, or in a shell's `read -t`; `None` if the kernel does not report wait functions.
    pub reads: Option<bool>,
    /// One waits for it and nothing else, for a time.
    pub selects: bool,
    /// One runs.
    pub works: bool,
}

/// A running process waits in no read. Where keys are read, other threads may work meanwhile.
pub fn waiting_of(group: ProcessId, lines: bool) -> TerminalWait {
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
        let polls = POLLS.iter().any(|poll| place.starts_with(poll)) && selects_terminal(pid);
        if reads && (lines || is_single(pid)) || polls && lines && reads_for_a_time(pid) {
            return TerminalWait { reads: Some(true), selects, works };
        }
        selects |= polls;
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

/// Whether a program that waits for the terminal alone does so in its command `read`. Others may look for keys
/// while they work.
fn reads_for_a_time(pid: ProcessId) -> bool {
    program_name(pid).is_some_and(|name| TIMED_READERS.contains(&name.as_ref()))
}

/// Whether a process has one thread.
fn is_single(pid: ProcessId) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() == 1)
}

/// The system call that a process waits in, with its first arguments.
struct WaitingCall {
    number: i64,
    args: [u64; 4],
}

impl WaitingCall {
    /// `None` for a process that runs, or may not be examined.
    fn find(pid: ProcessId) -> Option<Self> {
        let call = told_of(pid, "syscall")?;
        let (number, args) = call.split_once(' ')?;
        let mut args =
            args.split(' ').map(|arg| u64::from_str_radix(arg.trim_start_matches("0x"), 16));
        let mut next = || args.next()?.ok();
        Some(Self { number: number.parse().ok()?, args: [next()?, next()?, next()?, next()?] })
    }

    /// The one descriptor that it waits for input from; `None` if there are more, or it waits for anything else.
    fn only_input(&self, pid: ProcessId) -> Option<u64> {
        let [first, second, third, fourth] = self.args;
        if self.number == libc::SYS_ppoll || self.number == OLD_CALLS[1] {
            // A `struct pollfd`: the descriptor, then the events.
            let one = memory_of::<8>(pid, first).filter(|_| second == 1)?;
            let [a, b, c, d, low, high, ..] = one;
            let input = i16::from_ne_bytes([low, high]) & libc::POLLIN != 0;
            return u64::try_from(i32::from_ne_bytes([a, b, c, d])).ok().filter(|_| input);
        }
        let selects = self.number == libc::SYS_pselect6 || self.number == OLD_CALLS[0];
        // The first word of a set has 64 descriptors.
        if !selects || first > 64 {
            return None;
        }
        let set = |at| memory_of::<8>(pid, at).map(u64::from_ne_bytes);
        let below = u64::MAX.checked_shr(u32::try_from(64 - first).ok()?).unwrap_or(0);
        let asked = |at| if at == 0 { Some(0) } else { set(at).map(|set| set & below) };
        let reads = asked(second)?;
        let alone = reads.is_power_of_two() && asked(third)? == 0 && asked(fourth)? == 0;
        alone.then(|| u64::from(reads.trailing_zeros()))
    }
}

/// Bytes at an address of a process; `None` if they cannot be read.
fn memory_of<const N: usize>(pid: ProcessId, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// Whether a process waits for the terminal to be readable, and for nothing else but a time.
fn selects_terminal(pid: ProcessId) -> bool {
    let only = WaitingCall::find(pid).and_then(|call| call.only_input(pid));
    only.is_some_and(|descriptor| is_terminal(pid, descriptor))
}

/// The calls `select` and `poll`, which newer machines do not have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [i64; 2] = [libc::SYS_select, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [i64; 2] = [-1, -1];

/// Whether the system call that a process waits in is a read of a terminal. The kernel waits for sockets in
/// the same function.
fn reads_terminal(pid: ProcessId) -> bool {
    let first = WaitingCall::find(pid).map_or(0, |call| call.args[0]);
    is_terminal(pid, first)
}

/// Whether a descriptor of a process is a terminal.
fn is_terminal(pid: ProcessId, descriptor: u64) -> bool {
    // `/dev/tty` and the pseudoterminals, see Documentation/admin-guide/devices.txt of the kernel.
    let names_one = |device| match (libc::major(device), libc::minor(device)) {
        (5, 0) | (136..=143, _) => true,
        (_, _) => false,
    };
    let file = fs::metadata(format!("/proc/{pid}/fd/{descriptor}"));
    file.is_ok_and(|file| names_one(file.rdev()))
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
}
