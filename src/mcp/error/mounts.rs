//! The errors of mounts for clients.

use std::time::Duration;

use serde_json::value::to_raw_value;

use crate::core::code::Code;
use crate::core::input::request::WriteError;
use crate::core::lease::error::LeaseError;
use crate::core::mount::MountName;
use crate::mcp::call_result::RelayedError;
use crate::mcp::error::{over_quota, said, write};
use crate::mount::error::{LINK_NEEDED, ManageError, MountError};
use crate::mount::json::ExactJson;
use crate::surface::error::SurfaceError;
use crate::wire::error::{ErrorDetails, ErrorWire, RefusalCause};

/// JSON-RPC's code for invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// The time to wait before asking a server again that is busy or does not run, if nothing else is known.
const RETRY_MS: u64 = 1_000;

/// What to do about too many calls. `activity` and the screen are of sessions.
const LET_CALLS_END: &str = "Let earlier calls end, then try again.";

pub(super) fn mount(error: &MountError) -> ErrorWire {
    let with_hint =
        |code, hint: &str| ErrorWire { hint: hint.to_owned(), ..ErrorWire::because(code, error) };
    match error {
        MountError::Unavailable { mount, retry_after, .. } => {
            let hint = &format!("Try again later; an operator finds more with: termgate mounts log {mount}");
            let wire = with_hint(Code::UpstreamUnavailable, hint);
            wire.retry_after(retry_after.map_or(RETRY_MS, |wait| wait.as_millis() as u64))
        }
        MountError::Changed { mount } => with_hint(
            Code::UpstreamUnavailable,
            &format!(
                "An operator looks at the difference with `termgate mounts tools {mount}`, and then runs: \
                 termgate mounts accept {mount}"
            ),
        ),
        MountError::Busy { .. } | MountError::TooManyCalls { .. } => {
            with_hint(Code::Busy, LET_CALLS_END).retry_after(RETRY_MS)
        }
        MountError::NotReading { mount } => with_hint(
            Code::Busy,
            &format!("Nothing was done. Try again later; if it stays, an operator runs: termgate mounts restart {mount}"),
        )
        .retry_after(RETRY_MS),
        MountError::TooManyClients { mount } => with_hint(
            Code::QuotaExceeded,
            &format!(
                "Try again when another client has disconnected, or ask an operator for another `mode` of the mount `{mount}`."
            ),
        ),
        MountError::Unread { .. } => with_hint(
            Code::QuotaExceeded,
            "The call may have taken effect. Read the answers before it, and look before you repeat it.",
        )
        .retry_after(RETRY_MS),
        MountError::Restarted { .. } => with_hint(
            Code::UpstreamRestarted,
            "The call may have taken effect, and the server has lost its state. Look before you repeat it.",
        ),
        MountError::StateLost { .. } => with_hint(
            Code::UpstreamRestarted,
            "Nothing was done. What you did in it before is gone: begin anew.",
        ),
        MountError::LeaseEnded { mount } => lease_ended(mount, error),
        MountError::TimedOut { .. } | MountError::TaskTooLong { .. } => with_hint(
            Code::Timeout,
            "The call was cancelled, but may have taken effect. Look before you repeat it.",
        ),
        MountError::Untold { .. } => with_hint(
            Code::InvalidArgument,
            "Read the resource again when you need it.",
        ),
        MountError::TooManyWatched { .. } => over_quota(error),
        MountError::Refused { code, data, .. } => refused(*code, data.as_ref(), error),
        MountError::LinkNeeded { .. } => with_hint(
            Code::UpstreamError,
            "Have your user open the link, and make the call again after that.",
        ),
        MountError::NoInput { .. } | MountError::Malformed { .. } => with_hint(
            Code::UpstreamError,
            "The call may have taken effect. Look before you repeat it.",
        ),
        MountError::TooLong { .. } => with_hint(
            Code::UpstreamError,
            "The call may have taken effect, and its answer was dropped. Ask the server for less at once.",
        ),
    }
}

/// The error of a server as it wrote it, which answers a request that is no call of a tool; `None` if it has no code of the
/// protocol, or one that comes with links.
pub fn relayed(error: &SurfaceError) -> Option<RelayedError> {
    let SurfaceError::Mount(MountError::Refused { code, message, data, .. }) = error else {
        return None;
    };
    let code = code.filter(|code| *code != LINK_NEEDED)?;
    Some(RelayedError { code, message: said(message), data: data.clone() })
}

/// What a server has refused, with the data that it gave.
fn refused(code: Option<i64>, data: Option<&ExactJson>, error: &MountError) -> ErrorWire {
    let is_argument = code == Some(INVALID_PARAMS);
    let code = if is_argument { Code::InvalidArgument } else { Code::UpstreamError };
    let wire = ErrorWire::because(code, error);
    match data.and_then(|data| to_raw_value(data).ok()) {
        Some(data) => wire.details(ErrorDetails { data: Some(data), ..ErrorDetails::default() }),
        None => wire,
    }
}

