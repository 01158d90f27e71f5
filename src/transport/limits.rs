//! The limits of one connection, above which the daemon reads less or closes it.

use std::time::Duration;

use crate::config::ConnectionConfig;
use crate::mcp::outbox::UnsentLimits;
use crate::transport::line_memory::{LineMemory, ReadingRoom};

/// The longest line a client may send, in bytes, without its end.
pub const LINE_MAX: usize = 1024 * 1024;

/// The longest line from a daemon, in bytes. A full frame is longer than what a daemon accepts.
pub const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// No time limit.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The maximum nesting of objects and lists, equal to the parser's own limit.
pub const DEPTH_MAX: usize = 127;

/// The part of a line that uses no shared memory, in bytes.
pub const LINE_FREE: usize = 64 * 1024;

/// The longest line that is parsed at once, in bytes. Longer lines are parsed on other threads.
pub const LINE_SHORT: usize = 16 * 1024;

/// The maximum of long requests per connection of a program inside a session.
const INSIDE_LONG_MAX: usize = 16;

/// The limits of one connection. Clones share the memory for long lines.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest line, in bytes, without its end.
    pub line_max: usize,
    /// Braces, brackets, commas and colons of a message. Each needs much more memory once parsed.
    pub tokens_max: usize,
    /// Bytes that wait to be sent.
    pub unsent: UnsentLimits,
    /// Time to the first message.
    pub first_message: Duration,
    /// Time from the first byte of a message to its last.
    pub inside_message: Duration,
    /// The number of short requests in flight at which reading pauses.
    pub short_max: usize,
    /// Long requests in flight; further ones are answered `busy`.
    pub long_max: usize,
    /// Time for short requests to finish after the end of input.
    pub winding_up: Duration,
    /// Time for the client to read the last answers.
    pub closing: Duration,
    /// Memory for long lines, shared by all connections of the user.
    pub incoming: LineMemory,
    /// Where the long lines of all connections are parsed.
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
            incoming: LineMemory::of_bytes(16 * 1024 * 1024),
            parsing: ReadingRoom::of_bytes(4 * 1024 * 1024),
        }
    }
}

impl Limits {
    /// The limits for a program inside a session, with short lines and few long requests.
    #[must_use]
    pub fn inside(self) -> Self {
        let (line_max, long_max) = (LINE_SHORT, INSIDE_LONG_MAX);
        Self {
            line_max: self.line_max.min(line_max),
            long_max: self.long_max.min(long_max),
            ..self
        }
    }

    /// The limits for a client that is only told why there is no room for it. Its lines use no shared memory.
    #[must_use]
    pub fn refusing(self) -> Self {
        Self { incoming: LineMemory::of_bytes(0), ..self.inside() }
    }

    /// The limits of a client, which may wait for a line without limit.
    pub fn patient(line_max: usize) -> Self {
        Self {
            line_max,
            first_message: FOREVER,
            inside_message: FOREVER,
            incoming: LineMemory::of_bytes(2 * line_max),
            ..Self::default()
        }
    }

    /// The limits at an observer socket, where a line uses no shared memory.
    #[must_use]
    pub fn observing(self) -> Self {
        Self { line_max: self.line_max.min(LINE_FREE), ..self }
    }

    /// The configured limits for a connection of the daemon's own user.
    ///
    /// `parsing` is shared by all connections and keeps its size.
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
            incoming: LineMemory::of_bytes(config.incoming.own),
            parsing,
            ..Self::default()
        }
    }
}
