//! Approvals: calls that wait until somebody lets them pass.
//!
//! An approval is for one exact call, at a terminal that is as it was when the call was made. It is used once. None
//! survives its daemon.

mod request;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use crate::core::policy::approvals::request::{
    ApprovalRequest, Fingerprint, KnownCommand, Witness,
};

use crate::core::burst::Burst;
use crate::core::ids::{PrincipalId, TenantId};
use crate::core::moment::Moment;
use crate::core::policy::decision::DecisionId;

/// How long a call can be approved, and an approval used, after the call was first made.
pub const VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// How long the same call is refused without asking again, after it was denied.
pub const DENIED_FOR: Duration = Duration::from_secs(60);

/// How many denied calls of one rule have all others of that rule refused as long.
const DENIALS_MAX: usize = 3;

/// How long a program can be approved in a session.
pub const PROGRAM_FOR_MAX: Duration = Duration::from_secs(60 * 60);

/// How many calls of one principal wait at most, of one tenant, and of all.
const WAITING_MAX: usize = 16;
const TENANT_MAX: usize = 64;
const ALL_MAX: usize = 1_024;

/// How soon a tenant may have one more call asked about, after as many as can wait: people decide no faster.
const ONE_MORE: Duration = Duration::from_secs(1);
/// The same of one principal, so that others of its tenant have people asked as well.
const OWN_ONE_MORE: Duration = Duration::from_secs(4);

/// When to try again where too many calls wait. When they end, nobody knows.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// A call that was made and is not approved and used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The decision that first asked for it; its id.
    pub id: DecisionId,
    pub request: ApprovalRequest,
    pub expires_at: Moment,
    pub state: ApprovalState,
    /// How many calls wait for it now. Without any, it lets the next one pass that is made like this.
    pub waiters: usize,
}

/// What became of a call that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    Waiting,
    /// By whom; it waits to be used.
    Approved(Arc<str>),
    Denied(Arc<str>),
}

/// The answer to a call that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// It may pass, now and once.
    Passes {
        id: DecisionId,
        by: Arc<str>,
        /// What was used up; none if its programs pass for a time.
        used: Option<Box<Approval>>,
    },
    /// It waits; `is_new` where nobody was asked before.
    Waits { id: DecisionId, expires_at: Moment, is_new: bool },
    Denied {
        id: DecisionId,
        by: Arc<str>,
        /// When it may be asked again.
        until: Moment,
    },
    /// It was approved, and the terminal has changed since. The approval is gone.
    Stale { id: DecisionId },
    /// Too many calls wait, or were asked about just now.
    TooMany { retry_after: Duration },
    /// Other rules hold by now, which are to judge first.
    Outdated,
}

/// For what an approval is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalScope {
    Once,
    /// Besides, the same programs with the same flags, by the same principal in the same session where the same rule asks,
    /// until then.
    Programs(Moment),
}

/// Why a call cannot be approved or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    #[error("no call waits for an approval with this id")]
    Unknown,
    #[error("it was decided already")]
    Decided,
    #[error("the programs of this call are not all known, so it can be approved once only")]
    ProgramsUnknown,
    #[error(
        "the terminal has changed since the call was made, so it does not pass; its caller is told"
    )]
    Stale,
}

/// Programs that pass for a time, as those of this call.
#[derive(Clone, Debug)]
struct PassingPrograms {
    call: Approval,
    by: Arc<str>,
    until: Moment,
}

/// How much each tenant, and each principal of it, may have people be asked.
#[derive(Debug, Default)]
struct AskedSoFar {
    tenants: BTreeMap<TenantId, Burst>,
    principals: BTreeMap<PrincipalId, Burst>,
}

/// All calls that wait, and what was approved.
#[derive(Debug, Default)]
pub struct Approvals {
    calls: BTreeMap<DecisionId, Approval>,
    passing: Vec<PassingPrograms>,
    asked: AskedSoFar,
    /// How often other rules came.
    generation: u64,
}

