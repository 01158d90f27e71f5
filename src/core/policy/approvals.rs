//! Approvals: calls that wait until somebody lets them pass.
//!
//! An approval is for one exact call, at a terminal that is as it was when the call was made. It is used once. None
//! survives its daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::core::caller::PrincipalName;
use crate::core::frame::Frame;
use crate::core::ids::{Epoch, PrincipalId, SessionId, TenantId, Watermark};
use crate::core::moment::Moment;
use crate::core::policy::decision::DecisionId;
use crate::core::shell::commands::record::CommandId;

/// How long a call can be approved, and an approval used, after the call was first made.
pub const VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// How long the same call is refused without asking again, after it was denied.
pub const DENIED_FOR: Duration = Duration::from_secs(60);

/// How long a program can be approved in a session.
pub const PROGRAM_FOR_MAX: Duration = Duration::from_secs(60 * 60);

/// How many calls of one principal wait at most, of one tenant, and of all.
const WAITING_MAX: usize = 16;
const TENANT_MAX: usize = 64;
const ALL_MAX: usize = 1_024;

/// Tells calls apart: the hash of who calls which tool with which arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these parts, each hashed with its length, so that no two lists of parts are the same.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The state of a terminal on which it depends what a call does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Of the lease, if somebody else than the caller holds it; of the lease of a mount, if anybody does.
    pub others_epoch: Option<Epoch>,
    /// The last command that was run.
    pub command: CommandId,
    pub directory: Option<String>,
    /// The process group in front.
    pub foreground: Option<i32>,
    /// When the screen last changed, for a call whose effect may depend on what it shows.
    pub screen: Option<Watermark>,
}

impl Witness {
    /// The state of a terminal that shows this, with a program in front that works in `directory`, for a call of `own`.
    pub fn of(
        frame: &Frame,
        own: PrincipalId,
        directory: Option<String>,
        reads_screen: bool,
    ) -> Self {
        let holding = frame.lease.value.holding.as_ref();
        Self {
            others_epoch: holding.filter(|held| held.by.principal != own).map(|held| held.epoch),
            command: frame.commands.value.last(),
            directory,
            foreground: frame.activity.value.foreground.as_ref().map(|group| group.group),
            screen: reads_screen.then(|| frame.screen_watermark()),
        }
    }
}

/// A call that is to be approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub decision: DecisionId,
    pub fingerprint: Fingerprint,
    pub witness: Witness,
    pub by: PrincipalName,
    /// The user who asks, where no token says who that is.
    pub user: Option<u32>,
    /// Of the session, or of the one to be created.
    pub tenant: TenantId,
    pub session: Option<SessionId>,
    pub tool: Arc<str>,
    /// Of the rules that asked.
    pub generation: u64,
    /// What the call does, in one line for people.
    pub what: Arc<str>,
    /// The hash of what its command line runs, if all of that is known. Blanks and quotes do not change it.
    pub line: Option<Fingerprint>,
    /// The programs that it runs with their flags, if all are known and none runs others.
    pub programs: Option<BTreeSet<String>>,
    pub rule: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    /// Whether the person in front of the calling client may approve it.
    pub client_may_approve: bool,
    /// What a rule for good would be about; none if not all programs are known, or one runs others.
    pub command: Option<KnownCommand>,
}

/// A command of which all is known, and who runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCommand {
    pub line: Arc<str>,
    /// Of the caller.
    pub tenant: TenantId,
    /// The name of the caller's token.
    pub token: Option<Arc<str>>,
    /// The rules that ask.
    pub asked_by: Vec<Arc<str>>,
}

impl ApprovalRequest {
    /// Whether its command line runs the same as that of another call of the same caller, however it is written.
    fn runs_as(&self, other: &Self) -> bool {
        self.line.is_some()
            && self.session.is_some()
            && self.line == other.line
            && (self.by.principal, self.session, &self.tool)
                == (other.by.principal, other.session, &other.tool)
    }
}

/// A call that was made and is not approved and used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The decision that first asked for it; its id.
    pub id: DecisionId,
    pub request: ApprovalRequest,
    pub expires_at: Moment,
    pub state: ApprovalState,
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
    /// Too many calls wait.
    TooMany,
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
}

