//! A daemon without sockets: one client at standard input and output, and nobody else.
//!
//! It decides nothing. The sessions are the client's own and end with it, so there is no lock, no
//! door to open and nobody else to be told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::Server;
use crate::session::registry::Listening;
use crate::transport::connection::{link, serve};
use crate::transport::daemon::ending::end_sessions;
use crate::transport::daemon::{Assembly, Places, keep_house, prepare_process};
use crate::transport::shell_scripts::{PassingScripts, or_told};
use crate::transport::signals::Signals;
use crate::transport::unix::limits::own_uid;

/// The one connection and its principal.
const ONLY: u64 = 1;

/// Serves the client at standard input and output until it has gone or ended its input, or the
/// process is told to end; then ends every session.
///
/// `environment` and `cwd` are those that sessions start from.
///
/// # Errors
/// What the kernel refused before the client was heard.
pub async fn serve_stdio(
    config: &Config,
    environment: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
) -> io::Result<()> {
    let signals = Signals::listen()?;
    let mut hangup = signal(SignalKind::hangup())?;
    prepare_process()?;
    // Where no other process looks; they go with this one.
    let scripts = or_told(PassingScripts::place());
    let places = Places {
        environment,
        default_cwd: cwd,
        holding: None,
        state: None,
        scripts: scripts.as_ref().map(|scripts| scripts.directory().to_owned()),
    };
    let Assembly { registry, doors, listening, .. } = Assembly::new(config, places)?;
    let Listening { facts, announcements } = listening;
    // There are no doors that creating a session would have to wait for.
    drop(announcements);
    let shared = doors.shared;
    let mut tasks = JoinSet::new();
    keep_house(&mut tasks, facts, Arc::clone(&shared));

    let standing = standing();
    shared.gateway.daemon().principals.enter(&standing.caller);
    let limits = doors.limits.borrow().connection.clone();
    let connection = Arc::new(Connection::new(ConnectionId(ONLY), limits.unsent));
    let server = Server::new(shared, Arc::clone(&connection), standing);
    tokio::select! {
        () = serve(server, link::stdio().in_lines(&limits), connection, &limits) => {}
        () = signals.told_to_end() => {}
        _ = hangup.recv() => {}
    }
    end_sessions(&registry).await;
    tasks.shutdown().await;
    Ok(())
}

/// Whoever started the process: an agent that sees every session there is.
fn standing() -> Standing {
    let kind = Kind::Agent;
    let caller = Caller {
        principal: PrincipalId::Connection(ONLY),
        connection: ConnectionId(ONLY),
        tenant: TenantId::of_uid(own_uid()),
        kind,
        label: Arc::from(kind.as_str()),
    };
    Standing { caller, door: Door::Gateway, reach: Reach::Tenant, token: None, managed: false }
}
