//! Starts a program in a sandbox that another program makes, and hears from there how it ended.
//! The first process inside is [`crate::shim::inside`], which starts the program. Whoever made the sandbox is ended
//! then, so that the program has the same place below the shim as any other.

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt, sockopt,
};
use nix::unistd::fchown;

use crate::shim::INSIDE;
use crate::shim::children::end_children;
use crate::shim::memory;
use crate::shim::program::{BEGUN, ChildSetup, Program, prepare_in_child};
use crate::shim::readiness::{self, READABLE};
use crate::shim::socket::{self, Descriptors};
use crate::shim::wire::from_shim::ProcessIdentity;
use crate::shim::wire::{Frame, ProgramEnd};

/// How long a sandbox may take until its program runs.
const START_MAX: Duration = Duration::from_secs(5);

/// What the shim tells the first process of a sandbox once it knows the program.
const KNOWN: u8 = b'k';

/// A program that runs in a sandbox.
#[derive(Debug)]
pub(super) struct SandboxedProgram {
    /// As it is outside.
    pub(super) leader: ProcessIdentity,
    pub(super) reports: OwnedFd,
}

/// What did not start.
#[derive(Debug)]
pub(super) enum NotStarted {
    Sandbox(io::Error),
    Program(io::Error),
}

/// What the first process of a sandbox tells the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Started,
    Failed(i32),
    Ended(ProgramEnd),
}

impl Report {
    const STARTED: u8 = b's';
    const FAILED: u8 = b'f';
    const EXITED: u8 = b'e';
    const KILLED: u8 = b'k';
    pub(super) const BYTES: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let (kind, number) = match self {
            Self::Started => (Self::STARTED, 0),
            Self::Failed(errno) => (Self::FAILED, errno),
            Self::Ended(ProgramEnd::Code(code)) => (Self::EXITED, code),
            Self::Ended(ProgramEnd::Signal(signal)) => (Self::KILLED, signal),
            Self::Ended(ProgramEnd::Unknown) => (Self::KILLED, 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, number) = bytes.split_first()?;
        let number = i32::from_le_bytes(number.try_into().ok()?);
        Some(match *kind {
            Self::STARTED => Self::Started,
            Self::FAILED => Self::Failed(number),
            Self::EXITED => Self::Ended(ProgramEnd::Code(number)),
            Self::KILLED if number == 0 => Self::Ended(ProgramEnd::Unknown),
            Self::KILLED => Self::Ended(ProgramEnd::Signal(number)),
            _ => return None,
        })
    }
}

/// Starts the program in its sandbox. A failure leaves no process behind.
pub(super) fn start(
    program: &Program,
    slave: &OwnedFd,
    descriptors: Option<u64>,
    session: u64,
) -> Result<SandboxedProgram, NotStarted> {
    let (reports, theirs) = socket::pair().map_err(NotStarted::Sandbox)?;
    let maker =
        make(program, slave, theirs, (descriptors, session)).map_err(NotStarted::Sandbox)?;
    let started = hear_start(&reports).and_then(|leader| known(leader, &reports));
    end_maker(maker);
    match started {
        Ok(leader) => Ok(SandboxedProgram { leader, reports }),
        Err(failure) => {
            end_children();
            Err(failure)
        }
    }
}

/// Starts whoever makes the sandbox, with the program in a memory file.
fn make(
    program: &Program,
    slave: &OwnedFd,
    theirs: OwnedFd,
    (descriptors, session): (Option<u64>, u64),
) -> io::Result<Child> {
    let [maker, options @ ..] = &*program.sandbox else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let inside = Program { user: None, sandbox: Vec::new(), ..program.clone() };
    let mut plan = memory::create(c"termgate-program", 0)?;
    plan.write_all(&descriptors.unwrap_or(0).to_le_bytes())?;
    plan.write_all(&inside.encode())?;
    // Its path may be replaced by now, or hidden in the sandbox.
    let own = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe")?;
    if let Some(user) = &program.user {
        fchown(slave, Some(user.uid()), None)?;
    }
    let number = |descriptor: BorrowedFd<'_>| descriptor.as_raw_fd().to_string();
    let mut command = Command::new(maker);
    command
        .args(options)
        .args(["--as-pid-1", "--", &format!("/proc/self/fd/{}", own.as_raw_fd()), INSIDE])
        .args([number(plan.as_fd()), number(theirs.as_fd())])
        .env_clear()
        .stdin(Stdio::null())
        // By which the sandbox knows the terminal.
        .stdout(File::from(slave.try_clone()?))
        .stderr(Stdio::null());
    let setup = ChildSetup {
        kept: vec![own.as_raw_fd(), plan.as_raw_fd(), theirs.as_raw_fd()],
        session: Some(session),
        user: program.user.clone(),
        cwd: Some(CString::from(c"/")),
        ..ChildSetup::default()
    };
    prepare_in_child(&mut command, setup);
    command.spawn()
}

