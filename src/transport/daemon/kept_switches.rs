//! A copy of the write switches in a file, for the next daemon after a crash.
//!
//! A crash must not turn writing on that an operator turned off. So anything unreadable means off. Unknown members of
//! the file are errors and none has a default, so that a part is never taken for the whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::switches::{Scope, Switches};
use crate::surface::call::Daemon;
use crate::surface::switchboard::{Keeping, Switchboard};
use crate::transport::unix::lock::DaemonLock;
use crate::transport::unix::private::{self, PrivateError};

/// The maximum file size, enough for a switch of each of 10,000 sessions.
const FILE_MAX: u64 = 1 << 20;
/// The version of the file. In the first, nothing was protected.
const VERSION: u32 = 2;
/// The kernel's id of the current boot. Times in the file count from boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The source of the write switches of a starting daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOrigin {
    Configured,
    /// Set by an operator in an earlier daemon that was killed.
    Kept,
    /// The file of a killed daemon cannot be used; all switches are off.
    Unknown,
}

/// The file. It exists from the first switch by an operator until the daemon exits normally.
#[derive(Debug)]
pub(super) struct KeptSwitches {
    path: PathBuf,
    /// The right to change the file. Without it, another daemon owns the file.
    lock: DaemonLock,
    /// Whether the file was discarded. Locked while the file changes.
    over: Mutex<bool>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    File(#[from] PrivateError),
    #[error("the machine does not say when it was booted: {0}")]
    Boot(io::Error),
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has version {0}, and {VERSION} is known")]
    Version(u32),
    #[error("there is no {kind} `{name}`")]
    Name { kind: &'static str, name: String },
}

impl KeptSwitches {
    /// Creates the store for a path in the lock's directory.
    pub(super) fn at(path: PathBuf, lock: &DaemonLock) -> Arc<Self> {
        Arc::new(Self { path, lock: lock.clone(), over: Mutex::new(false) })
    }

    /// Restores the switches from the file and returns their source.
    ///
    /// With `read_only` everything is off, also for the next daemon.
    pub(super) fn resume(&self, board: &Switchboard, read_only: bool, now: Moment) -> SwitchOrigin {
        if read_only {
            if self.path.symlink_metadata().is_ok() {
                self.keep(&[]);
            }
            board.resume(Switches::default());
            return SwitchOrigin::Configured;
        }
        match self.read() {
            Ok(None) => SwitchOrigin::Configured,
            Ok(Some(on)) => {
                tracing::info!("writing is as it was switched before the restart");
                let mut switches: Switches = on.into_iter().collect();
                switches.on_time(now);
                board.resume(switches);
                SwitchOrigin::Kept
            }
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(
                    %path, %error,
                    "the write switches from before the restart cannot be read, so writing is off; to \
                     switch it on, run: termgate allow-write on"
                );
                board.resume(Switches::default());
                SwitchOrigin::Unknown
            }
        }
    }

    /// Returns a future that writes every change to the file until it is dropped.
    pub(super) fn keep_changes(
        self: Arc<Self>,
        daemon: Arc<Daemon>,
    ) -> impl Future<Output = ()> + Send {
        let mut changes = daemon.switchboard.changes();
        daemon.switchboard.on_kept(*changes.borrow(), Keeping::Kept);
        async move {
            while changes.changed().await.is_ok() {
                // Read the number first, so that the switches are at least as new as it says.
                let change = *changes.borrow_and_update();
                let settings = daemon.switchboard.settings(daemon.now());
                let kept = Arc::clone(&self);
                let keeping = spawn_blocking(move || kept.keep(&settings)).await;
                let keeping = keeping.unwrap_or_else(|error| {
                    tracing::error!(%error, "the write switches cannot be stored");
                    Keeping::Failed
                });
                daemon.switchboard.on_kept(change, keeping);
            }
        }
    }

    /// Removes the file, so that the next daemon starts with its configuration.
    pub(super) fn discard(&self) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        *over = true;
        if self.is_ours() {
            self.remove();
        }
    }

    /// Whether the lock is valid; otherwise another daemon may own the file.
    fn is_ours(&self) -> bool {
        let counts = self.lock.counts();
        if !counts {
            let path = self.path.display();
            tracing::warn!(%path, "the lock is gone, so the stored write switches are no longer ours to change");
        }
        counts
    }

