//! Mounts at work: one task per MCP server, which owns its process and its protocol.
//!
//! It does not know who calls, nor whether they may.

pub mod asking;
pub mod declared;
pub mod definitions;
pub mod epochs;
pub mod eras;
pub mod error;
pub mod fence;
pub mod handle;
pub mod inputs;
pub mod json;
pub mod link;
pub mod log;
pub mod long_message;
pub mod mirrored;
pub mod offered;
pub mod output_schema;
pub mod pinned;
pub mod protocol;
pub mod registry;
mod server;
pub mod servers;
pub mod shares;
pub mod tasks;
pub mod watches;
