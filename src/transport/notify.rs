//! Reports the daemon's state to a service manager, in systemd's protocol: when it is ready, its watchdog and status.
//!
//! One socket stays open for all messages, so that a daemon without free descriptors can still report.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::net::UnixDatagram;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::core::counted::counted;
use crate::surface::call::Daemon;

/// The variables that a service manager sets for one process; no child may inherit them.
pub const VARIABLES: [&str; 6] = [
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// A message for the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// Clients can connect.
    Ready,
    /// The configuration is being reloaded; [`News::Ready`] follows.
    Reloading,
    /// The daemon is exiting.
    Stopping,
    /// Resets the watchdog.
    Alive,
    /// A status line for people.
    Status(&'a str),
}

/// The connection to the service manager. Without one, messages are discarded.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Finds the service manager by its environment variables. Call it within a runtime.
    ///
    /// A socket that cannot be reached is logged and ignored.
    pub fn find<'a>(variable: impl Fn(&str) -> Option<&'a OsString>) -> Self {
        let Some(address) = variable("NOTIFY_SOCKET").filter(|address| !address.is_empty()) else {
            return Self::default();
        };
        match connect(address) {
            Ok(socket) => Self { socket: Some(socket), watchdog: watchdog(variable) },
            Err(error) => {
                tracing::warn!(?address, %error, "cannot notify the service manager");
                Self::default()
            }
        }
    }

    /// Whether there is a service manager.
    pub fn is_heard(&self) -> bool {
        self.socket.is_some()
    }

    /// The watchdog timeout, if the service manager has one.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends a message; waits while the service manager's queue is full.
    pub async fn tell(&self, news: News<'_>) {
        let Some(socket) = &self.socket else { return };
        let message = match news {
            News::Ready => "READY=1".to_owned(),
            News::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_micros()),
            News::Stopping => "STOPPING=1".to_owned(),
            News::Alive => "WATCHDOG=1".to_owned(),
            News::Status(line) => format!("STATUS={line}"),
        };
        if let Err(error) = socket.send(message.as_bytes()).await {
            tracing::warn!(%error, message, "the service manager was not notified");
        }
    }
}

/// Connects to a path, or to an abstract name that begins with `@`.
fn connect(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(address)?,
    };
    let socket = net::UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

/// systemd compares this time with that of its reload request.
fn monotonic_micros() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000
}

fn watchdog<'a>(variable: impl Fn(&str) -> Option<&'a OsString>) -> Option<Duration> {
    let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
    let ours = u64::from(std::process::id());
    let meant = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(ours);
    number("WATCHDOG_USEC").filter(|time| meant && *time > 0).map(Duration::from_micros)
}

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
    let sessions = counted(running, "session");
    let writing = if daemon.switchboard.open(daemon.sessions.clock().now()).is_empty() {
        "off"
    } else {
        "on"
    };
    format!("{sessions}, {leased} leased; writing is {writing}")
}

#[cfg(test)]
mod tests;
