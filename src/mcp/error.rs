//! Errors for clients: a stable code, the message, a hint and the time to retry.
//!
//! Only this module maps errors to codes. No match has a wildcard, so a new error needs a code to compile.

use serde_json::json;

use crate::core::code::Code;
use crate::core::input::error::WriteError;
use crate::core::keys::mouse::MouseError;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::policy::Denial;
use crate::core::token::Rejection;
use crate::mcp::call::{Era, ToolResult};
use crate::mcp::upgrade::UpgradeError;
use crate::session::create::CreateError;
use crate::session::error::SessionError;
use crate::session::pty::command::CommandError;
use crate::session::pty::spawn::{Shortage, SpawnError};
use crate::surface::answer::budget::ends;
use crate::surface::answer::page::Form;
use crate::surface::error::SurfaceError;
use crate::wire::delta::DeltaWire;
use crate::wire::envelope::Envelope;
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

#[derive(Clone, Debug)]
pub struct WireError {
    pub code: Code,
    pub message: String,
    pub hint: String,
    pub retry_after_ms: Option<u64>,
    pub details: Option<ErrorDetails>,
}

impl WireError {
    fn new(code: Code, message: impl ToString) -> Self {
        let (message, hint) = (said(message), code.advice().to_owned());
        Self { code, message, hint, retry_after_ms: None, details: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    fn details(mut self, details: ErrorDetails) -> Self {
        self.details = Some(details);
        self
    }

    fn parameter(self, name: impl Into<String>) -> Self {
        self.details(ErrorDetails { parameter: Some(name.into()), ..ErrorDetails::default() })
    }

    fn cause(self, cause: RefusalCause) -> Self {
        let cause = Some(ErrorCause::Refused(cause));
        self.details(ErrorDetails { cause, ..ErrorDetails::default() })
    }

    fn retry_after(mut self, millis: u64) -> Self {
        self.retry_after_ms = Some(millis);
        self
    }

    /// The error as the result of a tool call.
    pub fn result(&self, era: Era) -> ToolResult {
        let text = format!("{}: {}. {}", self.code.as_str(), self.message, self.hint);
        ToolResult::failure(era, text, json!(self.structured()))
    }

    /// The error as structured data.
    pub fn structured(&self) -> ErrorWire {
        ErrorWire {
            error_code: self.code.as_str().to_owned(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            retry_after_ms: self.retry_after_ms,
            details: self.details.clone(),
        }
    }

    /// Copies the error into the envelope of its answer.
    pub fn note_in(&self, envelope: &mut Envelope) {
        envelope.ok = false;
        envelope.error = Some(self.message.clone());
        envelope.error_code = Some(self.code.as_str().to_owned());
        envelope.hint = Some(self.hint.clone());
    }
}

impl From<&SurfaceError> for WireError {
    fn from(error: &SurfaceError) -> Self {
        match error {
            SurfaceError::Argument { parameter, .. } => {
                let parameter = said(parameter);
                Self::new(Code::InvalidArgument, error).parameter(parameter)
            }
            SurfaceError::SessionNotFound(_) => Self::new(Code::SessionNotFound, error),
            SurfaceError::NoSession => Self::new(Code::SessionNotFound, error)
                .hint("Create one with `create_session` (`termgate new` on the command line)."),
            SurfaceError::Denied(denial) => denied(*denial),
            SurfaceError::Session(error) => session(error),
            SurfaceError::Create(error) => create(error),
            SurfaceError::LeaseUnknown => Self::new(Code::LeaseSuperseded, error),
            SurfaceError::DaemonLeaves => {
                Self::new(Code::UpstreamUnavailable, error).retry_after(NEXT_DAEMON_MS)
            }
            SurfaceError::Quota(_) => Self::new(Code::QuotaExceeded, error),
            SurfaceError::RateLimited { retry_after } => {
                // Round up, so that a client that waits this long is not refused again.
                let millis = retry_after.as_micros().div_ceil(1_000) as u64;
                Self::new(Code::RateLimited, error).retry_after(millis)
            }
            SurfaceError::Internal(_) => Self::new(Code::Internal, error),
        }
    }
}

impl From<Rejection> for WireError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Malformed => Self::new(Code::InvalidArgument, rejection).parameter("token"),
            Rejection::Unknown => Self::new(Code::TokenUnknown, rejection),
            Rejection::Expired => Self::new(Code::TokenExpired, rejection),
            Rejection::OperatorsDoor => Self::new(Code::PolicyDenied, rejection)
                .hint("Use the socket of the gateway or of a session, or show no token."),
            Rejection::InsideSession => Self::new(Code::PolicyDenied, rejection),
            Rejection::Unreadable => Self::new(Code::StorageError, rejection),
        }
    }
}

