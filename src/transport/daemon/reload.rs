//! Reloads the configuration while the daemon runs.
//!
//! A reload leaves write switches unchanged that an operator has set.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use crate::config::key::Applies;
use crate::config::sources::Sources;
use crate::config::{Change, Config};
use crate::mcp::shared::Shared;
use crate::transport::daemon::limits::{limits_of_doors, session_limits};
use crate::transport::door::DoorLimits;
use crate::transport::hangup::{Hangup, Hangups};
use crate::transport::notify::{News, Notifier};

/// The state for reloading the configuration.
pub(super) struct Reloading {
    pub(super) sources: Sources,
    /// The current configuration.
    pub(super) running: Config,
    pub(super) shared: Arc<Shared>,
    pub(super) door_limits: watch::Sender<DoorLimits>,
    pub(super) notifier: Arc<Notifier>,
}

impl Reloading {
    /// Reloads the configuration on each reload signal. Stops the daemon when its terminal is gone.
    pub(super) async fn run(mut self, mut hangups: Hangups) {
        while hangups.next().await == Hangup::Reload {
            self.notifier.tell(News::Reloading).await;
            self.reload();
            self.notifier.tell(News::Ready).await;
        }
        tracing::info!("the terminal is gone");
        self.shared.stop.cancel();
    }

    fn reload(&mut self) {
        let read = match self.sources.load() {
            Ok(read) => read,
            Err(error) => {
                for problem in error.0 {
                    tracing::error!(%problem, "the configuration is wrong");
                }
                tracing::error!("the configuration stays as it was");
                return;
            }
        };
        for note in &read.notes {
            tracing::warn!("{note}");
        }
        let changes = self.running.take_over(&read.config);
        self.spread();
        for Change { key, before, after } in &changes {
            let (key, from) = (key.name, key.applies);
            match from {
                Applies::AtOnce | Applies::NewSessions | Applies::NewConnections => {
                    tracing::info!(key, %before, %after, applies = from.as_str(), "setting changed");
                }
                Applies::Restart => {
                    tracing::warn!(key, %before, %after, "setting changes when the daemon restarts");
                }
            }
        }
        tracing::info!(changes = changes.len(), "the configuration was read again");
    }

    /// Applies the configuration to all parts.
    fn spread(&self) {
        let Self { running, shared, .. } = self;
        let daemon = shared.gateway.daemon();
        daemon.sessions.set_limits(session_limits(running));
        daemon.lease_auto.store(running.lease.auto, Ordering::Relaxed);
        shared.gateway.set_rates(running.calls);
        shared.subscriptions.set(running.subscriptions);
        self.door_limits.send_modify(|limits| {
            *limits = limits_of_doors(running, limits.connection.parsing.clone());
        });
    }
}
