//! The flags of commands that start a daemon when none runs.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::start::Rights;

/// Whether a daemon is started, and what that one may do.
#[derive(Clone, Copy, Debug, Args)]
pub struct Spawn {
    /// Do not start a daemon
    #[arg(long)]
    no_spawn: bool,
    /// Start the daemon with writing allowed; a running daemon keeps its switches
    #[arg(long, conflicts_with_all = ["socket", "no_spawn"])]
    allow_write: bool,
}

impl Spawn {
    /// Connects to the daemon, and starts one if that is allowed.
    ///
    /// # Errors
    /// No daemon runs, or it could not be started.
    pub async fn daemon(self, context: &Context) -> Result<Daemon, Failure> {
        if self.no_spawn {
            context.running_daemon().await
        } else {
            context.daemon_to_create(Rights::of_flag(self.allow_write)).await
        }
    }
}
