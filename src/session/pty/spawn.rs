//! Opens a pseudo-terminal and starts a program in it as the leader of a new session.
//!
//! It knows neither screens nor tasks. Between fork and exec the child shares a copy of a process
//! with many threads, so only calls that are safe in a signal handler are made there.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::stat::Mode;
use nix::sys::termios::{InputFlags, SetArg, tcgetattr, tcsetattr};

use crate::core::frame::Size;
use crate::session::pty::command::{CommandError, SpawnSpec};
use crate::session::pty::environment::SESSION_MARK;
use crate::session::pty::reaper::Child;

/// How many signals the kernel has.
const SIGNALS: i32 = 64;

/// How many descriptors a program may open at first; what this process may when nobody said.
static DESCRIPTORS: OnceLock<u64> = OnceLock::new();

/// Sets how many descriptors the programs of sessions may open at first, once for this process.
pub fn give_children_descriptors(soft: u64) {
    // Another daemon of this process said it before, and started with the same limit.
    let _ = DESCRIPTORS.set(soft);
}

/// Says why a session's program was not started; nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("cannot open a terminal: {0}")]
    Terminal(#[source] io::Error),
    #[error("cannot start {program}: {source}")]
    Program { program: String, source: io::Error },
}

/// The two ends of a pseudo-terminal, both close-on-exec.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
}

/// Opens a terminal of this size whose master never blocks.
pub(crate) fn open_terminal(size: Size) -> io::Result<Ends> {
    // Both are opened close-on-exec, which openpty(3) does not do: a child that another thread
    // starts at the same time must inherit neither.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags | OFlag::O_NONBLOCK)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = open(Path::new(&ptsname_r(&master)?), flags, Mode::empty())?;
    let mut modes = tcgetattr(&slave)?;
    modes.input_flags |= InputFlags::IUTF8;
    tcsetattr(&slave, SetArg::TCSANOW, &modes)?;
    let master = owned(master.into_raw_fd());
    set_size(master.as_fd(), size)?;
    Ok(Ends { master, slave })
}

/// Sets the size of a terminal by either of its ends.
pub(crate) fn set_size(terminal: BorrowedFd<'_>, size: Size) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    set_window_size(terminal, &size)?;
    Ok(())
}

/// Starts the program with the terminal as its standard streams and its controlling terminal.
pub(crate) fn start(spec: &SpawnSpec, slave: &OwnedFd) -> Result<Child, SpawnError> {
    let stream = || slave.try_clone().map(File::from).map_err(SpawnError::Terminal);
    let mut command = Command::new(&spec.program);
    command
        .arg0(&spec.name)
        .args(&spec.args)
        .current_dir(&spec.cwd)
        .env_clear()
        .envs(&spec.environment)
        .env(SESSION_MARK, spec.session.to_string())
        .stdin(stream()?)
        .stdout(stream()?)
        .stderr(stream()?);
    prepare_in_child(&mut command);
    Child::start(|| command.spawn().map(|child| child.id())).map_err(|source| SpawnError::Program {
        program: spec.program.display().to_string(),
        source,
    })
}

#[allow(unsafe_code)]
fn prepare_in_child(command: &mut Command) {
    // SAFETY: `become_leader` makes system calls only; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(become_leader);
    }
}

/// Runs in the child, after its streams were set and before the program takes over.
#[allow(unsafe_code)]
fn become_leader() -> io::Result<()> {
    nix::unistd::setsid()?;
    if let Some(soft) = DESCRIPTORS.get() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, (*soft).min(hard), hard)?;
    }
    let default = [0u64; 4];
    // SAFETY: the calls take numbers, null where it is allowed, and a kernel `sigaction` of zeros,
    // which means the default disposition and is no longer than `default`. Signals that have no
    // disposition to set refuse, which changes nothing.
    unsafe {
        Errno::result(libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0))?;
        // What is ignored stays so over exec. By the kernel's own call, because the C library
        // refuses to touch two signals that it keeps for itself.
        for number in 1..=SIGNALS {
            let (new, old) = (default.as_ptr(), std::ptr::null_mut::<u64>());
            libc::syscall(libc::SYS_rt_sigaction, number, new, old, size_of::<u64>());
        }
        // Ours are close-on-exec already; this takes in what a library opened otherwise. A kernel
        // that does not know the call loses nothing else.
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, flags);
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

#[allow(unsafe_code)]
fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the only caller has just taken the descriptor out of its owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[allow(unsafe_code)]
fn set_window_size(terminal: BorrowedFd<'_>, size: &Winsize) -> Result<(), Errno> {
    // SAFETY: the descriptor and the size outlive the call, and the size is what it reads.
    let set = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const *size) };
    Errno::result(set).map(drop)
}
