//! How processes wait for their terminal: in a read of it, or for it alone among several events.
//! It only reads, from `/proc`. Where the kernel does not answer, the result is unknown.

use std::borrow::Cow;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::signal::killpg;
use nix::unistd::Pid;

use crate::core::shell::activity::{Idleness, LeaderRest};
use crate::session::pty::ProcessId;
use crate::session::pty::blocking_call::{AwaitedInput, BlockingCall};
use crate::session::pty::leader_files::name_of;
use crate::session::pty::processes::{PAGE, Process, is_running, table, told_of};

/// The most processes of a group to check for reads.
const PROCESSES_MAX: usize = 64;

/// The most threads of a process to check.
const THREADS_MAX: usize = 64;

/// The kernel functions in which a process waits for terminal input.
const READS: [&str; 2] = ["n_tty_read", "wait_woken"];

/// The prefixes of kernel functions in which a process waits for several events. Compilers split functions,
/// so only the prefix is stable.
const POLLS: [&str; 6] =
    ["do_select", "do_poll", "do_sys_poll", "poll_schedule_timeout", "ep_poll", "do_epoll"];

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

/// The kernel function in which the first thread of a process waits; `None` if it runs or the kernel does not say.
fn waits_in(pid: ProcessId) -> Option<String> {
    thread_waits_in(pid, pid)
}

fn thread_waits_in(process: ProcessId, thread: ProcessId) -> Option<String> {
    let place = told_of(process, &format!("task/{thread}/wchan"))?;
    if matches!(place.as_str(), "" | "0") {
        return None;
    }
    TELLS_PLACES.store(true, Ordering::Relaxed);
    Some(place)
}

fn program_name(pid: ProcessId) -> Option<Arc<str>> {
    name_of(pid, None, &mut [0; PAGE]).and_then(shown_name)
}

/// The name of a program as the kernel tells it, without control characters.
pub fn shown_name(mut name: Cow<'_, str>) -> Option<Arc<str>> {
    if name.trim_end().contains(char::is_control) {
        name.to_mut().retain(|c| !c.is_control());
    }
    Some(name.trim_end()).filter(|name| !name.is_empty()).map(Arc::from)
}

/// The leader of a group and its descendants in the same group, as far as they have not ended.
pub fn members(group: ProcessId) -> impl Iterator<Item = ProcessId> {
    members_below(group, vec![group])
}

/// Also the other parts of a pipeline, which are children of the shell that made the group.
pub fn all_members(group: ProcessId) -> impl Iterator<Item = ProcessId> {
    let others = move || {
        let shell = Process::find(group).map(|leader| leader.parent);
        let parts = shell.into_iter().flat_map(children).filter(|part| *part != group);
        members_below(group, parts.collect())
    };
    members(group).chain(std::iter::once_with(others).flatten())
}

/// Looks for children once their parent was looked at: a parent that waits then has made all that it makes.
fn members_below(group: ProcessId, mut left: Vec<ProcessId>) -> impl Iterator<Item = ProcessId> {
    let mut parent = None;
    let next = move || {
        loop {
            left.extend(parent.take().into_iter().flat_map(children));
            let pid = left.pop()?;
            if Process::find(pid).is_some_and(|process| process.group == group && !process.ended) {
                parent = Some(pid);
                return parent;
            }
        }
    };
    std::iter::from_fn(next).take(PROCESSES_MAX)
}

/// The children of all threads of a process.
fn children(parent: ProcessId) -> impl Iterator<Item = ProcessId> {
    threads(parent).flat_map(move |thread| {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{thread}/children"));
        let children = children.unwrap_or_default();
        let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        pids.map(ProcessId).collect::<Vec<_>>()
    })
}

fn threads(process: ProcessId) -> impl Iterator<Item = ProcessId> {
    let list = fs::read_dir(format!("/proc/{process}/task"));
    let names = list.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok().map(ProcessId)).take(THREADS_MAX)
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
        let awaited = awaited(pid, pid, &place);
        let reads = awaited == Some(Awaits::Read);
        let polls = awaited == Some(Awaits::Events(AwaitedInput::TERMINAL_ALONE));
        if reads && (lines || is_single(pid)) || polls && lines && reads_for_a_time(pid) {
            return TerminalWait { reads: Some(true), selects, works };
        }
        selects |= polls;
    }
    TerminalWait { reads: (known || is_over(group)).then_some(false), selects, works }
}

/// What a thread that sleeps waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// It reads the terminal.
    Read,
    Events(AwaitedInput),
}

/// What a thread waits for that sleeps in this function of the kernel; `None` for neither a terminal nor events.
fn awaited(process: ProcessId, thread: ProcessId, place: &str) -> Option<Awaits> {
    let call = || BlockingCall::find(process, thread);
    if READS.contains(&place) {
        // The kernel waits for sockets, and for room in a terminal, in the same function.
        return call().filter(BlockingCall::is_read_of_terminal).map(|_| Awaits::Read);
    }
    let polls = POLLS.iter().any(|poll| place.starts_with(poll));
    polls.then(call).flatten()?.awaited().map(Awaits::Events)
}

