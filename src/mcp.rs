//! MCP: what clients speak, in both eras of the protocol, on whatever door.
//!
//! It turns requests into calls of the gateway and answers back into the protocol's shapes; sockets
//! and pipes are below its notice.

pub mod attach;
pub mod call;
pub mod connection;
pub mod delta_cache;
pub mod error;
pub mod instructions;
pub mod lease_notices;
pub mod listen;
pub mod notifications;
pub mod observe;
pub mod outbox;
pub mod prompt;
pub mod request_class;
pub mod request_order;
pub mod resource;
pub mod server;
pub mod status;
pub mod upgrade;
