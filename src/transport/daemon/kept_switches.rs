//! The write switches beyond the daemon: a file that the next one reads, should this one be killed.
//!
//! It opens nothing that the file does not say is open, and knows no session. What was switched off by
//! hand must not be on because of a crash, so whatever cannot be understood or written means off.

mod format;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_blocking;

use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::switches::{Scope, Switches};
use crate::surface::call::Daemon;
use crate::surface::switchboard::{Keeping, Switchboard};
use crate::transport::daemon::kept_switches::format::FormatError;
use crate::transport::unix::lock::DaemonLock;
use crate::transport::unix::private::{self, PrivateError};

/// How large the file may be: more than a switch for each of 10,000 sessions takes.
const FILE_MAX: u64 = 1 << 20;
/// What the kernel calls this run of the machine; moments count from its beginning.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Where the write switches of a daemon that starts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the configuration.
    Configured,
    /// From an operator, in a daemon that was killed.
    Kept,
    /// An operator may have switched them in a daemon that was killed, and nobody knows how; all are
    /// off.
    Unknown,
}

/// The file, which is there only after somebody has switched, and until a daemon ends in order.
#[derive(Debug)]
pub(super) struct KeptSwitches {
    path: PathBuf,
    /// The right to change the file; without it, another daemon has what it says.
    lock: DaemonLock,
    /// Whether nothing is kept any more. Locked while the file is changed.
    over: Mutex<bool>,
}

/// Why it is not known what was kept.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    File(#[from] PrivateError),
    #[error("the machine does not say when it was booted: {0}")]
    Boot(io::Error),
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl KeptSwitches {
    /// The switches that are kept at a path in the lock's directory.
    pub(super) fn at(path: PathBuf, lock: &DaemonLock) -> Arc<Self> {
        Arc::new(Self { path, lock: lock.clone(), over: Mutex::new(false) })
    }

    /// Sets the board to what was kept, and says whether it now is as configured.
    ///
    /// With `read_only` everything is off, also for the daemon after this one.
    pub(super) fn resume(&self, board: &Switchboard, read_only: bool, now: Moment) -> Origin {
        if read_only {
            if self.path.symlink_metadata().is_ok() {
                self.keep(&[]);
            }
            board.resume(Switches::default());
            return Origin::Configured;
        }
        match self.read() {
            Ok(None) => Origin::Configured,
            Ok(Some(on)) => {
                tracing::info!("writing is as it was switched before the restart");
                board.resume(on.into_iter().filter(|(_, window)| window.is_open(now)).collect());
                Origin::Kept
            }
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(
                    %path, %error,
                    "nobody knows how writing was switched before the restart, so it is off; to \
                     switch it on, run: termgate allow-write on"
                );
                board.resume(Switches::default());
                Origin::Unknown
            }
        }
    }

    /// Keeps every change from now on; the future does so until it is dropped.
    pub(super) fn keep_changes(
        self: Arc<Self>,
        daemon: Arc<Daemon>,
    ) -> impl Future<Output = ()> + Send {
        let mut changes = daemon.switchboard.changes();
        daemon.switchboard.on_kept(*changes.borrow(), Keeping::Kept);
        async move {
            while changes.changed().await.is_ok() {
                // The number first, so that the switches are no older than it says.
                let change = *changes.borrow_and_update();
                let on = daemon.switchboard.open(daemon.now());
                let kept = Arc::clone(&self);
                let keeping = spawn_blocking(move || kept.keep(&on)).await;
                let keeping = keeping.unwrap_or_else(|error| {
                    tracing::error!(%error, "the write switches are not kept");
                    Keeping::Failed
                });
                daemon.switchboard.on_kept(change, keeping);
            }
        }
    }

    /// Removes the file for good, so that the next daemon starts as it is configured.
    pub(super) fn discard(&self) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        *over = true;
        if self.is_ours() {
            self.remove();
        }
    }

    /// Whether no other daemon keeps its own switches here by now.
    fn is_ours(&self) -> bool {
        let counts = self.lock.counts();
        if !counts {
            let path = self.path.display();
            tracing::warn!(%path, "the lock is gone, and with it the right to the kept switches");
        }
        counts
    }

    /// Reads which switches were on; none where none were kept since the machine was booted.
    fn read(&self) -> Result<Option<Vec<(Scope, WriteWindow)>>, KeptError> {
        let text = match private::read(&self.path, FILE_MAX) {
            Err(PrivateError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read?,
        };
        let on = format::read(&text, &boot_id().map_err(KeptError::Boot)?)?;
        if on.is_none() {
            self.remove();
        }
        Ok(on)
    }

    /// Keeps these switches. Where that fails, everything will be off for the next daemon.
    fn keep(&self, on: &[(Scope, WriteWindow)]) -> Keeping {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if *over {
            return Keeping::Kept;
        }
        if !self.is_ours() {
            return Keeping::Failed;
        }
        let path = self.path.display();
        let Err(error) = write(&self.path, on) else { return Keeping::Kept };
        tracing::warn!(
            %path, %error,
            "the write switches cannot be kept: should this daemon be killed, writing will be off \
             until somebody switches it on"
        );
        if let Err(error) = private::empty(&self.path) {
            tracing::error!(
                %path, %error,
                "should this daemon be killed, writing will not be as it is now; mend the file's \
                 directory and run termgate allow-write again"
            );
        }
        Keeping::Failed
    }

    fn remove(&self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.path.display(), %error, "the kept switches stay");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn write(path: &Path, on: &[(Scope, WriteWindow)]) -> io::Result<()> {
    private::replace(path, &format::text(on, &boot_id()?))
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

#[cfg(test)]
mod tests;
