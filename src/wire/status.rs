//! The daemon as a whole: its counters, its stop or upgrade, and the results of the tools for operators and of
//! `why`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The resource `termgate://daemon`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub uptime_ms: u64,
    /// The memory of the daemon, where the system reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    pub write: WriteStatus,
    pub sessions: SessionsStatus,
    pub leases: LeasesStatus,
    pub observers: usize,
    pub connections: ConnectionsStatus,
    pub deltas_sent: u64,
    pub frames: FramesStatus,
    pub pty: PtyStatus,
    /// By tool and by outcome: `ok`, `given_up` or an error's code.
    pub calls: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Where writing is on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WriteStatus {
    /// Every switch that is on.
    pub on: Vec<SwitchWire>,
    /// The tenants and session ids that stay off while wider switches are on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionsStatus {
    pub running: usize,
    pub ended: usize,
    pub created_total: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeasesStatus {
    pub held: usize,
    pub waiters: usize,
    pub granted_total: u64,
    /// Calls that were refused because the caller lacked a lease or another right, by code.
    pub denied: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionsStatus {
    pub open: usize,
    pub total: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FramesStatus {
    pub published: u64,
    /// Frames that an observer received together with a later one.
    pub skipped: u64,
}

/// What went through the terminals, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PtyStatus {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The result of `termgate/stop`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stopping {
    pub stopping: bool,
    /// The sessions that did not end.
    pub unended: Vec<UnendedSession>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnendedSession {
    pub session: String,
    pub name: String,
    /// What of it is left.
    pub what: String,
}

/// The result of `termgate/upgrade`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upgrading {
    /// The version that answers.
    pub from: String,
    pub to: String,
    pub pid: u32,
}

/// The result of `termgate/reload`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reloaded {
    /// The keys that changed, and the files beside the configuration.
    pub changed: Vec<String>,
    /// Those of them that change when the daemon restarts.
    pub at_restart: Vec<String>,
    /// The values of a project file that were ignored.
    pub notes: Vec<String>,
}

/// The result of `set_write`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Switched {
    #[serde(flatten)]
    pub write: WriteStatus,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// Null where the command line holds no lease.
    pub lease_id: Option<String>,
}

/// The result of `preempt_lease`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preempted {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
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
