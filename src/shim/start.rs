//! Starts a shim: detaches from the daemon, then opens the terminal and starts the program.
//! A failed start is reported to the daemon and leaves nothing behind.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use crate::shim::COMM;
use crate::shim::children::{ChildEnds, Children};
use crate::shim::input::relay::InputRelay;
use crate::shim::kept::Kept;
use crate::shim::memory;
use crate::shim::orphan_timeout::Solitude;
use crate::shim::output::OutputRelay;
use crate::shim::place::SocketPlace;
use crate::shim::program::Program;
use crate::shim::readiness::{self, READABLE};
use crate::shim::run::RunningShim;
use crate::shim::socket::{self, Descriptors};
use crate::shim::terminal;
use crate::shim::wire::from_shim::{FromShim, ProcessIdentity, StartFailure, StartStage};
use crate::shim::wire::to_shim::{Start, ToShim};
use crate::shim::wire::{FRAME_MAX, Frame};

/// How long to wait for the daemon's start frame.
const START_MAX: Duration = Duration::from_secs(10);
/// The allowed sizes of the ring, in bytes. A size must be a multiple of [`PAGE`].
const RING_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;
/// Larger than the kernel's limit for arguments and environment, in bytes.
const PROGRAM_MAX: u64 = 16 << 20;
const PAGE: usize = 4096;

/// Signals for the daemon's process group or terminal, and signals that a shim never needs.
const IGNORED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGPIPE,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

fn failed_at(stage: StartStage) -> impl Fn(io::Error) -> StartFailure {
    move |error| StartFailure { stage, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
}

/// Makes this process the shim of a session: `termgate shim SOCKET`, with a connection to the daemon as
/// standard input. Returns an exit code if that fails, and in the parent after the fork.
///
/// The process is hidden already, so no other process can open the memory of the forked copy.
pub fn start(words: &[OsString]) -> Result<(RunningShim, Box<Frame>), ExitCode> {
    let path = words.get(2).map(PathBuf::from);
    let (Some(path), true) = (path, socket::carries_frames(io::stdin().as_fd())) else {
        let _ = io::stderr().write_all(b"termgate shim is for termgate itself, which starts it\n");
        return Err(ExitCode::from(2));
    };
    if memory::is_traced() {
        // The forked copy would be traced as well.
        return Err(ExitCode::FAILURE);
    }
    leave_daemon()?;
    use_no_memory_in_advance();
    let mut room = frame();
    let Ok(daemon) = settle() else { return Err(ExitCode::FAILURE) };
    match begin(&path, &daemon, &mut room) {
        Ok((mut shim, memory)) => {
            shim.attach(daemon, &memory);
            Ok((shim, room))
        }
        Err(failure) => {
            let length = FromShim::Failed(failure).encode(&mut room);
            let _ = socket::send(daemon.as_fd(), &room[..length], &[]);
            Err(ExitCode::FAILURE)
        }
    }
}

/// Makes the allocator take every large buffer fresh from the kernel. The kernel counts only pages that are
/// written, while recycled memory would have to be zeroed and so counts at once.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn use_no_memory_in_advance() {
    const LARGE: libc::c_int = 32 * 1024;
    // SAFETY: this process has one thread, and the allocator accepts this option at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

#[cfg(not(target_env = "gnu"))]
fn use_no_memory_in_advance() {}

fn frame() -> Box<Frame> {
    let zeros = vec![0; FRAME_MAX].into_boxed_slice();
    zeros.try_into().expect("it was made with this length")
}

/// Forks and starts a new session, so that the shim is not a child of the daemon.
#[allow(unsafe_code)]
fn leave_daemon() -> Result<(), ExitCode> {
    // SAFETY: this process has one thread, so the child may make any call.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { .. }) => return Err(ExitCode::SUCCESS),
        Ok(ForkResult::Child) => {}
        Err(_) => return Err(ExitCode::FAILURE),
    }
    setsid().map_err(|_| ExitCode::FAILURE)?;
    Ok(())
}

