//! `renew_lease`: prolongs a lease without writing.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::lease::request::RenewRequest;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{fingerprint, idempotency_key, lease_id};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::lease::GrantWire;

/// The tool.
#[derive(Debug)]
pub struct RenewLease;

/// The parameters of `renew_lease`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    lease_id: String,
    /// 1000 to 600000
    ttl_ms: Option<u64>,
    /// Repeating a call with it has no second effect
    idempotency_key: Option<String>,
}

impl Tool for RenewLease {
    const NAME: &'static str = "renew_lease";
    const TITLE: &'static str = "Renew the lease";
    const DESCRIPTION: &'static str = "Prolongs your lease; not needed while you write.";
    const ACCESS: Access = Access::WriteLease;
    const IDEMPOTENT: bool = true;

    type Parameters = Parameters;
    type Result = GrantWire;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<GrantWire>, SurfaceError> {
        let target = call.take_target()?;
        let presented = Some(lease_id(&parameters.lease_id)?);
        let ttl =
            parameters.ttl_ms.map(|ttl| millis("ttl_ms", ttl, 1_000..=600_000)).transpose()?;
        let of = ("renew", presented, parameters.ttl_ms);
        let key = idempotency_key(parameters.idempotency_key.as_deref(), fingerprint(&of))?;
        let request = RenewRequest { presented, ttl };
        let caller = call.standing.caller.clone();
        call.touched(&target.session);
        let grant =
            target.session.renew(&target.permit, caller, request, key, call.accepted).await?;
        let grant = GrantWire::of(&target.session, &grant, call.daemon.sessions.clock());
        let text = format!("lease {} lasts {} ms more", grant.lease_id, grant.expires_in_ms);
        Ok(Answer { result: grant, text })
    }
}
