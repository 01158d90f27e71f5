//! The connections of those who may hold a lease, to tell them at once when theirs is gone or waits.
//!
//! The older era has a notification a server may send unasked: a log message. In the newer one a
//! server speaks only when asked to, so a holder there subscribes to the lease or watches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::json;

use crate::core::caller::Kind;
use crate::core::ids::{ConnectionId, SessionId};
use crate::core::lease::error::EndCause;
use crate::core::lease::event::{LeaseChange, LeaseEvent};
use crate::mcp::connection::Connection;
use crate::mcp::outbox::PushLane;

/// Those who can be told.
#[derive(Debug, Default)]
pub struct Holders {
    lanes: Mutex<HashMap<ConnectionId, (Arc<Connection>, PushLane)>>,
}

impl Holders {
    /// Tells this connection from now on.
    pub fn add(&self, connection: &Arc<Connection>) {
        let lane = connection.outbox.lane();
        self.lock().insert(connection.id, (Arc::clone(connection), lane));
    }

    /// Tells it no more.
    pub fn remove(&self, connection: ConnectionId) {
        self.lock().remove(&connection);
    }

    /// Tells the holder of a lease that it is gone, waits for a person, or is back; who did it and
    /// why. People see it on their own screens.
    pub fn tell(&self, session: SessionId, event: &LeaseEvent) {
        if event.holder.kind == Kind::Human {
            return;
        }
        let (word, cause, by) = match &event.change {
            LeaseChange::Granted
            | LeaseChange::Revived
            | LeaseChange::Renewed
            | LeaseChange::Ended(EndCause::Released) => return,
            LeaseChange::Ended(cause) => ("lease_lost", Some(cause.as_str()), cause.by()),
            LeaseChange::Suspended { by } => ("lease_suspended", None, Some(by)),
            LeaseChange::Resumed => ("lease_resumed", None, None),
        };
        let lanes = self.lock();
        let Some((connection, lane)) = lanes.get(&event.holder.connection) else { return };
        let mut data = json!({
            "event": word,
            "session": session.to_string(),
            "epoch": event.epoch.0,
        });
        if let Some(cause) = cause {
            data["cause"] = json!(cause);
        }
        if let Some(by) = by {
            data["by"] = json!(by.to_string());
        }
        let message = json!({
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "warning", "logger": "termgate.lease", "data": data},
        });
        let line = Bytes::from(format!("{message}\n"));
        // Nobody waits for a client to read this; the outbox bounds what may wait.
        drop(connection.outbox.push(lane, None, [line, Bytes::new(), Bytes::new()]));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, (Arc<Connection>, PushLane)>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
