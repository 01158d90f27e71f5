//! What writers are to be told with their next call: bytes that were discarded behind their backs.
//!
//! It knows nothing of the queue; it only adds up, for a bounded number of principals.

use std::collections::VecDeque;

use crate::core::ids::PrincipalId;
use crate::core::input::request::{DiscardCause, Warning};

/// The warnings not told yet, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings {
    untold: VecDeque<(PrincipalId, Warning)>,
}

impl Warnings {
    /// For how many principals warnings are kept; the oldest give way.
    pub(super) const PRINCIPALS_MAX: usize = 64;

    pub(super) fn add(&mut self, principal: PrincipalId, bytes: usize, cause: DiscardCause) {
        let before = self.take(principal).map_or(0, |warning| warning.discarded);
        if self.untold.len() == Self::PRINCIPALS_MAX {
            self.untold.pop_front();
        }
        self.untold.push_back((principal, Warning { discarded: before + bytes, cause }));
    }

    pub(super) fn take(&mut self, principal: PrincipalId) -> Option<Warning> {
        let index = self.untold.iter().position(|(of, _)| *of == principal)?;
        self.untold.remove(index).map(|(_, warning)| warning)
    }
}
