//! Which tools stand at which door.

use crate::core::policy::Standing;
use crate::surface::tool::{Access, Entry};

/// Whether a tool exists for this caller at all; what operators do exists at their door alone.
pub fn at_door(entry: &Entry, standing: &Standing) -> bool {
    match entry.access {
        Access::Operate => standing.is_operator(),
        Access::Read | Access::Create | Access::WriteSession | Access::WriteLease => true,
    }
}

/// Whether sessions can be created at this caller's door: one that shows a single session shows
/// nothing of others, their names included.
pub fn creates(standing: &Standing) -> bool {
    standing.bound_session().is_none()
}
