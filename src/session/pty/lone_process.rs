//! What most programs in front are: one process with one thread. Its files in `/proc` stay open from one look to the
//! next, since opening them takes most of the time of a look.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

use crate::core::shell::activity::Idleness;
use crate::session::pty::ProcessId;
use crate::session::pty::blocking_call::BlockingCall;
use crate::session::pty::surroundings::idleness_of;
use crate::shim::stat::{ProcessFile, StatFile};

/// The buffer for a system call with its arguments, and for a list of one child.
const LINE_MAX: usize = 256;

/// The links of the directory of a process with one thread: its own two, and one of each thread.
const ONE_THREAD: u64 = 3;

/// The program that was last in front and waited.
#[derive(Debug, Default)]
pub struct LastFront(Mutex<Option<Box<LoneProcess>>>);

impl LastFront {
    /// As [`idleness_of`] says of the group that is in front now.
    pub fn idleness(&self, group: ProcessId) -> Idleness {
        let mut last = self.last();
        let known = last.as_ref().filter(|known| known.group == group);
        if let Some(idleness) = known.and_then(|known| known.idleness()) {
            return idleness;
        }
        let idleness = idleness_of(group);
        *last =
            (idleness == Idleness::Waits).then(|| LoneProcess::find(group).map(Box::new)).flatten();
        idleness
    }

    /// Closes its files.
    pub fn forget(&self) {
        self.last().take();
    }

    fn last(&self) -> MutexGuard<'_, Option<Box<LoneProcess>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The leader of a group that has no other process, and its parent, as they were found.
///
/// The files stay those of these processes: once one has ended, they cannot be read.
#[derive(Debug)]
struct LoneProcess {
    group: ProcessId,
    parent: ProcessId,
    stat: StatFile,
    call: ProcessFile,
    own: Offspring,
    of_parent: Offspring,
}

impl LoneProcess {
    /// `None` if the leader has ended or may not be examined.
    fn find(group: ProcessId) -> Option<Self> {
        let stat = StatFile::open(group.0).ok()?;
        let parent = ProcessId(stat.look().ok()?.parent);
        let call = ProcessFile::open(group.0, &format!("task/{group}/syscall")).ok()?;
        let (own, of_parent) = (Offspring::find(group)?, Offspring::find(parent)?);
        Some(Self { group, parent, stat, call, own, of_parent })
    }

    /// Whether it waits for the terminal; `None` if there may be more in its group than this process, or if it
    /// waits for anything else.
    fn idleness(&self) -> Option<Idleness> {
        let mut room = [0; LINE_MAX];
        let call = str::from_utf8(self.call.look(&mut room).ok()?).ok()?;
        if call.trim_end() == "running" {
            return Some(Idleness::Works);
        }
        let waits = BlockingCall::parse(self.group, call)?.awaits_terminal_alone();
        // What follows is looked at later: a process that waits then has made all that it makes.
        (waits && self.sleeps() && self.is_alone()).then_some(Idleness::Waits)
    }

    /// Whether it is still the leader of its group, and neither runs nor is stopped nor has ended.
    fn sleeps(&self) -> bool {
        let group_and_parent = (self.group.0, self.parent.0);
        let is_it = |now| now == group_and_parent;
        self.stat.look().is_ok_and(|now| now.state == b'S' && is_it((now.group, now.parent)))
    }

    /// Whether it has one thread and no child, and its parent has no other child.
    fn is_alone(&self) -> bool {
        self.own.is(&[]) && self.of_parent.is(format!("{} ", self.group).as_bytes())
    }
}

/// The children of a process with one thread.
#[derive(Debug)]
struct Offspring {
    threads: OwnedFd,
    children: ProcessFile,
}

impl Offspring {
    fn find(process: ProcessId) -> Option<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let threads = format!("/proc/{process}/task");
        let threads = open(threads.as_str(), flags, Mode::empty()).ok()?;
        let children = ProcessFile::open(process.0, &format!("task/{process}/children")).ok()?;
        Some(Self { threads, children })
    }

