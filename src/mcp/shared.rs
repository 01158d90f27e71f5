//! What all connections of a daemon share, and its status, for operators only: it counts across tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::core::code::Code;
use crate::core::policy::Permit;
use crate::gateway::Gateway;
use crate::mcp::answer_memory::AnswerMemory;
use crate::mcp::attach::Names;
use crate::mcp::fan_out::FanOuts;
use crate::mcp::lease_notices::LeaseNotices;
use crate::mcp::settings::SettingsAsked;
use crate::mcp::subscription_quota::SubscriptionQuota;
use crate::mcp::upgrade::UpgradeAsked;
use crate::session::handle::Session;
use crate::session::pty::processes::own_memory;
use crate::session::stats::Counters;
use crate::surface::control::set_write::write_status;
use crate::wire::status::{
    ConnectionsStatus, DaemonStatus, FramesStatus, LeasesStatus, PtyStatus, SessionsStatus,
};

#[derive(Debug)]
pub struct ServerShared {
    pub gateway: Gateway,
    pub fan_outs: FanOuts,
    pub subscriptions: SubscriptionQuota,
    pub lease_notices: LeaseNotices,
    /// For what mounted servers have answered and clients have not read.
    pub answers: AnswerMemory,
    /// The names of attached people.
    pub names: Names,
    /// Cancelled when an operator stops the daemon.
    pub stop: tokio_util::sync::CancellationToken,
    /// Cancelled when another daemon has this one's sessions.
    pub superseded: tokio_util::sync::CancellationToken,
    pub operators: OperatorRequests,
    /// The number of the next connection, or of the next person on one.
    pub numbers: Arc<std::sync::atomic::AtomicU64>,
}

/// What operators ask of the tasks of the daemon, one at a time.
#[derive(Debug)]
pub struct OperatorRequests {
    pub upgrades: mpsc::Sender<UpgradeAsked>,
    /// About the configuration.
    pub settings: mpsc::Sender<SettingsAsked>,
}

/// The other ends of [`OperatorRequests`].
#[derive(Debug)]
pub struct AskedByOperators {
    pub upgrades: mpsc::Receiver<UpgradeAsked>,
    pub settings: mpsc::Receiver<SettingsAsked>,
}

impl OperatorRequests {
    pub fn new() -> (Self, AskedByOperators) {
        let ((to_upgrade, upgrades), (to_settings, settings)) =
            (mpsc::channel(1), mpsc::channel(1));
        let requests = Self { upgrades: to_upgrade, settings: to_settings };
        (requests, AskedByOperators { upgrades, settings })
    }
}

impl DaemonStatus {
    pub fn of(shared: &ServerShared, _permit: &Permit) -> Self {
        let daemon = shared.gateway.daemon();
        let now = daemon.now();
        let sessions = daemon.sessions.all();
        let counters = daemon.sessions.counters();
        let calls = shared.gateway.calls().counts();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: now.since(daemon.started).as_millis() as u64,
            resident_bytes: own_memory(),
            write: write_status(&daemon.switchboard, now),
            sessions: SessionsStatus::of(&sessions, counters),
            leases: LeasesStatus::of(&sessions, counters, calls.values().flatten()),
            observers: sessions.iter().map(|session| session.live().observers()).sum(),
            connections: ConnectionsStatus {
                open: daemon.principals.connections(),
                total: daemon.principals.total(),
            },
            deltas_sent: shared.fan_outs.tally.deltas.get(),
            frames: FramesStatus {
                published: counters.frames_published.get(),
                skipped: shared.fan_outs.tally.skipped.get(),
            },
            pty: PtyStatus {
                read_bytes: counters.output_bytes.get(),
                written_bytes: counters.input_bytes.get(),
            },
            calls: calls.iter().map(|(tool, counts)| (tool.to_string(), words(counts))).collect(),
        }
    }
}

impl SessionsStatus {
    fn of(sessions: &[Session], counters: &Counters) -> Self {
        let ended = |session: &&Session| session.frame().exit.value.is_some();
        let ended = sessions.iter().filter(ended).count();
        let created_total = counters.sessions_created.get();
        Self { running: sessions.len() - ended, ended, created_total }
    }
}

impl LeasesStatus {
    fn of<'a>(
        sessions: &[Session],
        counters: &Counters,
        outcomes: impl Iterator<Item = (&'a &'static str, &'a u64)>,
    ) -> Self {
        let (mut held, mut waiters) = (0, 0);
        for session in sessions {
            let lease = &session.frame().lease.value;
            held += usize::from(lease.holding.is_some());
            waiters += lease.waiters;
        }
        let mut denied = BTreeMap::new();
        for (word, times) in outcomes.filter(|(word, _)| Code::parse(word).is_some_and(is_denial)) {
            *denied.entry((*word).to_owned()).or_default() += times;
        }
        Self { held, waiters, granted_total: counters.leases_granted.get(), denied }
    }
}

/// Whether a code means that the caller lacked a right.
fn is_denial(code: Code) -> bool {
    matches!(
        code,
        Code::ReadOnly
            | Code::PolicyDenied
            | Code::ApprovalRequired
            | Code::ApprovalStale
            | Code::LeaseRequired
            | Code::LeaseHeld
            | Code::LeaseSuspended
            | Code::LeaseLost
            | Code::LeaseSuperseded
    )
}

fn words(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(word, times)| ((*word).to_owned(), *times)).collect()
}
