//! The end of a principal's right: whatever it has of a lease ends with it, however far away it is.
//!
//! It knows nothing of why the right ended.

use crate::core::ids::PrincipalId;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::holding::Holding;
use crate::core::lease::{LeaseManager, State};
use crate::core::moment::Moment;

impl LeaseManager {
    /// Ends all that a principal has here: its lease, in force, expired, suspended, kept after its
    /// connection closed or left by a daemon before, what it is offered, and its waits.
    pub(crate) fn end_right_of(&mut self, now: Moment, principal: PrincipalId) {
        self.judge(now);
        let cause = EndCause::RightEnded;
        for waiter in self.waiters.take_of_principal(principal) {
            self.refusals.push((waiter.id, LeaseError::Lost { cause: cause.clone() }));
        }
        let has = |holding: &Holding| holding.holder.principal == principal;
        if self.suspended.as_ref().is_some_and(|suspended| has(&suspended.holding)) {
            self.finish_suspended(cause.clone());
        }
        match &mut self.state {
            State::Held(held) if has(held) => self.end(now, now, cause),
            State::Held(held) => {
                if held.offer.as_ref().is_some_and(|offer| offer.to.principal == principal) {
                    held.take_back(now);
                }
            }
            State::Lapsed(lapsed) if has(lapsed) => {
                self.forget_lapsed(cause);
            }
            State::Lapsed(_) | State::Free => {}
        }
    }
}
