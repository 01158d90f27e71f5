//! Mounts as operators see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::lease::LeaseWire;
use crate::wire::untrusted::Untrusted;

/// The result of `manage_mounts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountList {
    /// By name; one mount with its tools and its log, if it was named.
    pub mounts: Vec<MountWire>,
    /// Names that several tools would have, so that none has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<ContestedName>,
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountWire {
    #[serde(default)]
    #[schemars(skip)]
    pub untrusted: Untrusted,
    pub name: String,
    /// Its program, or its address without what may be secret.
    pub server: String,
    /// `trusted`, `untrusted` or `sandbox`.
    pub trust: String,
    /// `shared`, `leased`, `per_client` or `pool:N`.
    #[serde(default)]
    pub mode: String,
    /// How many servers it runs.
    #[serde(default)]
    pub servers: usize,
    /// Who may call what writes, where that needs a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseWire>,
    /// `stopped`, `starting` or `running`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often this daemon has started its server, or connected to it.
    pub generation: u64,
    /// How many tools were accepted; none if its tools are not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<usize>,
    /// Whether a server of it lists other tools than those, and so takes no calls.
    pub changed: bool,
    /// Of the tools that the server lists now, if they are others and the mount was named: what accept takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why it, or a server of it, does not run, if one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether it is started again by itself, and not only with a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retries: bool,
    /// Tools that the server lists and that nobody can use, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Tools whose `outputSchema` clients are not told, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs_left_out: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<MountToolWire>,
    /// What the server declared that it can, when it was last greeted: `tools`, `resources` and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// How the server says that it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The last lines of its standard error, and of its log messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// An entry of the resource `termgate://mounts`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeenMount {
    pub name: String,
    /// `shared`, `leased`, `per_client` or `pool:N`.
    pub mode: String,
    /// `stopped`, `starting` or `running`.
    pub status: String,
    /// `trusted`, `untrusted` or `sandbox`: unless it is trusted, its texts are data.
    #[serde(default)]
    pub trust: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseWire>,
    /// How the server says that it is used, once it was greeted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The names that clients call them by.
    pub tools: Vec<String>,
}

/// A tool of a mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountToolWire {
    /// The name that clients call it by.
    pub name: String,
    /// The server's own name for it.
    pub tool: String,
    /// How what the server lists now differs: `added`, `removed`, or the members that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The accepted description, and the one that the server lists now if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_description: Option<String>,
}

/// A name that several tools would have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContestedName {
    pub name: String,
    /// As `MOUNT/TOOL`.
    pub tools: Vec<String>,
}
