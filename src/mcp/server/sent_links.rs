//! The links that the person in front of a client was sent to, on behalf of mounted servers.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::task::JoinSet;

use crate::mcp::connection::Connection;
use crate::mcp::notifications::NoticeLane;
use crate::mount::asking::{LINK_ID, LinkFollowed};

/// The links of one connection that its client is told of once they were followed. There are as many as servers keep.
#[derive(Debug, Default)]
pub(super) struct ClientLinks(Mutex<JoinSet<()>>);

impl ClientLinks {
    /// Tells the client when the link was followed that it knows by this id.
    pub(super) fn tell(&self, connection: &Arc<Connection>, id: String, followed: LinkFollowed) {
        let lane = connection.outbox.lane();
        let lane = NoticeLane { connection: Arc::clone(connection), lane, subscription: None };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.try_join_next().is_some() {}
        waiting.spawn(async move {
            if followed.await.is_ok() {
                lane.send("notifications/elicitation/complete", json!({LINK_ID: id})).await;
            }
        });
    }
}
