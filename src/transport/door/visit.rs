//! What is to be told when a connection ends.

use std::sync::{Arc, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::core::caller::Caller;
use crate::core::ids::PrincipalId;
use crate::mcp::connection::Connection;
use crate::mcp::shared::ServerShared;
use crate::surface::call::Touched;

/// Reports the end of a connection to the sessions and mounts that it used.
pub(super) struct Visit {
    pub(super) shared: Arc<ServerShared>,
    pub(super) caller: Caller,
    pub(super) touched: Touched,
    pub(super) hanging_up: CancellationToken,
    pub(super) connection: Arc<Connection>,
}

impl Visit {
    /// Reports to the sessions used since the last report.
    ///
    /// When the daemon disconnects the client, its leases stay for the next daemon.
    pub(super) fn tell_sessions(&self) {
        if self.hanging_up.is_cancelled() {
            return;
        }
        let daemon = self.shared.gateway.daemon();
        daemon.mount_leases.on_connection_closed(self.caller.connection);
        if !self.connection.may_speak() {
            daemon.mount_leases.end_right_of(self.caller.principal);
        }
        let touched =
            std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner));
        for session in touched.into_iter().filter_map(|id| daemon.sessions.get(id)) {
            session.connection_closed(self.caller.connection);
            if !self.connection.may_speak() {
                // A call may have acquired a lease while the end of the token was reported.
                session.end_right_of(self.caller.principal);
            }
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell_sessions();
        let (daemon, principal) = (self.shared.gateway.daemon(), self.caller.principal);
        // The owner of a token may come back.
        if daemon.principals.leave(principal) && matches!(principal, PrincipalId::Connection(_)) {
            daemon.judge.leave(principal);
            daemon.mounts.leave(principal);
        }
    }
}
