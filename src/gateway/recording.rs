//! What the gateway has recorded: acts that a session does not record itself, and all that were refused.

mod unsent;

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::core::caller::Caller;
use crate::core::code::Code;
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::journal::{
    ActContent, ActOutcome, Intent, JournalEntry, NotRecorded, RecordNumber,
};
use crate::core::policy::decision::DecisionId;
use crate::core::policy::{PermittedAct, Standing};
use crate::gateway::recording::unsent::{UnsentInput, shortened};
use crate::mount::json::ExactJson;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::recorder::ActRecorder;
use crate::surface::answer::budget::ends;
use crate::surface::call::{Call, Daemon};
use crate::surface::call_arguments::{CallArguments, WrittenArguments};
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::MountLease;
use crate::surface::terminal::create_session::tenant_of_new;
use crate::surface::tool::{ToolAccess, ToolEntry};

/// The longest recorded arguments, in bytes of JSON.
const ARGUMENTS_MAX: usize = 16 * 1024;

/// The longest recorded reason of a refusal, in bytes of JSON, and the longest name of an act.
const REASON_MAX: usize = 200;
const ACT_MAX: usize = 24;

/// The argument that proves the right to a lease.
const LEASE_ID: &str = "lease_id";

/// The arguments whose values may be secrets; their names are recorded.
const ENVIRONMENTS: [&str; 2] = ["env", "env_client"];

/// Who records the calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedBy {
    /// It changes nothing.
    Nobody,
    Gateway,
    /// The session, which knows the bytes.
    Session,
}

impl RecordedBy {
    pub(super) fn of(entry: &ToolEntry, arguments: &CallArguments) -> Self {
        let only_reads = |(name, value): (&str, &str)| arguments.get(name) == Some(&value.into());
        match entry.access {
            _ if entry.only_reads => Self::Nobody,
            _ if entry.reads_if.is_some_and(only_reads) => Self::Nobody,
            ToolAccess::WriteSession(PermittedAct::Type) => Self::Session,
            ToolAccess::Read
            | ToolAccess::WriteSession(_)
            | ToolAccess::WriteLease
            | ToolAccess::Create
            | ToolAccess::ReadMount
            | ToolAccess::WriteMount
            | ToolAccess::Approve
            | ToolAccess::OperateSession
            | ToolAccess::Operate => Self::Gateway,
        }
    }
}

/// One call that is to be recorded.
#[derive(Debug)]
pub(super) struct RecordedCall {
    recorder: ActRecorder,
    standing: Standing,
    act: Arc<str>,
    session: Option<Session>,
    /// The lease of the mount that the call is about, if that has one.
    mount_lease: Option<Arc<MountLease>>,
    /// The session that the call is about to create.
    creates: Option<SessionId>,
    /// Of either session, or else of the caller.
    about_tenant: TenantId,
    decision: Option<DecisionId>,
    /// `None` for what may be typed, which only the session may judge.
    arguments: Option<String>,
    /// What the call would have typed, if rules did not let it pass at once.
    unsent: Option<UnsentInput>,
}

impl RecordedCall {
    pub(super) fn new(
        recorder: &ActRecorder,
        call: &Call,
        entry: &ToolEntry,
        arguments: &CallArguments,
        session: Option<Session>,
    ) -> Self {
        // Rights and rules are not about that one.
        let session = session.or_else(|| decided_session(call, entry, arguments));
        let is_typed = entry.access == ToolAccess::WriteSession(PermittedAct::Type);
        // A tool of several acts is known by the act.
        let action = arguments
            .get("action")
            .and_then(Value::as_str)
            .filter(|action| entry.knows("action") && action.len() <= ACT_MAX && action.is_ascii());
        Self {
            recorder: recorder.clone(),
            standing: call.standing.clone(),
            act: action.map_or_else(|| Arc::clone(&entry.name), Arc::from),
            about_tenant: session
                .as_ref()
                .map_or_else(|| tenant_of_new(call, arguments), |session| session.tenant().clone()),
            session,
            mount_lease: call
                .mount_lease
                .clone()
                .or_else(|| call.daemon.mount_leases.of(entry.mount()?.mount.name())),
            creates: call.creates,
            decision: call.decision(),
            arguments: (!is_typed).then(|| recordable(arguments, |name| entry.knows(name))),
            unsent: call
                .may_be_secret
                .and_then(|may_be_secret| UnsentInput::of(entry, arguments, may_be_secret)),
        }
    }

