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
use crate::surface::error::SurfaceError;
use crate::wire::error::{ErrorDetails, ErrorWire};

/// JSON-RPC's code for invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// The time to wait before asking a server again that is busy or does not run, if nothing else is known.
const RETRY_MS: u64 = 1_000;

pub(super) fn mount(error: &MountError) -> ErrorWire {
    let with_hint = |code, hint: String| ErrorWire { hint, ..ErrorWire::because(code, error) };
    match error {
        MountError::Unavailable { mount, retry_after, .. } => {
            let hint = format!("Try again later; an operator finds more with: termgate mounts log {mount}");
            let wire = with_hint(Code::UpstreamUnavailable, hint);
            wire.retry_after(retry_after.map_or(RETRY_MS, |wait| wait.as_millis() as u64))
        }
        MountError::Changed { mount } => with_hint(
            Code::UpstreamUnavailable,
            format!(
                "An operator looks at the difference with `termgate mounts tools {mount}`, and then runs: \
                 termgate mounts accept {mount}"
            ),
        ),
        MountError::Busy { .. } | MountError::TooManyCalls { .. } => {
            ErrorWire::because(Code::Busy, error).retry_after(RETRY_MS)
        }
        MountError::Unread { .. } => with_hint(
            Code::QuotaExceeded,
            "The call may have taken effect. Read the answers before it, and look before you repeat it."
                .to_owned(),
        )
        .retry_after(RETRY_MS),
        MountError::Restarted { .. } => with_hint(
            Code::UpstreamRestarted,
            "The call may have taken effect, and the server has lost its state. Look before you repeat it."
                .to_owned(),
        ),
        MountError::StateLost { .. } => with_hint(
            Code::UpstreamRestarted,
            "Nothing was done. What you did in it before is gone: begin anew.".to_owned(),
        ),
        MountError::LeaseEnded { .. } => with_hint(
            Code::LeaseLost,
            "The call was cancelled, but may have taken effect. Acquire the lease again, and look before you repeat it."
                .to_owned(),
        ),
        MountError::TimedOut { .. } | MountError::TaskTooLong { .. } => with_hint(
            Code::Timeout,
            "The call was cancelled, but may have taken effect. Look before you repeat it.".to_owned(),
        ),
        MountError::Untold { .. } => with_hint(
            Code::InvalidArgument,
            "Read the resource again when you need it.".to_owned(),
        ),
        MountError::TooManyWatched { .. } => over_quota(error),
        MountError::Refused { code, data, .. } => {
            let is_argument = *code == Some(INVALID_PARAMS);
            let code = if is_argument { Code::InvalidArgument } else { Code::UpstreamError };
            let wire = ErrorWire::because(code, error);
            match data.as_ref().and_then(|data| to_raw_value(data).ok()) {
                Some(data) => {
                    wire.details(ErrorDetails { data: Some(data), ..ErrorDetails::default() })
                }
                None => wire,
            }
        }
        MountError::LinkNeeded { .. } => with_hint(
            Code::UpstreamError,
            "Have your user open the link, and make the call again after that.".to_owned(),
        ),
        MountError::NoInput { .. } | MountError::Malformed { .. } => with_hint(
            Code::UpstreamError,
            "The call may have taken effect. Look before you repeat it.".to_owned(),
        ),
        MountError::TooLong { .. } => with_hint(
            Code::UpstreamError,
            "The call may have taken effect, and its answer was dropped. Ask the server for less at once.".to_owned(),
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

/// Why a caller does not have the lease of a mount.
pub(super) fn lease(mount: &MountName, error: &WriteError) -> ErrorWire {
    let mut wire = write(error);
    if *error == WriteError::Lease(LeaseError::Required) {
        wire.hint = format!("Call acquire_lease with surface `{mount}`, and then this again.");
    }
    let details =
        ErrorDetails { surface: Some(mount.to_string()), ..wire.details.unwrap_or_default() };
    ErrorWire { details: Some(details), ..wire }
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
            ErrorWire::because(Code::InvalidArgument, error).parameter("mount")
        }
        ManageError::NothingChanged(_) => ErrorWire::because(Code::InvalidArgument, error),
        ManageError::OtherTools(mount) => ErrorWire {
            hint: format!("Look at them, and then accept those: termgate mounts accept {mount}"),
            ..ErrorWire::because(Code::InvalidArgument, error).parameter("digest")
        },
        ManageError::NotKept { .. } => ErrorWire::because(Code::StorageError, error),
        ManageError::Stopping(_) => ErrorWire::because(Code::Busy, error).retry_after(RETRY_MS),
    }
}
