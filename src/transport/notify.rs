//! Telling a service manager how the daemon is, in the words that systemd reads.
//!
//! It knows nothing of the daemon. One socket is kept for all messages, so that a daemon which has
//! run out of descriptors can still say that it is alive.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, SocketAddr};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::net::UnixDatagram;

/// The variables of a process by which it and its service manager know each other; they mean nobody
/// else, and no child should inherit them.
pub const VARIABLES: [&str; 6] = [
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// What a service manager is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// Clients can come.
    Ready,
    /// The configuration is being read again; [`News::Ready`] says that it was.
    Reloading,
    /// Not much longer.
    Stopping,
    /// The watchdog may wait for another while.
    Alive,
    /// A line for people.
    Status(&'a str),
}

/// The way to the service manager; where there is none, nothing is told.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Finds the service manager by the variables it has set; call it within a runtime.
    ///
    /// A socket that cannot be reached is told to the log and counts as none.
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

    /// Whether somebody is told.
    pub fn is_heard(&self) -> bool {
        self.socket.is_some()
    }

    /// How long the service manager waits for [`News::Alive`]; none if it does not.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells the service manager, waiting while it has more to read than it can take.
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

/// Connects to a path, or to a name of the kernel's when it begins with `@`.
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

/// The time by which systemd tells whether a reload began before or after it asked for one.
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
