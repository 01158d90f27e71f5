//! What the input would say to an act, without doing it.
//!
//! Nothing changes but what time has done; whoever acts later is judged again then.

use crate::core::caller::Caller;
use crate::core::ids::{Epoch, LeaseId, Watermark};
use crate::core::input::Input;
use crate::core::input::error::WriteError;
use crate::core::lease::request::TakeRule;
use crate::core::moment::Moment;

impl Input {
    /// Tells what the lease would say to an act that sends no bytes, and changes nothing but what
    /// time has done.
    ///
    /// # Errors
    /// Why the caller may not.
    pub fn would_authorize(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<(), WriteError> {
        self.judge(now);
        self.right(now, caller, presented, take).map(|_| ())
    }

    /// Finds out whether a command that was sent under this epoch may still be interrupted for its caller:
    /// while no other holding began since, else where the caller has one now and may write blindly. Without
    /// an epoch the caller sent it, if at all, in a holding that is over, and nobody may have one.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_interrupt(
        &mut self,
        now: Moment,
        caller: &Caller,
        sent_in: Option<Epoch>,
    ) -> Result<(), WriteError> {
        self.judge(now);
        self.check_open(now)?;
        let is_untouched = match sent_in {
            Some(epoch) => epoch == self.lease.newest_epoch(),
            None => self.lease.epoch().is_none() || self.lease.is_reclaimable(),
        };
        if is_untouched {
            return Ok(());
        }
        let right = self.right(now, caller, None, TakeRule::HeldOnly)?;
        self.check_seen(&right, None)
    }

    /// Tells what the lease would say to a write of somebody who has seen the screen at `expected`,
    /// and changes nothing but what time has done.
    ///
    /// # Errors
    /// Why the caller may not write.
    pub fn would_write(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
        expected: Option<Watermark>,
    ) -> Result<(), WriteError> {
        self.judge(now);
        let right = self.right(now, caller, presented, take)?;
        self.check_seen(&right, expected)
    }
}
