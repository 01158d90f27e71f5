//! Takes over the sessions of an earlier daemon, and opens two sockets for each session until it ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::config::paths::RuntimePaths;
use crate::config::sockets::{SocketAccess, SocketAudience};
use crate::core::event::{Event, EventScope};
use crate::core::ids::{SessionId, TenantId};
use crate::core::policy::Door;
use crate::session::pty::held::shims::Shims;
use crate::session::recover::finding::Unanswered;
use crate::session::registry::Announcement;
use crate::surface::call::Daemon;
use crate::transport::door::Doors;
use crate::transport::unix::directory::{closed_above, prepare};
use crate::transport::unix::handed::Handed;
use crate::transport::unix::listener::{BindError, Listener};
use crate::transport::unix::lock::DaemonLock;

/// The delay before a silent shim is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// The longest delay when only descriptors are missing. Each attempt briefly uses all that are left.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Access to the shims in this daemon's directory, while its lock is valid.
pub(super) fn shims_of(paths: &RuntimePaths, lock: &Arc<DaemonLock>) -> Shims {
    let lock = Arc::downgrade(lock);
    Shims::claimed(paths.shims(), move || lock.upgrade().is_some_and(|lock| lock.counts()))
}

/// Takes over every remaining session. The returned future asks silent shims again until each has answered or ended.
pub(super) async fn recover_sessions(daemon: Arc<Daemon>) -> impl Future<Output = ()> + Send {
    let left = daemon.sessions.left_behind();
    let unanswered = recover(&daemon, left).await;
    tell_lost(&daemon);
    ask_again(daemon, unanswered)
}

/// Tells of sessions that nothing is left of, such as after a restart of the machine.
pub(in crate::transport) fn tell_lost(daemon: &Daemon) {
    let sessions = &daemon.sessions;
    for (session, tenant) in daemon.journal.take_lost(|id| sessions.known_by_id(id).is_some()) {
        let scope = EventScope { tenant: &tenant, session: Some(session) };
        sessions.tell_event_in(scope, Event::SessionRemoved);
    }
}

async fn ask_again(daemon: Arc<Daemon>, mut unanswered: Unanswered) {
    let mut delay = RETRY;
    loop {
        let Unanswered { silent, crowded } = unanswered;
        if silent.is_empty() && crowded.is_empty() {
            return;
        }
        sleep(delay).await;
        delay = if silent.is_empty() { (delay * 2).min(RETRY_MAX) } else { RETRY };
        unanswered = recover(&daemon, [silent, crowded].concat()).await;
    }
}

async fn recover(daemon: &Daemon, left: Vec<SessionId>) -> Unanswered {
    let window = |tenant: &TenantId, id| daemon.switchboard.window_of(tenant, Some(id));
    let unanswered = daemon.sessions.recover_left(left.clone(), window).await;
    // The write switches may have changed before the sessions were listed.
    let recovered = left.into_iter().filter_map(|id| daemon.sessions.get(id));
    recovered.for_each(|session| daemon.switchboard.tell_one(&session));
    // No other task reports a session that did not return.
    let waits = |id| unanswered.silent.contains(&id) || unanswered.crowded.contains(&id);
    daemon.switchboard.keep_sessions(|id| waits(id) || daemon.sessions.get(id).is_some());
    unanswered
}

/// Listens at the sockets that are there as long as the daemon.
pub(super) fn listen_for_all(
    handed: &mut Handed,
    paths: &RuntimePaths,
    access: SocketAccess,
    lock: &DaemonLock,
) -> Result<[(Listener, Door); 3], BindError> {
    warn_of_others(paths, access);
    let read_only = paths.gateway_read_only();
    let gateway = handed.listen(paths.gateway(), access.clients(), lock)?;
    let observers = handed.listen(&read_only, access.observers(), lock)?;
    // Whatever the configuration says: who gets in here may be an operator.
    let operator = handed.listen(&paths.operator(), SocketAudience::Owner, lock)?.always_open();
    Ok([(gateway, Door::Gateway), (observers, Door::ObserverGateway), (operator, Door::Operator)])
}

/// Warns where the configuration lets other users in and means something else by it than it does.
fn warn_of_others(paths: &RuntimePaths, access: SocketAccess) {
    if let Some(path) = closed_above(paths, access.directories()) {
        let path = path.display();
        tracing::warn!(%path, "other users do not reach the sockets: this directory does not let them pass");
    }
}

/// Opens both sockets of every session that is created.
pub(super) async fn open_session_doors(
    mut announcements: mpsc::Receiver<Announcement>,
    (doors, paths, access, lock): (Doors, RuntimePaths, SocketAccess, Arc<DaemonLock>),
) {
    // Dropping the set closes the sockets.
    let mut open = JoinSet::new();
    while let Some(Announcement { session, opened }) = announcements.recv().await {
        while open.try_join_next().is_some() {}
        let id = session.id();
        // The directories may have been removed since.
        if let Err(error) = prepare(&paths, access) {
            tracing::warn!(session = %id, %error, "its sockets may belong to another process, and are not created");
            continue;
        }
        let pair = [
            (paths.session(id), Door::Session(id), access.clients()),
            (paths.session_read_only(id), Door::Observer(id), access.observers()),
        ];
        for (path, door, audience) in pair {
            match Listener::bind(&path, audience, &lock) {
                Ok(listener) => {
                    let (doors, session) = (doors.clone(), session.clone());
                    open.spawn(async move {
                        doors.keep_open(listener, door, session.closed()).await;
                    });
                }
                Err(error) => tracing::warn!(session = %id, %error, "a session has no socket"),
            }
        }
        drop(opened);
    }
}
