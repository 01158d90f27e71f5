//! Periodic messages to the service manager: watchdog and status.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::surface::call::Daemon;
use crate::transport::notify::{News, Notifier};

/// The shortest time between two status lines.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Resets the watchdog twice per timeout until one of these tasks has ended.
///
/// Then the service manager acts. Returns at once without a watchdog.
pub async fn keep_alive(notifier: Arc<Notifier>, tasks: Vec<AbortHandle>) {
    let Some(watchdog) = notifier.watchdog() else { return };
    let mut ticks = interval(watchdog / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if tasks.iter().any(AbortHandle::is_finished) {
            tracing::error!("a task of the daemon has ended; the watchdog is no longer notified");
            return;
        }
        notifier.tell(News::Alive).await;
    }
}

/// Reports a status line at first and after each change.
pub async fn tell_status(notifier: Arc<Notifier>, daemon: Arc<Daemon>) {
    if !notifier.is_heard() {
        return;
    }
    let mut sessions = daemon.sessions.changes();
    let mut switches = daemon.switchboard.changes();
    let mut told = String::new();
    loop {
        let line = status(&daemon);
        if line != told {
            notifier.tell(News::Status(&line)).await;
            told = line;
        }
        sleep(STATUS_INTERVAL).await;
        let changed = tokio::select! {
            changed = sessions.changed() => changed,
            changed = switches.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// For example `2 sessions, 1 leased; writing is off`.
fn status(daemon: &Daemon) -> String {
    let frames = daemon.sessions.all().into_iter().map(|session| session.frame());
    let (mut running, mut leased) = (0, 0);
    for frame in frames.filter(|frame| frame.exit.value.is_none()) {
        running += 1;
        leased += usize::from(frame.lease.value.holding.is_some());
    }
    let sessions = if running == 1 { "session" } else { "sessions" };
    let writing = if daemon.switchboard.open(daemon.sessions.clock().now()).is_empty() {
        "off"
    } else {
        "on"
    };
    format!("{running} {sessions}, {leased} leased; writing is {writing}")
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::future::pending;
    use std::os::unix::net::UnixDatagram;

    fn manager(directory: &std::path::Path, watchdog_usec: &str) -> (UnixDatagram, Arc<Notifier>) {
        let path = directory.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let variables: BTreeMap<&str, OsString> =
            [("NOTIFY_SOCKET", path.into()), ("WATCHDOG_USEC", watchdog_usec.into())].into();
        (socket, Arc::new(Notifier::find(|name| variables.get(name))))
    }

    fn has_news(socket: &UnixDatagram) -> bool {
        socket.set_nonblocking(true).unwrap();
        socket.recv(&mut [0; 64]).is_ok()
    }

    #[tokio::test]
    async fn the_watchdog_is_notified_until_a_task_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, notifier) = manager(directory.path(), "2000");
        let task = tokio::spawn(pending::<()>());
        let mut alive = Box::pin(keep_alive(notifier, vec![task.abort_handle()]));
        for _ in 0..3 {
            while !has_news(&socket) {
                tokio::select! {
                    () = &mut alive => panic!("it gave up"),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        alive.await;
    }
}
