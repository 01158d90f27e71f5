//! Who may speak to a holder at all: no program that lives in a session.
//!
//! It reads nothing of what they say and allocates nothing. What runs in a terminal is of the same user
//! and could otherwise type into every other one, past all rules of the daemon.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};

use crate::holder::family::lives_inside;
use crate::holder::readiness::{self, READABLE};

/// Whether whoever connected lives outside of all sessions but the one that `own`, this holder, lives
/// in itself. Who cannot be placed does not.
pub fn is_outside(connection: BorrowedFd<'_>, own: i32) -> bool {
    let Ok(peer) = getsockopt(&connection, sockopt::PeerCredentials) else { return false };
    let handle = match getsockopt(&connection, sockopt::PeerPidfd) {
        Ok(handle) => Some(handle),
        // Linux before 6.5 has no such handle.
        Err(Errno::ENOPROTOOPT) => None,
        Err(_) => return false,
    };
    let outside = peer.pid() > 0 && lives_inside(peer.pid(), own) == Some(false);
    // What was read is the peer's only if the number was its own all the time.
    outside && handle.is_none_or(|handle| readiness::look(handle.as_fd(), READABLE) == Ok(0))
}
