//! Upgrades: tests the program that will replace the daemon.
//!
//! The daemon runs the new program first and releases nothing before the test succeeds.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::mcp::upgrade::{Upgrade, UpgradeAsked, UpgradeError};
use crate::transport::notify::VARIABLES;

/// The time limit for each of the two test runs.
const TRIAL_MAX: Duration = Duration::from_secs(5);
/// The maximum output that is read, in bytes.
const SAID_MAX: u64 = 16 * 1024;

/// The program of a daemon, as it was started.
#[derive(Clone, Debug)]
pub struct DaemonProgram {
    /// Its file, which may contain another version now.
    pub path: PathBuf,
    /// Its arguments; the first is its own name.
    pub words: Vec<OsString>,
    /// The arguments that make it check the configuration of this daemon.
    pub check: Vec<OsString>,
}

/// The result of a test run.
struct Trial {
    status: ExitStatus,
    output: String,
    complaint: String,
}

impl DaemonProgram {
    /// Answers upgrade requests until one is granted.
    pub(super) async fn replaceable(&self, mut upgrades: mpsc::Receiver<UpgradeAsked>) {
        while let Some(asked) = upgrades.recv().await {
            match self.trial().await {
                Ok(version) => {
                    tracing::info!(version, path = %self.path.display(), "upgrading");
                    let from = env!("CARGO_PKG_VERSION");
                    // The client may have gone; the upgrade still happens.
                    let _ = asked.send(Ok(Upgrade { from, to: version }));
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "no upgrade");
                    let _ = asked.send(Err(error));
                }
            }
        }
        std::future::pending().await
    }

    /// Tests the program at the path and returns its version.
    async fn trial(&self) -> Result<String, UpgradeError> {
        let version = self.run(&["--version".into()]).await?;
        let said = version.trim();
        let number = said.strip_prefix("termgate ").filter(|number| !number.contains(['\n', ' ']));
        let number = number.ok_or_else(|| UpgradeError::Stranger {
            path: self.path.clone(),
            said: said.lines().next().unwrap_or_default().chars().take(80).collect(),
        })?;
        self.run(&self.check).await?;
        Ok(number.to_owned())
    }

    /// Runs the program with these arguments and returns its output.
    async fn run(&self, words: &[OsString]) -> Result<String, UpgradeError> {
        let shown = words.iter().map(|word| word.to_string_lossy().into_owned());
        let command = [self.path.display().to_string()].into_iter().chain(shown);
        let command = command.collect::<Vec<_>>().join(" ");
        match timeout(TRIAL_MAX, self.attempt(words)).await {
            Err(_) => Err(UpgradeError::TooSlow { command, after: TRIAL_MAX }),
            Ok(Err(source)) => Err(UpgradeError::Start { path: self.path.clone(), source }),
            Ok(Ok(trial)) if trial.status.success() => Ok(trial.output),
            Ok(Ok(Trial { status, complaint, .. })) => {
                let complaint = complaint.trim();
                let why = if complaint.is_empty() { status.to_string() } else { complaint.into() };
                Err(UpgradeError::Failed { command, why })
            }
        }
    }

    async fn attempt(&self, words: &[OsString]) -> io::Result<Trial> {
        let mut command = Command::new(&self.path);
        command.args(words).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in VARIABLES {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (output, complaint, status) =
            tokio::join!(beginning(stdout), beginning(stderr), child.wait());
        Ok(Trial { status: status?, output, complaint })
    }
}

/// Reads the start of a stream, up to [`SAID_MAX`].
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut said = Vec::new();
    if let Some(stream) = stream {
        // Output before a read error counts.
        let _ = stream.take(SAID_MAX).read_to_end(&mut said).await;
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[cfg(test)]
mod tests;
