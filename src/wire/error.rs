//! Errors as programs read them: a stable code, what happened, what to do, and the facts.

use serde::{Deserialize, Serialize};

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

impl From<Code> for ErrorWire {
    /// The error in the words of the table of codes.
    fn from(code: Code) -> Self {
        Self {
            error_code: code.as_str().to_owned(),
            message: code.meaning().to_owned(),
            hint: code.advice().to_owned(),
            ..Self::default()
        }
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
    /// How long the suspended lease then lasts unless it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ErrorCause {
    Refused(RefusalCause),
    LeaseEnded(LeaseEndCause),
}

/// Why a write or a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    CommandRunning,
    /// The program asks for something.
    Asks,
    NoPromptYet,
    /// A person typed since the caller read the screen.
    PersonTyped,
}
