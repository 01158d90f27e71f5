//! Errors for clients: a stable code, the message, a hint and the time to retry.
//!
//! For the daemon, only this module maps errors to codes; failures of the command line itself get theirs in `cli`. No
//! match has a wildcard, so a new error needs a code to compile.

pub mod mounts;
mod rules;
mod shortage;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;

use crate::core::code::Code;
use crate::core::input::request::WriteError;
use crate::core::keys::mouse::MouseError;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::policy::denial::Denial;
use crate::core::token::Rejection;
use crate::mcp::call_result::CallResult;
use crate::mcp::era::Era;
use crate::mcp::error::rules::ruled;
use crate::mcp::error::shortage::missing;
use crate::mcp::hint::for_models;
use crate::mcp::request_class::BUSY;
use crate::session::error::{CreateError, SessionError};
use crate::session::pty::command::CommandError;
use crate::session::pty::spawn::SpawnError;
use crate::surface::answer::budget::ends;
use crate::surface::answer::page::Form;
use crate::surface::error::SurfaceError;
use crate::wire::delta::DeltaWire;
use crate::wire::error::Envelope;
use crate::wire::error::{ErrorCause, ErrorDetails, ErrorWire, RefusalCause};

/// The maximum size of an error text, in bytes of JSON. Errors may quote their input, and each text is sent repeatedly.
const SAID_BYTES_MAX: usize = 2_000;
/// The maximum size of the screen changes in an error, in bytes.
const CHANGED_BYTES_MAX: usize = 20_000;
/// The time to wait before retrying a busy operation.
const BUSY_RETRY_MS: u64 = 100;
/// The time to wait before retrying a silent terminal.
const SILENT_RETRY_MS: u64 = 1_000;
/// The time to wait before connecting to the next daemon.
const NEXT_DAEMON_MS: u64 = 300;

/// The text of an error. The middle of a long text is cut out.
pub fn said(text: impl ToString) -> String {
    ends(&text.to_string(), SAID_BYTES_MAX)
}

/// When to ask again for what others have to give back first. Nobody knows when they do.
const QUOTA_RETRY_MS: u64 = 1_000;

fn over_quota(error: impl ToString) -> ErrorWire {
    ErrorWire::because(Code::QuotaExceeded, error).retry_after(QUOTA_RETRY_MS)
}

impl ErrorWire {
    pub(super) fn because(code: Code, error: impl ToString) -> Self {
        Self::new(code, said(error))
    }

    fn details(mut self, details: ErrorDetails) -> Self {
        self.details = Some(details);
        self
    }

    fn parameter(mut self, name: impl Into<String>) -> Self {
        self.details.get_or_insert_default().parameter = Some(name.into());
        self
    }

    pub(super) fn cause(mut self, cause: impl Into<Option<RefusalCause>>) -> Self {
        if let Some(cause) = cause.into() {
            self.details.get_or_insert_default().cause = Some(ErrorCause::Refused(cause));
            self.hint = for_models(cause).map_or(self.hint, str::to_owned);
        }
        self
    }

    fn retry_after(mut self, millis: u64) -> Self {
        self.retry_after_ms = Some(millis);
        self
    }

    /// The error as the result of a tool call.
    pub fn result(&self, era: Era) -> CallResult {
        let text = format!("{}: {}. {}", self.error_code, self.message, self.hint);
        CallResult::failure(era, text, Box::new(self.clone()))
    }

    pub(super) fn refusal_of_request(self, code: ErrorCode) -> ErrorData {
        let data = serde_json::to_value(&self).ok();
        ErrorData::new(code, self.message, data)
    }

    /// Copies the error into the envelope of its answer.
    pub fn note_in(&self, envelope: &mut Envelope) {
        envelope.ok = false;
        envelope.error = Some(self.message.clone());
        envelope.error_code = Some(self.error_code.clone());
        envelope.hint = Some(self.hint.clone());
    }
}

