//! How calls are judged by rules, and how they wait until somebody approves them.

mod approving;
mod facts;
mod lease;
mod seen;
mod telling;
mod typing;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::core::frame::Frame;
use crate::core::ids::TenantId;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::WriteError;
use crate::core::moment::Moment;
use crate::core::policy::approvals::{Approval, ApprovalRequest, Fingerprint, Witness};
use crate::core::policy::bound::PermitBound;
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::RuleEffect;
use crate::core::shell::activity::ActivityState;
use crate::core::shell::readiness::Readiness;
use crate::gateway::judging::approving::AskedCall;
use crate::gateway::judging::facts::JudgedLine;
use crate::gateway::judging::seen::{SeenCall, SeenTerminal};
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::surface::answer::budget::ends;
use crate::surface::call::{Call, Daemon, Target};
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::{RuleRefusal, SurfaceError, WhyRefused};
use crate::surface::terminal::create_session::tenant_of_new;
use crate::surface::terminal::writing::WAIT_MS_DEFAULT;
use crate::surface::tool::{ToolEntry, ToolRuns};

/// How long a call waits at most, like any other.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// How long a shell that is starting is waited for before its command is judged.
const STARTING_MAX: Duration = Duration::from_secs(10);

/// How long it is waited for, whatever its caller waits, that a shell reads what was typed just before: it does so at once.
const READING_MAX: Duration = Duration::from_millis(500);

/// The longest description of a call that is kept with its decision, in bytes of JSON.
const WHAT_TOLD_MAX: usize = 2_000;

