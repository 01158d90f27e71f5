//! What became of a write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::delta::DeltaWire;
use crate::wire::lease::LeaseLeft;
use crate::wire::wait::Waited;

/// The result of every write.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    pub session: String,
    pub written: usize,
    pub queued_bytes: usize,
    pub discarded: usize,
    pub watermark: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseLeft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The same call was made before, and this one had no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Waited>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<DeltaWire>,
}
