//! `release_lease`: gives the lease back, or hands it to somebody by name.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::caller::PrincipalName;
use crate::core::lease::request::{HandOver, ReleaseRequest, Released};
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::acquire_lease::fresh_lease;
use crate::surface::terminal::writing::{fingerprint, idempotency_key, lease_id};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::error::RefusalCause;
use crate::wire::lease::{LeaseEndCause, ReleaseOutcome, ReleasedWire};
use crate::wire::word;

/// The tool.
#[derive(Debug)]
pub struct ReleaseLease;

/// The parameters of `release_lease`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    lease_id: String,
    /// Who gets it, as shown in `by` (such as claude#p12); unaccepted after 10 s it returns
    hand_to: Option<String>,
    /// Repeating a call with it has no second effect
    idempotency_key: Option<String>,
}

impl Tool for ReleaseLease {
    const NAME: &'static str = "release_lease";
    const TITLE: &'static str = "Release the lease";
    const DESCRIPTION: &'static str = "Gives your lease back so that others can write, or hands it \
        to one of them. Do it as soon as you are done.";
    const ACCESS: Access = Access::WriteLease;
    const IDEMPOTENT: bool = true;

    type Parameters = Parameters;
    type Result = ReleasedWire;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<ReleasedWire>, SurfaceError> {
        let target = call.take_target()?;
        let presented = Some(lease_id(&parameters.lease_id)?);
        let hand_to = parameters.hand_to.as_deref().map(principal).transpose()?;
        let of = ("release", presented, &parameters.hand_to);
        let key = idempotency_key(parameters.idempotency_key.as_deref(), fingerprint(&of))?;
        if let Some(to) = &hand_to {
            check_receiver(&call, to)?;
        }
        let hand_to = hand_to.map(|to| HandOver { to, fresh: fresh_lease() });
        let request = ReleaseRequest { presented, hand_to };
        let caller = call.standing.caller.clone();
        let released =
            target.session.release(&target.permit, caller, request, key, call.accepted).await?;
        let now = call.daemon.now();
        let (outcome, offered_for_ms, cause) = match released {
            Released::Freed => (ReleaseOutcome::Freed, None, None),
            Released::HandedOver => (ReleaseOutcome::HandedOver, None, None),
            Released::Offered { until } => {
                (ReleaseOutcome::Offered, Some(now.until(until).as_millis() as u64), None)
            }
            Released::Returned => (ReleaseOutcome::Returned, None, None),
            Released::AlreadyGone(cause) => {
                (ReleaseOutcome::AlreadyGone, None, Some(LeaseEndCause::from(&cause)))
            }
        };
        let session = target.session.id().to_string();
        let text = match (offered_for_ms, cause) {
            (Some(left), _) => format!("offered; it returns to you if not taken up in {left} ms"),
            (None, Some(cause)) => format!("the lease was gone already: {}", word(&cause)),
            (None, None) => format!("the lease of session {session} is {}", word(&outcome)),
        };
        Ok(Answer { result: ReleasedWire { session, outcome, offered_for_ms, cause }, text })
    }
}

/// Makes sure that a lease is handed to somebody else who is connected.
fn check_receiver(call: &Call, to: &PrincipalName) -> Result<(), SurfaceError> {
    let caller = &call.standing.caller;
    let (problem, cause) = if !call.daemon.principals.is_here(to, &caller.tenant) {
        ("no principal of exactly this name is connected", RefusalCause::NotConnected)
    } else if to.principal == caller.principal {
        ("this is your own name", RefusalCause::OwnName)
    } else {
        return Ok(());
    };
    Err(SurfaceError::refused("hand_to", problem, cause))
}

/// Reads a principal's name as lists show it.
fn principal(text: &str) -> Result<PrincipalName, SurfaceError> {
    let problem = "not a principal's name; they are shown as `by`, such as claude#p12";
    PrincipalName::parse(text).ok_or_else(|| SurfaceError::argument("hand_to", problem))
}
