//! Who is at the other end of a local socket, as the kernel tells it.
//!
//! It decides nothing about rights. Nothing a peer says about itself counts, but for the mark in its
//! environment, which can only cost it something.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Uid, User};

use crate::core::ids::SessionId;
use crate::holder::family::lives_inside;
use crate::session::pty::ProcessId;
use crate::session::pty::environment::SESSION_MARK;
use crate::session::pty::processes::Process;

/// Bytes of an environment that are read; a larger one makes its process unknown.
const ENVIRONMENT_MAX: u64 = 8 * 1024 * 1024;

/// The process that connected, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub gid: u32,
    /// None when the process is in a place whose numbers mean nothing here.
    pub pid: Option<i32>,
    pub place: Place,
}

impl Peer {
    /// Asks the kernel about the peer of a connected socket; `daemon` is our own process.
    ///
    /// # Errors
    /// What the kernel said, for a socket that has no peer.
    pub fn of(socket: &impl AsFd, daemon: ProcessId) -> io::Result<Self> {
        let credentials = getsockopt(socket, sockopt::PeerCredentials)?;
        let pid = Some(credentials.pid()).filter(|pid| *pid > 0);
        let place = match (pid, getsockopt(socket, sockopt::PeerPidfd)) {
            (Some(pid), Ok(handle)) => Place::of_peer(ProcessId(pid), Some(handle), daemon),
            // Linux before 6.5 has no such handle.
            (Some(pid), Err(Errno::ENOPROTOOPT)) => Place::of_peer(ProcessId(pid), None, daemon),
            (Some(_), Err(_)) | (None, _) => Place::Unknown,
        };
        Ok(Self { uid: credentials.uid(), gid: credentials.gid(), pid, place })
    }

    /// The login name of the peer's user, else the user's number.
    pub fn login_name(&self) -> String {
        let user = User::from_uid(Uid::from_raw(self.uid)).ok().flatten();
        user.map_or_else(|| self.uid.to_string(), |user| user.name)
    }

    /// Whether the peer lives inside a managed session, or might.
    pub fn lives_inside(&self) -> bool {
        match self.place {
            Place::Outside => false,
            Place::Inside { .. } | Place::Unknown => true,
        }
    }
}

/// Where a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no session of ours, and with no mark of one.
    Outside,
    /// In a managed session; which one is what its environment claims, good for messages only.
    Inside { claimed: Option<SessionId> },
    /// It ended, or could not be read, before that was known.
    Unknown,
}

impl Place {
    fn of_peer(pid: ProcessId, handle: Option<OwnedFd>, daemon: ProcessId) -> Self {
        let Some(before) = Process::find(pid) else { return Self::Unknown };
        let place = Self::of(pid, daemon);
        // What was read is the peer's only if the number was its own all the time.
        let same = match handle {
            Some(handle) => is_alive(&handle),
            None => Process::find(pid).is_some_and(|after| after.started == before.started),
        };
        if same { place } else { Self::Unknown }
    }

    /// Finds out where a process lives, by its ancestors and by its mark.
    ///
    /// Holders take in the orphans of their sessions, and the daemon those of holders, so one of them
    /// is an ancestor of every process that came of a session, whatever that did and whichever
    /// daemon started it. The daemon itself is outside.
    pub fn of(pid: ProcessId, daemon: ProcessId) -> Self {
        if pid == daemon {
            return Self::Outside;
        }
        let mark = mark(pid);
        match (lives_inside(pid.0, daemon.0), mark) {
            (Some(true), mark) => {
                Self::Inside { claimed: mark.ok().flatten().and_then(|text| text.parse().ok()) }
            }
            (Some(false) | None, Ok(Some(text))) => Self::Inside { claimed: text.parse().ok() },
            (Some(false), Ok(None)) => Self::Outside,
            (None, Ok(None)) | (Some(false) | None, Err(_)) => Self::Unknown,
        }
    }
}

/// The session that the environment of a process names.
fn mark(pid: ProcessId) -> io::Result<Option<String>> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ"))?;
    file.take(ENVIRONMENT_MAX).read_to_end(&mut environment)?;
    if environment.len() as u64 == ENVIRONMENT_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if environment.is_empty() {
        // So it looks for a moment while a program is started, and once it has ended.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let value = |entry: &[u8]| {
        let value = entry.strip_prefix(SESSION_MARK.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    Ok(environment.split(|byte| *byte == 0).find_map(value))
}

/// Whether the process of this handle has not ended.
fn is_alive(handle: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut ended, PollTimeout::ZERO) {
            Err(Errno::EINTR) => {}
            polled => return polled == Ok(0),
        }
    }
}

#[cfg(test)]
mod tests;
