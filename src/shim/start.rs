//! Starts a shim: detaches from who forked it, then opens the terminal and starts the program.
//! A failed start is reported to the daemon and leaves nothing behind.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::setsid;

use crate::shim::COMM;
use crate::shim::children::{ChildEnds, Children};
use crate::shim::input::relay::InputRelay;
use crate::shim::kept::Kept;
use crate::shim::orphan_timeout::Solitude;
use crate::shim::output::OutputRelay;
use crate::shim::place::SocketPlace;
use crate::shim::program::Program;
use crate::shim::readiness::{self, READABLE};
use crate::shim::run::RunningShim;
use crate::shim::sandbox::{self, NotStarted, SandboxedProgram};
use crate::shim::socket::{self, Descriptors};
use crate::shim::terminal;
use crate::shim::title;
use crate::shim::wire::from_shim::{FromShim, ProcessIdentity, StartFailure, StartStage};
use crate::shim::wire::to_shim::{Start, ToShim};
use crate::shim::wire::{Frame, frame};

/// How long to wait for the daemon's start frame.
const START_MAX: Duration = Duration::from_secs(10);
/// The allowed sizes of the ring, in bytes. A size must be a multiple of [`PAGE`].
const RING_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;
/// Larger than the kernel's limit for arguments and environment, in bytes.
const PROGRAM_MAX: u64 = 16 << 20;
const PAGE: usize = 4096;

fn failed_at(stage: StartStage) -> impl Fn(io::Error) -> StartFailure {
    move |error| StartFailure { stage, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
}

/// Makes this process the shim of a session, which listens at `path`, with a connection to its daemon. Tells the
/// daemon if that fails, and returns `None`.
pub fn start(path: &Path, daemon: OwnedFd, room: &mut Frame) -> Option<RunningShim> {
    let begun = leave_starter(path).map_err(failed_at(StartStage::Shim));
    match begun.and_then(|()| begin(path, &daemon, room)) {
        Ok((mut shim, memory)) => {
            shim.attach(daemon, &memory);
            Some(shim)
        }
        Err(failure) => {
            tell(daemon.as_fd(), room, failure);
            None
        }
    }
}

/// Tells a daemon that no shim was started.
pub(super) fn failed(daemon: BorrowedFd<'_>, room: &mut Frame, errno: Errno) {
    tell(daemon, room, StartFailure { stage: StartStage::Shim, errno: errno as i32 });
}

fn tell(daemon: BorrowedFd<'_>, room: &mut Frame, failure: StartFailure) {
    let length = FromShim::Failed(failure).encode(room);
    let _ = socket::send(daemon, &room[..length], &[]);
}

/// Becomes a process of its own, which adopts the orphans of its program and which daemons find.
fn leave_starter(path: &Path) -> io::Result<()> {
    setsid()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    title::set(path)?;
    // Whoever sees the name of a shim sees the path as well.
    Ok(nix::sys::prctl::set_name(COMM)?)
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
    let (leader, reports) = start_program(program, &opened.slave, descriptors, session)?;
    let ttl = Duration::from_millis(start.orphan_ttl_ms);
    let shim = RunningShim {
        place,
        process,
        children: Children::new(ends, leader),
        reports,
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

/// Starts the program, in its sandbox if it has one, from where its end is told then.
fn start_program(
    program: &Program,
    slave: &OwnedFd,
    descriptors: Option<u64>,
    session: u64,
) -> Result<(ProcessIdentity, Option<OwnedFd>), StartFailure> {
    if program.sandbox.is_empty() {
        let leader = program.start(slave, descriptors, session);
        let leader = leader.map_err(failed_at(StartStage::Program))?;
        return Ok((ProcessIdentity::of(leader).map_err(failed_at(StartStage::Shim))?, None));
    }
    match sandbox::start(program, slave, descriptors, session) {
        Ok(SandboxedProgram { leader, reports }) => Ok((leader, Some(reports))),
        Err(NotStarted::Program(error)) => Err(failed_at(StartStage::Program)(error)),
        Err(NotStarted::Sandbox(error)) => Err(failed_at(StartStage::Sandbox)(error)),
    }
}
