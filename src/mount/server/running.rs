//! A running server, and what it has to answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::mount::handle::{CallProgress, ServerCall};
use crate::mount::link::ServerLink;
use crate::mount::protocol::notification;
use crate::mount::server::greeting::Listing;

/// A running server with the calls that it has to answer.
pub(super) struct RunningServer {
    pub(super) link: ServerLink,
    pub(super) pending: BTreeMap<u64, PendingCall>,
    pub(super) listing: Option<Listing>,
    /// When it was last asked something.
    pub(super) used: Instant,
}

pub(super) struct PendingCall {
    pub(super) call: ServerCall,
    pub(super) until: Instant,
}

impl RunningServer {
    pub(super) fn cancel(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "given up"});
        // A server that does not read is not told.
        let _ = self.link.send(notification("notifications/cancelled", &params));
    }

    /// Hands a server's progress to the caller, unless it is behind.
    pub(super) fn on_progress(&self, params: Option<Value>) {
        let Some(Value::Object(mut members)) = params else { return };
        let id = members.remove("progressToken").and_then(|token| token.as_u64());
        let progress = id
            .and_then(|id| self.pending.get(&id))
            .and_then(|pending| pending.call.progress.as_ref());
        if let Some(progress) = progress {
            let _ = progress.try_send(CallProgress { members });
        }
    }
}
