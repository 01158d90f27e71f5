//! Notifies connections at once when their lease is lost, suspended or resumed.
//!
//! Only the older protocol era allows this, as a log message. Clients of the newer era subscribe to the lease instead.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::json;

use crate::core::caller::Kind;
use crate::core::event::LeaseOf;
use crate::core::ids::ConnectionId;
use crate::core::lease::error::EndCause;
use crate::core::lease::view::{LeaseChange, LeaseEvent};
use crate::mcp::connection::Connection;
use crate::mcp::outbox::PushLane;
use crate::wire::lease::{LeaseNews, LeaseNotice};

/// Maximum number of notices waiting for one client, equal to the default session limit. The oldest are dropped.
const NOTICES_MAX: usize = 512;

/// The connections that receive notices.
#[derive(Debug, Default)]
pub struct LeaseNotices {
    clients: Mutex<HashMap<ConnectionId, NoticedClient>>,
}

/// One connection, and the newest notice of each lease with its lane. A newer notice replaces a waiting one.
#[derive(Debug)]
struct NoticedClient {
    connection: Arc<Connection>,
    notices: VecDeque<(LeaseOf, PushLane)>,
}

impl NoticedClient {
    fn tell(&mut self, lease: LeaseOf, line: Bytes) {
        let known = self.notices.iter().position(|(of, _)| *of == lease);
        let over = known.or((self.notices.len() == NOTICES_MAX).then_some(0));
        if let Some((_, lane)) = over.and_then(|at| self.notices.remove(at)) {
            lane.close();
        }
        let lane = self.connection.outbox.lane();
        // Sending must not wait for the client to read.
        drop(self.connection.outbox.push(&lane, None, [line, Bytes::new(), Bytes::new()]));
        self.notices.push_back((lease, lane));
    }
}

impl LeaseNotices {
    /// Starts to notify this connection.
    pub fn add(&self, connection: &Arc<Connection>) {
        let fresh =
            || NoticedClient { connection: Arc::clone(connection), notices: VecDeque::new() };
        self.lock().entry(connection.id).or_insert_with(fresh);
    }

    /// Stops notifying this connection and discards waiting notices.
    pub fn remove(&self, connection: ConnectionId) {
        if let Some(client) = self.lock().remove(&connection) {
            client.notices.iter().for_each(|(_, lane)| lane.close());
        }
    }

    /// Notifies the holder that its lease was lost, suspended or resumed. People see it on their screens instead.
    pub fn tell(&self, lease: &LeaseOf, event: &LeaseEvent) {
        if event.holder.kind == Kind::Human {
            return;
        }
        let (news, cause, by) = match &event.change {
            LeaseChange::Granted
            | LeaseChange::Revived
            | LeaseChange::Renewed
            | LeaseChange::Ended(EndCause::Released) => return,
            LeaseChange::Ended(cause) => (LeaseNews::LeaseLost, Some(cause.into()), cause.by()),
            LeaseChange::Suspended { by } => (LeaseNews::LeaseSuspended, None, Some(by)),
            LeaseChange::Resumed => (LeaseNews::LeaseResumed, None, None),
        };
        let mut clients = self.lock();
        let Some(client) = clients.get_mut(&event.holder.connection) else { return };
        let (session, surface) = match lease {
            LeaseOf::Session(session) => (Some(session.to_string()), None),
            LeaseOf::Mount(mount) => (None, Some(mount.to_string())),
        };
        let data = LeaseNotice {
            event: news,
            session,
            surface,
            epoch: event.epoch.0,
            cause,
            by: by.map(ToString::to_string),
        };
        let message = json!({
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "warning", "logger": "termgate.lease", "data": data},
        });
        client.tell(lease.clone(), Bytes::from(format!("{message}\n")));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, NoticedClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
