//! Who may speak to a shim at all: no program that lives in a session.
//!
//! It reads nothing of what they say and allocates nothing. What runs in a terminal is of the same user
//! and could otherwise type into every other one, past all rules of the daemon.

use std::os::fd::BorrowedFd;

use crate::shim::family::lives_inside;
use crate::shim::socket::Other;

/// Whether whoever connected lives outside of all sessions but the one that `own`, this shim, lives
/// in itself. Who cannot be placed does not.
pub fn is_outside(connection: BorrowedFd<'_>, own: i32) -> bool {
    let Ok(peer) = Other::of(connection) else { return false };
    let outside = peer.pid > 0 && lives_inside(peer.pid, own) == Ok(false);
    outside && peer.lives()
}
