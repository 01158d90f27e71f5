//! Decides which tools exist for which callers.

use crate::core::policy::Standing;
use crate::surface::tool::{Access, Entry};

/// Whether a tool exists for this caller. Operator tools exist only at the operator socket.
pub fn at_door(entry: &Entry, standing: &Standing) -> bool {
    match entry.access {
        Access::Operate => standing.is_operator(),
        Access::Read | Access::Create | Access::WriteSession(_) | Access::WriteLease => true,
    }
}

/// Whether this caller can create sessions. A client at one session's socket cannot, because the answer could reveal
/// names of other sessions.
pub fn creates(standing: &Standing) -> bool {
    standing.bound_session().is_none()
}