impl From<&UpgradeError> for WireError {
    fn from(error: &UpgradeError) -> Self {
        match error {
            UpgradeError::Start { .. }
            | UpgradeError::TooSlow { .. }
            | UpgradeError::Failed { .. }
            | UpgradeError::Stranger { .. } => Self::new(Code::UpgradeFailed, error),
            UpgradeError::Busy => Self::new(Code::Busy, error),
        }
    }
}

fn denied(denial: Denial) -> WireError {
    match denial {
        Denial::SwitchedOff => WireError::new(Code::ReadOnly, denial).hint(
            "Ask the operator to run `termgate allow-write on`. A `termgate serve --stdio` has no \
             operator: it has to be started with --allow-write.",
        ),
        Denial::ObserverDoor => WireError::new(Code::ReadOnly, denial)
            .hint("Use the session's other socket, or the gateway's, to write."),
        Denial::ReadOnlyToken => WireError::new(Code::ReadOnly, denial)
            .hint("Ask the operator for a token that was made without --read-only."),
        Denial::Watching => WireError::new(Code::ReadOnly, denial)
            .hint("Detach and attach again without --view-only."),
        Denial::BoundDoor => WireError::new(Code::PolicyDenied, denial)
            .hint("Use the gateway's socket for what concerns other sessions."),
        Denial::InsideSession | Denial::NotOperator => WireError::new(Code::PolicyDenied, denial),
    }
}

fn session(error: &SessionError) -> WireError {
    match error {
        SessionError::Write(error) => write(error),
        SessionError::Silent => {
            WireError::new(Code::TerminalSilent, error).retry_after(SILENT_RETRY_MS)
        }
        SessionError::Exited(exit) => WireError::new(Code::SessionExited, error)
            .details(ErrorDetails { exit: Some((*exit).into()), ..ErrorDetails::default() }),
        SessionError::ScreenChanged(delta) | SessionError::TextNotShown(delta) => {
            let changed = Some(DeltaWire::within(delta, CHANGED_BYTES_MAX, Form::Object));
            WireError::new(Code::ScreenChanged, error)
                .details(ErrorDetails { changed, ..ErrorDetails::default() })
        }
        SessionError::Mouse(mouse) => match mouse {
            MouseError::ReportingOff | MouseError::MovementOff => {
                WireError::new(Code::NotSupported, error)
            }
            MouseError::OutOfRange { .. } => {
                WireError::new(Code::InvalidArgument, error).parameter("row")
            }
        },
        SessionError::LineTooLong { .. } => WireError::new(Code::TooLarge, error)
            .hint("Split it into lines, or let the program read from a file."),
        SessionError::CommandRunning => WireError::new(Code::Busy, error)
            .hint(
                "Look at it with read_screen. If it asks, answer with send_text; if it works, \
                 wait_for command_done, or interrupt it with send_keys C-c.",
            )
            .cause(RefusalCause::CommandRunning),
        SessionError::Asks(prompt) => WireError::new(Code::Busy, error)
            .hint(
                "It has to be answered first: with send_text, a secret by the person with `termgate \
                 attach`. send_keys C-c gives it up.",
            )
            .details(ErrorDetails {
                cause: Some(ErrorCause::Refused(RefusalCause::Asks)),
                prompt: Some(said(prompt)),
                ..ErrorDetails::default()
            }),
        SessionError::NoPromptYet => WireError::new(Code::Busy, error)
            .hint(
                "It still reads its files or makes its prompt: read_screen names what runs. Call again \
                 with a longer timeout_ms, or interrupt it with send_keys C-c.",
            )
            .cause(RefusalCause::NoPromptYet),
        SessionError::Busy => WireError::new(Code::Busy, error).retry_after(BUSY_RETRY_MS),
        SessionError::Restarted => WireError::new(Code::UpstreamRestarted, error),
        SessionError::Closed => WireError::new(Code::SessionNotFound, error),
        SessionError::Terminal(_) => WireError::new(Code::Internal, error),
    }
}