    /// A request without arguments that is no call of a tool.
    pub(super) fn request(recorder: &ActRecorder, standing: &Standing, act: &'static str) -> Self {
        let (recorder, standing) = (recorder.clone(), standing.clone());
        let act = Arc::from(act);
        let (session, mount_lease) = (None, None);
        let (creates, decision, arguments, unsent) = (None, None, None, None);
        let about_tenant = standing.caller.tenant.clone();
        Self {
            recorder,
            standing,
            act,
            session,
            mount_lease,
            creates,
            about_tenant,
            decision,
            arguments,
            unsent,
        }
    }

    /// A request that decides a call about which the rules asked.
    pub(super) fn by(self, decision: DecisionId) -> Self {
        Self { decision: Some(decision), ..self }
    }

    /// A request about a session that says nothing that a record could quote.
    pub(super) fn about(self, session: Session) -> Self {
        Self { about_tenant: session.tenant().clone(), session: Some(session), ..self }
    }

    pub(super) fn tenant(&self) -> &TenantId {
        &self.standing.caller.tenant
    }

    /// Records that the call was refused before it had an effect. `left_out` refusals before it have no record.
    pub(super) fn refused(&self, error: &SurfaceError, code: Code, left_out: u64) {
        if had_effect(error) {
            return;
        }
        let reason = error.to_string();
        // Whoever may fill the journal with refusals fills it slowly; and the text may quote what was to be typed.
        let reason = self.arguments.is_some().then(|| ends(&reason, REASON_MAX));
        // Rules judge what a call does, so that whoever writes them sees what they refuse.
        let by_rules = matches!(error, SurfaceError::Ruled(_));
        let unsent = self.unsent.as_ref().filter(|_| by_rules);
        let told = unsent.map(UnsentInput::told).unwrap_or_default();
        let arguments = self.arguments.as_deref().filter(|_| by_rules).map(shortened);
        let content = match (unsent, &arguments) {
            (Some(unsent), _) => unsent.content(&told),
            (None, Some(arguments)) => ActContent::Arguments(arguments),
            (None, None) => ActContent::Nothing,
        };
        let intent = Intent { content, ..self.intent() };
        let (code, reason) = (code.as_str(), reason.as_deref());
        let tenant = &self.about_tenant;
        self.recorder.note(&JournalEntry::Refused { intent, tenant, code, reason, left_out });
    }

    /// Records that the call is about to take effect.
    ///
    /// # Errors
    /// Returns [`NotRecorded`] if it cannot be recorded, unless the caller is an operator, who is never refused for that.
    pub(super) fn begin(self) -> Result<BegunCall, NotRecorded> {
        if self.standing.is_operator() {
            return Ok(self.begin_anyway());
        }
        let of = Some(self.recorder.append(&JournalEntry::Intent(self.intent()))?);
        Ok(BegunCall { call: self, of, is_concluded: false })
    }

    /// Records that the call is about to take effect, or, if that fails, once it is possible.
    pub(super) fn begin_anyway(self) -> BegunCall {
        let of = self.recorder.append(&JournalEntry::Intent(self.intent())).ok();
        BegunCall { call: self, of, is_concluded: false }
    }

    fn intent(&self) -> Intent<'_> {
        let Self { standing, act, session, creates, arguments, .. } = self;
        Intent {
            by: &standing.caller,
            door: Some(standing.door),
            session: session.as_ref().map(Session::id).or(*creates),
            act,
            epoch: self.epoch(),
            decision: self.decision,
            content: arguments.as_deref().map_or(ActContent::Nothing, ActContent::Arguments),
        }
    }

    /// Of the lease that the caller holds.
    fn epoch(&self) -> Option<Epoch> {
        let Caller { principal, .. } = self.standing.caller;
        if let Some(lease) = &self.mount_lease {
            return lease.epoch_of(principal);
        }
        let frame = self.session.as_ref()?.frame();
        let holding = frame.lease.value.holding.as_ref()?;
        (holding.by.principal == principal).then_some(holding.epoch)
    }
}

/// Whether a call that failed like this may have had an effect, which its session has recorded.
pub(super) fn had_effect(error: &SurfaceError) -> bool {
    if let SurfaceError::Mount(error) = error {
        return error.had_effect();
    }
    let SurfaceError::Session(error) = error else {
        return matches!(error, SurfaceError::DaemonLeaves);
    };
    matches!(
        error,
        SessionError::Restarted
            | SessionError::Closed
            | SessionError::Terminal(_)
            | SessionError::NotRecorded(_)
    )
}

/// A call whose outcome is to be recorded. If it is dropped before, its caller gave it up.
#[derive(Debug)]
#[must_use = "its outcome is to be recorded"]
pub struct BegunCall {
    call: RecordedCall,
    /// `None` if the act could not be recorded before.
    of: Option<RecordNumber>,
    is_concluded: bool,
}