/// Waits until the program runs. Returns its pid, which the kernel says.
fn hear_start(reports: &OwnedFd) -> Result<u32, NotStarted> {
    setsockopt(reports, sockopt::PassCred, &true)
        .map_err(|errno| NotStarted::Sandbox(errno.into()))?;
    let until = readiness::now() + START_MAX;
    let mut leader = None;
    loop {
        let (told, sender) = hear(reports, until).map_err(NotStarted::Sandbox)?;
        match (told.as_slice(), Report::decode(&told)) {
            ([BEGUN], _) => leader = u32::try_from(sender).ok().filter(|pid| *pid > 0),
            (_, Some(Report::Failed(errno))) => {
                return Err(NotStarted::Program(io::Error::from_raw_os_error(errno)));
            }
            (_, Some(Report::Started)) => {
                let known = leader.ok_or(NotStarted::Sandbox(Errno::EPROTO.into()))?;
                // From here on each message has one sender.
                return match setsockopt(reports, sockopt::PassCred, &false) {
                    Ok(()) => Ok(known),
                    Err(errno) => Err(NotStarted::Sandbox(errno.into())),
                };
            }
            (_, Some(Report::Ended(_)) | None) => {
                return Err(NotStarted::Sandbox(Errno::EPROTO.into()));
            }
        }
    }
}

/// Looks at the program, and has it reaped from then on, should it have ended already.
fn known(leader: u32, reports: &OwnedFd) -> Result<ProcessIdentity, NotStarted> {
    let leader = ProcessIdentity::of(leader).map_err(NotStarted::Sandbox)?;
    socket::send(reports.as_fd(), &[KNOWN], &[])
        .map_err(|errno| NotStarted::Sandbox(errno.into()))?;
    Ok(leader)
}

/// The next message, and who sent it.
fn hear(reports: &OwnedFd, until: Duration) -> io::Result<(Vec<u8>, i32)> {
    let left = until.saturating_sub(readiness::now());
    let [ready] = readiness::wait([(Some(reports.as_fd()), READABLE)], Some(left))?;
    if ready == 0 {
        return Err(Errno::ETIMEDOUT.into());
    }
    let mut room = [0; Report::BYTES];
    let mut control = cmsg_space!(UnixCredentials);
    let mut parts = [IoSliceMut::new(&mut room)];
    let received = recvmsg::<()>(
        reports.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut messages = received.cmsgs()?;
    let sender = messages.find_map(|message| {
        if let ControlMessageOwned::ScmCredentials(sender) = message {
            Some(sender.pid())
        } else {
            None
        }
    });
    let length = received.bytes;
    // Whoever made the sandbox has ended, and nobody is inside.
    let sender = sender.filter(|_| length > 0).ok_or(Errno::ECHILD)?;
    Ok((room[..length].to_vec(), sender))
}

fn end_maker(mut maker: Child) {
    // It may have ended.
    let _ = maker.kill();
    let _ = maker.wait();
}

/// How the program ended, once that is told; `None` before. Does not allocate.
pub(super) fn hear_end(reports: BorrowedFd<'_>, room: &mut Frame) -> Option<ProgramEnd> {
    match socket::receive(reports, room, &mut Descriptors::default()) {
        Ok(length @ 1..) => match Report::decode(&room[..length]) {
            Some(Report::Ended(ended)) => Some(ended),
            Some(Report::Started | Report::Failed(_)) | None => None,
        },
        // The kernel reports that the other side closed with bytes unread once, before what was sent.
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNRESET) => None,
        // All inside ends with the first process there.
        Ok(_) | Err(_) => Some(ProgramEnd::Signal(libc::SIGKILL)),
    }
}

/// The words with which a sandbox is tried: all of its options, and a program that does nothing.
pub fn trial(sandbox: &[OsString]) -> Option<Command> {
    let (maker, options) = sandbox.split_first()?;
    let mut command = Command::new(maker);
    command.args(options).args(["--", "true"]);
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_as_it_was_sent() {
        let ends = [ProgramEnd::Code(3), ProgramEnd::Signal(9), ProgramEnd::Unknown];
        let reports = [Report::Started, Report::Failed(libc::ENOENT)];
        for report in reports.into_iter().chain(ends.map(Report::Ended)) {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[BEGUN]), None);
    }
}
