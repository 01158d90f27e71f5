//! Applies the configuration to all parts of the daemon, at start and when it is read again.
//!
//! A reload leaves write switches unchanged that an operator has set.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, watch};

use crate::config::key::Applies;
use crate::config::paths::RuntimePaths;
use crate::config::problem::ConfigError;
use crate::config::sockets::SocketAudience;
use crate::config::sources::Sources;
use crate::config::{Change, Config, HoldingConfig, NotifyConfig};
use crate::core::event::Event;
use crate::core::lease::limits::LeaseLimits;
use crate::core::policy::approvals::Approval;
use crate::mcp::settings::{SettingsAsked, SettingsError};
use crate::mcp::shared::ServerShared;
use crate::session::pty::held::shims::HoldingLimits;
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::recording::RecordingLimits;
use crate::session::registry::limits::SessionLimits;
use crate::shim::wire::to_shim::Unread;
use crate::transport::daemon::indexing::index_limits;
use crate::transport::daemon::journal::journal_limits;
use crate::transport::daemon::rules_for_good::RuleForGood;
use crate::transport::door::DoorLimits;
use crate::transport::limits::Limits;
use crate::transport::line_memory::ReadingRoom;
use crate::transport::notify::{News, Notifier};
use crate::transport::signals::{Hangup, Hangups};
use crate::transport::unix::quota::Most;
use crate::wire::policy::RuleWritten;
use crate::wire::status::Reloaded;

/// The state for reloading the configuration.
pub(super) struct Reloading {
    pub(super) sources: Sources,
    /// The current configuration.
    pub(super) running: Config,
    pub(super) shared: Arc<ServerShared>,
    pub(super) door_limits: watch::Sender<DoorLimits>,
    pub(super) notify: watch::Sender<NotifyConfig>,
    pub(super) notifier: Arc<Notifier>,
}

impl Reloading {
    /// Reloads the configuration on each reload signal and when an operator asks. Stops the daemon when its terminal is
    /// gone.
    pub(super) async fn run(
        mut self,
        mut hangups: Hangups,
        mut asked: mpsc::Receiver<SettingsAsked>,
    ) {
        while self.answer_until(hangups.next(), &mut asked).await == Hangup::Reload {
            // Its problems are in the log.
            drop(self.reload_and_tell().await);
        }
        tracing::info!("the terminal was closed");
        self.shared.stop.cancel();
    }

    /// Answers operators until a signal comes.
    async fn answer_until(
        &mut self,
        signal: impl Future<Output = Hangup>,
        asked: &mut mpsc::Receiver<SettingsAsked>,
    ) -> Hangup {
        let mut signal = pin!(signal);
        loop {
            tokio::select! {
                hangup = &mut signal => return hangup,
                Some(asked) = asked.recv() => self.answer(asked).await,
            }
        }
    }

    /// Answers an operator, who may wait no more.
    async fn answer(&mut self, asked: SettingsAsked) {
        match asked {
            SettingsAsked::Reload(answer) => {
                let reloaded = self.reload_and_tell().await;
                let _ = answer.send(reloaded.map_err(SettingsError::from));
            }
            SettingsAsked::ForGood { call, write, answer } => {
                let _ = answer.send(self.for_good(&call, write).await);
            }
        }
    }

    async fn for_good(
        &mut self,
        call: &Approval,
        write: bool,
    ) -> Result<RuleWritten, SettingsError> {
        // What somebody else wrote and nobody had the daemon read is not to hold by this.
        if self.sources.load()?.config.policy != self.running.policy {
            return Err(SettingsError::Outdated);
        }
        let rule = RuleForGood::of(&self.sources, call)?;
        if write {
            let written = rule.write()?;
            if let Err(error) = self.reload_and_tell().await {
                written.undo();
                return Err(error.into());
            }
        }
        Ok(rule.wire(write))
    }

    async fn reload_and_tell(&mut self) -> Result<Reloaded, ConfigError> {
        self.notifier.tell(News::Reloading).await;
        let reloaded = self.reload();
        self.notifier.tell(News::Ready).await;
        reloaded
    }

