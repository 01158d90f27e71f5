//! The rules of the running daemon, what they decided, and the calls that wait for an approval.

use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{RequestStateCodec, SealOptions};
use tokio::sync::watch;
use uuid::Uuid;

use crate::core::caller::Caller;
use crate::core::event::{Event, EventScope};
use crate::core::ids::{PrincipalId, SessionId, TenantId};
use crate::core::moment::Moment;
use crate::core::policy::approvals::{
    Approval, ApprovalAnswer, ApprovalError, ApprovalRequest, ApprovalScope, ApprovalState,
    Approvals, Fingerprint, Witness,
};
use crate::core::policy::decision::{Decision, DecisionId, DecisionLog};
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::{Role, Roles};
use crate::core::policy::rules::PolicyRules;
use crate::core::policy::rules::facts::CallFacts;
use crate::core::policy::{Permit, PermittedAct, Reach, Standing};
use crate::session::pty::processes::directory_in_front;
use crate::session::registry::Registry;

/// What a daemon's rules say, and who was asked.
#[derive(Debug)]
pub struct Judge {
    rules: RwLock<Arc<PolicyRules>>,
    log: Mutex<DecisionLog>,
    approvals: Mutex<Approvals>,
    /// Counts what was asked for and decided.
    changes: watch::Sender<u64>,
    /// Seals what clients bring back with an answer. Its key is of this daemon alone.
    states: RequestStateCodec,
}

impl Judge {
    #[allow(deprecated)] // The other constructor fails for a short key, and this one is long enough.
    pub fn new(rules: Arc<PolicyRules>) -> Self {
        let key = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self {
            rules: RwLock::new(rules),
            log: Mutex::default(),
            approvals: Mutex::default(),
            changes: watch::Sender::new(0),
            states: RequestStateCodec::new(key),
        }
    }

    /// The rules that hold now.
    pub fn rules(&self) -> Arc<PolicyRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has other rules hold. What was asked for and approved under the ones before is void.
    pub fn set_rules(&self, rules: &Arc<PolicyRules>) {
        let mut held = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if *held == *rules {
            return;
        }
        *held = Arc::clone(rules);
        drop(held);
        self.approvals().clear();
        self.tell();
    }