impl From<&SurfaceError> for ErrorWire {
    fn from(error: &SurfaceError) -> Self {
        match error {
            SurfaceError::Argument { parameter, cause, .. } => {
                let wire = Self::because(Code::InvalidArgument, error);
                wire.parameter(said(parameter)).cause(*cause)
            }
            SurfaceError::SessionNotFound { .. } => Self::because(Code::SessionNotFound, error),
            SurfaceError::NoSession => {
                Self::because(Code::SessionNotFound, error).cause(RefusalCause::NoSession)
            }
            SurfaceError::Denied(denial) => denied(*denial),
            SurfaceError::Ruled(refusal) => ruled(refusal),
            SurfaceError::Session(error) => session(error),
            SurfaceError::Mount(error) => mounts::mount(error),
            SurfaceError::MountLease { mount, error } => mounts::lease(mount, error),
            SurfaceError::ManageMount(error) => mounts::manage(error),
            SurfaceError::Create(error) => create(error),
            SurfaceError::LeaseUnknown => Self::because(Code::LeaseSuperseded, error),
            SurfaceError::DaemonLeaves => {
                let leaves = Self::because(Code::UpstreamUnavailable, error);
                leaves.retry_after(NEXT_DAEMON_MS).cause(RefusalCause::DaemonLeaves)
            }
            SurfaceError::UnreadableRecording(_) | SurfaceError::Unreadable(_) => {
                Self::because(Code::StorageError, error)
            }
            SurfaceError::Quota(_) => over_quota(error),
            SurfaceError::TooManyAsked { retry_after } => {
                let retry_after = retry_after.as_millis() as u64;
                ErrorWire::because(Code::QuotaExceeded, error).retry_after(retry_after)
            }
            SurfaceError::RateLimited { retry_after } => {
                // Round up, so that a client that waits this long is not refused again.
                let millis = retry_after.as_micros().div_ceil(1_000) as u64;
                Self::because(Code::RateLimited, error).retry_after(millis)
            }
            SurfaceError::Internal(_) => Self::because(Code::Internal, error),
        }
    }
}

impl From<Rejection> for ErrorWire {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Malformed => {
                Self::because(Code::InvalidArgument, rejection).parameter("token")
            }
            Rejection::Unknown => Self::because(Code::TokenUnknown, rejection),
            Rejection::Expired => Self::because(Code::TokenExpired, rejection),
            Rejection::OperatorsDoor => {
                Self::because(Code::PolicyDenied, rejection).cause(RefusalCause::OperatorSocket)
            }
            Rejection::InsideSession => Self::because(Code::PolicyDenied, rejection),
            Rejection::Unreadable => Self::because(Code::StorageError, rejection),
        }
    }
}

/// The code of an error.
pub fn code_of(error: &SurfaceError) -> Code {
    ErrorWire::from(error).code()
}

/// The error of a request other than a tool call.
impl From<SurfaceError> for ErrorData {
    fn from(error: SurfaceError) -> Self {
        let code = match error {
            SurfaceError::SessionNotFound { .. } | SurfaceError::NoSession => {
                ErrorCode::RESOURCE_NOT_FOUND
            }
            SurfaceError::Argument { .. }
            | SurfaceError::Denied(_)
            | SurfaceError::Ruled(_)
            | SurfaceError::Session(_)
            | SurfaceError::Create(_)
            | SurfaceError::Mount(_)
            | SurfaceError::MountLease { .. }
            | SurfaceError::ManageMount(_)
            | SurfaceError::LeaseUnknown
            | SurfaceError::Quota(_)
            | SurfaceError::TooManyAsked { .. } => ErrorCode::INVALID_PARAMS,
            SurfaceError::RateLimited { .. } | SurfaceError::DaemonLeaves => BUSY,
            SurfaceError::Unreadable(_)
            | SurfaceError::UnreadableRecording(_)
            | SurfaceError::Internal(_) => ErrorCode::INTERNAL_ERROR,
        };
        ErrorWire::from(&error).refusal_of_request(code)
    }
}

fn denied(denial: Denial) -> ErrorWire {
    let (code, cause) = match denial {
        Denial::SwitchedOff => (Code::ReadOnly, Some(RefusalCause::SwitchedOff)),
        Denial::Protected => (Code::ReadOnly, Some(RefusalCause::Protected)),
        Denial::ObserverDoor => (Code::ReadOnly, Some(RefusalCause::ObserverSocket)),
        Denial::ReadOnlyToken => (Code::ReadOnly, Some(RefusalCause::ReadOnlyToken)),
        Denial::Watching => (Code::ReadOnly, Some(RefusalCause::ViewOnly)),
        Denial::BoundDoor => (Code::PolicyDenied, Some(RefusalCause::SessionSocket)),
        Denial::InsideSession | Denial::NotOperator | Denial::NoRole => (Code::PolicyDenied, None),
        Denial::OtherPermit => (Code::Internal, None),
    };
    ErrorWire::because(code, denial).cause(cause)
}

