//! How shims are started and where their sockets are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::core::ids::SessionId;
use crate::shim::wire::to_shim::Unread;

/// The shim directory, and whether this daemon still owns it.
///
/// A shim serves the daemon that attached last. A daemon that was stopped while another took over must not
/// attach again, because it would take sessions from the other.
#[derive(Clone)]
pub struct Shims {
    /// It must exist and belong to this user only.
    pub directory: PathBuf,
    ours: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Shims {
    /// A directory that no other daemon uses.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::claimed(directory, || true)
    }

    /// A directory that this daemon owns while `ours` returns true.
    pub fn claimed(
        directory: impl Into<PathBuf>,
        ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { directory: directory.into(), ours: Arc::new(ours) }
    }

    /// Whether this daemon still owns the directory.
    pub fn are_ours(&self) -> bool {
        (self.ours)()
    }
}

impl fmt::Debug for Shims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shims").field(&self.directory).finish_non_exhaustive()
    }
}

/// The shim directory and the program that runs shims.
#[derive(Clone, Debug)]
pub struct Holding {
    pub shims: Shims,
    /// The program that becomes a shim; [`OWN_PROGRAM`] is this one.
    pub program: PathBuf,
}

#[derive(Clone, Debug)]
pub struct HoldOptions {
    pub shims: Shims,
    /// The program that becomes the shim.
    pub program: PathBuf,
    /// A multiple of 4096, from 64 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// What to do with output that does not fit while no daemon is connected.
    pub unread: Unread,
    /// How long the program may run without a daemon; `None` sets no limit.
    pub orphan_ttl: Option<Duration>,
}

/// The running program, even if its file on disk was replaced.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The path of a shim's socket.
pub fn socket_of(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}
