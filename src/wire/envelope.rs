//! The envelope that programs around a model may want: how a call went, how long it took, who
//! answered.
//!
//! Over MCP it travels beside the result, where models do not pay for it; the command line prints
//! it.

use serde::{Deserialize, Serialize};

/// The key under which it travels in `_meta`.
pub const KEY: &str = "dev.termgate/envelope";

/// What every answer says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub elapsed_ms: u64,
    /// The version of termgate.
    pub version: String,
    /// The wall clock's time, in milliseconds since the Unix epoch.
    pub now: u64,
    /// The protocol revision the answer was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_version: Option<String>,
}
