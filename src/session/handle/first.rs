//! What is asked of a session before anybody else knows it.

use tokio::sync::oneshot;

use crate::core::caller::Caller;
use crate::core::lease::request::{AcquireRequest, Grant};
use crate::session::command::{Accepted, Asked, Command, Reply};
use crate::session::handle::Session;

impl Session {
    /// Asks for the lease before all others, as long as somebody waits for the reply. To be called
    /// before the session is listed.
    pub(in crate::session) fn ask_first(
        &self,
        caller: Caller,
        request: AcquireRequest,
        reply: Reply<Grant>,
    ) {
        let (accepted, (seat, _)) = (Accepted::nothing(), oneshot::channel());
        let connection = caller.connection;
        let asked = Asked::Acquire(caller, request, None, seat, reply);
        // Nothing is in the line yet, so that there is room.
        let _ = self.0.commands.try_send(Box::new(Command { connection, accepted, asked }));
    }
}
