//! Reports the daemon's state to a service manager, in systemd's protocol.
//!
//! One socket stays open for all messages, so that a daemon without free descriptors can still report.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, SocketAddr};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::net::UnixDatagram;

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
                tracing::warn!(?address, %error, "the service manager cannot be told anything");
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
            tracing::warn!(%error, message, "the service manager was not told");
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

#[cfg(test)]
mod tests;
