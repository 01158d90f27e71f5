//! MCP: what clients speak, in both eras of the protocol, on whatever door.
//!
//! It turns requests into calls of the gateway and answers back into the protocol's shapes; sockets
//! and pipes are below its notice.

pub mod attach;
pub mod call;
pub mod connection;
pub mod delta_cache;
pub mod envelope;
pub mod error;
pub mod holders;
pub mod instructions;
pub mod listen;
pub mod long;
pub mod news;
pub mod observe;
pub mod outbox;
pub mod prompt;
pub mod resource;
pub mod server;
pub mod status;
pub mod turn;
pub mod upgrade;
