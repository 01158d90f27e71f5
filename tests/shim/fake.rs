//! Somebody who listens where a shim should, and says whatever a test wants said.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::eventfd::EventFd;
use termgate::core::ids::SessionId;
use termgate::session::pty::ProcessId;
use termgate::session::pty::held::shims::socket_of;
use termgate::shim::readiness::{self, READABLE};
use termgate::shim::ring::HEADER_BYTES;
use termgate::shim::{memory, socket};

use crate::harness::waiting::SAFETY;
use crate::shim::harness::find;

/// The socket of a session in a directory of its own, at which the test listens.
#[derive(Debug)]
pub(crate) struct Fake {
    directory: tempfile::TempDir,
    session: SessionId,
    listener: Arc<OwnedFd>,
}

impl Fake {
    pub(crate) fn at(session: SessionId) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = socket::listen_at(&socket_of(directory.path(), session)).unwrap();
        Self { directory, session, listener: Arc::new(listener) }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        socket_of(self.directory(), self.session)
    }

    /// Where daemons come.
    pub(crate) fn listener(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.listener)
    }

    /// Waits for a daemon.
    pub(crate) fn accept(listener: &OwnedFd) -> OwnedFd {
        let [came] = readiness::wait([(Some(listener.as_fd()), READABLE)], Some(SAFETY)).unwrap();
        assert!(came != 0, "nobody came");
        socket::accept(listener.as_fd()).unwrap()
    }
}

/// A file in memory with this content.
pub(crate) fn memory(bytes: &[u8]) -> File {
    let file = memory::create(c"test", 0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

/// A ring with these marks and the output that its data begins with, and a bell.
pub(crate) fn ring(output: &[u8], (head, tail): (u64, u64), bytes: u64) -> [File; 2] {
    let made = || -> io::Result<File> {
        let ring = memory::create(c"test-ring", HEADER_BYTES as u64 + bytes)?;
        ring.write_all_at(&head.to_le_bytes(), 64)?;
        ring.write_all_at(&tail.to_le_bytes(), 72)?;
        ring.write_all_at(output, HEADER_BYTES as u64)?;
        memory::seal_size(&ring)?;
        Ok(ring)
    };
    let bell = EventFd::from_value(1).unwrap();
    [made().unwrap(), File::from(OwnedFd::from(bell))]
}

/// A memory for input in which there is nothing, and its bell.
pub(crate) fn input() -> [File; 2] {
    let memory = memory::create(c"test-input", 36_864).unwrap();
    memory::seal_size(&memory).unwrap();
    let bell = EventFd::from_value(0).unwrap();
    [memory, File::from(OwnedFd::from(bell))]
}

/// What *attached* carries before segments and snapshots: such a ring and such a memory.
pub(crate) fn memories(output: &[u8], marks: (u64, u64), bytes: u64) -> Vec<File> {
    ring(output, marks, bytes).into_iter().chain(input()).collect()
}

/// A word of a memory, at an offset that the document tells.
pub(crate) fn word(memory: &File, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, at).unwrap();
    u64::from_le_bytes(bytes)
}

/// The number of this process and when it started, as *attached* says them.
pub(crate) fn own_process() -> [u8; 12] {
    let own = find(ProcessId(i32::try_from(std::process::id()).unwrap()));
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&own.pid.0.to_le_bytes());
    bytes[4..].copy_from_slice(&own.started.to_le_bytes());
    bytes
}
