//! What a permit is limited to beyond its act, its session and its time.

use crate::core::policy::approvals::Witness;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitBound {
    /// The state of the terminal for which the act was approved.
    Terminal(Witness),
    /// A line as it was judged: with what had been typed before, and for whoever was to read it.
    Line(LineMoment),
    /// To end a session that nobody but its caller has used.
    Unshared,
    /// To answer what was done before under the same idempotency key.
    Repetition,
}

/// When a line was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineMoment {
    /// How often anything had been typed.
    pub turns: u64,
    /// How many prompts the session's own shell had marked. A program that asked may end by itself, and what was for it
    /// is read at the next one.
    pub prompts: u64,
}
