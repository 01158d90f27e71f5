//! What a thread waits for in a system call, as `/proc` tells of it and of the memory that it gave the kernel.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use nix::libc;

use crate::session::pty::ProcessId;
use crate::session::pty::processes::told_of;

/// The most descriptors of one call to look at.
const DESCRIPTORS_MAX: usize = 64;

/// The bytes of a `struct pollfd`: the descriptor, the events to wait for, and those that came.
const POLLFD: usize = 8;

/// A system call that a thread of a process waits in, with its first arguments.
#[derive(Clone, Copy, Debug)]
pub struct BlockingCall {
    process: ProcessId,
    number: i64,
    args: [u64; 4],
}

/// Whether a call that waits for several events waits for input from a terminal, and for what else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitedInput {
    pub terminal: bool,
    pub others: bool,
}

impl AwaitedInput {
    pub const TERMINAL_ALONE: Self = Self { terminal: true, others: false };
}

impl BlockingCall {
    /// `None` for a thread that runs, or may not be examined.
    pub fn find(process: ProcessId, thread: ProcessId) -> Option<Self> {
        Self::parse(process, &told_of(process, &format!("task/{thread}/syscall"))?)
    }

    /// Parses what the `syscall` file of a thread says.
    pub fn parse(process: ProcessId, call: &str) -> Option<Self> {
        let (number, args) = call.split_once(' ')?;
        let mut args =
            args.split(' ').map(|arg| u64::from_str_radix(arg.trim_start_matches("0x"), 16));
        let mut next = || args.next()?.ok();
        let args = [next()?, next()?, next()?, next()?];
        Some(Self { process, number: number.parse().ok()?, args })
    }

    /// Whether it is a read of a terminal: its first argument is one, and it writes nothing.
    pub fn is_read_of_terminal(&self) -> bool {
        ![libc::SYS_write, libc::SYS_writev].contains(&self.number)
            && is_terminal(self.process, self.args[0])
    }

    /// Whether it waits for input from a terminal and for nothing else, wherever in the kernel that is.
    pub fn awaits_terminal_alone(&self) -> bool {
        match self.number {
            libc::SYS_read | libc::SYS_readv => is_terminal(self.process, self.args[0]),
            _ => self.awaited() == Some(AwaitedInput::TERMINAL_ALONE),
        }
    }

    /// What it waits for, if it is one that waits for several events.
    pub fn awaited(&self) -> Option<AwaitedInput> {
        let inputs = match self.number {
            number if [libc::SYS_ppoll, OLD_CALLS.poll].contains(&number) => self.polled()?,
            number if [libc::SYS_pselect6, OLD_CALLS.select].contains(&number) => {
                self.selected()?
            }
            number if EPOLLS.contains(&number) => self.registered()?,
            _ => return None,
        };
        let mut awaited = AwaitedInput::default();
        for descriptor in inputs {
            let terminal = descriptor.is_some_and(|it| is_terminal(self.process, it));
            *(if terminal { &mut awaited.terminal } else { &mut awaited.others }) = true;
        }
        Some(awaited)
    }

    /// The descriptors of `poll`; none for one that it does not wait for input from.
    fn polled(&self) -> Option<Vec<Option<u64>>> {
        let count = usize::try_from(self.args[1]).ok().filter(|it| *it <= DESCRIPTORS_MAX)?;
        let mut list = [0; DESCRIPTORS_MAX * POLLFD];
        let list = &mut list[..count * POLLFD];
        self.copy(self.args[0], list)?;
        let descriptors = list.chunks_exact(POLLFD).filter_map(|one| {
            let number = i32::from_ne_bytes([one[0], one[1], one[2], one[3]]);
            let input = i16::from_ne_bytes([one[4], one[5]]) & libc::POLLIN != 0;
            // Negative ones are left out by the kernel too.
            u64::try_from(number).ok().map(|number| Some(number).filter(|_| input))
        });
        Some(descriptors.collect())
    }

    /// The descriptors of `select`; none for one that it does not wait for input from.
    fn selected(&self) -> Option<Vec<Option<u64>>> {
        let [count, reads, writes, others] = self.args;
        if count > DESCRIPTORS_MAX as u64 {
            return None;
        }
        let set = |at: u64| {
            let mut bits = [0; 8];
            let known = if at == 0 { Some(()) } else { self.copy(at, &mut bits) };
            known.map(|()| u64::from_ne_bytes(bits))
        };
        let (reads, others) = (set(reads)?, set(writes)? | set(others)?);
        let among = |set: u64| (0..count).filter(move |at| set & 1 << at != 0);
        Some(among(reads).map(Some).chain(among(others).map(|_| None)).collect())
    }

    /// The descriptors that an epoll descriptor has, see proc_pid_fdinfo(5).
    fn registered(&self) -> Option<Vec<Option<u64>>> {
        let told = told_of(self.process, &format!("fdinfo/{}", self.args[0]))?;
        let targets = told.lines().filter_map(|line| {
            let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
            let number = words.next()?.parse().ok();
            let events = words.skip_while(|word| *word != "events:").nth(1)?;
            let events = u32::from_str_radix(events, 16).ok()?;
            Some(number.filter(|_| events & libc::EPOLLIN as u32 != 0))
        });
        Some(targets.take(DESCRIPTORS_MAX).collect())
    }

