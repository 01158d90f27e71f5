//! The sessions that a daemon before has left, in a daemon that starts.
//!
//! It decides only how often is asked; what becomes of a session is decided where sessions are made.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::ids::{SessionId, TenantId};
use crate::session::recover::finding::Unanswered;
use crate::surface::call::Daemon;

/// How long is waited before a shim is asked again that did not answer.
const RETRY: Duration = Duration::from_secs(1);
/// How long at most where only descriptors are missing: looking for them takes all there are for a moment.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Takes over every session that was left, and gives back what is still to be done: asking those
/// again whose shims did not answer, until each has answered or is gone.
pub(super) async fn recover_sessions(daemon: Arc<Daemon>) -> impl Future<Output = ()> + Send {
    let left = daemon.sessions.left_behind();
    let unanswered = recover(&daemon, left).await;
    ask_again(daemon, unanswered)
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
    // Writing may have been switched before they were listed.
    let recovered = left.into_iter().filter_map(|id| daemon.sessions.get(id));
    recovered.for_each(|session| daemon.switchboard.tell_one(&session));
    // Nobody else tells of a session that did not come back.
    let waits = |id| unanswered.silent.contains(&id) || unanswered.crowded.contains(&id);
    daemon.switchboard.keep_sessions(|id| waits(id) || daemon.sessions.get(id).is_some());
    unanswered
}