    fn reload(&mut self) -> Result<Reloaded, ConfigError> {
        let read = self.sources.load().inspect_err(|error| {
            for problem in &error.0 {
                tracing::error!(%problem, "the configuration is wrong");
            }
            tracing::error!("the configuration is unchanged");
        })?;
        for note in &read.notes {
            tracing::warn!("{note}");
        }
        let is_other_policy = self.running.policy != read.config.policy;
        let is_other_tenants = self.running.tenants != read.config.tenants;
        let are_other_mounts = self.running.mounts != read.config.mounts;
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
        let changed = changes.iter().map(|change| change.key.name);
        let changed = changed.chain(is_other_policy.then_some("policy"));
        let changed = changed.chain(is_other_tenants.then_some("tenants"));
        let changed: Vec<&'static str> =
            changed.chain(are_other_mounts.then_some("mounts")).collect();
        let later = changes.iter().filter(|change| change.key.applies == Applies::Restart);
        let reloaded = Reloaded {
            changed: changed.iter().map(|key| (*key).to_owned()).collect(),
            at_restart: later.map(|change| change.key.name.to_owned()).collect(),
            notes: read.notes.iter().map(ToString::to_string).collect(),
        };
        let sessions = &self.shared.gateway.daemon().sessions;
        tracing::info!(changes = changed.len(), "the configuration was read again");
        sessions.tell_event(None, Event::ConfigurationRead { changed });
        Ok(reloaded)
    }

    /// Applies the configuration to all parts.
    fn spread(&self) {
        let Self { running, shared, notify, .. } = self;
        notify.send_replace(running.notify.clone());
        let daemon = shared.gateway.daemon();
        daemon.journal.set_limits(journal_limits(running));
        daemon.index.set_limits(index_limits(running));
        daemon.sessions.set_limits(session_limits(running));
        daemon.lease_auto.store(running.lease.auto, Ordering::Relaxed);
        daemon.judge.set_rules(&running.policy);
        daemon.mounts.set(&running.mounts);
        daemon.mount_leases.follow(&daemon.mounts);
        shared.gateway.set_rates(running.calls.clone());
        shared.subscriptions.set(running.subscriptions.clone());
        self.door_limits.send_modify(|limits| {
            *limits = limits_of_doors(running, limits.connection.parsing.clone());
        });
    }
}

pub(super) fn session_limits(config: &Config) -> SessionLimits {
    SessionLimits {
        lease: LeaseLimits {
            ttl_default: config.lease.ttl,
            max_hold: config.lease.max_hold,
            grace_default: config.lease.grace,
            person_idle: config.lease.person_idle,
            waiters_max: config.lease.waiters,
            // All principals that see a session have the same tenant, so the whole queue is theirs.
            tenant_waiters_max: config.lease.waiters,
            ..LeaseLimits::default()
        },
        screen: config.screen,
        cells_max: u32::try_from(config.cells).unwrap_or(u32::MAX),
        frame_interval: config.frame_interval,
        keep_ended: config.keep_ended,
        holding: holding_limits(&config.holding),
        shell_marks: config.shell_marks,
        sandbox: config.sandbox,
        sessions_max: config.sessions.clone(),
        tenants: Arc::clone(&config.tenants),
        recording: RecordingLimits {
            always: config.recording.always,
            bytes_max: config.recording.bytes as u64,
            total_bytes_max: config.recording.total_bytes as u64,
        },
    }
}

/// The directories that sandboxed programs may not see, and those that they may not change.
pub(super) fn sandbox_places(
    paths: &RuntimePaths,
    state: Option<&Path>,
    sources: &Sources,
) -> SandboxPlaces {
    let hidden = [Some(paths.root()), state].into_iter().flatten().map(Path::to_owned);
    SandboxPlaces { hidden: hidden.collect(), protected: sources.operator_directories() }
}

fn holding_limits(config: &HoldingConfig) -> HoldingLimits {
    /// Rings consist of whole pages.
    const PAGE: usize = 4_096;
    HoldingLimits {
        orphan_ttl: (!config.orphan_ttl.is_zero()).then_some(config.orphan_ttl),
        ring_bytes: u32::try_from(config.ring_bytes / PAGE * PAGE).unwrap_or(u32::MAX),
        unread: if config.overwrite_unread { Unread::Overwrite } else { Unread::Block },
    }
}

/// The limits of clients; their long lines are parsed in `parsing`.
pub(super) fn limits_of_doors(config: &Config, parsing: ReadingRoom) -> DoorLimits {
    let connection = Limits::of(&config.connection, parsing);
    let users = Most {
        connections: config.connections.clone(),
        incoming: config.connection.incoming.clone(),
    };
    // An unknown group was reported at the start.
    let observers = SocketAudience::of(&config.sockets.observers).unwrap_or_default();
    DoorLimits { users, connection, observers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_each_module_has_the_limits_it_has_by_itself() {
        let config = Config::built_in();
        let sessions = session_limits(&config);
        let alone = LeaseLimits::default();
        let expected = LeaseLimits { tenant_waiters_max: alone.waiters_max, ..alone };
        assert_eq!(sessions.lease, expected);
        let doors =
            limits_of_doors(&config, ReadingRoom::of_bytes(config.connection.parsing_bytes));
        assert_eq!(format!("{:?}", doors.connection), format!("{:?}", Limits::default()));
    }
}