impl BegunCall {
    /// Records the outcome: an error with its code, or success.
    pub fn conclude(mut self, error: Option<(&SurfaceError, Code)>) {
        match error {
            None => {
                let epoch = self.call.epoch();
                self.record(ActOutcome::Done { epoch });
            }
            Some((error, code)) => {
                let (code, reason) = (Some(code.as_str()), &ends(&error.to_string(), REASON_MAX));
                self.record(ActOutcome::Failed { code, reason });
            }
        }
    }

    /// Records that the request failed.
    pub fn fail(mut self, reason: &str) {
        self.record(ActOutcome::Failed { code: None, reason });
    }

    fn record(&mut self, outcome: ActOutcome<'_>) {
        self.is_concluded = true;
        let recorder = &self.call.recorder;
        match self.of {
            Some(of) => recorder.conclude(of, outcome),
            None => recorder.note(&JournalEntry::Late { intent: self.call.intent(), outcome }),
        }
    }
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        if !self.is_concluded {
            self.record(ActOutcome::GivenUp);
        }
    }
}

/// The session of the call that this one approves or denies, as far as its caller may decide about that.
fn decided_session(call: &Call, entry: &ToolEntry, arguments: &CallArguments) -> Option<Session> {
    let given = arguments.get("approval_id").filter(|_| entry.access == ToolAccess::Approve)?;
    let id = given.as_str()?.parse().ok()?;
    let Daemon { judge, sessions, .. } = &*call.daemon;
    sessions.get(judge.session_of(sessions, &call.standing, id)?)
}

/// The arguments of a call that its tool knows, without lease ids and the values of environment variables, as JSON.
fn recordable(arguments: &CallArguments, knows: impl Fn(&str) -> bool) -> String {
    let text = match arguments {
        CallArguments::Values(values) => recordable_values(values, knows),
        CallArguments::Written(written) => recordable_text(written),
        CallArguments::Faulty(_) => String::new(),
    };
    if text.len() > ARGUMENTS_MAX {
        return format!(r#"{{"left_out_bytes":{}}}"#, text.len());
    }
    text
}

/// As a server gets them.
pub(super) fn recordable_text(written: &WrittenArguments) -> String {
    let mut members = written.members().clone();
    members.remove(LEASE_ID);
    for name in ENVIRONMENTS {
        if let Some(variables) = members.get(name) {
            let names = variables.as_object().map(|it| it.iter().map(|(name, _)| name));
            let names = names.map(Iterator::collect::<Vec<_>>);
            members.insert(name, ExactJson::of(&names));
        }
    }
    members.to_string()
}

/// The value of an argument; of environment variables, their names alone.
pub(super) fn without_secrets(name: &str, value: &Value) -> Value {
    if !ENVIRONMENTS.contains(&name) {
        return value.clone();
    }
    let names = value.as_object().map(|variables| variables.keys());
    names.map_or(Value::Null, |names| names.map(String::as_str).collect())
}

fn recordable_values(arguments: &JsonObject, knows: impl Fn(&str) -> bool) -> String {
    let mut recorded = JsonObject::new();
    for (name, value) in arguments {
        if !knows(name) || name == LEASE_ID {
            continue;
        }
        recorded.insert(name.clone(), without_secrets(name, value));
    }
    Value::Object(recorded).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(arguments: &Value) -> String {
        let values = arguments.as_object().expect("an object").clone();
        recordable(&CallArguments::Values(values), |name| name != "password")
    }

    #[test]
    fn what_may_be_secret_in_arguments_is_not_recorded() {
        let arguments = json!({
            "command": "make", "env": {"TOKEN": "s3cret"}, "env_client": ["A=s3cret"],
            "lease_id": "s3cret", "password": "s3cret",
        });
        let expected = r#"{"command":"make","env":["TOKEN"],"env_client":null}"#;
        assert_eq!(recorded(&arguments), expected);
    }

    #[test]
    fn arguments_of_servers_are_recorded_with_their_digits() {
        let written =
            json!({"env": {"TOKEN": "s3cret"}, "env_client": ["A=s3cret"], "lease_id": "s3cret"});
        let text =
            written.to_string().replacen('{', r#"{"z":123456789012345678901234567890,"a":1e2,"#, 1);
        let text = serde_json::value::RawValue::from_string(text).unwrap();
        let recorded = recordable(&CallArguments::from(text), |_| true);
        let expected =
            r#"{"z":123456789012345678901234567890,"a":1e2,"env":["TOKEN"],"env_client":null}"#;
        assert_eq!(recorded, expected);
    }

    #[test]
    fn of_long_arguments_only_the_length_is_recorded() {
        let arguments = json!({"command": "x".repeat(20_000)});
        assert_eq!(recorded(&arguments), r#"{"left_out_bytes":20014}"#);
    }
}