/// Closes all inherited descriptors except the daemon's connection, and becomes a subreaper for orphans of
/// the program.
#[allow(unsafe_code)]
fn settle() -> io::Result<OwnedFd> {
    // SAFETY: no value in this process owns these descriptors; the standard streams stay open.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0);
    }
    let daemon = fs_owned(fcntl(io::stdin(), FcntlArg::F_DUPFD_CLOEXEC(3))?);
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    chdir("/")?;
    for ignored in IGNORED {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(ignored, SigHandler::SigIgn)? };
    }
    nix::sys::prctl::set_child_subreaper(true)?;
    nix::sys::prctl::set_name(COMM)?;
    Ok(daemon)
}

#[allow(unsafe_code)]
fn fs_owned(fd: i32) -> OwnedFd {
    use std::os::fd::FromRawFd;

    // SAFETY: the only caller has just made the descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn begin(
    path: &Path,
    daemon: &OwnedFd,
    room: &mut Frame,
) -> Result<(RunningShim, OwnedFd), StartFailure> {
    let (start, program) = hear(daemon, room).map_err(failed_at(StartStage::Shim))?;
    let place = SocketPlace::listen(path).map_err(failed_at(StartStage::Shim))?;
    let begun = set_up(place, &start, &program, session_at(path));
    if begun.is_err() {
        let _ = fs::remove_file(path);
    }
    begun
}

fn hear(daemon: &OwnedFd, room: &mut Frame) -> io::Result<(Start, Program)> {
    readiness::wait([(Some(daemon.as_fd()), READABLE)], Some(START_MAX))?;
    let mut descriptors = Descriptors::default();
    let length = socket::receive(daemon.as_fd(), room, &mut descriptors)?;
    let invalid = || io::Error::from(Errno::EPROTO);
    let frame = ToShim::decode(&room[..length]).map_err(|_| invalid())?;
    let (Some(ToShim::Start(start)), Some(program)) = (frame, descriptors.take()) else {
        return Err(invalid());
    };
    let ring_bytes = start.ring_bytes as usize;
    if !RING_BYTES.contains(&ring_bytes) || !ring_bytes.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL.into());
    }
    let text = read_program(File::from(program))?;
    Ok((start, Program::decode(&text).ok_or_else(invalid)?))
}

fn read_program(mut file: File) -> io::Result<Vec<u8>> {
    let there = file.metadata()?;
    if !there.is_file() {
        return Err(Errno::EPROTO.into());
    }
    if there.len() > PROGRAM_MAX {
        return Err(Errno::E2BIG.into());
    }
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// The session number, which is the file name of the socket.
fn session_at(path: &Path) -> u64 {
    let name = path.file_stem().and_then(|stem| stem.to_str());
    name.and_then(|name| u64::from_str_radix(name, 16).ok()).unwrap_or(0)
}

fn set_up(
    place: SocketPlace,
    start: &Start,
    program: &Program,
    session: u64,
) -> Result<(RunningShim, OwnedFd), StartFailure> {
    let own = failed_at(StartStage::Shim);
    let mut input = InputRelay::new().map_err(&own)?;
    let memory = input.begin().map_err(&own)?;
    let output = OutputRelay::new(start.ring_bytes as usize).map_err(&own)?;
    let ends = ChildEnds::watch().map_err(&own)?;
    let process = ProcessIdentity::of(std::process::id()).map_err(&own)?;
    let opened = terminal::open_terminal(start.window).map_err(failed_at(StartStage::Terminal))?;
    let number =
        terminal::number(opened.master.as_fd()).map_err(failed_at(StartStage::Terminal))?;
    let descriptors = (start.descriptors > 0).then_some(start.descriptors);
    let leader = program.start(&opened.slave, descriptors, session);
    let leader = leader.map_err(failed_at(StartStage::Program))?;
    let ttl = Duration::from_millis(start.orphan_ttl_ms);
    let shim = RunningShim {
        place,
        process,
        children: Children::new(ends, leader).map_err(&own)?,
        master: opened.master,
        slave: Some(opened.slave),
        terminal: number,
        ring_bytes: start.ring_bytes,
        unread: start.unread,
        output,
        input,
        kept: Kept::default(),
        solitude: Solitude::new(Some(ttl).filter(|ttl| !ttl.is_zero())),
        daemon: None,
        newcomer: None,
        generation: 0,
        told_end: false,
        reply: frame(),
    };
    Ok((shim, memory))
}