fn session(error: &SessionError) -> ErrorWire {
    match error {
        SessionError::Write(error) => write(error),
        SessionError::Denied(denial) => denied(*denial),
        SessionError::Silent => {
            ErrorWire::because(Code::TerminalSilent, error).retry_after(SILENT_RETRY_MS)
        }
        SessionError::Exited(exit) => ErrorWire::because(Code::SessionExited, error)
            .details(ErrorDetails { exit: Some((*exit).into()), ..ErrorDetails::default() }),
        SessionError::Stale => ErrorWire::because(Code::ApprovalStale, error),
        SessionError::ScreenChanged(delta) | SessionError::TextNotShown(delta) => {
            let changed = Some(DeltaWire::within(delta, CHANGED_BYTES_MAX, Form::Object));
            ErrorWire::because(Code::ScreenChanged, error)
                .details(ErrorDetails { changed, ..ErrorDetails::default() })
        }
        SessionError::Mouse(mouse) => match mouse {
            MouseError::ReportingOff | MouseError::MovementOff => {
                ErrorWire::because(Code::NotSupported, error)
            }
            MouseError::OutOfRange { .. } => {
                ErrorWire::because(Code::InvalidArgument, error).parameter("row")
            }
        },
        SessionError::LineTooLong { .. } => {
            ErrorWire::because(Code::TooLarge, error).cause(RefusalCause::LineTooLong)
        }
        SessionError::CommandRunning => {
            ErrorWire::because(Code::Busy, error).cause(RefusalCause::CommandRunning)
        }
        SessionError::Asks(prompt) => ErrorWire::because(Code::Busy, error)
            .details(ErrorDetails { prompt: Some(said(prompt)), ..ErrorDetails::default() })
            .cause(RefusalCause::Asks),
        SessionError::NoPromptYet => {
            ErrorWire::because(Code::Busy, error).cause(RefusalCause::NoPromptYet)
        }
        SessionError::Busy => ErrorWire::because(Code::Busy, error).retry_after(BUSY_RETRY_MS),
        SessionError::Restarted => ErrorWire::because(Code::UpstreamRestarted, error),
        SessionError::Closed => ErrorWire::because(Code::SessionNotFound, error),
        SessionError::Recording(_) => ErrorWire::because(Code::StorageError, error),
        SessionError::NotRecorded(_) => ErrorWire::because(Code::StorageError, error),
        SessionError::Terminal(_) => ErrorWire::because(Code::Internal, error),
    }
}

fn write(error: &WriteError) -> ErrorWire {
    match error {
        WriteError::ReadOnly => ErrorWire::because(Code::ReadOnly, error),
        WriteError::SessionEnded => ErrorWire::because(Code::SessionExited, error),
        WriteError::TooMuchQueued { .. } => ErrorWire::because(Code::Busy, error)
            .retry_after(BUSY_RETRY_MS)
            .cause(RefusalCause::NotReading),
        WriteError::TooManyInFlight => {
            ErrorWire::because(Code::Busy, error).retry_after(BUSY_RETRY_MS)
        }
        WriteError::KeyReused => {
            ErrorWire::because(Code::InvalidArgument, error).parameter("idempotency_key")
        }
        WriteError::NotRepeated => ErrorWire::because(Code::ApprovalStale, error),
        WriteError::NotSeen { .. } => {
            ErrorWire::because(Code::ScreenChanged, error).cause(RefusalCause::PersonTyped)
        }
        WriteError::Lease(error) => lease(error),
    }
}

fn lease(error: &LeaseError) -> ErrorWire {
    match error {
        LeaseError::Required => ErrorWire::because(Code::LeaseRequired, error),
        LeaseError::Held {
            by,
            kind,
            reason,
            expires_in,
            at_most,
            waiters,
            reclaimable,
            tenant: _,
        } => {
            let millis = expires_in.as_millis() as u64;
            let details = ErrorDetails {
                held_by: Some(by.to_string()),
                kind: Some((*kind).into()),
                reason: reason.as_deref().map(str::to_owned),
                expires_in_ms: Some(millis),
                at_most_ms: Some(at_most.as_millis() as u64),
                waiters: Some(*waiters),
                reclaimable: Some(*reclaimable),
                ..ErrorDetails::default()
            };
            let held =
                ErrorWire::because(Code::LeaseHeld, error).retry_after(millis).details(details);
            held.cause(reclaimable.then_some(RefusalCause::Reclaimable))
        }
        LeaseError::HeldByOtherTenant { expires_in, at_most, waiters } => {
            mounts::held_by_other(error, [*expires_in, *at_most], *waiters)
        }
        LeaseError::Suspended { by, kind, resumes_in, remaining } => {
            let millis = resumes_in.as_millis() as u64;
            ErrorWire::because(Code::LeaseSuspended, error).retry_after(millis).details(
                ErrorDetails {
                    suspended_by: Some(by.to_string()),
                    kind: Some((*kind).into()),
                    resumes_in_ms: Some(millis),
                    remaining_ms: Some(remaining.as_millis() as u64),
                    ..ErrorDetails::default()
                },
            )
        }
        LeaseError::Offered { to } => ErrorWire::because(Code::LeaseHeld, error)
            .details(ErrorDetails { offered_to: Some(to.to_string()), ..ErrorDetails::default() })
            .cause(RefusalCause::Offered),
        LeaseError::Lost { cause } => lost(error, cause),
        LeaseError::Superseded => ErrorWire::because(Code::LeaseSuperseded, error),
        // To the caller, the session does not exist.
        LeaseError::OtherTenant => ErrorWire::because(Code::SessionNotFound, error),
        LeaseError::QueueFull { .. } => over_quota(error),
        LeaseError::TtlOutOfBounds { .. } => {
            ErrorWire::because(Code::InvalidArgument, error).parameter("ttl_ms")
        }
        LeaseError::WaitGivenUp => ErrorWire::because(Code::LeaseLost, error),
    }
}