/// Programs that pass for a time, as those of this call.
#[derive(Clone, Debug)]
struct PassingPrograms {
    call: Approval,
    by: Arc<str>,
    until: Moment,
}

/// All calls that wait, and what was approved.
#[derive(Debug, Default)]
pub struct Approvals {
    calls: BTreeMap<DecisionId, Approval>,
    passing: Vec<PassingPrograms>,
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
        let denied = self.calls.values().filter(|call| call.request.runs_as(&request));
        for call in denied {
            if let ApprovalState::Denied(by) = &call.state {
                let (id, by, until) = (call.id, Arc::clone(by), call.expires_at);
                return ApprovalAnswer::Denied { id, by, until };
            }
        }
        let same = |call: &&mut Approval| call.request.fingerprint == request.fingerprint;
        if let Some(call) = self.calls.values_mut().find(same) {
            let (id, expires_at) = (call.id, call.expires_at);
            let is_as_it_was = call.request.witness == request.witness;
            match call.state.clone() {
                ApprovalState::Waiting if is_as_it_was => {
                    return ApprovalAnswer::Waits { id, expires_at, is_new: false };
                }
                ApprovalState::Denied(by) => {
                    return ApprovalAnswer::Denied { id, by, until: expires_at };
                }
                ApprovalState::Approved(by) => {
                    let used = self.calls.remove(&id).map(Box::new);
                    return match is_as_it_was {
                        true => ApprovalAnswer::Passes { id, by, used },
                        false => ApprovalAnswer::Stale { id },
                    };
                }
                // Whoever approves the one before approves nothing.
                ApprovalState::Waiting => drop(self.calls.remove(&id)),
            }
        }
        if let Some(passing) = self.passing.iter().find(|passing| passing.covers(&request)) {
            let (id, by) = (passing.call.id, Arc::clone(&passing.by));
            return ApprovalAnswer::Passes { id, by, used: None };
        }
        let principal = request.by.principal;
        let own = self.calls.values().filter(|call| call.request.by.principal == principal);
        let of_tenant = self.calls.values().filter(|call| call.request.tenant == request.tenant);
        let is_full = own.count() >= WAITING_MAX || of_tenant.count() >= TENANT_MAX;
        if is_full || self.calls.len() >= ALL_MAX {
            return ApprovalAnswer::TooMany;
        }
        let (id, expires_at) = (request.decision, now + VALID_FOR);
        self.calls.insert(id, Approval { id, request, expires_at, state: ApprovalState::Waiting });
        ApprovalAnswer::Waits { id, expires_at, is_new: true }
    }

    /// What became of a call; none if it is forgotten, or was used.
    pub fn state(&mut self, now: Moment, id: DecisionId) -> Option<&ApprovalState> {
        self.forget(now);
        self.calls.get(&id).map(|call| &call.state)
    }

    /// Forgets a call that waits and that nobody makes any more. Says whether there was one.
    pub fn withdraw(&mut self, id: DecisionId) -> bool {
        let waits = self.calls.get(&id).is_some_and(|call| call.state == ApprovalState::Waiting);
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

    /// The calls that wait, the oldest first.
    pub fn list(&mut self, now: Moment) -> Vec<Approval> {
        self.forget(now);
        let mut waiting: Vec<Approval> =
            self.calls.values().filter(|it| it.state == ApprovalState::Waiting).cloned().collect();
        waiting.sort_by_key(|call| call.expires_at);
        waiting
    }

    /// Forgets the calls of somebody who has left for good, and what was approved to it. Says whether there was anything.
    pub fn leave(&mut self, principal: PrincipalId) -> bool {
        let before = self.calls.len() + self.passing.len();
        self.calls.retain(|_, call| call.request.by.principal != principal);
        self.passing.retain(|passing| passing.call.request.by.principal != principal);
        self.calls.len() + self.passing.len() < before
    }

    /// Forgets everything, since other rules hold.
    pub fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// Of the rules that hold now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn forget(&mut self, now: Moment) {
        self.calls.retain(|_, call| call.expires_at > now);
        self.passing.retain(|passing| passing.until > now);
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
