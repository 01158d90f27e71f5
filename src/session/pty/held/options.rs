//! How terminals are held, and where their shims are found.
//!
//! It speaks with nobody.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::core::ids::SessionId;
use crate::shim::wire::to_shim::Unread;

/// Where shims listen, and whether this daemon is the one that they listen to.
///
/// A shim serves whoever came last. A daemon that stood still while another took its place must not
/// come again, since it would take sessions away from that one.
#[derive(Clone)]
pub struct Shims {
    /// It must exist and be nobody else's.
    pub directory: PathBuf,
    ours: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Shims {
    /// Those in a directory that no other daemon comes to.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::claimed(directory, || true)
    }

    /// Those in a directory to which this daemon may come as long as `ours` says so.
    pub fn claimed(
        directory: impl Into<PathBuf>,
        ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { directory: directory.into(), ours: Arc::new(ours) }
    }

    /// Whether no other daemon has taken the place of this one.
    pub fn are_ours(&self) -> bool {
        (self.ours)()
    }
}

impl fmt::Debug for Shims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shims").field(&self.directory).finish_non_exhaustive()
    }
}

/// Where and by what program terminals are held, so that they outlive the daemon.
#[derive(Clone, Debug)]
pub struct Holding {
    pub shims: Shims,
    /// The program that becomes a shim when it is told to; [`OWN_PROGRAM`] is this one.
    pub program: PathBuf,
}

/// How a terminal is held.
#[derive(Clone, Debug)]
pub struct HoldOptions {
    pub shims: Shims,
    /// The program that becomes the shim.
    pub program: PathBuf,
    /// A multiple of 4096, from 64 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// What becomes of output for which there is no room while no daemon is there.
    pub unread: Unread,
    /// How long no daemon may be there before the program is ended; for ever when it is none.
    pub orphan_ttl: Option<Duration>,
}

/// The program that runs now, also when it was replaced on disk.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where the shim of a session listens.
pub fn socket_of(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}
