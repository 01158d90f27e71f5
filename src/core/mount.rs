//! Mounts: other MCP servers whose tools clients call through the daemon.

pub mod expansion;
pub mod naming;
pub mod restarts;
pub mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::core::mount::server::MountedServer;
use crate::core::policy::rules::patterns::Patterns;

/// The most mounts of a daemon.
pub const MOUNTS_MAX: usize = 32;

/// The most servers of one mount.
pub const SERVERS_MAX: usize = 16;

/// How long a server may take to start where its mount does not say.
pub const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest name of a mount, in bytes.
pub const NAME_MAX: usize = 16;

/// The name of a mount: 1 to 16 of `a-z`, `0-9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountName(Arc<str>);

/// A text that cannot name a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a mount has 1 to {NAME_MAX} of a-z, 0-9 and -")]
pub struct NotAMountName;

impl MountName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MountName {
    type Err = NotAMountName;

    fn from_str(text: &str) -> Result<Self, NotAMountName> {
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(fine);
        if fits { Ok(Self(Arc::from(text))) } else { Err(NotAMountName) }
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far the operator trusts a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountTrust {
    /// Its texts are relayed unchanged, and its tools are what they say they are.
    Trusted,
    /// Hidden characters in its texts are written out, and each of its tools may write.
    #[default]
    Untrusted,
    /// Untrusted, and its process runs in a sandbox.
    Sandboxed,
}

impl MountTrust {
    pub const ALL: [Self; 3] = [Self::Trusted, Self::Untrusted, Self::Sandboxed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Sandboxed => "sandbox",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// Who uses a server together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountMode {
    /// All clients use one server at the same time.
    #[default]
    Shared,
    /// All clients use one server, and who writes needs its lease.
    Leased,
    /// Each client has a server of its own.
    PerClient,
    /// All clients use so many servers, whichever has the least to do.
    Pool(usize),
}

impl MountMode {
    /// The words for all modes.
    pub const WORDS: [&str; 4] = ["shared", "leased", "per_client", "pool:N with N from 2 to 16"];

    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "shared" => Self::Shared,
            "leased" => Self::Leased,
            "per_client" => Self::PerClient,
            _ => {
                let size = text.strip_prefix("pool:")?.parse().ok()?;
                (2..=SERVERS_MAX).contains(&size).then_some(Self::Pool(size))?
            }
        })
    }
}

impl fmt::Display for MountMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("shared"),
            Self::Leased => f.write_str("leased"),
            Self::PerClient => f.write_str("per_client"),
            Self::Pool(size) => write!(f, "pool:{size}"),
        }
    }
}

/// A mount as the configuration has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountSettings {
    pub server: MountedServer,
    pub trust: MountTrust,
    pub mode: MountMode,
    /// How long it runs without a call; zero sets no limit.
    pub idle_stop: Duration,
    /// How long it may take to start, until it has listed its tools.
    pub initialize_timeout: Duration,
    /// How long one call may take.
    pub call_timeout: Duration,
    /// The server's own names of the tools that exist; all without.
    pub tools: Option<Arc<Patterns>>,
    /// The server's own names of the tools that only read, whatever it says of them; without, a trusted server says so.
    pub reads: Option<Arc<Patterns>>,
}

/// All mounts of the configuration.
pub type MountTable = BTreeMap<MountName, MountSettings>;
