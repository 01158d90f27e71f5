//! The sessions that a daemon before has left, in a daemon that starts.
//!
//! It decides only how often is asked; what becomes of a session is decided where sessions are made.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::ids::{SessionId, TenantId};
use crate::surface::call::Daemon;

/// How long is waited before a holder is asked again that did not answer, at first and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Takes over every session that was left, and gives back what is still to be done: asking those
/// again whose holders did not answer, until each has answered or is gone.
pub(super) async fn recover_sessions(daemon: Arc<Daemon>) -> impl Future<Output = ()> + Send {
    let left = daemon.sessions.left_behind();
    let silent = recover(&daemon, left).await;
    ask_again(daemon, silent)
}

async fn ask_again(daemon: Arc<Daemon>, mut silent: Vec<SessionId>) {
    let mut delay = RETRY_MIN;
    while !silent.is_empty() {
        sleep(delay).await;
        silent = recover(&daemon, silent).await;
        delay = (delay * 2).min(RETRY_MAX);
    }
}

async fn recover(daemon: &Daemon, left: Vec<SessionId>) -> Vec<SessionId> {
    let window = |tenant: &TenantId, id| daemon.switchboard.window_of(tenant, Some(id));
    let silent = daemon.sessions.recover_left(left, window).await;
    // Nobody else tells of a session that did not come back.
    let there = |id| daemon.sessions.get(id).is_some() || silent.contains(&id);
    daemon.switchboard.keep_sessions(there);
    silent
}