/// Whether a group waits for the terminal: all of its threads sleep, and one of them waits for it.
pub fn idleness(group: ProcessId) -> Idleness {
    let (mut waits, mut others) = (false, 0);
    for pid in all_members(group) {
        for thread in threads(pid) {
            let Some(place) = thread_waits_in(pid, thread) else { return Idleness::Works };
            match awaited(pid, thread, &place) {
                Some(Awaits::Read | Awaits::Events(AwaitedInput::TERMINAL_ALONE)) if !waits => {
                    waits = true;
                }
                Some(Awaits::Events(AwaitedInput { terminal: true, .. })) => {
                    (waits, others) = (true, others + 1);
                }
                Some(_) | None => others += 1,
            }
        }
    }
    match (waits, others) {
        (true, 0) => Idleness::Waits,
        (true, _) => Idleness::Sleeps,
        (false, _) => Idleness::Works,
    }
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
    // A script that names its shell has a name of its own; a shell may have another file than its name says.
    let file = fs::read_link(format!("/proc/{pid}/exe"));
    let file = file.as_ref().ok().and_then(|path| path.file_name()?.to_str());
    let name = program_name(pid);
    file.into_iter().chain(name.as_deref()).any(|name| TIMED_READERS.contains(&name))
}

/// Whether a process has one thread.
fn is_single(pid: ProcessId) -> bool {
    threads(pid).count() == 1
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
    fn a_group_is_idle_once_it_reads_the_terminal_and_none_of_it_runs() {
        use std::os::unix::process::CommandExt;

        let idleness_of = |program: &str, until: &dyn Fn(Idleness) -> bool| {
            let terminal = nix::pty::openpty(None, None).unwrap();
            let mut sh = Command::new("sh");
            sh.args(["-c", program]).process_group(0).stdin(terminal.slave).stdout(Stdio::null());
            let mut child = sh.spawn().unwrap();
            let group = ProcessId(child.id().try_into().unwrap());
            let seen = (0..20_000).map(|_| idleness(group)).find(|seen| until(*seen));
            killpg(Pid::from_raw(group.0), nix::sys::signal::SIGKILL).unwrap();
            child.wait().unwrap();
            seen
        };
        let idles = |seen| seen != Idleness::Works;
        assert_eq!(idleness_of("exec cat", &idles), Some(Idleness::Waits));
        // One of it goes on, and one waits for something else.
        assert_eq!(idleness_of("(while :; do :; done) & exec cat", &idles), None);
        assert_eq!(idleness_of("exec sleep 1000", &idles), None);
        assert_eq!(idleness_of("sleep 1000 & exec cat", &idles), Some(Idleness::Sleeps));
    }

    #[test]
    fn the_other_part_of_a_pipeline_belongs_to_the_group() {
        use std::os::unix::process::CommandExt;

        use nix::fcntl::{FcntlArg, FdFlag, fcntl};

        use crate::session::pty::surroundings::anybody_relays;

        let terminal = nix::pty::openpty(None, None).unwrap();
        // Who has the other end of a terminal relays as well.
        fcntl(&terminal.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        let mut cat = Command::new("cat");
        cat.process_group(0).stdin(terminal.slave).stdout(Stdio::null()).stderr(Stdio::null());
        let mut reads = cat.spawn().unwrap();
        let group = ProcessId(reads.id().try_into().unwrap());
        while idleness(group) != Idleness::Waits {
            std::thread::yield_now();
        }
        let mut works = Command::new("sh");
        works.args(["-c", "while :; do :; done"]).process_group(group.0);
        let (_ours, socket) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut works = works.stdin(std::os::fd::OwnedFd::from(socket)).spawn().unwrap();
        for _ in 0..1_000 {
            assert_ne!(idleness(group), Idleness::Waits);
        }
        assert!(anybody_relays(all_members(group)) && !anybody_relays(members(group)));
        killpg(Pid::from_raw(group.0), nix::sys::signal::SIGKILL).unwrap();
        reads.wait().unwrap();
        works.wait().unwrap();
    }

    #[test]
    fn a_shell_is_known_by_its_file_and_by_its_name() {
        for (file, link, is_one) in
            [("bash", "script", true), ("bash-5.2", "bash", true), ("other", "script", false)]
        {
            let ground = tempfile::tempdir().unwrap();
            let [file, link] = [file, link].map(|name| ground.path().join(name));
            std::fs::copy("/bin/bash", &file).unwrap();
            std::os::unix::fs::symlink(&file, &link).unwrap();
            let mut shell = Command::new(&link).stdin(Stdio::piped()).spawn().unwrap();
            let pid = ProcessId(shell.id().try_into().unwrap());
            assert_eq!(reads_for_a_time(pid), is_one, "{file:?}");
            shell.kill().unwrap();
            shell.wait().unwrap();
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
