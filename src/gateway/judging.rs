//! How calls are judged by rules, and how they wait until somebody approves them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::core::command_line::ParsedCommandLine;
use crate::core::ids::PrincipalId;
use crate::core::invisible::with_invisible_shown;
use crate::core::one_line::one_line;
use crate::core::policy::approvals::{Approval, ApprovalRequest, Asked, Fingerprint, Witness};
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::Effect;
use crate::core::policy::rules::facts::{CallFacts, Line, SessionFacts};
use crate::core::shell::activity::ActivityState;
use crate::gateway::recording::recordable;
use crate::session::drain::WaitingCall;
use crate::session::handle::Session;
use crate::surface::answer::budget::ends;
use crate::surface::call::{Call, Daemon};
use crate::surface::error::{RuleRefusal, SurfaceError, WhyRefused};
use crate::surface::tool::{Runs, ToolEntry};

/// The arguments that change neither what a call does nor to what.
const NEUTRAL: [&str; 9] = [
    "session",
    "lease_id",
    "idempotency_key",
    "expect_watermark",
    "expect_text",
    "wait_ms",
    "timeout_ms",
    "until",
    "max_lines",
];

/// How long a call waits at most, like any other.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// The longest description of a call, in bytes of JSON.
const WHAT_MAX: usize = 2_000;

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
        let rules = daemon.judge.rules();
        if rules.allow_all() || !self.entry.access.is_judged() {
            return Ok(None);
        }
        let line = self.line();
        let facts = self.facts(call, line.as_ref());
        let caller = &call.standing.caller;
        let session = self.session.map(Session::id).or(call.creates);
        let decision = daemon.judge.decide(&rules, caller, session, &facts);
        call.decided(decision.id);
        match decision.verdict.effect {
            Effect::Allow => Ok(None),
            Effect::Deny => Err(refusal(&decision, WhyRefused::Denied)),
            Effect::Ask => self.approved(daemon, call, &decision, line.as_ref()).await,
        }
    }

    /// What the call has a shell or the system run, if the tool says that it does.
    fn line(self) -> Option<ParsedCommandLine> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        match self.entry.runs {
            Runs::Line(name) => text(name).map(ParsedCommandLine::parse),
            Runs::Program => {
                let program = text("command")?;
                let Some(arguments) = self.arguments.get("args").and_then(Value::as_array) else {
                    return Some(ParsedCommandLine::parse(program));
                };
                let arguments = arguments.iter().filter_map(Value::as_str);
                let words = std::iter::once(program).chain(arguments).map(str::to_owned);
                Some(ParsedCommandLine::of_arguments(words))
            }
            Runs::Text(name) => self.typed_line(text(name)?),
            Runs::Nothing | Runs::Input => None,
        }
    }

    /// The line that a text is which is typed at the empty prompt of a shell, and ended.
    fn typed_line(self, text: &str) -> Option<ParsedCommandLine> {
        let is = |name: &str, value: Value| self.arguments.get(name) == Some(&value);
        let is_ended = is("enter", Value::Bool(true)) || text.ends_with(['\n', '\r']);
        let is_text = !is("encoding", "base64".into());
        let at_prompt = self.session.is_some_and(|session| session.frame().shell.at_empty_line);
        (is_ended && is_text && at_prompt)
            .then(|| ParsedCommandLine::parse(text.trim_end_matches(['\n', '\r'])))
    }

    fn facts<'a>(self, call: &'a Call, line: Option<&'a ParsedCommandLine>) -> CallFacts<'a> {
        let standing = &call.standing;
        let of_token = matches!(standing.caller.principal, PrincipalId::Token(_));
        let text = |(name, value): (&String, &Value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((name.clone(), text))
        };
        CallFacts {
            client: if of_token { "" } else { &standing.caller.label },
            token: of_token.then_some(&*standing.caller.label),
            tenant: standing.caller.tenant.as_str(),
            door: standing.door.as_str(),
            tool: self.entry.name,
            session: self.session.map(facts_of),
            arguments: self.arguments.iter().filter_map(text).collect::<BTreeMap<_, _>>(),
            line: match (line, self.entry.runs) {
                (Some(line), _) => Line::Known(line),
                (None, Runs::Input | Runs::Text(_)) => Line::Raw,
                (None, Runs::Nothing | Runs::Line(_) | Runs::Program) => Line::None,
            },
        }
    }

    async fn approved(
        self,
        daemon: &Daemon,
        call: &mut Call,
        decision: &Decision,
        line: Option<&ParsedCommandLine>,
    ) -> Result<Option<Box<Approval>>, SurfaceError> {
        if self.arguments.get("dry_run") == Some(&Value::Bool(true)) {
            return Err(refusal(decision, WhyRefused::WouldAsk));
        }
        let clock = daemon.sessions.clock();
        let waiting: WaitingCall = daemon.departure.waiting();
        let until = clock.now() + self.patience();
        let request = self.request(call, decision, line);
        loop {
            let mut changes = daemon.judge.changes();
            let witness = self.witness(call);
            let request = ApprovalRequest { witness, ..request.clone() };
            let now = clock.now();
            let id = match daemon.judge.ask(&daemon.sessions, &call.standing.caller, request) {
                Asked::Passes { id, used, .. } => {
                    call.decided(id);
                    return Ok(used);
                }
                Asked::Denied { by, until, .. } => {
                    let retry_after = now.until(until);
                    return Err(refusal(decision, WhyRefused::DeniedBy { by, retry_after }));
                }
                Asked::Stale { .. } => return Err(refusal(decision, WhyRefused::Stale)),
                Asked::TooMany => return Err(SurfaceError::Quota("calls that wait for approval")),
                Asked::Waits { id, expires_at, .. } => {
                    if now >= until {
                        let expires_in = now.until(expires_at);
                        return Err(refusal(decision, WhyRefused::Waits { id, expires_in }));
                    }
                    id
                }
            };
            tracing::debug!(%id, "a call waits for its approval");
            // Whatever this connection asks next need not wait for a person.
            call.accept();
            tokio::select! {
                _ = changes.changed() => {}
                () = clock.sleep_until(until) => {}
                () = waiting.told() => return Err(SurfaceError::DaemonLeaves),
            }
        }
    }

    /// How long the caller waits for what comes of its call, which is how long it waits for an approval.
    fn patience(self) -> Duration {
        let given = |name: &str| self.arguments.get(name).and_then(Value::as_u64);
        let millis = match self.entry.runs {
            Runs::Line(_) => given("timeout_ms").unwrap_or(60_000),
            Runs::Nothing | Runs::Program | Runs::Text(_) | Runs::Input => {
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
    ) -> ApprovalRequest {
        let programs = line.filter(|line| {
            line.is_known()
                && line.sets.is_empty()
                && line.writes.is_empty()
                && !line.calls.is_empty()
        });
        let name = |call: &crate::core::command_line::ProgramCall| {
            call.path.clone().or_else(|| call.name.clone())
        };
        let programs =
            programs.map(|line| line.calls.iter().filter_map(name).collect::<BTreeSet<_>>());
        let caller = &call.standing.caller;
        ApprovalRequest {
            decision: decision.id,
            fingerprint: self.fingerprint(call),
            witness: Witness::default(),
            by: caller.name(),
            tenant: caller.tenant.clone(),
            session: decision.session.filter(|_| self.session.is_some()),
            tool: self.entry.name,
            what: self.what(),
            programs,
            rule: decision.verdict.rule.clone(),
            reason: decision.verdict.reason.clone(),
        }
    }

    fn fingerprint(self, call: &Call) -> Fingerprint {
        let arguments: BTreeMap<&String, &Value> =
            self.arguments.iter().filter(|(name, _)| !NEUTRAL.contains(&name.as_str())).collect();
        let arguments = sorted(&arguments).to_string();
        let caller = &call.standing.caller;
        let session = self.session.map(|session| session.id().to_string()).unwrap_or_default();
        let parts = [
            caller.principal.to_string(),
            caller.tenant.to_string(),
            session,
            self.entry.name.to_owned(),
            arguments,
        ];
        Fingerprint::of(&parts.each_ref().map(String::as_bytes))
    }

    /// What the call does, for people, on one line and with all characters visible.
    fn what(self) -> Arc<str> {
        let is_secret =
            |session: &Session| session.frame().activity.value.state == ActivityState::SecretPrompt;
        let text = match self.entry.runs {
            Runs::Line(name) => self.arguments.get(name).and_then(Value::as_str).map(str::to_owned),
            Runs::Input | Runs::Text(_) if self.session.is_some_and(is_secret) => {
                Some(format!("{} what a program does not show", self.entry.name))
            }
            Runs::Nothing | Runs::Program | Runs::Text(_) | Runs::Input => None,
        };
        let text = text.unwrap_or_else(|| {
            format!(
                "{} {}",
                self.entry.name,
                recordable(self.arguments, |name| self.entry.knows(name))
            )
        });
        let shown = with_invisible_shown(&text);
        Arc::from(ends(&one_line(&shown), WHAT_MAX))
    }

    fn witness(self, call: &Call) -> Witness {
        let Some(session) = self.session else { return Witness::default() };
        let frame = session.frame();
        let own = call.standing.caller.principal;
        let others = frame.lease.value.holding.as_ref().filter(|held| held.by.principal != own);
        let reads_screen = matches!(self.entry.runs, Runs::Input | Runs::Text(_));
        Witness {
            others_epoch: others.map(|held| held.epoch),
            command: frame.commands.value.last(),
            directory: facts_of(session).directory,
            foreground: frame.activity.value.foreground.as_ref().map(|group| group.group),
            screen: reads_screen.then_some(frame.screen_changed_at),
        }
    }
}

fn facts_of(session: &Session) -> SessionFacts {
    let frame = session.frame();
    let activity = &frame.activity.value;
    SessionFacts {
        name: session.name().to_string(),
        tags: session.about().tags.clone(),
        directory: session.directory().map(|path| path.to_string_lossy().into_owned()),
        terminal: activity.state,
        foreground: activity
            .foreground
            .as_ref()
            .and_then(|group| group.program.as_deref().map(str::to_owned)),
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

/// JSON with the members of all objects in order, so that equal arguments have one text.
fn sorted(members: &BTreeMap<&String, &Value>) -> Value {
    fn one(value: &Value) -> Value {
        match value {
            Value::Object(members) => sorted(&members.iter().collect()),
            Value::Array(values) => values.iter().map(one).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    // Members keep the order in which they are inserted, whichever map JSON is built with.
    members.iter().map(|(name, value)| ((*name).clone(), one(value))).collect()
}
