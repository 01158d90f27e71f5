//! Checks that the process listening at a socket can be the daemon that the client means.
//!
//! A program in a session can rename a daemon's socket and listen in its place. Clients must send it nothing.

use std::os::fd::AsFd;
use std::path::Path;

use crate::session::pty::account::own_uid;
use crate::shim::family::listens_inside;
use crate::shim::socket::Other;
use crate::transport::unix::directory::belongs_to;

/// Whose daemon may listen at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedDaemon {
    /// That of our user, or one that root runs.
    Ours,
    /// That of any user, since its socket was named: of the user to whom the socket's directory belongs.
    Named,
}

/// Why the client must not talk to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impostor {
    #[error("process {pid}, which listens there, belongs to user {uid}")]
    User { pid: i32, uid: u32 },
    #[error(
        "process {pid}, which listens there, belongs to user {uid}, and others may have put the socket \
         there"
    )]
    Directory { pid: i32, uid: u32 },
    #[error(
        "process {pid}, which listens there, lives in a session, or its limit `ulimit -Hx` was lowered"
    )]
    Inside { pid: i32 },
    #[error("process {pid}, which listens there, cannot be looked at")]
    Unknown { pid: i32 },
    /// The listener has ended; another process may have its socket.
    #[error("the process that listened there has ended")]
    Ended,
}

/// Checks the process that listens at the other end of this connection.
///
/// Root may connect to every user, and a system service manager may listen for every user. `path` is the socket's.
///
/// # Errors
/// Returns the reason why the client must send nothing.
pub fn check_listener(
    connection: &impl AsFd,
    path: &Path,
    expected: ExpectedDaemon,
) -> Result<(), Impostor> {
    let listener = Other::of(connection.as_fd()).map_err(|_| Impostor::Ended)?;
    let pid = listener.pid;
    let judged = check_user(&listener, path, expected).and_then(|()| {
        match listens_inside(pid, std::process::id().cast_signed()) {
            Ok(false) => Ok(()),
            Ok(true) => Err(Impostor::Inside { pid }),
            Err(_) => Err(Impostor::Unknown { pid }),
        }
    });
    // The result is valid only if the listener kept its process number during the check.
    if listener.lives() { judged } else { Err(Impostor::Ended) }
}

fn check_user(listener: &Other, path: &Path, expected: ExpectedDaemon) -> Result<(), Impostor> {
    let Other { pid, uid, .. } = *listener;
    if uid == 0 || [0, uid].contains(&own_uid()) {
        return Ok(());
    }
    match expected {
        ExpectedDaemon::Ours => Err(Impostor::User { pid, uid }),
        ExpectedDaemon::Named if belongs_to(path, uid) => Ok(()),
        ExpectedDaemon::Named => Err(Impostor::Directory { pid, uid }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;
    use crate::shim::mark;
    use crate::transport::unix::tests::alone;

    /// Has another process listen at a path, in a session or not.
    fn listening(test: &str, inside: bool, path: &Path) -> alone::Other {
        if let Some(path) = alone::argument(test) {
            if inside {
                mark::set(7).unwrap();
            }
            let _listener = UnixListener::bind(path).unwrap();
            alone::wait_to_be_killed();
        }
        let mut other = alone::start(test, path);
        other.wait_until_ready();
        other
    }

    #[test]
    fn who_listens_outside_of_all_sessions_is_spoken_with_until_it_ends() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("test.sock");
        let test = "transport::unix::impostor::tests::\
                    who_listens_outside_of_all_sessions_is_spoken_with_until_it_ends";
        let other = listening(test, false, &path);
        let connection = UnixStream::connect(&path).unwrap();
        assert_eq!(check_listener(&connection, &path, ExpectedDaemon::Ours), Ok(()));
        other.kill();
        assert_eq!(check_listener(&connection, &path, ExpectedDaemon::Ours), Err(Impostor::Ended));
    }

    #[test]
    fn who_listens_inside_a_session_is_an_impostor() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("test.sock");
        let test = "transport::unix::impostor::tests::who_listens_inside_a_session_is_an_impostor";
        let other = listening(test, true, &path);
        let connection = UnixStream::connect(&path).unwrap();
        let pid = other.pid();
        assert_eq!(
            check_listener(&connection, &path, ExpectedDaemon::Ours),
            Err(Impostor::Inside { pid })
        );
    }

    #[test]
    fn this_process_is_spoken_with() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(check_listener(&ours, Path::new("/"), ExpectedDaemon::Ours), Ok(()));
    }
}
