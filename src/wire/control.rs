//! The results of the tools for operators, and of `why`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of `set_write`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Switched {
    /// Every switch that is on.
    pub on: Vec<SwitchWire>,
    /// Whether the configuration has writing on.
    pub configured: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A write switch that is on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SwitchWire {
    /// `everything`, a tenant or a session id.
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes_in_ms: Option<u64>,
}

/// The result of `find_lease`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FoundLease {
    pub session: String,
    /// Null where the command line holds no lease.
    pub lease_id: Option<String>,
}

/// The result of `preempt_lease`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preempted {
    pub session: String,
    /// Whether there was a lease.
    pub ended: bool,
}

/// The result of `why`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    pub code: String,
    pub meaning: String,
    pub advice: String,
}
