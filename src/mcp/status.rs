//! The state of the daemon as a whole: what it is, what it holds, and what it did so far.
//!
//! It counts across tenants, so it is made for operators alone; nothing here is kept, every number is
//! read where it is counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::core::code::Code;
use crate::core::policy::Permit;
use crate::gateway::calls::Outcome;
use crate::mcp::server::Shared;
use crate::session::counters::Counters;
use crate::session::handle::Session;
use crate::session::pty::processes::own_memory;
use crate::surface::control::set_write::SwitchWire;

/// The daemon at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub version: &'static str,
    pub pid: u32,
    pub uptime_ms: u64,
    /// The memory it has, in bytes; none where the system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    pub write: WriteStatus,
    pub sessions: SessionsStatus,
    pub leases: LeasesStatus,
    pub observers: usize,
    pub connections: ConnectionsStatus,
    pub deltas_sent: u64,
    pub frames: FramesStatus,
    pub pty: PtyStatus,
    /// By tool and by outcome: `ok`, `given_up` or an error's code.
    pub calls: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

/// Where writing is allowed.
#[derive(Clone, Debug, Serialize)]
pub struct WriteStatus {
    pub on: Vec<SwitchWire>,
}

/// The sessions there are now, and those there ever were.
#[derive(Clone, Debug, Serialize)]
pub struct SessionsStatus {
    pub running: usize,
    pub ended: usize,
    pub created_total: u64,
}

/// The leases in force, who waits for one, and who was refused for want of one or of another right.
#[derive(Clone, Debug, Serialize)]
pub struct LeasesStatus {
    pub held: usize,
    pub waiters: usize,
    pub granted_total: u64,
    pub denied: BTreeMap<&'static str, u64>,
}

/// The clients.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionsStatus {
    pub open: usize,
    pub total: u64,
}

/// What was drawn.
#[derive(Clone, Debug, Serialize)]
pub struct FramesStatus {
    pub published: u64,
    /// Frames that an observer was told together with a later one.
    pub skipped: u64,
}

/// What went through the terminals, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct PtyStatus {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Status {
    /// The daemon as it is now.
    pub fn of(shared: &Shared, _permit: &Permit) -> Self {
        let daemon = shared.gateway.daemon();
        let now = daemon.now();
        let sessions = daemon.sessions.all();
        let counters = daemon.sessions.counters();
        let calls = shared.gateway.calls().told();
        let open = daemon.switchboard.open(now);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_ms: now.since(daemon.started).as_millis() as u64,
            resident_bytes: own_memory(),
            write: WriteStatus {
                on: open.into_iter().map(|open| SwitchWire::of(open, now)).collect(),
            },
            sessions: SessionsStatus::of(&sessions, counters),
            leases: LeasesStatus::of(&sessions, counters, &calls),
            observers: sessions.iter().map(|session| session.live().observers()).sum(),
            connections: ConnectionsStatus {
                open: daemon.principals.connections(),
                total: daemon.principals.total(),
            },
            deltas_sent: shared.observed.deltas.get(),
            frames: FramesStatus {
                published: counters.frames_published.get(),
                skipped: shared.observed.skipped.get(),
            },
            pty: PtyStatus {
                read_bytes: counters.output_bytes.get(),
                written_bytes: counters.input_bytes.get(),
            },
            calls: by_tool(&calls),
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
    fn of(
        sessions: &[Session],
        counters: &Counters,
        calls: &[(&'static str, Outcome, u64)],
    ) -> Self {
        let (mut held, mut waiters) = (0, 0);
        for session in sessions {
            let lease = &session.frame().lease.value;
            held += usize::from(lease.holding.is_some());
            waiters += lease.waiters;
        }
        let mut denied = BTreeMap::new();
        for (_, outcome, times) in calls {
            if let Outcome::Failed(code) = outcome
                && is_denial(*code)
            {
                *denied.entry(code.as_str()).or_default() += times;
            }
        }
        Self { held, waiters, granted_total: counters.leases_granted.get(), denied }
    }
}

/// Whether a code says that the caller lacked a right.
fn is_denial(code: Code) -> bool {
    match code {
        Code::ReadOnly
        | Code::PolicyDenied
        | Code::LeaseRequired
        | Code::LeaseHeld
        | Code::LeaseSuspended
        | Code::LeaseLost
        | Code::LeaseSuperseded => true,
        Code::InvalidArgument
        | Code::SessionNotFound
        | Code::SessionExists
        | Code::SessionExited
        | Code::TerminalSilent
        | Code::ScreenChanged
        | Code::Busy
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::RateLimited
        | Code::TokenUnknown
        | Code::TokenExpired
        | Code::TokenFile
        | Code::TokenExists
        | Code::TokenNotFound
        | Code::StorageError
        | Code::NotSupported
        | Code::UpstreamUnavailable
        | Code::UpstreamRestarted
        | Code::Internal
        | Code::DaemonUnreachable
        | Code::DaemonRunning
        | Code::Timeout
        | Code::InvalidConfiguration
        | Code::ClientConfig
        | Code::ClientNotFound
        | Code::UpgradeFailed => false,
    }
}

fn by_tool(
    calls: &[(&'static str, Outcome, u64)],
) -> BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
    let mut tools: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (tool, outcome, times) in calls {
        tools.entry(*tool).or_default().insert(outcome.word(), *times);
    }
    tools
}
