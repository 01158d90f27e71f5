//! `upgrade`: replaces the daemon with the program on disk and keeps its sessions.
//!
//! The daemon checks the new program itself; the command waits until the daemon is back.

use std::time::Duration;

use clap::Args;
use serde::Deserialize as _;
use serde_json::json;
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::status::STATUS;
use crate::mcp::upgrade::UPGRADE_METHOD;
use crate::transport::client::{ClientError, reach};
use crate::wire::status::{DaemonStatus, Upgrading};

/// How long a daemon may take to hand off its sessions and resume them.
const BACK_MAX: Duration = Duration::from_secs(20);

/// Replace the daemon with the program on disk and keep its sessions
///
/// First install the new version in place of the daemon's program. The daemon runs it with `--version`
/// and with `config check`, and keeps the old program if either fails. Otherwise it becomes the new
/// program: same process, same options, same sessions, leases and sockets. Clients lose their
/// connection and must reconnect; `termgate mcp` and `termgate attach` reconnect by themselves.
#[derive(Debug, Args)]
pub struct UpgradeCommand {}

impl UpgradeCommand {
    /// Afterwards the new program answers.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] when no daemon runs, [`CliFailure::Request`] with the code `upgrade_failed`
    /// when the daemon keeps its program, [`CliFailure::NotBack`] when it does not return.
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let daemon = context.running_daemon().await.map_err(CliFailure::without_start)?;
        let granted = daemon.client().request(UPGRADE_METHOD, json!({})).await?;
        let status = timeout(BACK_MAX, next_status(daemon)).await.ok().and_then(Result::ok);
        let status = status.ok_or(CliFailure::NotBack(BACK_MAX))?;
        let granted = Upgrading::deserialize(granted).map_err(|_| ClientError::Malformed)?;
        let done = Upgrading { from: granted.from, to: status.version, pid: status.pid };
        let text = format!("termgate {} -> {} (pid {})", done.from, done.to, done.pid);
        Ok(CommandReport::new(json!(done), text))
    }
}

/// The status of the next daemon that gives one.
async fn next_status(daemon: DaemonClient) -> Result<DaemonStatus, CliFailure> {
    daemon.client().closed().await;
    let status = async || DaemonClient::connect(daemon.path()).await?.read(STATUS).await;
    reach(status, BACK_MAX, |_: &CliFailure| true).await
}