impl Approvals {
    /// Takes a call that needs an approval: lets it pass if it has one, and uses that up.
    pub fn ask(&mut self, now: Moment, request: ApprovalRequest) -> ApprovalAnswer {
        self.forget(now);
        if request.generation != self.generation {
            return ApprovalAnswer::Outdated;
        }
        if let Some(answer) = self.denied_before(&request) {
            return answer;
        }
        let same = |call: &&mut Approval| call.request.fingerprint == request.fingerprint;
        if let Some(call) = self.calls.values_mut().find(same) {
            let (id, expires_at) = (call.id, call.expires_at);
            let is_as_it_was = call.request.witness == request.witness;
            match call.state.clone() {
                ApprovalState::Waiting if is_as_it_was => {
                    return ApprovalAnswer::Waits { id, expires_at, is_new: false };
                }
                ApprovalState::Approved(by) => {
                    let used = self.calls.remove(&id).map(Box::new);
                    return match is_as_it_was {
                        true => ApprovalAnswer::Passes { id, by, used },
                        false => ApprovalAnswer::Stale { id },
                    };
                }
                // Whoever approves the one before approves nothing. One that is denied was found before.
                ApprovalState::Waiting | ApprovalState::Denied(_) => drop(self.calls.remove(&id)),
            }
        }
        if let Some(passing) = self.passing.iter().find(|passing| passing.covers(&request)) {
            let (id, by) = (passing.call.id, Arc::clone(&passing.by));
            return ApprovalAnswer::Passes { id, by, used: None };
        }
        if let Err(retry_after) = self.asked.take(now, &request) {
            return ApprovalAnswer::TooMany { retry_after };
        }
        if !self.has_room_for(&request) {
            return ApprovalAnswer::TooMany { retry_after: AGAIN_AFTER };
        }
        let (id, expires_at) = (request.decision, now + VALID_FOR);
        let state = ApprovalState::Waiting;
        self.calls.insert(id, Approval { id, request, expires_at, state, waiters: 0 });
        ApprovalAnswer::Waits { id, expires_at, is_new: true }
    }

    /// Whether one more call can wait. The oldest call for which nobody waits any more gives way: of the same principal if that
    /// has too many, and of the one with the most if the tenant has.
    fn has_room_for(&mut self, request: &ApprovalRequest) -> bool {
        let is_of_tenant = |call: &&Approval| call.request.tenant == request.tenant;
        let of = |calls: &BTreeMap<DecisionId, Approval>, principal| {
            calls.values().filter(|call| call.request.by.principal == principal).count()
        };
        let is_full = of(&self.calls, request.by.principal) >= WAITING_MAX;
        if is_full || self.calls.values().filter(is_of_tenant).count() >= TENANT_MAX {
            let may_go = |call: &&Approval| {
                let is_left = call.waiters == 0 && call.state == ApprovalState::Waiting;
                let is_own = call.request.by.principal == request.by.principal;
                is_left && (is_own || !is_full && is_of_tenant(call))
            };
            let share = |call: &&Approval| of(&self.calls, call.request.by.principal);
            let next = |call: &&Approval| (share(call), Reverse(call.expires_at));
            let Some(gone) = self.calls.values().filter(may_go).max_by_key(next) else {
                return false;
            };
            let gone = gone.id;
            self.calls.remove(&gone);
        }
        self.calls.len() < ALL_MAX
    }

