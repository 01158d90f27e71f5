//! Errors as programs read them: a stable code, what happened, what to do, and the facts. Around every answer,
//! the envelope that programs beside a model may want: over MCP it travels where models do not pay for it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::core::code::Code;
use crate::wire::delta::DeltaWire;
use crate::wire::lease::{LeaseEndCause, PrincipalKind};
use crate::wire::session::ExitWire;

/// The structured content of a failed call, and the data of a protocol error.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorWire {
    /// The word of a code; a newer daemon may have codes that its reader does not know.
    pub error_code: String,
    pub message: String,
    /// What to do, worded for models.
    pub hint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ErrorDetails>,
}

impl ErrorWire {
    /// An error of this code, without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            error_code: code.as_str().to_owned(),
            message: message.into(),
            hint: code.advice().to_owned(),
            ..Self::default()
        }
    }

    /// Its code; [`Code::Internal`] for one that is not known here.
    pub fn code(&self) -> Code {
        Code::parse(&self.error_code).unwrap_or(Code::Internal)
    }

    /// What sets it apart from others of its code.
    pub fn refusal(&self) -> Option<RefusalCause> {
        match self.details.as_ref()?.cause? {
            ErrorCause::Refused(cause) => Some(cause),
            ErrorCause::LeaseEnded(_) => None,
        }
    }
}

impl From<Code> for ErrorWire {
    /// The error in the words of the table of codes.
    fn from(code: Code) -> Self {
        Self::new(code, code.meaning())
    }
}

/// The facts of an error; each code fills in those that it has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// The parameter that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<ErrorCause>,
    /// The text that the program shows before the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<DeltaWire>,
    /// The mounted server whose lease it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_to: Option<String>,
    /// Who ended the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of the principal that holds or suspends the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<PrincipalKind>,
    /// What the holder said it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// When the holding ends even if it is renewed, once others wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiters: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaimable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_in_ms: Option<u64>,
    /// What `why` explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
    /// The rule of policy that does not let the call pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// How long the suspended lease then lasts unless it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// The `data` of the error with which a mounted server refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ErrorCause {
    LeaseEnded(LeaseEndCause),
    // Last, since it takes words that neither knows.
    Refused(RefusalCause),
}

/// What sets an error apart from others of its code; what to do depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// None was named, and none runs.
    NoSession,
    NotAKey,
    ControlCharacters,
    /// A command has several lines, and the program takes no paste.
    SeveralLines,
    LineTooLong,
    /// The principal that a lease was to be handed to is not connected.
    NotConnected,
    /// The principal that a lease was to be handed to is the caller.
    OwnName,
    SwitchedOff,
    /// Writing is off for the session or its tenant, whatever wider switches say.
    Protected,
    ObserverSocket,
    ReadOnlyToken,
    ViewOnly,
    /// The socket of one session, for what concerns others.
    SessionSocket,
    /// A token at the operators' socket.
    OperatorSocket,
    CommandRunning,
    /// The program asks for something.
    Asks,
    NoPromptYet,
    /// The program does not read its input.
    NotReading,
    /// A person typed since the caller read the screen.
    PersonTyped,
    /// The lease waits for the principal that held it before the daemon restarted.
    Reclaimable,
    /// The caller has offered the lease to another principal.
    Offered,
    NoDescriptors,
    NoProcesses,
    NoTerminals,
    NoMemory,
    /// The directory of the shims cannot be used.
    ShimDirectory,
    /// No sandbox can be made.
    NoSandbox,
    /// What the parameter names does not exist, such as a mount.
    NotFound,
    /// The daemon leaves its sessions to the next one.
    DaemonLeaves,
    /// What a newer daemon adds; this one never writes it.
    #[serde(other)]
    Other,
}

/// The key under which it travels in `_meta`.
pub const ENVELOPE_KEY: &str = "dev.termgate/envelope";

/// What every answer says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub elapsed_ms: u64,
    /// The version of termgate.
    pub version: Cow<'static, str>,
    /// The wall clock's time, in milliseconds since the Unix epoch.
    pub now: u64,
    /// The protocol revision the answer was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_version: Option<Cow<'static, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RefusalCause {
        pub(crate) const ALL: [Self; 29] = [
            Self::NoSession,
            Self::NotAKey,
            Self::ControlCharacters,
            Self::SeveralLines,
            Self::LineTooLong,
            Self::NotConnected,
            Self::OwnName,
            Self::SwitchedOff,
            Self::Protected,
            Self::ObserverSocket,
            Self::ReadOnlyToken,
            Self::ViewOnly,
            Self::SessionSocket,
            Self::OperatorSocket,
            Self::CommandRunning,
            Self::Asks,
            Self::NoPromptYet,
            Self::NotReading,
            Self::PersonTyped,
            Self::Reclaimable,
            Self::Offered,
            Self::NoDescriptors,
            Self::NoProcesses,
            Self::NoTerminals,
            Self::NoMemory,
            Self::ShimDirectory,
            Self::NoSandbox,
            Self::NotFound,
            Self::DaemonLeaves,
        ];
    }

    #[test]
    fn a_cause_reads_back_and_an_unknown_one_does_no_harm() {
        let read = |cause: &str| {
            let error = serde_json::json!({
                "error_code": "busy", "message": "m", "hint": "h", "details": {"cause": cause},
            });
            serde_json::from_value::<ErrorWire>(error).unwrap()
        };
        assert_eq!(read("asks").refusal(), Some(RefusalCause::Asks));
        assert_eq!(read("from_the_future").refusal(), Some(RefusalCause::Other));
        assert_eq!(read("expired").refusal(), None);
    }
}
