//! Why a tool did not do what it was asked.
//!
//! It carries the facts; codes and advice are added where errors meet the wire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::core::input::request::WriteError;
use crate::core::mount::MountName;
use crate::core::policy::decision::DecisionId;
use crate::core::policy::denial::Denial;
use crate::core::wait::PatternError;
use crate::mount::error::{ManageError, MountError};
use crate::mount::json::ExactObject;
use crate::session::error::{CreateError, SessionError};
use crate::session::registry::RenameError;
use crate::surface::person::PersonQuestion;
use crate::wire::error::RefusalCause;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    /// An argument is missing, ill-typed, out of its bounds or unknown.
    #[error("{parameter}: {problem}")]
    Argument { parameter: String, problem: String, cause: Option<RefusalCause> },
    /// No session that the caller may see is named like this.
    #[error("no session `{given}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    SessionNotFound {
        given: String,
        /// A name that resembles it.
        near: Option<String>,
    },
    /// The call names no session, and no session that the caller sees is running.
    #[error("no session is running")]
    NoSession,
    /// The caller has no right to it.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// A rule of policy does not let it pass.
    #[error(transparent)]
    Ruled(Box<RuleRefusal>),
    /// The session refused or failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The server of a mounted tool refused or failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The caller does not have the lease of the mount, or does not get it.
    #[error("{mount}: {error}")]
    MountLease { mount: MountName, error: Box<WriteError> },
    /// What an operator asked of a mount cannot be done.
    #[error(transparent)]
    ManageMount(#[from] ManageError),
    /// The session could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// No lease that this daemon remembers has this id.
    #[error("no lease of this daemon has this id")]
    LeaseUnknown,
    /// The daemon leaves its sessions to the next one. The call had no effect yet.
    #[error("the daemon leaves its sessions to the next one before it could do this")]
    DaemonLeaves,
    /// The journal cannot be read.
    #[error("the journal cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// A recording cannot be read.
    #[error("the recording cannot be read: {0}")]
    UnreadableRecording(std::io::Error),
    /// A limit is reached; the word says of what.
    #[error("the limit of {0} is reached")]
    Quota(&'static str),
    /// Too many calls wait for an approval, or were asked about just now.
    #[error("too many calls wait for an approval")]
    TooManyAsked { retry_after: Duration },
    /// The caller's tenant calls more often than it may.
    #[error("too many calls of one user in a second")]
    RateLimited {
        /// When the next call is taken, unless others of the tenant come first.
        retry_after: Duration,
    },
    /// Something that should not fail did.
    #[error("{0}")]
    Internal(String),
}

/// A call that a rule does not let pass.
#[derive(Debug)]
pub struct RuleRefusal {
    pub decision: DecisionId,
    /// None where no rule allows it.
    pub rule: Option<Arc<str>>,
    /// What the rule says about it. If it only may match, what is not known.
    pub reason: Option<Arc<str>>,
    /// Whether the rule only may match.
    pub unsure: bool,
    pub why: WhyRefused,
}

#[derive(Debug)]
pub enum WhyRefused {
    Denied,
    /// A person denied it.
    DeniedBy {
        by: Arc<str>,
        /// When it may be asked for again.
        retry_after: Duration,
    },
    /// Nobody has approved it yet.
    Waits {
        id: DecisionId,
        expires_in: Duration,
    },
    /// The client is to ask its person, and to make the call again.
    AsksPerson(PersonQuestion),
    /// It would have to be approved, and nobody was asked.
    WouldAsk,
    /// It would have to be approved, and is longer than a person is shown.
    TooLong,
}

impl fmt::Display for RuleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            WhyRefused::DeniedBy { by, .. } => return write!(f, "{by} denied this"),
            WhyRefused::TooLong => {
                return f.write_str(
                    "this must be approved, and is longer than the 8 KiB that a person is shown",
                );
            }
            WhyRefused::Denied
            | WhyRefused::Waits { .. }
            | WhyRefused::AsksPerson(_)
            | WhyRefused::WouldAsk => {}
        }
        let denies = matches!(self.why, WhyRefused::Denied);
        match (&self.rule, self.unsure, denies) {
            (Some(rule), false, true) => write!(f, "the rule `{rule}` denies this"),
            (Some(rule), false, false) => write!(f, "the rule `{rule}` wants this to be approved"),
            (Some(_), true, true) => f.write_str("not all that this does is known"),
            (Some(_), true, false) => {
                f.write_str("not all that this does is known, so it must be approved")
            }
            (None, _, true) => f.write_str("no rule allows this"),
            (None, _, false) => f.write_str("no rule allows this, so it must be approved"),
        }?;
        self.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

impl std::error::Error for RuleRefusal {}

impl From<RenameError> for SurfaceError {
    fn from(error: RenameError) -> Self {
        match error {
            RenameError::Name(error) => error.into(),
            RenameError::Session(error) => error.into(),
        }
    }
}

impl SurfaceError {
    /// No session is named like this, and none resembles it.
    pub fn no_session(given: impl ToString) -> Self {
        Self::SessionNotFound { given: given.to_string(), near: None }
    }

    /// A complaint about one parameter.
    pub fn argument(parameter: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Argument { parameter: parameter.into(), problem: problem.into(), cause: None }
    }

    /// A complaint about one parameter, with more to do about it than to correct it.
    pub fn refused(parameter: &str, problem: impl Into<String>, cause: RefusalCause) -> Self {
        let (parameter, problem) = (parameter.to_owned(), problem.into());
        Self::Argument { parameter, problem, cause: Some(cause) }
    }

    /// The complaint about a parameter that is a member of another one.
    pub fn within(mut self, outer: &str) -> Self {
        if let Self::Argument { parameter, .. } = &mut self {
            *parameter = format!("{outer}.{parameter}");
        }
        self
    }

    /// The message and the data of a server's error that wants links to be opened first.
    pub fn wanted_links(&self) -> Option<(String, ExactObject)> {
        let Self::Mount(MountError::LinkNeeded { message, data, .. }) = self else { return None };
        Some((message.clone(), data.clone()))
    }

    /// What the client is to ask its person before it makes the call again.
    pub fn question(&self) -> Option<&PersonQuestion> {
        let Self::Ruled(refusal) = self else { return None };
        match &refusal.why {
            WhyRefused::AsksPerson(question) => Some(question),
            WhyRefused::Denied
            | WhyRefused::DeniedBy { .. }
            | WhyRefused::Waits { .. }
            | WhyRefused::WouldAsk
            | WhyRefused::TooLong => None,
        }
    }

    /// A complaint about a pattern, which the parameter `parameter` held.
    pub fn pattern(parameter: &str, error: &PatternError) -> Self {
        Self::argument(parameter, error.to_string())
    }
}
