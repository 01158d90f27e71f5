//! The process at the other end of a local socket, as the kernel reports it.
//!
//! Claims of the peer do not count. Its memory is never read, because it could block the reader.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Uid, User};

use crate::session::pty::ProcessId;
use crate::shim::family::{lives_inside, outermost_shim};
use crate::shim::socket::peer_groups;
use crate::shim::stat::{ProcessStat, Unseen, seen};

/// The process that connected, at the time of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub gid: u32,
    /// The supplementary groups, as the kernel has them. Empty where it does not say.
    pub groups: Vec<u32>,
    /// `None` when the process is in another PID namespace.
    pub pid: Option<i32>,
    pub place: Place,
}

impl Peer {
    /// Looks up the peer of a connected socket; `daemon` is our own process.
    ///
    /// # Errors
    /// Returns the kernel's error when the socket has no peer or no descriptor is left for the lookup.
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
        let groups = groups_of(socket);
        Ok(Self { uid: credentials.uid(), gid: credentials.gid(), groups, pid, place })
    }

    /// The login name of the peer's user, or its number if there is no name.
    pub fn login_name(&self) -> String {
        let user = User::from_uid(Uid::from_raw(self.uid)).ok().flatten();
        user.map_or_else(|| self.uid.to_string(), |user| user.name)
    }

    /// The source with which this peer shares turns.
    pub fn source(&self) -> Source {
        Source::of(self.pid.unwrap_or_default(), self.place)
    }

    /// Whether the peer lives inside a managed session. `true` when that is unknown.
    pub fn lives_inside(&self) -> bool {
        match self.place {
            Place::Outside => false,
            Place::Inside { .. } | Place::Unknown => true,
        }
    }
}

/// The supplementary groups of the peer. A peer whose groups are not known is in none, which gives it nothing.
pub fn groups_of(socket: &impl AsFd) -> Vec<u32> {
    peer_groups(socket.as_fd()).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Outside all managed sessions.
    Outside,
    /// In a managed session; `shim` is its shim process, if it still runs.
    Inside { shim: Option<i32> },
    /// The process ended or could not be inspected.
    Unknown,
}

/// The origin of clients. Sources take turns with each other and have their own log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Process(i32),
    /// All processes of the kernel's session that this process leads.
    Leader(i32),
    /// All processes inside the session of this shim.
    Session(i32),
    /// All processes with the mark of this session number, before they are looked up.
    Marked(u64),
    /// All processes that ended before they were looked up. They may have been inside.
    Ended,
}

impl Source {
    pub fn of(pid: i32, place: Place) -> Self {
        match place {
            Place::Inside { shim: Some(shim) } => Self::Session(shim),
            Place::Inside { shim: None } | Place::Outside | Place::Unknown => Self::Process(pid),
        }
    }

    /// Whether it is, or may have been, inside a session.
    pub fn is_inside(self) -> bool {
        match self {
            Self::Session(_) | Self::Marked(_) | Self::Ended => true,
            Self::Process(_) | Self::Leader(_) => false,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Leader(pid) => write!(f, "processes led by {pid}"),
            Self::Session(shim) => write!(f, "session of process {shim}"),
            Self::Marked(session) => write!(f, "session {session:012x}"),
            Self::Ended => f.write_str("processes that have ended"),
        }
    }
}

impl Place {
    fn of_peer(pid: ProcessId, handle: Option<OwnedFd>, daemon: ProcessId) -> io::Result<Self> {
        let started = || seen(ProcessStat::look(pid.0).map(|found| found.started));
        let before = if handle.is_none() { started()? } else { None };
        let place = Self::of(pid, daemon)?;
        // The result is valid only if the peer kept its process number during the lookup.
        let same = match handle {
            Some(handle) => is_alive(&handle),
            None => before.is_some() && started()? == before,
        };
        Ok(if same { place } else { Self::Unknown })
    }

    /// Finds out where a process lives, from its ancestors and its mark.
    ///
    /// Shims adopt the orphans of their sessions, and the daemon adopts the orphans of shims. So every process of a
    /// session has one of them as an ancestor, whichever daemon started it. The daemon itself is outside.
    ///
    /// # Errors
    /// Returns the kernel's error when no descriptor is left for the lookup. This says nothing about the process.
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