fn write(error: &WriteError) -> WireError {
    match error {
        WriteError::ReadOnly => WireError::new(Code::ReadOnly, error),
        WriteError::SessionEnded => WireError::new(Code::SessionExited, error),
        WriteError::TooMuchQueued { .. } => WireError::new(Code::Busy, error)
            .retry_after(BUSY_RETRY_MS)
            .hint("The program does not read its input: look at the screen, or send C-c alone."),
        WriteError::TooManyInFlight => WireError::new(Code::Busy, error).retry_after(BUSY_RETRY_MS),
        WriteError::KeyReused => WireError::new(Code::InvalidArgument, error)
            .parameter("idempotency_key"),
        WriteError::NotSeen { .. } => WireError::new(Code::ScreenChanged, error)
            .hint(
                "Read the screen, decide again, and write with expect_watermark set to the watermark \
                 you read.",
            )
            .cause(RefusalCause::PersonTyped),
        WriteError::Lease(error) => lease(error),
    }
}

fn lease(error: &LeaseError) -> WireError {
    match error {
        LeaseError::Required => WireError::new(Code::LeaseRequired, error),
        LeaseError::Held { by, kind, reason, expires_in, at_most, waiters, reclaimable } => {
            let millis = expires_in.as_millis() as u64;
            let hint = if *reclaimable {
                "The daemon started anew, and the lease waits for who had it: if it was yours, show \
                 its lease_id; else wait in line with acquire_lease and wait_ms."
            } else {
                "Wait in line with acquire_lease and wait_ms, ask the holder, or watch with wait_for."
            };
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
            WireError::new(Code::LeaseHeld, error).hint(hint).retry_after(millis).details(details)
        }
        LeaseError::Suspended { by, kind, resumes_in, remaining } => {
            let millis = resumes_in.as_millis() as u64;
            WireError::new(Code::LeaseSuspended, error)
                .hint(
                    "It comes back by itself when the person is done: wait with acquire_lease and \
                     wait_ms, or watch with wait_for; then read the screen and write with \
                     expect_watermark.",
                )
                .retry_after(millis)
                .details(ErrorDetails {
                    suspended_by: Some(by.to_string()),
                    kind: Some((*kind).into()),
                    resumes_in_ms: Some(millis),
                    remaining_ms: Some(remaining.as_millis() as u64),
                    ..ErrorDetails::default()
                })
        }
        LeaseError::Offered { to } => WireError::new(Code::LeaseHeld, error)
            .hint(
                "It returns to you within 10 s if it is not taken up; acquire_lease takes it back.",
            )
            .details(ErrorDetails { offered_to: Some(to.to_string()), ..ErrorDetails::default() }),
        LeaseError::Lost { cause } => lost(error, cause),
        LeaseError::Superseded => WireError::new(Code::LeaseSuperseded, error),
        // To the caller, the session does not exist.
        LeaseError::OtherTenant => WireError::new(Code::SessionNotFound, error),
        LeaseError::QueueFull { .. } => {
            WireError::new(Code::QuotaExceeded, error).retry_after(1_000)
        }
        LeaseError::TtlOutOfBounds { .. } => {
            WireError::new(Code::InvalidArgument, error).parameter("ttl_ms")
        }
        LeaseError::WaitGivenUp => WireError::new(Code::LeaseLost, error),
    }
}

