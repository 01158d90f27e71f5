//! Who is at the other end of a local socket, as the kernel tells it.
//!
//! It decides nothing about rights. Nothing a peer says about itself counts, and nothing in its memory is
//! read, where it could keep whoever reads waiting.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Uid, User};

use crate::session::pty::ProcessId;
use crate::shim::family::{lives_inside, outermost_shim};
use crate::shim::stat::{ProcessStat, Unseen, seen};

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
    /// What the kernel said, for a socket that has no peer, or when no descriptor is left to look with.
    pub fn of(socket: &impl AsFd, daemon: ProcessId) -> io::Result<Self> {
        let credentials = getsockopt(socket, sockopt::PeerCredentials)?;
        let pid = Some(credentials.pid()).filter(|pid| *pid > 0);
        let place = match (pid, getsockopt(socket, sockopt::PeerPidfd)) {
            (Some(pid), Ok(handle)) => Place::of_peer(ProcessId(pid), Some(handle), daemon)?,
            // Linux before 6.5 has no such handle.
            (Some(pid), Err(Errno::ENOPROTOOPT)) => Place::of_peer(ProcessId(pid), None, daemon)?,
            (Some(_), Err(error @ (Errno::EMFILE | Errno::ENFILE))) => return Err(error.into()),
            (Some(_), Err(_)) | (None, _) => Place::Unknown,
        };
        Ok(Self { uid: credentials.uid(), gid: credentials.gid(), pid, place })
    }

    /// The login name of the peer's user, else the user's number.
    pub fn login_name(&self) -> String {
        let user = User::from_uid(Uid::from_raw(self.uid)).ok().flatten();
        user.map_or_else(|| self.uid.to_string(), |user| user.name)
    }

    /// With whom it takes turns.
    pub fn source(&self) -> Source {
        Source::of(self.pid.unwrap_or_default(), self.place)
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
    /// In no session of ours.
    Outside,
    /// In a managed session, whose shim is this process, if one is left.
    Inside { shim: Option<i32> },
    /// It ended, or could not be looked at, before that was known.
    Unknown,
}

/// Whom clients come from: those of one source take turns with those of others, and have log lines of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Process(i32),
    /// All that lives inside the session of this shim.
    Session(i32),
}

impl Source {
    /// The source of what a process in this place sends.
    pub fn of(pid: i32, place: Place) -> Self {
        match place {
            Place::Inside { shim: Some(shim) } => Self::Session(shim),
            Place::Inside { shim: None } | Place::Outside | Place::Unknown => Self::Process(pid),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Session(shim) => write!(f, "session of process {shim}"),
        }
    }
}

impl Place {
    fn of_peer(pid: ProcessId, handle: Option<OwnedFd>, daemon: ProcessId) -> io::Result<Self> {
        let started = || seen(ProcessStat::look(pid.0).map(|found| found.started));
        let before = if handle.is_none() { started()? } else { None };
        let place = Self::of(pid, daemon)?;
        // What was read is the peer's only if the number was its own all the time.
        let same = match handle {
            Some(handle) => is_alive(&handle),
            None => before.is_some() && started()? == before,
        };
        Ok(if same { place } else { Self::Unknown })
    }

    /// Finds out where a process lives, by its ancestors and by its mark.
    ///
    /// Shims take in the orphans of their sessions, and the daemon those of shims, so one of them
    /// is an ancestor of every process that came of a session, whatever that did and whichever
    /// daemon started it. The daemon itself is outside.
    ///
    /// # Errors
    /// When no descriptor is left to look with, which says nothing about the process.
    pub fn of(pid: ProcessId, daemon: ProcessId) -> io::Result<Self> {
        if pid == daemon {
            return Ok(Self::Outside);
        }
        Ok(match lives_inside(pid.0, daemon.0) {
            Ok(true) => Self::Inside { shim: outermost_shim(pid.0, daemon.0)? },
            Ok(false) => Self::Outside,
            Err(Unseen::Gone) => Self::Unknown,
            Err(Unseen::Shortage(errno)) => return Err(errno.into()),
        })
    }
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
