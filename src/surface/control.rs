//! The daemon's own tools: explaining its answers, and what operators do.

pub mod find_lease;
pub mod follow_command;
pub mod preempt_lease;
pub mod set_write;
pub mod why;

use crate::surface::tool::Entry;

/// Every tool of this family, in the order of the contract.
pub fn entries() -> Vec<Entry> {
    vec![
        Entry::of::<why::Why>(),
        Entry::of::<follow_command::FollowCommand>(),
        Entry::of::<find_lease::FindLease>(),
        Entry::of::<preempt_lease::PreemptLease>(),
        Entry::of::<set_write::SetWrite>(),
    ]
}
