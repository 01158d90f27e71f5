//! What a permit is limited to beyond its act, its session and its time.

use crate::core::policy::approvals::Witness;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitBound {
    /// The state of the terminal for which the act was approved.
    Terminal(Witness),
    /// A line as it was when anything had been typed so often: it was judged with what was typed before.
    Line(u64),
    /// To answer what was done before under the same idempotency key.
    Repetition,
}
