//! What one connection may ask of the daemon before it is read from less, or closed.
//!
//! It must not know sockets or requests: numbers only, so that they can be read in one place. Here
//! those of the configuration become what connections obey.

use std::time::Duration;

use crate::config::ConnectionConfig;
use crate::mcp::outbox::UnsentLimits;
use crate::transport::line_memory::{ReadingRoom, Share};

/// Longest line a client may send, in bytes, its end not counted.
pub const LINE_MAX: usize = 1024 * 1024;

/// Levels of objects and lists in a message; the parser refuses the next one.
pub const DEPTH_MAX: usize = 127;

/// Part of a line that a connection may hold on its own account, in bytes.
pub const LINE_FREE: usize = 64 * 1024;

/// Longest line that is read where it comes in, in bytes; others are read aside.
pub const LINE_SHORT: usize = 16 * 1024;

/// Long requests of one connection of a program inside a session.
const INSIDE_LONG_MAX: usize = 16;

/// Limits of one connection; clones share the memory for long lines.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest line, in bytes, its end not counted.
    pub line_max: usize,
    /// Braces, brackets, commas and colons of a message; each costs far more once it is parsed.
    pub tokens_max: usize,
    /// Bytes that are still to be sent.
    pub unsent: UnsentLimits,
    /// Time to the first message.
    pub first_message: Duration,
    /// Time from the first byte of a message to its last.
    pub inside_message: Duration,
    /// Short requests in flight that stop reading.
    pub short_max: usize,
    /// Long requests in flight; further ones are answered `busy`.
    pub long_max: usize,
    /// Time for short requests to finish after the end of input.
    pub winding_up: Duration,
    /// Time for the client to read what is left when the service has ended.
    pub closing: Duration,
    /// Memory for long lines, of all connections of its user.
    pub incoming: Share,
    /// Where the long lines of all connections are read.
    pub parsing: ReadingRoom,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_max: LINE_MAX,
            tokens_max: 20_000,
            unsent: UnsentLimits::default(),
            first_message: Duration::from_secs(5),
            inside_message: Duration::from_secs(10),
            short_max: 64,
            long_max: 256,
            winding_up: Duration::from_secs(2),
            closing: Duration::from_secs(5),
            incoming: Share::of_bytes(16 * 1024 * 1024),
            parsing: ReadingRoom::of_bytes(4 * 1024 * 1024),
        }
    }
}

impl Limits {
    /// The same for a program inside a session, which has nothing long to say and little to wait for.
    #[must_use]
    pub fn inside(self) -> Self {
        let (line_max, long_max) = (LINE_SHORT, INSIDE_LONG_MAX);
        Self {
            line_max: self.line_max.min(line_max),
            long_max: self.long_max.min(long_max),
            ..self
        }
    }

    /// The same at a door for observers, where nothing is long that can be said: a line needs no memory that
    /// others share.
    #[must_use]
    pub fn observing(self) -> Self {
        Self { line_max: self.line_max.min(LINE_FREE), ..self }
    }

    /// The limits that the configuration asks for, for a connection of the daemon's own user.
    /// `parsing` is what all connections share, which is as large as it was made.
    pub fn of(config: &ConnectionConfig, parsing: ReadingRoom) -> Self {
        Self {
            line_max: config.message_bytes,
            tokens_max: config.message_tokens,
            unsent: UnsentLimits {
                replies_max: config.unsent_reply_bytes,
                pushes_max: config.unsent_push_bytes,
            },
            first_message: config.first_message,
            inside_message: config.inside_message,
            short_max: config.short_requests,
            long_max: config.long_requests,
            incoming: Share::of_bytes(config.incoming.own),
            parsing,
            ..Self::default()
        }
    }
}