    /// Reads the switches. `None` when nothing was written since boot.
    fn read(&self) -> Result<Option<Vec<(Scope, WriteWindow)>>, KeptError> {
        let text = match private::read(&self.path, FILE_MAX) {
            Err(PrivateError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read?,
        };
        let on = parse(&text, &boot_id().map_err(KeptError::Boot)?)?;
        if on.is_none() {
            self.remove();
        }
        Ok(on)
    }

    /// Writes these switches. On failure, everything is off for the next daemon.
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
            "the write switches cannot be stored: if this daemon is killed, writing will be off \
             until it is switched on again"
        );
        if let Err(error) = private::empty(&self.path) {
            tracing::error!(
                %path, %error,
                "if this daemon is killed, the next one will use older write switches; repair the file's \
                 directory and run termgate allow-write again"
            );
        }
        Keeping::Failed
    }

    fn remove(&self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.path.display(), %error, "the stored write switches cannot be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn write(path: &Path, on: &[(Scope, WriteWindow)]) -> io::Result<()> {
    private::replace(path, &text(on, &boot_id()?))
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// The members of every version.
#[derive(Deserialize)]
struct SwitchFileHead {
    v: u32,
    boot: String,
}

/// The file: how the switches are set, in this order. One that it does not list leaves the decision to wider ones.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchFile {
    v: u32,
    boot: String,
    on: Vec<SwitchEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    scope: ScopeWire,
    window: WindowWire,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeWire {
    Everything,
    Tenant(String),
    Session(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WindowWire {
    Closed,
    Open,
    /// Milliseconds since boot.
    UntilMs(u64),
}

/// Writes the text for these switches and this boot.
fn text(on: &[(Scope, WriteWindow)], boot: &str) -> String {
    let on = on.iter().map(SwitchEntry::of).collect();
    let wire = SwitchFile { v: VERSION, boot: boot.to_owned(), on };
    serde_json::to_string(&wire).expect("texts, numbers and lists of them are always JSON") + "\n"
}

/// Reads the switches. `None` for a text of another boot, whose times and sessions are void.
fn parse(text: &str, boot: &str) -> Result<Option<Vec<(Scope, WriteWindow)>>, KeptError> {
    let head: SwitchFileHead = serde_json::from_str(text)?;
    if head.boot != boot {
        return Ok(None);
    }
    if !(1..=VERSION).contains(&head.v) {
        return Err(KeptError::Version(head.v));
    }
    let SwitchFile { on, .. } = serde_json::from_str(text)?;
    on.into_iter().map(SwitchEntry::switch).collect::<Result<_, _>>().map(Some)
}

impl SwitchEntry {
    fn of((scope, window): &(Scope, WriteWindow)) -> Self {
        let scope = match scope {
            Scope::Everything => ScopeWire::Everything,
            Scope::Tenant(tenant) => ScopeWire::Tenant(tenant.to_string()),
            Scope::Session(session) => ScopeWire::Session(session.to_string()),
        };
        let window = match window {
            WriteWindow::Closed => WindowWire::Closed,
            WriteWindow::Open => WindowWire::Open,
            WriteWindow::Until(end) => {
                let since_boot = end.since_boot().as_millis();
                WindowWire::UntilMs(u64::try_from(since_boot).unwrap_or(u64::MAX))
            }
        };
        Self { scope, window }
    }

    fn switch(self) -> Result<(Scope, WriteWindow), KeptError> {
        let scope = match self.scope {
            ScopeWire::Everything => Scope::Everything,
            ScopeWire::Tenant(name) => match name.parse() {
                Ok(tenant) => Scope::Tenant(tenant),
                Err(_) => return Err(KeptError::Name { kind: "tenant", name }),
            },
            ScopeWire::Session(name) => match name.parse() {
                Ok(session) => Scope::Session(session),
                Err(_) => return Err(KeptError::Name { kind: "session", name }),
            },
        };
        let window = match self.window {
            WindowWire::Closed => WriteWindow::Closed,
            WindowWire::Open => WriteWindow::Open,
            WindowWire::UntilMs(end) => {
                WriteWindow::Until(Moment::from_boot(Duration::from_millis(end)))
            }
        };
        Ok((scope, window))
    }
}

/// Ends write switches at their time, which may change meanwhile, and the leases of mounts where writing is off.
pub(super) async fn close_switches(daemon: Arc<Daemon>) {
    let clock = daemon.sessions.clock();
    let mut changes = daemon.switchboard.changes();
    loop {
        let deadline = daemon.switchboard.deadline();
        let due = async {
            match deadline {
                Some(deadline) => clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => daemon.switchboard.on_time(&daemon.sessions, clock.now()),
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let (board, now) = (&daemon.switchboard, clock.now());
                daemon.mount_leases.on_writing_off(|tenant| {
                    !board.window_of(tenant, None).is_open(now)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