/// A call as it is judged.
#[derive(Clone, Copy)]
pub(super) struct JudgedCall<'a> {
    pub(super) entry: &'a ToolEntry,
    pub(super) arguments: &'a CallArguments,
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
        Box::pin(async {
            let judged = self.judge_by_rules(daemon, call).await;
            if matches!(judged, Err(SurfaceError::Ruled(_))) {
                // The prompt for a secret may have come while the call waited.
                self.note_secrecy(call, None).await;
            }
            judged
        })
        .await
    }

    async fn judge_by_rules(
        self,
        daemon: &Daemon,
        call: &mut Call,
    ) -> Result<Option<Box<Approval>>, SurfaceError> {
        let until = daemon.now() + self.patience(call);
        // However long it waits for an approval.
        let started_by = until.max(daemon.now() + self.patience_of_arguments());
        self.started(daemon, call, started_by).await;
        loop {
            let (changes, generation) = (daemon.judge.changes(), daemon.judge.generation());
            let rules = daemon.judge.rules();
            if rules.allow_all() {
                return Ok(None);
            }
            // All of it is of one moment, however long something is waited for below.
            let terminal = self.terminal();
            let seen = SeenCall { judged: self, terminal: terminal.as_ref() };
            let line = seen.line(call);
            let facts = seen.facts(call, &line);
            let caller = &call.standing.caller;
            let session = self.session.map(Session::id).or(call.creates);
            let about = (session, self.tenant(call));
            let others: Vec<_> = seen.at_normal_address(&facts).into_iter().collect();
            let decision = daemon.judge.decide(&rules, caller, about, (&facts, &others));
            let effect = decision.verdict.effect;
            if effect != RuleEffect::Allow && self.repeats(call).await {
                return Ok(None);
            }
            let is_asked = effect == RuleEffect::Ask && !decision.verdict.may_be_denied();
            if is_asked && self.ends_own(call) {
                // No decision lets it pass, so that none is noted.
                self.bind(call, PermitBound::Unshared);
                return Ok(None);
            }
            call.decided(decision.id);
            match effect {
                RuleEffect::Allow => {
                    if decision.verdict.by_directory {
                        self.bind(call, PermitBound::Terminal(seen.witness(call)));
                    } else if let Some(terminal) = seen.terminal.filter(|_| self.ends_line()) {
                        self.bind(call, PermitBound::Line(terminal.line_moment()));
                    }
                    return Ok(None);
                }
                RuleEffect::Deny | RuleEffect::Ask => {}
            }
            self.note_secrecy(call, terminal.as_ref()).await;
            if call.may_be_secret != Some(true) {
                let what = seen.recordable_what(&line, decision.verdict.rule.as_deref());
                let _ = decision.what.set(ends(&what, WHAT_TOLD_MAX).into());
            }
            if effect == RuleEffect::Deny {
                return Err(refusal(&decision, WhyRefused::Denied));
            }
            let request = seen.request(call, &decision, &line, generation);
            let asked = AskedCall { judged: self, daemon, decision: &decision, request, until };
            if let Some(used) = asked.approved(call, changes).await? {
                return Ok(used);
            }
        }
    }

    /// Waits until a shell that is starting is at its prompt: what was approved before would be approved at another state
    /// of the terminal, and of a line that is typed before, nobody knows who reads it.
    async fn started(self, daemon: &Daemon, call: &mut Call, until: Moment) {
        let (types_line, at_least) = match self.entry.runs {
            ToolRuns::Line(_) => (true, Duration::ZERO),
            ToolRuns::Text(_) | ToolRuns::Input => (self.ends_line(), READING_MAX),
            ToolRuns::Nothing | ToolRuns::Program => (false, Duration::ZERO),
        };
        let Some(session) = self.session.filter(|_| types_line) else { return };
        let is_starting = |frame: &Arc<Frame>| frame.shell.readiness == Readiness::Starting;
        let mut frames = session.frames();
        if !is_starting(&frames.borrow()) {
            return;
        }
        let _attending = session.attend();
        call.accept();
        let clock = daemon.sessions.clock();
        let until = until.min(clock.now() + STARTING_MAX).max(clock.now() + at_least);
        tokio::select! {
            // If the session ends, its tool says so.
            _ = frames.wait_for(|frame| !is_starting(frame)) => {}
            () = clock.sleep_until(until) => {}
        }
    }

    /// Notes whether what the call types may be a secret, at the terminal as it was judged or as it is now. Once it may have
    /// been, it stays one.
    async fn note_secrecy(self, call: &mut Call, judged: Option<&SeenTerminal>) {
        let types = match self.entry.runs {
            ToolRuns::Line(_) | ToolRuns::Text(_) | ToolRuns::Input => true,
            ToolRuns::Nothing | ToolRuns::Program => false,
        };
        let Some(session) = self.session.filter(|_| types) else { return };
        if call.may_be_secret != Some(true) {
            let judged = judged.map(|terminal| terminal.frame.activity.value.state);
            let asks = asks_secret(judged, session.frame().activity.value.state);
            call.may_be_secret = Some(asks || session.reads_secret().await);
        }
    }

    /// Whether the call is only to say what would happen.
    fn is_rehearsal(self) -> bool {
        self.arguments.get("dry_run") == Some(&Value::Bool(true))
    }

    /// Whether the call was made before under its idempotency key by the same caller. It may then do nothing more than to
    /// be answered as before, or be told that its key is used.
    async fn repeats(self, call: &mut Call) -> bool {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        // Which arguments the key stands for, only the tool knows; here, any call that has it is known.
        let key = text("idempotency_key").and_then(|key| IdempotencyKey::new(key, 0));
        let Some(key) = key.filter(|_| !self.is_rehearsal()) else { return false };
        let presented = self.presented();
        let caller = &call.standing.caller;
        let is_known = match (&call.mount_lease, &call.target) {
            (Some(lease), _) => lease.has_made(caller, &key),
            (None, Some(Target { session, permit })) => {
                match session.recall(permit, caller.clone(), presented, key).await {
                    Ok(made) => made.is_some(),
                    Err(error) => matches!(error, SessionError::Write(WriteError::KeyReused)),
                }
            }
            (None, None) => false,
        };
        if let (true, Some(permit)) = (is_known, call.permit_mut()) {
            permit.bind(PermitBound::Repetition);
        }
        is_known
    }

    /// Has the call take effect only within this.
    fn bind(self, call: &mut Call, bound: PermitBound) {
        if let Some(permit) = call.permit_mut() {
            permit.bind(bound);
        }
    }

    /// Its terminal as it is now.
    fn terminal(self) -> Option<SeenTerminal> {
        self.session.map(SeenTerminal::of)
    }

    /// The state of its terminal, or of the lease of its mount, as it is now.
    fn witness(self, call: &Call) -> Witness {
        SeenCall { judged: self, terminal: self.terminal().as_ref() }.witness(call)
    }

    /// The tenant of the session that the call is about, or is to create.
    fn tenant(self, call: &Call) -> TenantId {
        match self.session {
            Some(session) => session.tenant().clone(),
            None => tenant_of_new(call, self.arguments),
        }
    }

    /// How long the caller waits for an approval: as it says, or as long as for what comes of its call.
    fn patience(self, call: &Call) -> Duration {
        call.approval_wait.unwrap_or_else(|| self.patience_of_arguments()).min(PATIENCE_MAX)
    }

    fn patience_of_arguments(self) -> Duration {
        let given = |name: &str| self.arguments.get(name).and_then(Value::as_u64);
        let waits = self.arguments.get("until").is_some_and(|until| !until.is_null());
        let millis = match self.entry.runs {
            ToolRuns::Line(_) => given("timeout_ms").unwrap_or(60_000),
            ToolRuns::Nothing | ToolRuns::Program | ToolRuns::Text(_) | ToolRuns::Input => {
                match given("wait_ms") {
                    Some(given) => given,
                    None if waits => WAIT_MS_DEFAULT,
                    None => 0,
                }
            }
        };
        Duration::from_millis(millis)
    }
}

