//! Rejects connections from programs inside a session.
//! They run as the same user and could otherwise type into every terminal, past the daemon's policy.

use std::os::fd::BorrowedFd;

use crate::shim::family::lives_inside;
use crate::shim::socket::Other;

/// Whether the peer runs outside of all sessions. The session that this shim `own` itself runs in does not
/// count. A peer that cannot be located is rejected.
pub fn is_outside(connection: BorrowedFd<'_>, own: i32) -> bool {
    let Ok(peer) = Other::of(connection) else { return false };
    let outside = peer.pid > 0 && lives_inside(peer.pid, own) == Ok(false);
    outside && peer.lives()
}
