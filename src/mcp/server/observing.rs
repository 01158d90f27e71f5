//! The request that opens an observation.

use std::sync::Arc;

use rmcp::model::{CustomResult, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::core::ids::Watermark;
use crate::mcp::observe::{Ended, Observation};
use crate::mcp::request_order::TurnSlot;
use crate::mcp::server::{Server, protocol_error};
use crate::surface::argument::read;
use crate::surface::call::find_session;
use crate::surface::error::SurfaceError;
use crate::wire::attach::ObserveRequest;

impl Server {
    pub(super) async fn observe(
        &self,
        params: Option<Value>,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let invalid = |message: String| ErrorData::invalid_params(message, None);
        let params = match params {
            Some(Value::Object(params)) => params,
            None => JsonObject::new(),
            Some(other) => return Err(invalid(format!("{other:.60} is not an object"))),
        };
        let parameters: ObserveRequest = read(params).map_err(|error| protocol_error(&error))?;
        let pause = parameters.pause().map_err(invalid)?;
        let standing = self.standing(&context.meta);
        self.shared.gateway.admit(&standing).map_err(|error| protocol_error(&error))?;
        let daemon = self.shared.gateway.daemon();
        let given = parameters.session.as_deref();
        let session = find_session(&daemon.sessions, &standing, given)
            .map_err(|error| protocol_error(&error))?;
        let _place = self
            .shared
            .subscriptions
            .enter(&standing)
            .ok_or_else(|| protocol_error(&SurfaceError::Quota("subscriptions")))?;
        // Other requests need not wait for an observation.
        drop(context.extensions.get::<TurnSlot>().and_then(TurnSlot::take));
        let observation = Observation {
            session,
            connection: Arc::clone(&self.connection),
            share: daemon.turns.share_of(&standing.caller.tenant),
            request: context.id.clone(),
            lane: self.lane(&context.extensions),
            tagged: Self::is_modern(&context),
            view: parameters.view(),
            since: parameters.since.map(Watermark),
            pause,
            until_exit: false,
        };
        let session = observation.session.id().to_string();
        let clock = daemon.sessions.clock();
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            () = self.connection.ended.cancelled() => Ok(CustomResult::new(json!({}))),
            ended = observation.run(&self.shared.deltas, &self.shared.observed, clock) => {
                Ok(match ended {
                    Ended::Removed | Ended::Exited => CustomResult::new(json!({"session": session})),
                    Ended::Dropped => CustomResult::new(json!({})),
                })
            }
        }
    }
}
