//! `acquire_lease`, `renew_lease` and `release_lease`: the right to write, asked for, prolonged and given
//! back or handed on.

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::core::caller::PrincipalName;
use crate::core::human_duration::rough;
use crate::core::ids::LeaseId;
use crate::core::lease::request::{
    AcquireRequest, HandOver, ReleaseRequest, Released, RenewRequest,
};
use crate::core::policy::PermittedAct;
use crate::surface::argument::lease_id;
use crate::surface::argument::{millis, plain};
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::leased::Leased;
use crate::surface::terminal::writing::{fingerprint, idempotency_key};
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::error::RefusalCause;
use crate::wire::lease::{GrantWire, LeaseEndCause, ReleaseOutcome, ReleasedWire};
use crate::wire::word;

/// How many bytes a reason may have.
const REASON_BYTES_MAX: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AcquireLease {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    /// Or a mounted server
    #[allow(dead_code)] // Read by the gateway, as above.
    surface: Option<String>,
    /// 1000 to 600000 (default 30000); use renews it
    ttl_ms: Option<u64>,
    /// Wait in line for this time (default 0)
    #[schemars(range(max = 600_000))]
    wait_ms: Option<u64>,
    /// What you are about to do, for others to read
    reason: Option<String>,
    /// A lease to take back after a disconnect
    lease_id: Option<String>,
    /// A repeated call has no second effect
    idempotency_key: Option<String>,
}

/// A lease id that was never used before.
pub fn fresh_lease() -> LeaseId {
    LeaseId(Uuid::new_v4())
}

impl Tool for AcquireLease {
    const NAME: &'static str = "acquire_lease";
    const TITLE: &'static str = "Acquire the lease";
    const DESCRIPTION: &'static str = "Asks for the right to write to a session or mounted server; \
        wait_ms queues you first come, first served. Asking again returns the same lease.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Lease);
    const IDEMPOTENT: bool = true;
    const NEEDS_SESSION: bool = false;

    type Result = GrantWire;