    /// Judges a call by these rules, and keeps the decision. Of several ways to read it, the strictest counts.
    pub fn decide(
        &self,
        rules: &PolicyRules,
        caller: &Caller,
        (session, tenant): (Option<SessionId>, TenantId),
        (facts, others): (&CallFacts<'_>, &[CallFacts<'_>]),
    ) -> Arc<Decision> {
        let decision = Arc::new(Decision {
            id: DecisionId::from_random(Uuid::new_v4()),
            by: caller.name(),
            tenant,
            session,
            tool: Arc::from(facts.tool),
            what: OnceLock::new(),
            verdict: rules.judge_strictly(facts, others),
        });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(Arc::clone(&decision));
        decision
    }

    /// A decision that is still kept.
    pub fn decision(&self, id: DecisionId) -> Option<Arc<Decision>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).find(id)
    }

    /// Asks for an approval of a call, or uses the one that it has. `kept` is what the event says that it would do; none
    /// where that may be a secret.
    pub fn ask(
        &self,
        sessions: &Registry,
        by: &Caller,
        request: ApprovalRequest,
        kept: Option<Arc<str>>,
    ) -> ApprovalAnswer {
        let (session, what) = (request.session, kept.unwrap_or_default());
        let tenant = request.tenant.clone();
        let asked = self.approvals().ask(sessions.clock().now(), request);
        if let ApprovalAnswer::Waits { id, is_new: true, .. } = &asked {
            let (id, by) = (*id, by.clone());
            let scope = EventScope { tenant: &tenant, session };
            sessions.tell_event_in(scope, Event::ApprovalAsked { id, what, by });
            self.tell();
        }
        asked
    }

    /// Of the rules that hold now, to be asked for before the rules.
    pub fn generation(&self) -> u64 {
        self.approvals().generation()
    }

    /// What became of a call that asked; none if it is forgotten, or was used.
    pub fn state(&self, now: Moment, id: DecisionId) -> Option<ApprovalState> {
        self.approvals().state(now, id).cloned()
    }

    /// A call begins, or ceases, to wait under this id.
    pub fn on_wait(&self, id: DecisionId, waits: bool) {
        self.approvals().on_wait(id, waits);
        self.tell();
    }

    /// Forgets a call that waits and that nobody makes any more.
    pub fn withdraw(&self, id: DecisionId) {
        if self.approvals().withdraw(id) {
            self.tell();
        }
    }

    /// Takes back the use of an approval, since the call had no effect.
    pub fn give_back(&self, approval: Approval) {
        self.approvals().give_back(approval);
    }

    /// Lets a call pass that waits.
    ///
    /// # Errors
    /// What [`Approvals::approve`] says, or [`ApprovalError::Stale`] if the approval lets nothing pass.
    pub fn approve(
        &self,
        sessions: &Registry,
        approver: &Approver<'_>,
        id: DecisionId,
        scope: ApprovalScope,
    ) -> Result<Approval, ApprovalError> {
        let now = sessions.clock().now();
        let mut approvals = self.approvals();
        let request = check_decider(sessions, approver, &approvals, id)?;
        // The call may pass, and change its terminal, as soon as it is approved.
        let is_stale = scope == ApprovalScope::Once && !is_as_it_was(sessions, request);
        let approved = approvals.approve(now, id, scope, approver.label())?;
        drop(approvals);
        self.tell_decided(sessions, &approver.0.caller, &approved, true);
        if is_stale { Err(ApprovalError::Stale) } else { Ok(approved) }
    }

    /// The session of a call that this caller may decide.
    pub fn session_of(
        &self,
        sessions: &Registry,
        standing: &Standing,
        id: DecisionId,
    ) -> Option<SessionId> {
        let approvals = self.approvals();
        let request = approvals.request(id)?;
        request.session.filter(|_| may_decide(sessions, standing, request))
    }

    /// Refuses a call that waits.
    ///
    /// # Errors
    /// What [`Approvals::deny`] says.
    pub fn deny(
        &self,
        sessions: &Registry,
        approver: &Approver<'_>,
        id: DecisionId,
    ) -> Result<Approval, ApprovalError> {
        let now = sessions.clock().now();
        let mut approvals = self.approvals();
        check_decider(sessions, approver, &approvals, id)?;
        let denied = approvals.deny(now, id, approver.label())?;
        drop(approvals);
        self.tell_decided(sessions, &approver.0.caller, &denied, false);
        Ok(denied)
    }

    /// Decides a call as the person in front of the client says that makes it.
    ///
    /// # Errors
    /// No such call of `caller` waits, or its rules want somebody else to approve it.
    pub fn answer(
        &self,
        sessions: &Registry,
        caller: &Caller,
        id: DecisionId,
        granted: bool,
    ) -> Result<(), ApprovalError> {
        let now = sessions.clock().now();
        let mut approvals = self.approvals();
        let is_for_client = |call: &ApprovalRequest| {
            call.client_may_approve && call.by.principal == caller.principal
        };
        if !approvals.request(id).is_some_and(is_for_client) {
            return Err(ApprovalError::Unknown);
        }
        let by = Arc::from(format!("the person in front of {}", caller.name()));
        let decided = match granted {
            true => approvals.approve(now, id, ApprovalScope::Once, by)?,
            false => approvals.deny(now, id, by)?,
        };
        drop(approvals);
        self.tell_decided(sessions, caller, &decided, granted);
        Ok(())
    }

    /// Names a call that waits, for its client to bring back with the answer of its person.
    pub fn seal(&self, id: DecisionId, call: &Fingerprint, expires_in: Duration) -> String {
        let bound = SealOptions::new().associated_data(call.as_bytes()).ttl(expires_in);
        self.states.seal_with(id.to_string().as_bytes(), &bound)
    }

    /// The call that a client brings back. None if it is forged, of another call or caller, or has expired.
    pub fn opened(&self, state: &str, call: &Fingerprint) -> Option<DecisionId> {
        self.opened_as(state, call)
    }

    /// Names a call during which a mounted server asks, for its client to bring back with the answers.
    pub fn seal_question(&self, call: u64, of: &Fingerprint, expires_in: Duration) -> String {
        let bound = SealOptions::new().associated_data(of.as_bytes()).ttl(expires_in);
        self.states.seal_with(call.to_string().as_bytes(), &bound)
    }

    /// The call that a client brings back with answers. None if it is forged, of another call or caller, or has expired.
    pub fn opened_question(&self, state: &str, of: &Fingerprint) -> Option<u64> {
        self.opened_as(state, of)
    }

    fn opened_as<T: FromStr>(&self, state: &str, of: &Fingerprint) -> Option<T> {
        let named = self.states.open_with(state, of.as_bytes()).ok()?;
        std::str::from_utf8(&named).ok()?.parse().ok()
    }

    fn tell_decided(&self, sessions: &Registry, by: &Caller, call: &Approval, granted: bool) {
        let scope = EventScope { tenant: &call.request.tenant, session: call.request.session };
        let (id, by) = (call.id, by.clone());
        sessions.tell_event_in(scope, Event::ApprovalDecided { id, granted, by });
        self.tell();
    }

    /// The calls that wait, in the order of [`Approvals::list`], but those that nobody waits in and whose terminal has
    /// changed: to approve them lets nothing pass.
    pub fn waiting(&self, sessions: &Registry) -> Vec<Approval> {
        let mut waiting = self.approvals().list(sessions.clock().now());
        waiting.retain(|call| call.waiters > 0 || is_as_it_was(sessions, &call.request));
        waiting
    }

    /// Forgets the calls of somebody who has left for good.
    pub fn leave(&self, principal: PrincipalId) {
        if self.approvals().leave(principal) {
            self.tell();
        }
    }

    /// Changes whenever an approval is asked for or decided.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn approvals(&self) -> MutexGuard<'_, Approvals> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The call that somebody is to decide. Whoever may not is told that there is none.
