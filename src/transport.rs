//! Transports: how bytes get in and out, and which principal is at the other end.
//!
//! All transports serve the same handler. The socket decides which clients may connect, and as which principal.

pub mod authentication;
pub mod bridge;
pub mod client;
pub mod connection;
pub mod daemon;
pub mod door;
pub mod framing;
pub mod idle_shutdown;
pub mod limits;
pub mod line_memory;
pub mod membership;
pub mod notify;
pub mod refusal;
pub mod shell_scripts;
pub mod signals;
pub mod stdio;
pub mod tokens;
pub mod unix;

#[cfg(test)]
mod tests;
