//! The rules of the running daemon, what they decided, and the calls that wait for an approval.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::watch;
use uuid::Uuid;

use crate::core::caller::Caller;
use crate::core::event::{Event, EventScope};
use crate::core::ids::{PrincipalId, SessionId};
use crate::core::moment::Moment;
use crate::core::policy::approvals::{
    Approval, ApprovalAnswer, ApprovalError, ApprovalRequest, ApprovalScope, ApprovalState,
    Approvals,
};
use crate::core::policy::decision::{Decision, DecisionId, DecisionLog};
use crate::core::policy::rules::PolicyRules;
use crate::core::policy::rules::facts::CallFacts;
use crate::core::policy::{Denial, Permit, PermittedAct};
use crate::session::registry::Registry;

/// What a daemon's rules say, and who was asked.
#[derive(Debug)]
pub struct Judge {
    rules: RwLock<Arc<PolicyRules>>,
    log: Mutex<DecisionLog>,
    approvals: Mutex<Approvals>,
    /// Counts what was asked for and decided.
    changes: watch::Sender<u64>,
}

impl Judge {
    pub fn new(rules: Arc<PolicyRules>) -> Self {
        Self {
            rules: RwLock::new(rules),
            log: Mutex::default(),
            approvals: Mutex::default(),
            changes: watch::Sender::new(0),
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

    /// Judges a call by these rules, and keeps the decision.
    pub fn decide(
        &self,
        rules: &PolicyRules,
        caller: &Caller,
        session: Option<SessionId>,
        facts: &CallFacts<'_>,
    ) -> Arc<Decision> {
        let decision = Arc::new(Decision {
            id: DecisionId::from_random(Uuid::new_v4()),
            by: caller.name(),
            tenant: caller.tenant.clone(),
            session,
            tool: facts.tool,
            verdict: rules.judge(facts),
        });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(Arc::clone(&decision));
        decision
    }

    /// A decision that is still kept.
    pub fn decision(&self, id: DecisionId) -> Option<Arc<Decision>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).find(id)
    }

    /// Asks for an approval of a call, or uses the one that it has.
    pub fn ask(
        &self,
        sessions: &Registry,
        by: &Caller,
        request: ApprovalRequest,
    ) -> ApprovalAnswer {
        let (session, what) = (request.session, Arc::clone(&request.what));
        let asked = self.approvals().ask(sessions.clock().now(), request);
        if let ApprovalAnswer::Waits { id, is_new: true, .. } = &asked {
            let (id, by) = (*id, by.clone());
            let scope = EventScope { tenant: &by.tenant.clone(), session };
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
    /// What [`Approvals::approve`] says.
    pub fn approve(
        &self,
        sessions: &Registry,
        operator: &Operator<'_>,
        id: DecisionId,
        scope: ApprovalScope,
    ) -> Result<Approval, ApprovalError> {
        let now = sessions.clock().now();
        let approved = self.approvals().approve(now, id, scope, operator.label())?;
        self.tell_decided(sessions, operator, &approved, true);
        Ok(approved)
    }

    /// Refuses a call that waits.
    ///
    /// # Errors
    /// What [`Approvals::deny`] says.
    pub fn deny(
        &self,
        sessions: &Registry,
        operator: &Operator<'_>,
        id: DecisionId,
    ) -> Result<Approval, ApprovalError> {
        let now = sessions.clock().now();
        let denied = self.approvals().deny(now, id, operator.label())?;
        self.tell_decided(sessions, operator, &denied, false);
        Ok(denied)
    }

    fn tell_decided(
        &self,
        sessions: &Registry,
        operator: &Operator<'_>,
        call: &Approval,
        granted: bool,
    ) {
        let scope = EventScope { tenant: &call.request.tenant, session: call.request.session };
        let (id, by) = (call.id, operator.0.clone());
        sessions.tell_event_in(scope, Event::ApprovalDecided { id, granted, by });
        self.tell();
    }

    /// The calls that wait, the oldest first.
    pub fn waiting(&self, now: Moment) -> Vec<Approval> {
        self.approvals().list(now)
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

/// Somebody who may approve, as a permit has shown.
#[derive(Debug)]
pub struct Operator<'a>(&'a Caller);

impl<'a> Operator<'a> {
    /// # Errors
    /// [`Denial::OtherPermit`] if the permit is not one to operate, of this caller.
    pub fn of(permit: &Permit, caller: &'a Caller, now: Moment) -> Result<Self, Denial> {
        permit.check(PermittedAct::Operate, None, now)?;
        permit.check_principal(caller.principal)?;
        Ok(Self(caller))
    }

    fn label(&self) -> Arc<str> {
        Arc::from(self.0.name().to_string())
    }
}
