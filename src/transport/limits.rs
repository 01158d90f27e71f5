//! What one connection may ask of the daemon before it is read from less, or closed.
//!
//! It must not know sockets or requests: numbers only, so that they can be read in one place.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Longest line a client may send, in bytes, its end not counted.
pub const LINE_MAX: usize = 1024 * 1024;

/// Braces, brackets, commas and colons a message may have; each costs far more once it is parsed.
pub const TOKENS_MAX: usize = 20_000;

/// Levels of objects and lists in a message; the parser refuses the next one.
pub const DEPTH_MAX: usize = 127;

/// Part of a line that a connection may hold on its own account, in bytes.
pub const LINE_FREE: usize = 64 * 1024;

/// What all connections together may hold beyond [`LINE_FREE`] each, in bytes.
pub const PARSING_MAX: usize = 4 * 1024 * 1024;

/// Limits of one connection; clones share the memory for parsing.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest line, in bytes, its end not counted.
    pub line_max: usize,
    /// Time to the first message.
    pub first_message: Duration,
    /// Time from the first byte of a message to its last.
    pub inside_message: Duration,
    /// Short requests in flight that stop reading.
    pub short_max: usize,
    /// Long requests in flight; further ones are answered `busy`.
    pub long_max: usize,
    /// Time for requests to finish after the end of input.
    pub winding_up: Duration,
    /// Time for the client to read what is left when the service has ended.
    pub closing: Duration,
    /// Memory for long lines, in permits of one KiB, shared by all connections.
    pub parsing: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_max: LINE_MAX,
            first_message: Duration::from_secs(5),
            inside_message: Duration::from_secs(10),
            short_max: 64,
            long_max: 256,
            winding_up: Duration::from_secs(60),
            closing: Duration::from_secs(5),
            parsing: Arc::new(Semaphore::new(PARSING_MAX / 1024)),
        }
    }
}
