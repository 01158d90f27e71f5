//! The requests of operators to stop or upgrade the daemon.

use rmcp::model::{CustomRequest, CustomResult, ErrorCode};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use serde_json::json;

use crate::core::policy::decide_operate;
use crate::mcp::request_class::{BUSY, STOP_METHOD};
use crate::mcp::request_order::TurnSlot;
use crate::mcp::server::Server;
use crate::mcp::server::attaching::{result, unknown_method};
use crate::mcp::upgrade::{UPGRADE_METHOD, UpgradeError, ask};
use crate::wire::error::ErrorWire;
use crate::wire::status::{Stopping, UnendedSession, Upgrading};

impl Server {
    /// Handles operators' requests about the daemon, and passes all others to [`Server::for_people`].
    pub(super) async fn for_operators(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        if !matches!(method, STOP_METHOD | UPGRADE_METHOD) {
            return self.for_people(request, context).await;
        }
        if decide_operate(&self.standing(&context.meta)).is_err() {
            return Err(unknown_method(method));
        }
        // Other requests need not wait until the sessions have ended or the program was tested.
        drop(context.extensions.get::<TurnSlot>().and_then(TurnSlot::take));
        if method == STOP_METHOD {
            self.shared.stop.cancel();
            let unended = self.shared.gateway.daemon().sessions.ended().await;
            let unended = unended.iter().map(|one| UnendedSession {
                session: one.session.to_string(),
                name: one.name.to_string(),
                what: one.what.clone(),
            });
            return Ok(result(&Stopping { stopping: true, unended: unended.collect() }));
        }
        let upgrade = ask(&self.shared.upgrades).await.map_err(|error| refused(&error))?;
        let pid = std::process::id();
        Ok(result(&Upgrading { from: upgrade.from.to_owned(), to: upgrade.to, pid }))
    }
}

fn refused(error: &UpgradeError) -> ErrorData {
    let wire = ErrorWire::from(error);
    let code = match error {
        UpgradeError::Busy => BUSY,
        UpgradeError::Start { .. }
        | UpgradeError::TooSlow { .. }
        | UpgradeError::Failed { .. }
        | UpgradeError::Stranger { .. } => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, wire.message.clone(), Some(json!(wire)))
}
