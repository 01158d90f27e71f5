//! How calls are judged by rules, and how they wait until somebody approves them.

mod facts;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::sync::watch;

use crate::core::command_line::ParsedCommandLine;
use crate::core::ids::TenantId;
use crate::core::moment::Moment;
use crate::core::policy::approvals::{Approval, ApprovalAnswer, ApprovalRequest, ApprovalState};
use crate::core::policy::decision::{Decision, DecisionId};
use crate::core::policy::rules::RuleEffect;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::surface::call::{Call, Daemon};
use crate::surface::error::{RuleRefusal, SurfaceError, WhyRefused};
use crate::surface::judge::Judge;
use crate::surface::terminal::create_session::tenant_of_new;
use crate::surface::tool::{ToolEntry, ToolRuns};

/// How long a call waits at most, like any other.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// A call as it is judged.
#[derive(Clone, Copy)]
pub(super) struct JudgedCall<'a> {
    pub(super) entry: &'a ToolEntry,
    pub(super) arguments: &'a JsonObject,
    pub(super) session: Option<&'a Session>,
}

impl JudgedCall<'_> {
    /// Has the rules judge the call, and waits for an approval where they want one, as long as the call may wait.
    /// Returns the approval that it used up.
    ///
    /// # Errors
    /// [`SurfaceError::Ruled`] if it may not pass, or not yet.
    pub(super) async fn judge(
        self,
        daemon: &Daemon,
        call: &mut Call,
    ) -> Result<Option<Box<Approval>>, SurfaceError> {
        if !self.entry.access.is_judged() || daemon.judge.rules().allow_all() {
            return Ok(None);
        }
        // Boxed, since most calls are not asked about, and each would be larger by this.
        Box::pin(self.judge_by_rules(daemon, call)).await
    }

    async fn judge_by_rules(
        self,
        daemon: &Daemon,
        call: &mut Call,
    ) -> Result<Option<Box<Approval>>, SurfaceError> {
        let until = daemon.now() + self.patience();
        loop {
            let (changes, generation) = (daemon.judge.changes(), daemon.judge.generation());
            let rules = daemon.judge.rules();
            if rules.allow_all() {
                return Ok(None);
            }
            let line = self.line();
            let facts = self.facts(call, line.as_ref());
            let caller = &call.standing.caller;
            let session = self.session.map(Session::id).or(call.creates);
            let about = (session, self.tenant(call));
            let decision = daemon.judge.decide(&rules, caller, about, &facts);
            call.decided(decision.id);
            match decision.verdict.effect {
                RuleEffect::Allow => return Ok(None),
                RuleEffect::Deny => return Err(refusal(&decision, WhyRefused::Denied)),
                RuleEffect::Ask => {}
            }
            let request = self.request(call, &decision, line.as_ref(), generation);
            if let Some(used) =
                self.approved(daemon, call, &decision, request, (changes, until)).await?
            {
                return Ok(used);
            }
        }
    }

    /// Waits until somebody approves the call, and returns what that used up. `None` if it is to be judged again: other
    /// rules hold, or an equal call used the approval.
    async fn approved(
        self,
        daemon: &Daemon,
        call: &mut Call,
        decision: &Decision,
        request: ApprovalRequest,
        (mut changes, until): (watch::Receiver<u64>, Moment),
    ) -> Result<Option<Option<Box<Approval>>>, SurfaceError> {
        let is_own = self.entry.mount().is_none();
        if is_own && self.arguments.get("dry_run") == Some(&Value::Bool(true)) {
            return Err(refusal(decision, WhyRefused::WouldAsk));
        }
        // Nobody is asked about what the tool refuses.
        self.entry.check(self.arguments)?;
        let (clock, leaving) = (daemon.sessions.clock(), daemon.departure.waiting());
        let mut registered = None;
        loop {
            let asked = daemon.judge.ask(&daemon.sessions, &call.standing.caller, request.clone());
            let now = clock.now();
            let (id, expires_at) = match asked {
                ApprovalAnswer::Passes { id, used, .. } => {
                    call.decided(id);
                    return self.pass(call, &request, used).map(Some);
                }
                ApprovalAnswer::Denied { by, until, .. } => {
                    let retry_after = now.until(until);
                    return Err(refusal(decision, WhyRefused::DeniedBy { by, retry_after }));
                }
                ApprovalAnswer::Stale { .. } => return Err(SessionError::Stale.into()),
                ApprovalAnswer::TooMany => {
                    return Err(SurfaceError::Quota("calls that wait for approval"));
                }
                ApprovalAnswer::Outdated => return Ok(None),
                ApprovalAnswer::Waits { id, expires_at, is_new } => {
                    if is_new {
                        registered = Some(Registered { judge: &daemon.judge, id });
                    }
                    (id, expires_at)
                }
            };
            // Whatever this connection asks next need not wait for a person.
            call.accept();
            loop {
                if clock.now() >= until {
                    // It can be approved all the same, for when it is made again.
                    std::mem::forget(registered);
                    let expires_in = clock.now().until(expires_at);
                    return Err(refusal(decision, WhyRefused::Waits { id, expires_in }));
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    () = clock.sleep_until(until) => {}
                    () = leaving.told() => return Err(SurfaceError::DaemonLeaves),
                }
                match daemon.judge.state(clock.now(), id) {
                    Some(ApprovalState::Waiting) => {}
                    Some(ApprovalState::Approved(_) | ApprovalState::Denied(_)) => break,
                    None => return Ok(None),
                }
            }
        }
    }

    /// Lets the call pass while its terminal is as it was when it was approved.
    fn pass(
        self,
        call: &mut Call,
        request: &ApprovalRequest,
        used: Option<Box<Approval>>,
    ) -> Result<Option<Box<Approval>>, SurfaceError> {
        if used.is_some() {
            if self.witness(call) != request.witness {
                return Err(SessionError::Stale.into());
            }
            if let Some(permit) = call.permit_mut() {
                permit.bind(request.witness.clone());
            }
        }
        Ok(used)
    }

    /// The tenant of the session that the call is about, or is to create.
    fn tenant(self, call: &Call) -> TenantId {
        match self.session {
            Some(session) => session.tenant().clone(),
            None => tenant_of_new(call, self.arguments),
        }
    }

    /// How long the caller waits for what comes of its call, which is how long it waits for an approval.
    fn patience(self) -> Duration {
        // What the arguments of a mounted tool mean, only its server knows.
        if self.entry.mount().is_some() {
            return Duration::ZERO;
        }
        let given = |name: &str| self.arguments.get(name).and_then(Value::as_u64);
        let millis = match self.entry.runs {
            ToolRuns::Line(_) => given("timeout_ms").unwrap_or(60_000),
            ToolRuns::Nothing | ToolRuns::Program | ToolRuns::Text(_) | ToolRuns::Input => {
                given("wait_ms").unwrap_or_default()
            }
        };
        Duration::from_millis(millis).min(PATIENCE_MAX)
    }

    fn request(
        self,
        call: &Call,
        decision: &Decision,
        line: Option<&ParsedCommandLine>,
        generation: u64,
    ) -> ApprovalRequest {
        let caller = &call.standing.caller;
        ApprovalRequest {
            decision: decision.id,
            fingerprint: self.fingerprint(call),
            witness: self.witness(call),
            generation,
            by: caller.name(),
            user: call.standing.user(),
            tenant: decision.tenant.clone(),
            session: decision.session.filter(|_| self.session.is_some()),
            tool: Arc::clone(&self.entry.name),
            what: self.what(),
            programs: line.and_then(facts::programs_of),
            rule: decision.verdict.rule.clone(),
            reason: decision.verdict.reason.clone(),
        }
    }
}

/// A call that was registered to wait. It is withdrawn when its caller gives it up.
struct Registered<'a> {
    judge: &'a Judge,
    id: DecisionId,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.judge.withdraw(self.id);
    }
}

fn refusal(decision: &Decision, why: WhyRefused) -> SurfaceError {
    let verdict = &decision.verdict;
    SurfaceError::Ruled(Box::new(RuleRefusal {
        decision: decision.id,
        rule: verdict.rule.clone(),
        reason: verdict.reason.clone(),
        unsure: verdict.unsure,
        why,
    }))
}