fn lost(error: &LeaseError, cause: &EndCause) -> ErrorWire {
    ErrorWire::because(Code::LeaseLost, error).details(ErrorDetails {
        cause: Some(ErrorCause::LeaseEnded(cause.into())),
        by: cause.by().map(ToString::to_string),
        ..ErrorDetails::default()
    })
}

fn create(error: &CreateError) -> ErrorWire {
    let parameter = |name: &str| {
        ErrorWire::because(Code::InvalidArgument, format!("{name}: {error}")).parameter(name)
    };
    match error {
        CreateError::Denied(denial) => denied(*denial),
        CreateError::NameTaken(_) => ErrorWire::because(Code::SessionExists, error),
        CreateError::BadName(_) => parameter("name"),
        CreateError::TooMany(_) => over_quota(error),
        CreateError::Command(command) => match command {
            CommandError::NoCommand
            | CommandError::NotFound { .. }
            | CommandError::NotExecutable { .. } => parameter("command"),
            CommandError::NulByte => parameter("args"),
            CommandError::BadDirectory { .. } | CommandError::BadDirectoryOf { .. } => {
                parameter("cwd")
            }
        },
        CreateError::Environment(_) => parameter("env"),
        CreateError::Spawn(spawn) => match (spawn.shortage(), spawn) {
            (Some(shortage), _) => {
                ErrorWire::because(Code::QuotaExceeded, error).cause(missing(shortage))
            }
            (None, SpawnError::Program { .. }) => parameter("command"),
            (None, SpawnError::Place { .. }) => {
                ErrorWire::because(Code::StorageError, error).cause(RefusalCause::ShimDirectory)
            }
            (None, SpawnError::Sandbox(_)) => {
                ErrorWire::because(Code::NotSupported, error).cause(RefusalCause::NoSandbox)
            }
            (None, SpawnError::Superseded) => ErrorWire::because(Code::DaemonRunning, error),
            (None, SpawnError::Terminal(_) | SpawnError::Shim(_)) => {
                ErrorWire::because(Code::Internal, error)
            }
        },
        CreateError::Account(_) => ErrorWire::because(Code::PolicyDenied, error),
        CreateError::Sandbox(_) => {
            ErrorWire::because(Code::NotSupported, error).cause(RefusalCause::NoSandbox)
        }
        CreateError::Ending => ErrorWire::because(Code::Busy, error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::core::caller::{Kind, PrincipalName};
    use crate::core::ids::{PrincipalId, TenantId};
    use crate::wire::lease::PrincipalKind;

    #[test]
    fn a_suspended_holder_is_told_how_to_wait_and_never_how_to_take() {
        let by = PrincipalName { label: Arc::from("ada"), principal: PrincipalId::Connection(5) };
        let (resumes_in, remaining) = (Duration::from_secs(10), Duration::from_secs(24));
        let told = lease(&LeaseError::Suspended { by, kind: Kind::Human, resumes_in, remaining });
        assert_eq!(told.error_code, "lease_suspended");
        assert_eq!(told.retry_after_ms, Some(10_000));
        assert!(told.hint.contains("wait_ms") && !told.hint.contains("preempt"));
        let details = told.details.unwrap();
        assert_eq!(details.suspended_by.as_deref(), Some("ada#p5"));
        assert_eq!(details.kind, Some(PrincipalKind::Human));
        assert_eq!(details.remaining_ms, Some(24_000));
    }

    #[test]
    fn whoever_finds_a_lease_held_is_told_what_its_holder_does() {
        let by = PrincipalName { label: Arc::from("ada"), principal: PrincipalId::Connection(5) };
        let told = lease(&LeaseError::Held {
            tenant: TenantId::of_uid(1_000),
            by,
            kind: Kind::Agent,
            reason: Some(Box::from("deploys")),
            expires_in: Duration::from_secs(10),
            at_most: Duration::from_secs(24),
            waiters: 0,
            reclaimable: false,
        });
        assert_eq!(told.details.unwrap().reason.as_deref(), Some("deploys"));
    }

    #[test]
    fn whoever_has_not_looked_since_a_person_typed_is_told_to() {
        let told = write(&WriteError::NotSeen { since: None });
        assert_eq!(told.error_code, "screen_changed");
        assert!(told.hint.contains("expect_watermark"));
    }
}
