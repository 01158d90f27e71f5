//! What a client and the mounted servers that have asked it tell each other after the questions.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::json;
use tokio::task::JoinSet;

use crate::mcp::connection::Connection;
use crate::mcp::notifications::NoticeLane;
use crate::mount::asking::{LINK_ID, LinkFollowed, RootsHearer};
use crate::mount::registry::MountedTool;

/// The later news of one connection. There are as many as running servers expect.
#[derive(Debug, Default)]
pub(super) struct AfterQuestions {
    waiting: Mutex<JoinSet<()>>,
    /// The servers that have asked for the client's roots, each with the tool that it did so for.
    roots: Mutex<Vec<(Weak<RootsHearer>, MountedTool)>>,
}

impl AfterQuestions {
    /// Tells the client when the link was followed that it knows by this id.
    pub(super) fn expect_link(
        &self,
        connection: &Arc<Connection>,
        id: String,
        followed: LinkFollowed,
    ) {
        let lane = connection.outbox.lane();
        let lane = NoticeLane { connection: Arc::clone(connection), lane, subscription: None };
        self.spawn(async move {
            if followed.await.is_ok() {
                lane.send("notifications/elicitation/complete", json!({LINK_ID: id})).await;
            }
        });
    }

    /// Runs a task until the connection is over.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.try_join_next().is_some() {}
        waiting.spawn(task);
    }

    /// A server has asked for the client's roots.
    pub(super) fn on_roots_asked(&self, server: Weak<RootsHearer>, tool: MountedTool) {
        let mut servers = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|(it, _)| it.strong_count() > 0 && !it.ptr_eq(&server));
        servers.push((server, tool));
    }

    /// The servers that hear that the client's roots have changed.
    pub(super) fn hearers(&self) -> Vec<(Arc<RootsHearer>, MountedTool)> {
        let servers = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().filter_map(|(it, tool)| Some((it.upgrade()?, tool.clone()))).collect()
    }
}