fn lease_ended(mount: &MountName, error: &MountError) -> ErrorWire {
    let hint = "The call was cancelled, but may have taken effect. Acquire the lease again, and look before you repeat it.";
    let ended = ErrorWire::because(Code::LeaseLost, error).details(of_lease(mount));
    ErrorWire { hint: hint.to_owned(), ..ended }
}

/// Why a caller does not have the lease of a mount.
pub(super) fn lease(mount: &MountName, error: &WriteError) -> ErrorWire {
    let mut wire = write(error);
    if let Some(hint) = lease_hint(mount, error) {
        wire.hint = hint;
    }
    let details =
        ErrorDetails { surface: of_lease(mount).surface, ..wire.details.unwrap_or_default() };
    ErrorWire { details: Some(details), ..wire }
}

/// That an error is about the lease of this mount.
fn of_lease(mount: &MountName) -> ErrorDetails {
    ErrorDetails { surface: Some(mount.to_string()), ..ErrorDetails::default() }
}

/// What to do about it where the words for sessions speak of a terminal.
fn lease_hint(mount: &MountName, error: &WriteError) -> Option<String> {
    let acquire = format!("acquire_lease with surface `{mount}`");
    let error = match error {
        WriteError::Lease(error) => error,
        WriteError::TooManyInFlight => return Some(LET_CALLS_END.to_owned()),
        WriteError::ReadOnly
        | WriteError::SessionEnded
        | WriteError::TooMuchQueued { .. }
        | WriteError::KeyReused
        | WriteError::NotRepeated
        | WriteError::NotSeen { .. } => return None,
    };
    Some(match error {
        LeaseError::Required => format!("Call {acquire}, and then this again."),
        LeaseError::Held { .. }
        | LeaseError::HeldByOtherTenant { .. }
        | LeaseError::Suspended { .. } => {
            format!("Wait in line: call {acquire} and wait_ms, or ask the holder.")
        }
        LeaseError::Lost { .. } | LeaseError::WaitGivenUp => format!(
            "If you still need the server, call {acquire}, and look at its state before you go on: others may have changed it."
        ),
        LeaseError::Superseded => format!("Forget the id and call {acquire}."),
        LeaseError::Offered { .. }
        | LeaseError::OtherTenant
        | LeaseError::QueueFull { .. }
        | LeaseError::TtlOutOfBounds { .. } => return None,
    })
}

/// That another tenant holds the lease of a mount.
pub(super) fn held_by_other(
    error: &LeaseError,
    [expires_in, at_most]: [Duration; 2],
    waiters: usize,
) -> ErrorWire {
    let millis = |of: Duration| of.as_millis() as u64;
    let details = ErrorDetails {
        expires_in_ms: Some(millis(expires_in)),
        at_most_ms: Some(millis(at_most)),
        waiters: Some(waiters),
        ..ErrorDetails::default()
    };
    let held = ErrorWire::because(Code::LeaseHeld, error).retry_after(millis(expires_in));
    held.details(details)
}

pub(super) fn manage(error: &ManageError) -> ErrorWire {
    match error {
        ManageError::Unknown(_) => {
            let unknown = ErrorWire::because(Code::InvalidArgument, error).parameter("mount");
            unknown.cause(RefusalCause::NotFound)
        }
        ManageError::NothingChanged(_) => ErrorWire::because(Code::InvalidArgument, error),
        ManageError::OtherTools(mount) => ErrorWire {
            hint: format!("Look at them, and then accept those: termgate mounts accept {mount}"),
            ..ErrorWire::because(Code::InvalidArgument, error).parameter("digest")
        },
        ManageError::NotKept { .. } => ErrorWire::because(Code::StorageError, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_read_is_no_matter_of_too_many_calls() {
        let told = mount(&MountError::NotReading { mount: "web".parse().unwrap() });
        assert_eq!(told.error_code, "busy");
        assert_eq!(told.message, "the mount `web` does not read its input");
        assert!(told.hint.contains("termgate mounts restart web"), "{}", told.hint);
    }

    #[test]
    fn no_hint_about_a_mount_speaks_of_a_terminal() {
        let web: MountName = "web".parse().unwrap();
        let of_mount = |error| mount(&error);
        let of_lease = |error: WriteError| lease(&web, &error);
        let ended = LeaseError::Lost { cause: crate::core::lease::error::EndCause::Expired };
        let [expires_in, at_most] = [Duration::from_secs(1); 2];
        for told in [
            of_mount(MountError::Busy { mount: web.clone() }),
            of_mount(MountError::TooManyCalls { mount: web.clone(), most: 32 }),
            of_mount(MountError::NotReading { mount: web.clone() }),
            of_mount(MountError::TooManyClients { mount: web.clone() }),
            of_mount(MountError::LeaseEnded { mount: web.clone() }),
            of_lease(WriteError::TooManyInFlight),
            of_lease(ended.into()),
            of_lease(LeaseError::WaitGivenUp.into()),
            of_lease(LeaseError::Superseded.into()),
            of_lease(LeaseError::HeldByOtherTenant { expires_in, at_most, waiters: 0 }.into()),
        ] {
            for word in ["screen", "session", "type", "activity", "wait_for"] {
                assert!(!told.hint.contains(word), "{}: {}", told.error_code, told.hint);
            }
        }
    }
}
