//! What the client of a call is told while it runs.

use std::sync::Arc;

use rmcp::model::ProgressToken;
use serde_json::Value;

use crate::core::mount::MountTrust;
use crate::mcp::connection::Connection;
use crate::mcp::notifications::NoticeLane;
use crate::mount::handle::CallNews;
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::log::LogMessage;
use crate::mount::servers::Mount;
use crate::surface::tool::untrusted::visible_members;

/// The lane of what is told during a call; closed when the call ends.
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

    /// Tells what a mounted server tells: how far it has come under the client's token, and log messages under the name of
    /// the mount.
    pub(super) async fn relay(&self, mount: &Mount, token: Option<&ProgressToken>, news: CallNews) {
        let is_trusted = mount.settings().trust == MountTrust::Trusted;
        let shown = |told| if is_trusted { told } else { visible_members(told) };
        match (news, token) {
            (CallNews::Progress(members), Some(token)) => {
                let mut told = shown(members);
                told.insert("progressToken", ExactJson::of(token));
                self.0.send_text("notifications/progress", &told).await;
            }
            // Nobody wants to be told.
            (CallNews::Progress(_), None) => {}
            (CallNews::Logged(LogMessage { level, logger, data }), _) => {
                let logger = logger.map(|it| format!("/{it}")).unwrap_or_default();
                let mut told = ExactObject::default();
                told.insert("level", ExactJson::of(&level));
                told.insert("logger", ExactJson::Text(format!("{}{logger}", mount.name())));
                told.insert("data", data);
                self.0.send_text("notifications/message", &shown(told)).await;
            }
        }
    }
}

impl Drop for CallLane {
    fn drop(&mut self) {
        self.0.lane.close();
    }
}
