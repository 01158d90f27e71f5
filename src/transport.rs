//! Transports: how bytes get in and out, and who is at the other end.
//!
//! All of them serve the same handler; a door decides who may come in and as whom.

pub mod authentication;
pub mod bridge;
pub mod client;
pub mod connection;
pub mod daemon;
pub mod door;
pub mod framing;
pub mod hangup;
pub mod idle_shutdown;
pub mod limits;
pub mod line_memory;
pub mod notify;
pub mod shell_scripts;
pub mod signals;
pub mod stdio;
pub mod supervised;
pub mod tokens;
pub mod unix;
