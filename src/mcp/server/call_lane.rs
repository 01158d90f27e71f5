//! How far a call has come, for its client.

use std::sync::Arc;

use rmcp::model::ProgressToken;
use serde_json::{Value, json};

use crate::core::mount::MountTrust;
use crate::mcp::connection::Connection;
use crate::mcp::notifications::NoticeLane;
use crate::mount::handle::CallProgress;
use crate::surface::tool::untrusted::visible;

/// The lane of a call's progress; closed when the call ends.
pub(super) struct CallLane(NoticeLane);

impl CallLane {
    pub(super) fn of(connection: &Arc<Connection>) -> Self {
        let (connection, lane) = (Arc::clone(connection), connection.outbox.lane());
        Self(NoticeLane { connection, lane, subscription: None })
    }

    /// A client that does not read its progress still receives the result.
    pub(super) async fn tell(&self, progress: Value) {
        self.0.send("notifications/progress", progress).await;
    }

    /// Tells what a mounted server tells, under the client's token.
    pub(super) async fn relay(
        &self,
        token: &ProgressToken,
        trust: MountTrust,
        progress: CallProgress,
    ) {
        let members = Value::Object(progress.members);
        let mut told = if trust == MountTrust::Trusted { members } else { visible(members) };
        told["progressToken"] = json!(token);
        self.tell(told).await;
    }
}

impl Drop for CallLane {
    fn drop(&mut self) {
        self.0.lane.close();
    }
}