impl SeenCall<'_> {
    fn request(
        self,
        call: &Call,
        decision: &Decision,
        line: &JudgedLine,
        generation: u64,
    ) -> ApprovalRequest {
        let caller = &call.standing.caller;
        let rule = decision.verdict.rule.as_deref();
        let (mut fingerprint, mut what) = (self.judged.fingerprint(caller), self.what(line, rule));
        let line = line.parsed.as_ref();
        // Which mount a call for a lease is about, its arguments need not say.
        if let Some(lease) = &call.mount_lease {
            let mount = lease.mount().name().as_str();
            fingerprint = Fingerprint::of(&[fingerprint.as_bytes(), mount.as_bytes()]);
            what = format!("{what} of the mount {mount}").into();
        }
        ApprovalRequest {
            decision: decision.id,
            fingerprint,
            witness: self.witness(call),
            generation,
            by: caller.name(),
            user: call.standing.user(),
            is_operators: call.standing.is_operator(),
            tenant: decision.tenant.clone(),
            session: decision.session.filter(|_| self.judged.session.is_some()),
            tool: Arc::clone(&self.judged.entry.name),
            what,
            line: line.and_then(facts::fingerprint_of),
            programs: line.and_then(facts::programs_of),
            rule: decision.verdict.rule.clone(),
            reason: decision.verdict.reason.clone(),
            client_may_approve: decision.verdict.client_may_approve,
            command: line.and_then(|line| self.known_command(call, line, decision)),
        }
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

/// Whether a secret is asked for, or was when the call was judged: a prompt may time out in between.
fn asks_secret(judged: Option<ActivityState>, now: ActivityState) -> bool {
    judged.into_iter().chain([now]).any(|state| state == ActivityState::SecretPrompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_for_a_prompt_that_has_gone_is_a_secret() {
        let (secret, prompt) = (ActivityState::SecretPrompt, ActivityState::Prompt);
        assert!(asks_secret(Some(secret), prompt) && asks_secret(Some(prompt), secret));
        assert!(asks_secret(None, secret) && !asks_secret(Some(prompt), prompt));
    }
}