fn check_decider<'a>(
    sessions: &Registry,
    approver: &Approver<'_>,
    approvals: &'a Approvals,
    id: DecisionId,
) -> Result<&'a ApprovalRequest, ApprovalError> {
    let request = approvals.request(id).ok_or(ApprovalError::Unknown)?;
    let may = may_decide(sessions, approver.0, request);
    if may { Ok(request) } else { Err(ApprovalError::Unknown) }
}

/// Somebody who may approve, as a permit has shown.
#[derive(Debug)]
pub struct Approver<'a>(&'a Standing);

impl<'a> Approver<'a> {
    /// # Errors
    /// [`Denial::OtherPermit`] if the permit is not one to approve, of this caller.
    pub fn of(permit: &Permit, standing: &'a Standing, now: Moment) -> Result<Self, Denial> {
        permit.check(PermittedAct::Approve, None, now)?;
        permit.check_principal(standing.caller.principal)?;
        Ok(Self(standing))
    }

    fn label(&self) -> Arc<str> {
        Arc::from(self.0.caller.name().to_string())
    }
}

/// Whether the terminal of a call is as it was when it was made.
fn is_as_it_was(sessions: &Registry, call: &ApprovalRequest) -> bool {
    let session = call.session.and_then(|session| sessions.get(session));
    session.is_none_or(|session| {
        let typed = call.witness.typed.map(|_| session.live().typed().turns());
        let frame = session.frame();
        let directory = directory_in_front(&frame);
        Witness::of(&frame, call.by.principal, directory, typed) == call.witness
    })
}

/// Whether somebody may approve or deny a call: not its own, and only where its roles say so.
pub fn may_decide(sessions: &Registry, standing: &Standing, call: &ApprovalRequest) -> bool {
    // Who has no token is another principal on each connection.
    let is_users = call.user.is_some() && call.user == standing.user();
    let is_own =
        call.by.principal == standing.caller.principal || (is_users && !standing.is_operator());
    let roles = match call.session.and_then(|session| sessions.known_by_id(session)) {
        Some(session) => standing.roles_at(&session),
        // What is to be created belongs to no door of one session.
        None if call.session.is_none() && standing.reach == Reach::Tenant => {
            standing.roles_in(&call.tenant)
        }
        // Of a session that is gone, nothing waits any more.
        None => Roles::NONE,
    };
    !is_own && roles.has(Role::Approve)
}
