//! Takes over the sessions of an earlier daemon at start.
//!
//! It decides only how often a silent shim is asked again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::ids::{SessionId, TenantId};
use crate::session::recover::finding::Unanswered;
use crate::surface::call::Daemon;

/// The delay before a silent shim is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// The longest delay when only descriptors are missing. Each attempt briefly uses all that are left.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Takes over every remaining session. The returned future asks silent shims again until each has answered or ended.
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
    // The write switches may have changed before the sessions were listed.
    let recovered = left.into_iter().filter_map(|id| daemon.sessions.get(id));
    recovered.for_each(|session| daemon.switchboard.tell_one(&session));
    // No other task reports a session that did not return.
    let waits = |id| unanswered.silent.contains(&id) || unanswered.crowded.contains(&id);
    daemon.switchboard.keep_sessions(|id| waits(id) || daemon.sessions.get(id).is_some());
    unanswered
}
