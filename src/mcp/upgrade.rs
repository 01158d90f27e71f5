//! `termgate/upgrade`: an operator replaces the running daemon with the program now on disk.
//!
//! The daemon's main task tests the program and answers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use tokio::sync::{mpsc, oneshot};

use crate::core::code::Code;
use crate::mcp::request_class::BUSY;
use crate::wire::error::ErrorWire;

/// The upgrade request, for operators only.
pub const UPGRADE_METHOD: &str = "termgate/upgrade";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The version of this daemon.
    pub from: &'static str,
    /// The version that the program on disk reports.
    pub to: String,
}

/// Why the upgrade was refused.
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

/// The channel for the answer to one request.
pub type UpgradeAsked = oneshot::Sender<Result<Upgrade, UpgradeError>>;

/// Requests an upgrade.
pub async fn ask(upgrades: &mpsc::Sender<UpgradeAsked>) -> Result<Upgrade, UpgradeError> {
    let (asked, answer) = oneshot::channel();
    upgrades.try_send(asked).map_err(|_| UpgradeError::Busy)?;
    answer.await.unwrap_or(Err(UpgradeError::Busy))
}

impl From<UpgradeError> for ErrorData {
    fn from(error: UpgradeError) -> Self {
        let (code, rpc_code) = match error {
            UpgradeError::Start { .. }
            | UpgradeError::TooSlow { .. }
            | UpgradeError::Failed { .. }
            | UpgradeError::Stranger { .. } => (Code::UpgradeFailed, ErrorCode::INTERNAL_ERROR),
            UpgradeError::Busy => (Code::Busy, BUSY),
        };
        ErrorWire::because(code, error).refusal_of_request(rpc_code)
    }
}