    /// A call begins, or ceases, to wait under this id.
    pub fn on_wait(&mut self, id: DecisionId, waits: bool) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.waiters = match waits {
                true => call.waiters.saturating_add(1),
                false => call.waiters.saturating_sub(1),
            };
        }
    }

    /// The answer to a call like those that were denied before.
    fn denied_before(&self, request: &ApprovalRequest) -> Option<ApprovalAnswer> {
        let denied = self.calls.values().filter_map(|call| match &call.state {
            ApprovalState::Denied(by) if call.request.is_asked_as(request) => Some((call, by)),
            ApprovalState::Denied(_) | ApprovalState::Waiting | ApprovalState::Approved(_) => None,
        });
        let by_rule = denied.clone().filter(|(call, _)| call.request.rule == request.rule);
        let is_rule_denied = by_rule.clone().count() >= DENIALS_MAX;
        let same = denied.clone().find(|(call, _)| call.request.does_as(request));
        let (call, by) = match is_rule_denied {
            true => same.or(by_rule.max_by_key(|(call, _)| call.expires_at))?,
            false => same?,
        };
        Some(ApprovalAnswer::Denied { id: call.id, by: Arc::clone(by), until: call.expires_at })
    }

    /// What became of a call; none if it is forgotten, or was used.
    pub fn state(&mut self, now: Moment, id: DecisionId) -> Option<&ApprovalState> {
        self.forget(now);
        self.calls.get(&id).map(|call| &call.state)
    }

    /// Forgets a call that was given up, if no other waits under this id. Says whether there was one.
    pub fn withdraw(&mut self, id: DecisionId) -> bool {
        let is_left = |call: &Approval| call.state == ApprovalState::Waiting && call.waiters == 0;
        let waits = self.calls.get(&id).is_some_and(is_left);
        waits && self.calls.remove(&id).is_some()
    }

    /// Takes back an approval that was used for nothing, unless other rules hold by now.
    pub fn give_back(&mut self, approval: Approval) {
        let same = |call: &Approval| call.request.fingerprint == approval.request.fingerprint;
        // The call may have been made again meanwhile.
        if approval.request.generation == self.generation && !self.calls.values().any(same) {
            self.calls.insert(approval.id, approval);
        }
    }

    /// Lets a call pass that waits, and gives it back as it was.
    ///
    /// # Errors
    /// There is none, it was decided before, or what it runs is not known well enough for this scope.
    pub fn approve(
        &mut self,
        now: Moment,
        id: DecisionId,
        scope: ApprovalScope,
        by: Arc<str>,
    ) -> Result<Approval, ApprovalError> {
        let call = self.waiting(now, id)?.clone();
        if let ApprovalScope::Programs(until) = scope {
            let request = &call.request;
            if request.session.is_none() || request.programs.is_none() {
                return Err(ApprovalError::ProgramsUnknown);
            }
            if self.passing.len() == ALL_MAX {
                self.passing.remove(0);
            }
            self.passing.push(PassingPrograms { call: call.clone(), by: Arc::clone(&by), until });
        }
        self.waiting(now, id)?.state = ApprovalState::Approved(by);
        Ok(call)
    }

    /// Refuses a call that waits, or has the programs of one pass no more, and gives it back as it was.
    ///
    /// # Errors
    /// There is none, or it was decided before.
    pub fn deny(
        &mut self,
        now: Moment,
        id: DecisionId,
        by: Arc<str>,
    ) -> Result<Approval, ApprovalError> {
        if let Some(index) = self.passing.iter().position(|passing| passing.call.id == id) {
            self.calls.remove(&id);
            return Ok(self.passing.remove(index).call);
        }
        let call = self.waiting(now, id)?;
        let before = call.clone();
        (call.state, call.expires_at) = (ApprovalState::Denied(by), now + DENIED_FOR);
        Ok(before)
    }

    /// The call that waits, was approved or denied, or has its programs pass under this id.
    pub fn request(&self, id: DecisionId) -> Option<&ApprovalRequest> {
        let passing = self.passing.iter().map(|passing| &passing.call).find(|call| call.id == id);
        self.calls.get(&id).or(passing).map(|call| &call.request)
    }

    fn waiting(&mut self, now: Moment, id: DecisionId) -> Result<&mut Approval, ApprovalError> {
        self.forget(now);
        let call = self.calls.get_mut(&id).ok_or(ApprovalError::Unknown)?;
        match call.state {
            ApprovalState::Waiting => Ok(call),
            ApprovalState::Approved(_) | ApprovalState::Denied(_) => Err(ApprovalError::Decided),
        }
    }

    /// The calls that wait: first those that somebody waits in, and the oldest first.
    pub fn list(&mut self, now: Moment) -> Vec<Approval> {
        self.forget(now);
        let mut waiting: Vec<Approval> =
            self.calls.values().filter(|it| it.state == ApprovalState::Waiting).cloned().collect();
        waiting.sort_by_key(|call| (call.waiters == 0, call.expires_at));
        waiting
    }

    /// Forgets the calls of somebody who has left for good, and what was approved to it, but not what was denied: who comes
    /// back is not asked for again. Says whether there was anything.
    pub fn leave(&mut self, principal: PrincipalId) -> bool {
        let before = self.calls.len() + self.passing.len();
        let is_denied = |call: &Approval| matches!(call.state, ApprovalState::Denied(_));
        self.calls.retain(|_, call| call.request.by.principal != principal || is_denied(call));
        self.passing.retain(|passing| passing.call.request.by.principal != principal);
        self.calls.len() + self.passing.len() < before
    }

    /// Forgets everything, since other rules hold.
    pub fn clear(&mut self) {
        let (generation, asked) = (self.generation + 1, std::mem::take(&mut self.asked));
        *self = Self { generation, asked, ..Self::default() };
    }

    /// Of the rules that hold now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn forget(&mut self, now: Moment) {
        self.calls.retain(|_, call| call.expires_at > now);
        self.passing.retain(|passing| passing.until > now);
        self.asked.forget(now);
    }
}

impl AskedSoFar {
    /// Counts one more call that is asked about.
    ///
    /// # Errors
    /// When it may be asked about, if there were too many.
    fn take(&mut self, now: Moment, request: &ApprovalRequest) -> Result<(), Duration> {
        let of_tenant = || Burst::new(TENANT_MAX as u32, ONE_MORE);
        let tenant = self.tenants.entry(request.tenant.clone()).or_insert_with(of_tenant);
        // Whom the tenant leaves no place needs no count of its own.
        if now < tenant.free_at() {
            return Err(now.until(tenant.free_at()));
        }
        let of_principal = || Burst::new(WAITING_MAX as u32, OWN_ONE_MORE);
        let own = self.principals.entry(request.by.principal).or_insert_with(of_principal);
        if !own.take(now) {
            return Err(now.until(own.free_at()));
        }
        tenant.take(now);
        Ok(())
    }

    fn forget(&mut self, now: Moment) {
        self.tenants.retain(|_, burst| !burst.is_full(now));
        self.principals.retain(|_, burst| !burst.is_full(now));
    }
}

impl PassingPrograms {
    fn covers(&self, other: &ApprovalRequest) -> bool {
        let own = &self.call.request;
        let programs = own.programs.as_ref().zip(other.programs.as_ref());
        own.by.principal == other.by.principal
            && own.session == other.session
            && own.rule == other.rule
            && programs.is_some_and(|(own, other)| other.is_subset(own))
    }
}

#[cfg(test)]
mod tests;
