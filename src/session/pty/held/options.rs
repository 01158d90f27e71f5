//! How terminals are held, and where their holders are found.
//!
//! It speaks with nobody.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::ids::SessionId;
use crate::holder::wire::to_holder::Unread;

/// How a terminal is held.
#[derive(Clone, Debug)]
pub struct HoldOptions {
    /// Where holders listen; it must exist and be nobody else's.
    pub directory: PathBuf,
    /// The program that becomes the holder.
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

/// Where the holder of a session listens.
pub fn socket_of(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}
