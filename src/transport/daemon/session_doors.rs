//! Opens two sockets per session and closes them when it ends.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::config::paths::RuntimePaths;
use crate::core::policy::Door;
use crate::session::registry::Announcement;
use crate::transport::door::Doors;
use crate::transport::unix::directory::prepare;
use crate::transport::unix::listener::Listener;
use crate::transport::unix::lock::DaemonLock;

/// Opens both sockets of every session that is created.
pub(super) async fn open_session_doors(
    mut announcements: mpsc::Receiver<Announcement>,
    (doors, paths, lock): (Doors, RuntimePaths, Arc<DaemonLock>),
) {
    // Dropping the set closes the sockets.
    let mut open = JoinSet::new();
    while let Some(Announcement { session, opened }) = announcements.recv().await {
        while open.try_join_next().is_some() {}
        let id = session.id();
        // The directories may have been removed since.
        if let Err(error) = prepare(&paths) {
            tracing::warn!(session = %id, %error, "its sockets may be anybody's, and are not made");
            continue;
        }
        let pair = [
            (paths.session(id), Door::Session(id)),
            (paths.session_read_only(id), Door::Observer(id)),
        ];
        for (path, door) in pair {
            match Listener::bind(&path, &lock) {
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