    /// Whether the process has one thread, and these children.
    fn is(&self, children: &[u8]) -> bool {
        let single = || fstat(&self.threads).is_ok_and(|it| it.st_nlink == ONE_THREAD);
        single() && self.children.look(&mut [0; LINE_MAX]) == Ok(children)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::thread::yield_now;

    use nix::pty::{OpenptyResult, openpty};
    use nix::sys::signal::{Signal, kill, killpg};
    use nix::unistd::{Pid, mkfifo, ttyname, write};

    use super::*;
    use crate::session::pty::terminal_wait::idleness;

    /// A shell without job control that runs each line it reads from its terminal, as a job of a shell with it.
    struct Job {
        shell: Child,
        group: ProcessId,
        terminal: OpenptyResult,
    }

    impl Job {
        fn start(script: &str) -> Self {
            let terminal = openpty(None, None).unwrap();
            // Opened by the job, which leads no session, it does not become the terminal that the job belongs to.
            let path = ttyname(&terminal.slave).unwrap();
            // `wait` would end once the job is stopped.
            let jobs = format!("set -m; {script} & jobs -p; read");
            let mut shell = Command::new("setsid")
                .args(["bash", "-c", &jobs])
                .env("TERMINAL", path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut group = String::new();
            BufReader::new(shell.stdout.take().unwrap()).read_line(&mut group).unwrap();
            Self { shell, group: ProcessId(group.trim().parse().unwrap()), terminal }
        }

        /// It once it waits.
        fn found(&self) -> LoneProcess {
            loop {
                let found = LoneProcess::find(self.group);
                match found.filter(|found| found.idleness() == Some(Idleness::Waits)) {
                    Some(found) => return found,
                    None => yield_now(),
                }
            }
        }

        fn types(&self, line: &str) {
            write(&self.terminal.master, format!("{line}\n").as_bytes()).unwrap();
        }

        fn group(&self) -> Pid {
            Pid::from_raw(self.group.0)
        }
    }

    impl Drop for Job {
        fn drop(&mut self) {
            let _ = killpg(self.group(), Signal::SIGKILL);
            let _ = self.shell.kill();
            let _ = self.shell.wait();
        }
    }

    fn until(mut it: impl FnMut() -> bool) {
        while !it() {
            yield_now();
        }
    }

    /// From some moment on both looks find this, and the short one never that it waits.
    fn both_find(lone: &LoneProcess, expected: Idleness) {
        until(|| lone.idleness() != Some(Idleness::Waits));
        until(|| idleness(lone.group) == expected);
        for _ in 0..1_000 {
            assert_ne!(lone.idleness(), Some(Idleness::Waits));
        }
    }

    fn both_find_that_it_waits(lone: &LoneProcess) {
        until(|| lone.idleness() == Some(Idleness::Waits));
        until(|| idleness(lone.group) == Idleness::Waits);
    }

    const RUNS_LINES: &str = "sh -c 'while read line; do eval \"$line\"; done' <$TERMINAL";

    #[test]
    fn a_short_look_never_finds_an_idle_program_where_a_look_at_all_processes_does_not() {
        let ground = tempfile::tempdir().unwrap();
        let fifo = ground.path().join("fifo");
        mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let job = Job::start(RUNS_LINES);
        let lone = job.found();
        both_find_that_it_waits(&lone);
        // It forks.
        job.types("sleep 1000 & other=$!");
        both_find(&lone, Idleness::Sleeps);
        job.types("kill $other; wait $other");
        both_find_that_it_waits(&lone);
        // It reads something else under the same number.
        job.types(&format!("exec 5<>{} 6<&0; exec 0<&5", fifo.display()));
        both_find(&lone, Idleness::Works);
        std::fs::write(&fifo, "exec 0<&6\n").unwrap();
        both_find_that_it_waits(&lone);
        // It is stopped in its read.
        kill(job.group(), Signal::SIGSTOP).unwrap();
        both_find(&lone, Idleness::Works);
        kill(job.group(), Signal::SIGCONT).unwrap();
        both_find_that_it_waits(&lone);
        // It works, and becomes another program.
        job.types("while ! test -e x; do :; done");
        both_find(&lone, Idleness::Works);
        kill(job.group(), Signal::SIGKILL).unwrap();
        until(|| lone.idleness().is_none());
        both_find(&lone, Idleness::Works);
    }

    #[test]
    fn a_program_that_becomes_another_is_still_known() {
        let job = Job::start(RUNS_LINES);
        let lone = job.found();
        job.types("exec cat");
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", job.group)).unwrap();
        until(|| name() == "cat\n");
        both_find_that_it_waits(&lone);
    }

    #[test]
    fn the_other_part_of_a_pipeline_is_seen() {
        let job = Job::start("cat <$TERMINAL | sleep 1000");
        until(|| idleness(job.group) == Idleness::Sleeps);
        let lone = LoneProcess::find(job.group).unwrap();
        both_find(&lone, Idleness::Sleeps);
    }

    #[test]
    fn a_process_with_more_threads_than_one_is_not_alone() {
        let own = ProcessId(std::process::id().try_into().unwrap());
        // Each test has a thread of its own.
        let all = Offspring::find(own).unwrap();
        let mut room = [0; LINE_MAX];
        let children = all.children.look(&mut room).unwrap();
        assert!(!all.is(children));
        let job = Job::start("cat <$TERMINAL");
        assert!(job.found().own.is(&[]));
    }

    #[test]
    fn what_was_last_in_front_is_looked_at_shortly_until_another_is() {
        let [one, other] = [(); 2].map(|()| Job::start("cat <$TERMINAL"));
        let front = LastFront::default();
        let known = || front.last().as_ref().map(|known| known.group);
        until(|| front.idleness(one.group) == Idleness::Waits);
        assert_eq!(known(), Some(one.group));
        until(|| front.idleness(other.group) == Idleness::Waits);
        assert_eq!(known(), Some(other.group));
        until(|| front.idleness(other.group) == Idleness::Waits);
        front.forget();
        assert_eq!(known(), None);
    }
}
