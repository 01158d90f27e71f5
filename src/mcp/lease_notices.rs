//! The connections of those who may hold a lease, to tell them at once when theirs is gone or waits.
//!
//! The older era has a notification a server may send unasked: a log message. In the newer one a
//! server speaks only when asked to, so a holder there subscribes to the lease or watches.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::json;

use crate::core::caller::Kind;
use crate::core::ids::{ConnectionId, SessionId};
use crate::core::lease::error::EndCause;
use crate::core::lease::event::{LeaseChange, LeaseEvent};
use crate::mcp::connection::Connection;
use crate::mcp::outbox::PushLane;
use crate::wire::lease::{LeaseNews, LeaseNotice};

/// How many notices may wait for one client: as many as it is told sessions, by default. The oldest give way.
const NOTICES_MAX: usize = 512;

/// Those who can be told.
#[derive(Debug, Default)]
pub struct LeaseNotices {
    clients: Mutex<HashMap<ConnectionId, Client>>,
}

/// One of them, and the newest notice of each session, each with a lane of its own: one that still waits
/// gives way to the next.
#[derive(Debug)]
struct Client {
    connection: Arc<Connection>,
    notices: VecDeque<(SessionId, PushLane)>,
}

impl Client {
    fn tell(&mut self, session: SessionId, line: Bytes) {
        let known = self.notices.iter().position(|(of, _)| *of == session);
        let over = known.or((self.notices.len() == NOTICES_MAX).then_some(0));
        if let Some((_, lane)) = over.and_then(|at| self.notices.remove(at)) {
            lane.close();
        }
        let lane = self.connection.outbox.lane();
        // Nobody waits for a client to read this.
        drop(self.connection.outbox.push(&lane, None, [line, Bytes::new(), Bytes::new()]));
        self.notices.push_back((session, lane));
    }
}

impl LeaseNotices {
    /// Tells this connection from now on.
    pub fn add(&self, connection: &Arc<Connection>) {
        let fresh = || Client { connection: Arc::clone(connection), notices: VecDeque::new() };
        self.lock().entry(connection.id).or_insert_with(fresh);
    }

    /// Tells it no more, nor what still waits.
    pub fn remove(&self, connection: ConnectionId) {
        if let Some(client) = self.lock().remove(&connection) {
            client.notices.iter().for_each(|(_, lane)| lane.close());
        }
    }

    /// Tells the holder of a lease that it is gone, waits for a person, or is back; who did it and
    /// why. People see it on their own screens.
    pub fn tell(&self, session: SessionId, event: &LeaseEvent) {
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
        let data = LeaseNotice {
            event: news,
            session: session.to_string(),
            epoch: event.epoch.0,
            cause,
            by: by.map(ToString::to_string),
        };
        let message = json!({
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "warning", "logger": "termgate.lease", "data": data},
        });
        client.tell(session, Bytes::from(format!("{message}\n")));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
