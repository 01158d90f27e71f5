//! Whose daemon a command expects at a socket.

use std::env;
use std::path::Path;

use crate::config::paths::RuntimePaths;
use crate::transport::unix::impostor::ExpectedDaemon;

/// The daemon of this user at a socket in its own runtime directory. Every other socket was named, with `--socket` or
/// TERMGATE_SOCKET, and so was its daemon.
pub fn expected_at(socket: &Path) -> ExpectedDaemon {
    match RuntimePaths::from_environment(|name| env::var_os(name)) {
        Ok(own) if socket.starts_with(own.root()) => ExpectedDaemon::Ours,
        Ok(_) | Err(_) => ExpectedDaemon::Named,
    }
}