    /// Copies from the memory of the process.
    fn copy(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let memory = File::open(format!("/proc/{}/mem", self.process)).ok()?;
        memory.read_exact_at(to, address).ok()
    }
}

/// The calls that only older machines have.
struct OldCalls {
    select: i64,
    poll: i64,
}

#[cfg(target_arch = "x86_64")]
const OLD_CALLS: OldCalls = OldCalls { select: libc::SYS_select, poll: libc::SYS_poll };
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: OldCalls = OldCalls { select: -1, poll: -1 };

#[cfg(target_arch = "x86_64")]
const EPOLLS: [i64; 3] = [libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];
#[cfg(not(target_arch = "x86_64"))]
const EPOLLS: [i64; 2] = [libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];

/// Whether a descriptor of a process is a terminal.
fn is_terminal(process: ProcessId, descriptor: u64) -> bool {
    // `/dev/tty` and the pseudoterminals, see Documentation/admin-guide/devices.txt of the kernel.
    let names_one = |device| match (libc::major(device), libc::minor(device)) {
        (5, 0) | (136..=143, _) => true,
        (_, _) => false,
    };
    let file = fs::metadata(format!("/proc/{process}/fd/{descriptor}"));
    file.is_ok_and(|file| names_one(file.rdev()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::mpsc::sync_channel;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::pty::openpty;
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
    use nix::unistd::{gettid, pipe, write};

    use super::*;

    /// What a thread waits for that does this with a terminal and a pipe, until both have input.
    fn awaited_by(work: impl FnOnce(&OwnedFd, &OwnedFd) + Send + 'static) -> AwaitedInput {
        let (terminal, (pipe_end, input)) = (openpty(None, None).unwrap(), pipe().unwrap());
        let (tell, told) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            tell.send(gettid()).unwrap();
            work(&terminal.slave, &pipe_end);
            (terminal.slave, pipe_end)
        });
        let id = ProcessId(told.recv().unwrap().as_raw());
        let process = ProcessId(std::process::id().try_into().unwrap());
        let awaited = loop {
            let call = BlockingCall::find(process, id);
            match call.and_then(|call| call.awaited()) {
                Some(awaited) => break awaited,
                None => std::thread::yield_now(),
            }
        };
        write(&terminal.master, b"x\n").unwrap();
        write(&input, b"x").unwrap();
        drop(thread.join().unwrap());
        awaited
    }

    fn polls(list: &[(&OwnedFd, PollFlags)]) {
        let mut list: Vec<_> =
            list.iter().map(|(fd, want)| PollFd::new(fd.as_fd(), *want)).collect();
        poll(&mut list, PollTimeout::NONE).unwrap();
    }

    #[test]
    fn what_a_thread_polls_is_told_by_the_list_that_it_gave() {
        use PollFlags as Flags;
        let both = AwaitedInput { terminal: true, others: true };
        let other = AwaitedInput { terminal: false, others: true };
        let awaited = awaited_by(|terminal, _| polls(&[(terminal, Flags::POLLIN)]));
        assert_eq!(awaited, AwaitedInput::TERMINAL_ALONE);
        let awaited = awaited_by(|_, pipe| polls(&[(pipe, Flags::POLLIN)]));
        assert_eq!(awaited, other);
        let awaited =
            awaited_by(|terminal, pipe| polls(&[(pipe, Flags::POLLIN), (terminal, Flags::POLLIN)]));
        assert_eq!(awaited, both);
        // It waits for the terminal to be hung up, not for input.
        let awaited = awaited_by(|terminal, pipe| {
            polls(&[(pipe, Flags::POLLIN), (terminal, Flags::POLLPRI)])
        });
        assert_eq!(awaited, other);
    }

    #[test]
    fn whoever_waits_for_room_in_a_terminal_reads_nothing() {
        let terminal = openpty(None, None).unwrap();
        let (tell, told) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            tell.send(gettid()).unwrap();
            // More than a terminal holds; it fails once the other end is closed.
            while write(&terminal.slave, &[b'x'; 4096]).is_ok() {}
        });
        let id = ProcessId(told.recv().unwrap().as_raw());
        let process = ProcessId(std::process::id().try_into().unwrap());
        let is_write = |call: &BlockingCall| call.number == libc::SYS_write;
        let call = loop {
            match BlockingCall::find(process, id).filter(is_write) {
                Some(call) if is_terminal(process, call.args[0]) => break call,
                Some(_) | None => std::thread::yield_now(),
            }
        };
        assert!(!call.is_read_of_terminal());
        drop(terminal.master);
        thread.join().unwrap();
    }

    #[test]
    fn what_an_epoll_descriptor_has_is_told_by_the_kernel() {
        let epoll = |list: &[&OwnedFd]| {
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
            for fd in list {
                epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
            }
            epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE).unwrap();
        };
        let awaited = awaited_by(move |terminal, _| epoll(&[terminal]));
        assert_eq!(awaited, AwaitedInput::TERMINAL_ALONE);
        let awaited = awaited_by(move |terminal, pipe| epoll(&[terminal, pipe]));
        assert_eq!(awaited, AwaitedInput { terminal: true, others: true });
    }
}
