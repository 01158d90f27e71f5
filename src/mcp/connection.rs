//! What a handler may know about the connection it serves.
//!
//! It must not know what kind of door the client came through: sockets, pipes and tests look alike
//! from here. It travels with every request as `Arc<Connection>`.

use std::fmt;

use tokio_util::sync::CancellationToken;

use crate::core::ids::ConnectionId;
use crate::mcp::outbox::{Outbox, UnsentLimits};
use crate::mcp::request_order::Turnstile;

/// Whether a client may still speak, to be asked at each of its messages.
struct Right(Box<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Right")
    }
}

/// One connection of one client, as far as handlers are concerned.
#[derive(Debug)]
pub struct Connection {
    /// Its name, never reused.
    pub id: ConnectionId,
    /// What is still to be sent to the client.
    pub outbox: Outbox,
    /// Cancelled when no request will follow any more: at the end of input or when the client has
    /// hung up, also while the connection is not being read.
    pub ended: CancellationToken,
    /// Cancelled when the client has hung up: nobody will read an answer. Cancelling it hangs up on
    /// the client.
    pub gone: CancellationToken,
    /// The order in which its requests take effect.
    pub turnstile: Turnstile,
    /// None where the client came in by what does not end before the connection.
    right: Option<Right>,
}

impl Connection {
    /// A connection on which nothing has happened yet.
    pub fn new(id: ConnectionId, unsent: UnsentLimits) -> Self {
        let gone = CancellationToken::new();
        Self {
            id,
            outbox: Outbox::new(unsent),
            ended: gone.child_token(),
            gone,
            turnstile: Turnstile::default(),
            right: None,
        }
    }

    /// The same for a client whose right to speak may end before it goes.
    pub fn with_right(self, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { right: Some(Right(Box::new(holds))), ..self }
    }

    /// Whether the client may still speak.
    pub fn may_speak(&self) -> bool {
        self.right.as_ref().is_none_or(|Right(holds)| holds())
    }
}
