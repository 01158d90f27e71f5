//! Facts: what happened in a session that somebody above may want to know at once.
//!
//! They go to a bounded sender given to the session at creation; a session never waits for whoever
//! reads them, and what must not be lost can be read from its frames as well.

use crate::core::ids::{SessionId, TenantId};
use crate::core::lease::event::LeaseEvent;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Fact {
    pub session: SessionId,
    pub tenant: TenantId,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// The lease has another holder, or none.
    Lease(LeaseEvent),
    /// The program ended.
    Exited,
    /// The session was created, renamed or removed, so lists have changed.
    Listed,
    /// Another daemon has its terminal, and so the place of this one.
    Superseded,
}

/// How many facts may wait to be read before further ones are dropped and counted.
pub const FACTS_MAX: usize = 1_024;
