//! MCP, in both eras of the protocol, independent of the transport.
//!
//! It turns requests into gateway calls and their results into protocol messages.

pub mod answer_memory;
pub mod asking;
pub mod attach;
pub mod call;
pub mod call_result;
pub mod client_requests;
pub mod connection;
pub mod delta_cache;
pub mod elicitation;
pub mod era;
pub mod error;
pub mod fan_out;
pub mod hint;
pub mod lease_notices;
pub mod listen;
pub mod notifications;
pub mod observe;
pub mod outbox;
pub mod prompt;
pub mod request_class;
pub mod resource;
pub mod server;
pub mod settings;
pub mod shared;
pub mod subscription_quota;
pub mod upgrade;
