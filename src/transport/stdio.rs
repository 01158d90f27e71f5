//! A daemon without sockets that serves one client at standard input and output.
//!
//! The sessions belong to this client and end with it, so there is no lock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::core::caller::{Caller, Kind};
use crate::core::event::Event;
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::Server;
use crate::session::clock::Clock;
use crate::session::pty::account::own_uid;
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::registry::Listening;
use crate::store::journal::writer::{Journal, JournalLimits};
use crate::transport::connection::{link, serve};
use crate::transport::daemon::ending::end_sessions;
use crate::transport::daemon::indexing::{Indexing, index_of};
use crate::transport::daemon::journal::{journal_limits, keep_journal};
use crate::transport::daemon::places::Places;
use crate::transport::daemon::sessions::tell_lost;
use crate::transport::daemon::{Assembly, keep_house, prepare_process};
use crate::transport::shell_scripts::{PassingScripts, or_told};
use crate::transport::signals::Signals;

/// The number of the one connection and its principal.
const ONLY: u64 = 1;

/// How many processes like this one can have a journal at a time.
const JOURNALS_MAX: u32 = 256;

/// Serves the client until it hangs up, ends its input, or a signal ends the process. Then ends every session.
///
/// Sessions start with `environment` and `cwd`. Journal, search index and recordings are in the directory `state`.
pub async fn serve_stdio(
    config: &Config,
    environment: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    state: &Path,
) -> io::Result<()> {
    let signals = Signals::listen()?;
    let mut hangup = signal(SignalKind::hangup())?;
    prepare_process()?;
    // No other process needs the scripts; they are removed at exit.
    let scripts = or_told(PassingScripts::place());
    let places = Places {
        // Several processes like this one may have the same index.
        index: index_of(config, state.join("index").join("stdio")),
        environment,
        default_cwd: cwd,
        holding: None,
        state: None,
        recordings: state.join("recordings").join("stdio"),
        accepted: state.join("mounts").join("stdio"),
        // Several processes like this one may run.
        servers: None,
        // Those sessions cannot be sandboxed.
        sandbox: SandboxPlaces::default(),
        scripts: scripts.as_ref().map(|scripts| scripts.directory().to_owned()),
    };
    let clock = Clock::boot()?;
    let journal = own_journal(&state.join("journal"), journal_limits(config), clock.wall_time());
    let Assembly { registry, doors, listening, .. } =
        Assembly::new(config, places, &journal, clock.clone());
    let Listening { facts, announcements } = listening;
    // Without sockets, creating a session waits for none.
    drop(announcements);
    let shared = doors.shared;
    let mut tasks = JoinSet::new();
    keep_house(&mut tasks, facts, Arc::clone(&shared));
    tasks.spawn(keep_journal(journal, &clock));
    // Sessions of a process that was killed ended with it.
    tell_lost(shared.gateway.daemon());
    let indexing = Indexing::start(shared.gateway.daemon());

    let mounted = Arc::clone(shared.gateway.daemon());
    let standing = standing();
    shared.gateway.daemon().principals.enter(&standing.caller);
    let limits = doors.limits.borrow().connection.clone();
    let connection = Arc::new(Connection::new(ConnectionId(ONLY), limits.unsent));
    let server = Server::new(shared, Arc::clone(&connection), standing);
    let cause = tokio::select! {
        () = serve(server, link::stdio().in_lines(&limits), connection, &limits) => "client",
        // Nothing can be left running.
        _ = signals.told() => "signal",
        _ = hangup.recv() => "signal",
    };
    registry.tell_event(None, Event::DaemonStopped { cause });
    end_sessions(&registry).await;
    mounted.mounts.end().await;
    tasks.shutdown().await;
    indexing.end().await;
    Ok(())
}

/// The first journal that no other process like this one writes: each needs one of its own.
fn own_journal(directory: &Path, limits: JournalLimits, at: SystemTime) -> Journal {
    let numbered = |number: u32| {
        let name = if number == 1 { "stdio".to_owned() } else { format!("stdio-{number}") };
        Journal::at(directory.join(name), limits)
    };
    let mut journals = (1..=JOURNALS_MAX).map(numbered);
    // One that fails otherwise reports it.
    let free = journals.find(|journal| journal.open(at).err().is_none_or(|it| !it.is_taken));
    free.unwrap_or_else(|| numbered(1))
}

/// The standing of the process's parent: an agent that sees every session.
fn standing() -> Standing {
    let kind = Kind::Agent;
    let caller = Caller {
        principal: PrincipalId::Connection(ONLY),
        connection: ConnectionId(ONLY),
        tenant: TenantId::of_uid(own_uid()),
        kind,
        label: Arc::from(kind.as_str()),
    };
    Standing::of_member(caller, own_uid(), Door::Gateway, Reach::Tenant)
}
