//! The parts of a connection that request handlers use, independent of its transport.
//!
//! Each request carries it as `Arc<Connection>`.

use std::fmt;

use tokio_util::sync::CancellationToken;

use crate::core::ids::ConnectionId;
use crate::mcp::client_requests::ClientRequests;
use crate::mcp::outbox::{Outbox, UnsentLimits};
use crate::session::request_order::Turnstile;

/// Whether the client may still send requests; checked for each message.
struct RightCheck(Box<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for RightCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RightCheck")
    }
}

#[derive(Debug)]
pub struct Connection {
    /// The connection's number, never reused.
    pub id: ConnectionId,
    /// The messages that wait to be sent.
    pub outbox: Outbox,
    /// Cancelled when no request can follow: at the end of input or after a hang-up, even while nothing is read.
    pub ended: CancellationToken,
    /// Cancelled when the client has hung up. Cancelling it disconnects the client.
    pub gone: CancellationToken,
    /// The order in which its requests take effect.
    pub turnstile: Turnstile,
    /// What the daemon asked the client.
    pub asked: ClientRequests,
    /// `None` when the client's right lasts as long as the connection.
    right: Option<RightCheck>,
}

impl Connection {
    pub fn new(id: ConnectionId, unsent: UnsentLimits) -> Self {
        let gone = CancellationToken::new();
        Self {
            id,
            outbox: Outbox::new(unsent),
            ended: gone.child_token(),
            gone,
            turnstile: Turnstile::default(),
            asked: ClientRequests::default(),
            right: None,
        }
    }

    /// Adds a right that may end before the connection does.
    pub fn with_right(self, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { right: Some(RightCheck(Box::new(holds))), ..self }
    }

    /// Whether the client may still send requests.
    pub fn may_speak(&self) -> bool {
        self.right.as_ref().is_none_or(|RightCheck(holds)| holds())
    }
}
