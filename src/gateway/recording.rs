//! What the gateway has recorded: acts that a session does not record itself, and all that were refused.

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::core::caller::Caller;
use crate::core::code::Code;
use crate::core::ids::{Epoch, SessionId};
use crate::core::journal::{ActContent, ActOutcome, Entry, Intent, NotRecorded, RecordNumber};
use crate::core::policy::{PermittedAct, Standing};
use crate::session::handle::Session;
use crate::session::recorder::Recorder;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{ToolAccess, ToolEntry};

/// The longest recorded arguments, in bytes of JSON.
const ARGUMENTS_MAX: usize = 16 * 1024;

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
    pub(super) fn of(entry: &ToolEntry, arguments: &JsonObject) -> Self {
        let only_reads = |(name, value): (&str, &str)| arguments.get(name) == Some(&value.into());
        match entry.access {
            ToolAccess::Read => Self::Nobody,
            _ if entry.reads_if.is_some_and(only_reads) => Self::Nobody,
            ToolAccess::WriteSession(PermittedAct::Type) => Self::Session,
            ToolAccess::WriteSession(_)
            | ToolAccess::WriteLease
            | ToolAccess::Create
            | ToolAccess::Operate => Self::Gateway,
        }
    }
}

/// One call that is to be recorded.
#[derive(Debug)]
pub(super) struct RecordedCall {
    recorder: Recorder,
    standing: Standing,
    act: &'static str,
    session: Option<Session>,
    /// None for what may be typed, which only the session may judge.
    arguments: Option<String>,
}

impl RecordedCall {
    pub(super) fn new(
        recorder: &Recorder,
        standing: &Standing,
        entry: &ToolEntry,
        arguments: &JsonObject,
    ) -> Self {
        let is_typed = entry.access == ToolAccess::WriteSession(PermittedAct::Type);
        Self {
            recorder: recorder.clone(),
            standing: standing.clone(),
            act: entry.name,
            session: None,
            arguments: (!is_typed).then(|| recordable(arguments)),
        }
    }

    /// A request without arguments that is no call of a tool.
    pub(super) fn request(recorder: &Recorder, standing: &Standing, act: &'static str) -> Self {
        let (recorder, standing) = (recorder.clone(), standing.clone());
        Self { recorder, standing, act, session: None, arguments: None }
    }

    /// Names the session that the call is about.
    pub(super) fn on(&mut self, session: &Session) {
        self.session = Some(session.clone());
    }

    /// Records that the call was refused, or failed before it had an effect.
    pub(super) fn refused(&self, error: &SurfaceError, code: Code) {
        let (code, reason) = (code.as_str(), &error.to_string());
        self.recorder.note(&Entry::Refused { intent: self.intent(), code, reason });
    }

    /// Records that the call is about to take effect.
    ///
    /// # Errors
    /// Returns [`NotRecorded`] if it cannot be recorded, unless the caller is an operator, who is never refused for that.
    pub(super) fn begin(self) -> Result<BegunCall, NotRecorded> {
        if self.standing.is_operator() {
            return Ok(self.begin_anyway());
        }
        let of = Some(self.recorder.append(&Entry::Intent(self.intent()))?);
        Ok(BegunCall { call: self, of, is_concluded: false })
    }

    /// Records that the call is about to take effect, or, if that fails, once it is possible.
    pub(super) fn begin_anyway(self) -> BegunCall {
        let of = self.recorder.append(&Entry::Intent(self.intent())).ok();
        BegunCall { call: self, of, is_concluded: false }
    }

    fn intent(&self) -> Intent<'_> {
        let Self { standing, act, session, arguments, .. } = self;
        Intent {
            by: &standing.caller,
            door: Some(standing.door),
            session: session.as_ref().map(Session::id),
            act,
            epoch: self.epoch(),
            content: arguments.as_deref().map_or(ActContent::Nothing, ActContent::Arguments),
        }
    }

    /// Of the lease that the caller holds.
    fn epoch(&self) -> Option<Epoch> {
        let Caller { principal, .. } = self.standing.caller;
        let frame = self.session.as_ref()?.frame();
        let holding = frame.lease.value.holding.as_ref()?;
        (holding.by.principal == principal).then_some(holding.epoch)
    }
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
    pub fn conclude(mut self, error: Option<(&SurfaceError, Code)>, created: Option<SessionId>) {
        match error {
            None => {
                let epoch = self.call.epoch();
                self.record(ActOutcome::Done { epoch, created });
            }
            Some((error, code)) => {
                let (code, reason) = (Some(code.as_str()), &error.to_string());
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
            None => recorder.note(&Entry::Late { intent: self.call.intent(), outcome }),
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

/// The arguments of a call without the values of environment variables, as JSON.
fn recordable(arguments: &JsonObject) -> String {
    let mut arguments = arguments.clone();
    for name in ENVIRONMENTS {
        if let Some(Value::Object(variables)) = arguments.get_mut(name) {
            let names = std::mem::take(variables).into_iter().map(|(name, _)| Value::from(name));
            let names = names.collect();
            arguments.insert(name.to_owned(), Value::Array(names));
        }
    }
    let text = Value::Object(arguments).to_string();
    if text.len() > ARGUMENTS_MAX {
        return format!(r#"{{"left_out_bytes":{}}}"#, text.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(arguments: &Value) -> String {
        recordable(arguments.as_object().expect("an object"))
    }

    #[test]
    fn of_environment_variables_only_the_names_are_recorded() {
        let arguments = json!({"command": "make", "env": {"TOKEN": "s3cret"}});
        assert_eq!(recorded(&arguments), r#"{"command":"make","env":["TOKEN"]}"#);
    }

    #[test]
    fn of_long_arguments_only_the_length_is_recorded() {
        let arguments = json!({"command": "x".repeat(20_000)});
        assert_eq!(recorded(&arguments), r#"{"left_out_bytes":20014}"#);
    }
}