    async fn call(self, mut call: Call) -> Result<Answer<GrantWire>, SurfaceError> {
        let target = call.take_leased()?;
        let sessions = call.daemon.sessions.clone();
        let wait = millis("wait_ms", self.wait_ms.unwrap_or(0), 0..=600_000)?;
        let ttl = self.ttl_ms.map(|ttl| millis("ttl_ms", ttl, 1_000..=600_000));
        let reason = self.reason.as_deref().unwrap_or_default();
        plain("reason", reason, REASON_BYTES_MAX)?;
        let presented = target.of.presented(&call, self.lease_id.as_deref())?;
        let of = (target.of.names(), self.ttl_ms, self.wait_ms, presented);
        let key = idempotency_key(self.idempotency_key.as_deref(), fingerprint(&of))?;
        let request = AcquireRequest {
            presented,
            ttl: ttl.transpose()?,
            on_disconnect: call.on_disconnect(),
            reason: self.reason.map(String::into_boxed_str),
            wait_until: (!wait.is_zero()).then(|| sessions.clock().now() + wait),
            fresh: fresh_lease(),
            waiters_max: sessions.waiters_max(&call.standing.caller.tenant),
        };
        let by = (call.standing.caller.clone(), sessions.clock());
        target.of.touched(&call);
        let waiting = call.daemon.departure.waiting();
        let acquiring = target.acquire(by, request, key, call.accepted);
        // Who does not stand in line is answered anyway.
        let grant = match wait.is_zero() {
            true => acquiring.await?,
            false => waiting.unless_told(acquiring).await.ok_or(SurfaceError::DaemonLeaves)??,
        };
        if let Leased::Session(session) = &target.of {
            sessions.remember_lease(grant.lease, session.id());
        }
        let grant = GrantWire::of(target.of.names(), &grant, sessions.clock());
        let text = format!(
            "you hold lease {} of {} for {}; writing renews it",
            grant.lease_id,
            target.of,
            rough(grant.expires_in_ms)
        );
        Ok(Answer { result: grant, text })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RenewLease {
    lease_id: String,
    /// 1000 to 600000
    ttl_ms: Option<u64>,
    /// A repeated call has no second effect
    idempotency_key: Option<String>,
}

impl Tool for RenewLease {
    const NAME: &'static str = "renew_lease";
    const TITLE: &'static str = "Renew the lease";
    const DESCRIPTION: &'static str = "Prolongs your lease; not needed while you write.";
    const ACCESS: ToolAccess = ToolAccess::WriteLease;
    const IDEMPOTENT: bool = true;

    type Result = GrantWire;

    async fn call(self, mut call: Call) -> Result<Answer<GrantWire>, SurfaceError> {
        let target = call.take_leased()?;
        let presented = Some(lease_id(&self.lease_id)?);
        let ttl = self.ttl_ms.map(|ttl| millis("ttl_ms", ttl, 1_000..=600_000)).transpose()?;
        let of = ("renew", presented, self.ttl_ms);
        let key = idempotency_key(self.idempotency_key.as_deref(), fingerprint(&of))?;
        let request = RenewRequest { presented, ttl };
        let sessions = call.daemon.sessions.clone();
        let by = (call.standing.caller.clone(), sessions.clock());
        target.of.touched(&call);
        let grant = target.renew(by, request, key, call.accepted).await?;
        let grant = GrantWire::of(target.of.names(), &grant, sessions.clock());
        let text = format!("lease {} lasts {} more", grant.lease_id, rough(grant.expires_in_ms));
        Ok(Answer { result: grant, text })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReleaseLease {
    lease_id: String,
    /// Who gets it, as shown in `by` (such as claude#p12); unaccepted after 10 s it returns
    hand_to: Option<String>,
    /// A repeated call has no second effect
    idempotency_key: Option<String>,
}

impl Tool for ReleaseLease {
    const NAME: &'static str = "release_lease";
    const TITLE: &'static str = "Release the lease";
    const DESCRIPTION: &'static str = "Gives your lease back so that others can write, or hands it \
        to one of them. Do it as soon as you are done.";
    const ACCESS: ToolAccess = ToolAccess::WriteLease;
    const IDEMPOTENT: bool = true;

    type Result = ReleasedWire;

    async fn call(self, mut call: Call) -> Result<Answer<ReleasedWire>, SurfaceError> {
        let target = call.take_leased()?;
        let presented = Some(lease_id(&self.lease_id)?);
        let hand_to = self.hand_to.as_deref().map(principal).transpose()?;
        let of = ("release", presented, &self.hand_to);
        let key = idempotency_key(self.idempotency_key.as_deref(), fingerprint(&of))?;
        if let Some(to) = &hand_to {
            check_receiver(&call, to)?;
        }
        let hand_to = hand_to.map(|to| HandOver { to, fresh: fresh_lease() });
        let request = ReleaseRequest { presented, hand_to };
        let sessions = call.daemon.sessions.clone();
        let by = (call.standing.caller.clone(), sessions.clock());
        let released = target.release(by, request, key, call.accepted).await?;
        let now = sessions.clock().now();
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
        let (session, surface) = target.of.names();
        let text = match (offered_for_ms, cause) {
            (Some(left), _) => {
                format!("offered; it returns to you if it is not taken up in {}", rough(left))
            }
            (None, Some(cause)) => format!("the lease was gone already: {}", word(&cause)),
            (None, None) => format!("the lease of {} is {}", target.of, word(&outcome)),
        };
        Ok(Answer {
            result: ReleasedWire { session, surface, outcome, offered_for_ms, cause },
            text,
        })
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
    let problem = || {
        let problem =
            format!("{text:?} is not a principal's name; lists show the names, such as claude#p12");
        SurfaceError::argument("hand_to", problem)
    };
    PrincipalName::parse(text).ok_or_else(problem)
}
