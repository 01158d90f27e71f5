//! The status of the whole daemon, for operators only, because it counts across tenants.

use std::collections::BTreeMap;

use crate::core::code::Code;
use crate::core::policy::Permit;
use crate::gateway::calls::Outcome;
use crate::mcp::shared::Shared;
use crate::session::handle::Session;
use crate::session::pty::processes::own_memory;
use crate::session::stats::Counters;
use crate::surface::control::set_write::switch;
use crate::wire::status::{
    ConnectionsStatus, DaemonStatus, FramesStatus, LeasesStatus, PtyStatus, SessionsStatus,
    WriteStatus,
};

impl DaemonStatus {
    pub fn of(shared: &Shared, _permit: &Permit) -> Self {
        let daemon = shared.gateway.daemon();
        let now = daemon.now();
        let sessions = daemon.sessions.all();
        let counters = daemon.sessions.counters();
        let calls = shared.gateway.calls().told();
        let open = daemon.switchboard.open(now);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: now.since(daemon.started).as_millis() as u64,
            resident_bytes: own_memory(),
            write: WriteStatus { on: open.into_iter().map(|open| switch(open, now)).collect() },
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
                *denied.entry(code.as_str().to_owned()).or_default() += times;
            }
        }
        Self { held, waiters, granted_total: counters.leases_granted.get(), denied }
    }
}

/// Whether a code means that the caller lacked a right.
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

fn by_tool(calls: &[(&'static str, Outcome, u64)]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut tools: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (tool, outcome, times) in calls {
        tools.entry((*tool).to_owned()).or_default().insert(outcome.word().to_owned(), *times);
    }
    tools
}
