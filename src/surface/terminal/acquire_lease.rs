//! `acquire_lease`: asks for the right to write, waiting in line if need be.

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::core::ids::LeaseId;
use crate::core::lease::request::AcquireRequest;
use crate::core::policy::PermittedAct;
use crate::surface::argument::{millis, plain};
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{fingerprint, idempotency_key, lease_id};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::lease::GrantWire;

/// How many bytes a reason may have.
const REASON_BYTES_MAX: usize = 200;

/// The tool.
#[derive(Debug)]
pub struct AcquireLease;

/// The parameters of `acquire_lease`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    /// 1000 to 600000 (default 30000); use renews it
    ttl_ms: Option<u64>,
    /// Wait in line so long (default 0)
    #[schemars(range(max = 600_000))]
    wait_ms: Option<u64>,
    /// What you are about to do, for others to read
    reason: Option<String>,
    /// A lease to take back after a disconnect
    lease_id: Option<String>,
    /// Repeating a call with it has no second effect
    idempotency_key: Option<String>,
}

/// A lease id that was never used before.
pub fn fresh_lease() -> LeaseId {
    LeaseId(Uuid::new_v4())
}

impl Tool for AcquireLease {
    const NAME: &'static str = "acquire_lease";
    const TITLE: &'static str = "Acquire the lease";
    const DESCRIPTION: &'static str = "Asks for the right to write to a session; wait_ms queues you \
        first come, first served. Asking again returns the same lease.";
    const ACCESS: Access = Access::WriteSession(PermittedAct::Lease);
    const IDEMPOTENT: bool = true;

    type Parameters = Parameters;
    type Result = GrantWire;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<GrantWire>, SurfaceError> {
        let target = call.take_target()?;
        let sessions = call.daemon.sessions.clone();
        let wait = millis("wait_ms", parameters.wait_ms.unwrap_or(0), 0..=600_000)?;
        let ttl = parameters.ttl_ms.map(|ttl| millis("ttl_ms", ttl, 1_000..=600_000));
        let reason = parameters.reason.as_deref().unwrap_or_default();
        plain("reason", reason, REASON_BYTES_MAX)?;
        let presented = parameters.lease_id.as_deref().map(lease_id).transpose()?;
        let of = (target.session.id(), parameters.ttl_ms, parameters.wait_ms, presented);
        let key = idempotency_key(parameters.idempotency_key.as_deref(), fingerprint(&of))?;
        let request = AcquireRequest {
            presented,
            ttl: ttl.transpose()?,
            on_disconnect: call.on_disconnect(),
            reason: parameters.reason.map(String::into_boxed_str),
            wait_until: (!wait.is_zero()).then(|| sessions.clock().now() + wait),
            fresh: fresh_lease(),
        };
        let caller = call.standing.caller.clone();
        call.touched(&target.session);
        let waiting = call.daemon.departure.waiting();
        let acquiring = target.session.acquire(&target.permit, caller, request, key, call.accepted);
        // Who does not stand in line is answered anyway.
        let grant = match wait.is_zero() {
            true => acquiring.await?,
            false => waiting.unless_told(acquiring).await.ok_or(SurfaceError::DaemonLeaves)??,
        };
        sessions.remember_lease(grant.lease, target.session.id());
        let grant = GrantWire::of(&target.session, &grant, sessions.clock());
        let text = format!(
            "you hold lease {} of session {} for {} ms; writing renews it",
            grant.lease_id, grant.session, grant.expires_in_ms
        );
        Ok(Answer { result: grant, text })
    }
}
