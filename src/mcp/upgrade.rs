//! `termgate/upgrade`: an operator has the daemon go on as the program that is on disk by now.
//!
//! It must not know how that is done: whoever runs the daemon tries the program and answers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// The request, on the operators' door alone.
pub const UPGRADE_METHOD: &str = "termgate/upgrade";

/// An upgrade that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The version of this daemon.
    pub from: &'static str,
    /// What the program on disk says of itself.
    pub to: String,
}

/// Why the daemon goes on as it is.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error("{} cannot be started: {source}", path.display())]
    Start { path: PathBuf, source: io::Error },
    #[error("`{command}` did not end within {} s", after.as_secs())]
    TooSlow { command: String, after: Duration },
    #[error("`{command}` failed: {why}")]
    Failed { command: String, why: String },
    #[error("{} is not termgate: it calls itself {said:?}", path.display())]
    Stranger { path: PathBuf, said: String },
    #[error("an upgrade is under way already, or the daemon ends")]
    Busy,
}

/// Where the answer to one request goes.
pub type UpgradeAsked = oneshot::Sender<Result<Upgrade, UpgradeError>>;

/// Asks for an upgrade.
///
/// # Errors
/// Why there is none.
pub async fn ask(upgrades: &mpsc::Sender<UpgradeAsked>) -> Result<Upgrade, UpgradeError> {
    let (asked, answer) = oneshot::channel();
    upgrades.try_send(asked).map_err(|_| UpgradeError::Busy)?;
    answer.await.unwrap_or(Err(UpgradeError::Busy))
}