fn lost(error: &LeaseError, cause: &EndCause) -> WireError {
    WireError::new(Code::LeaseLost, error).details(ErrorDetails {
        cause: Some(ErrorCause::LeaseEnded(cause.into())),
        by: cause.by().map(ToString::to_string),
        ..ErrorDetails::default()
    })
}

fn create(error: &CreateError) -> WireError {
    let parameter = |name: &str| {
        WireError::new(Code::InvalidArgument, format!("{name}: {error}")).parameter(name)
    };
    match error {
        CreateError::NameTaken(_) => WireError::new(Code::SessionExists, error),
        CreateError::BadName(_) => parameter("name"),
        CreateError::TooMany(_) => WireError::new(Code::QuotaExceeded, error),
        CreateError::Command(command) => match command {
            CommandError::NoCommand
            | CommandError::NotFound { .. }
            | CommandError::NotExecutable { .. } => parameter("command"),
            CommandError::NulByte => parameter("args"),
            CommandError::BadDirectory { .. } => parameter("cwd"),
        },
        CreateError::Environment(_) => parameter("env"),
        CreateError::Spawn(spawn) => match (spawn.shortage(), spawn) {
            (Some(shortage), _) => {
                WireError::new(Code::QuotaExceeded, error).hint(remedy(shortage))
            }
            (None, SpawnError::Command(_) | SpawnError::Program { .. }) => parameter("command"),
            (None, SpawnError::Place { .. }) => {
                WireError::new(Code::StorageError, error).hint(PLACE_REMEDY)
            }
            (None, SpawnError::Superseded) => WireError::new(Code::DaemonRunning, error),
            (None, SpawnError::Terminal(_) | SpawnError::Shim(_)) => {
                WireError::new(Code::Internal, error)
            }
        },
        CreateError::Ending => WireError::new(Code::Busy, error),
    }
}

/// The hint when a session's directory cannot be used.
const PLACE_REMEDY: &str = "The directory must be the daemon's user's own, with mode 0700 and room in \
    it; what is missing of it is made again with the next session.";

/// The hint when the system lacks resources for another session.
fn remedy(shortage: Shortage) -> &'static str {
    match shortage {
        Shortage::Descriptors => {
            "Every session and connection needs some file descriptors, and the daemon may have no \
             more: end sessions that are not needed, or let an operator raise its hard limit \
             (`ulimit -Hn`, `LimitNOFILE=`) and start it anew."
        }
        Shortage::Processes => {
            "The user may have no more processes: end what is not needed, or let an operator raise \
             the limit (`ulimit -u`, `TasksMax=`)."
        }
        Shortage::Terminals => {
            "The machine has no more terminals: end what is not needed, or let an operator raise \
             `kernel.pty.max`."
        }
        Shortage::Memory => "The machine has no memory left: end what is not needed.",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::core::caller::{Kind, PrincipalName};
    use crate::core::ids::PrincipalId;
    use crate::wire::lease::PrincipalKind;

    #[test]
    fn a_suspended_holder_is_told_how_to_wait_and_never_how_to_take() {
        let by = PrincipalName { label: Arc::from("ada"), principal: PrincipalId::Connection(5) };
        let (resumes_in, remaining) = (Duration::from_secs(10), Duration::from_secs(24));
        let told = lease(&LeaseError::Suspended { by, kind: Kind::Human, resumes_in, remaining });
        assert_eq!(told.code, Code::LeaseSuspended);
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
        assert_eq!(told.code, Code::ScreenChanged);
        assert!(told.hint.contains("expect_watermark"));
    }
}
