//! What a permit is limited to beyond its act, its session and its time.

use crate::core::policy::approvals::Witness;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitBound {
    /// The state of the terminal for which the act was approved.
    Terminal(Witness),
    /// To answer what was done before under the same idempotency key.
    Repetition,
}
