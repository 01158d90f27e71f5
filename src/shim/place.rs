//! The socket that a shim listens on, and how the shim replaces it when it is removed.
//! Any program of the user can remove the socket or its directory. The shim checks only while no daemon is
//! connected. After the start nothing here allocates.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::shim::family::lives_inside;
use crate::shim::socket::{Other, accept, listen_by, unfinished};

/// The time between two checks of the socket.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The first delay after the socket could not be created again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The device and inode of a file.
type Identity = (u64, u64);

/// A listening socket that is created again after its removal.
#[derive(Debug)]
pub struct SocketPlace {
    path: PathBuf,
    /// The temporary name of the socket until it listens.
    unfinished: PathBuf,
    listener: OwnedFd,
    identity: Identity,
    /// When to check next; `None` while a daemon is connected.
    next: Option<Duration>,
    /// The delay after the next failed attempt.
    wait: Duration,
    nowhere: bool,
}

impl SocketPlace {
    /// Listens at a path.
    ///
    /// # Errors
    /// `AddrInUse` if the path exists; otherwise the kernel's error.
    pub fn listen(path: &Path) -> io::Result<Self> {
        let unfinished = unfinished(path);
        let listener = listen_by(path, &unfinished)?;
        Ok(Self {
            path: path.to_owned(),
            unfinished,
            listener,
            identity: identity(path)?,
            next: None,
            wait: TRY_AGAIN,
            nowhere: false,
        })
    }

    /// Accepts a connection, unless it comes from a program inside a session: such programs run as the same user
    /// and could otherwise type into every terminal, past the daemon's policy. The session that this shim `own`
    /// itself runs in does not count. A peer that cannot be located is rejected.
    pub fn accept(&self, own: i32) -> Option<OwnedFd> {
        let connection = accept(self.listener()).ok()?;
        let peer = Other::of(connection.as_fd()).ok()?;
        let outside = peer.pid > 0 && lives_inside(peer.pid, own) == Ok(false);
        (outside && peer.lives()).then_some(connection)
    }

    /// The socket that daemons connect to.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Records whether the shim is without a daemon.
    pub fn set(&mut self, now: Duration, alone: bool) {
        match (alone, self.next) {
            (true, None) => self.next = Some(now),
            (true, Some(_)) => {}
            (false, _) => (self.next, self.wait, self.nowhere) = (None, TRY_AGAIN, false),
        }
    }

    /// Makes the next check due at once, if no daemon is connected.
    pub fn hurry(&mut self) {
        self.next = self.next.map(|_| Duration::ZERO);
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.next
    }

    /// Checks that the socket exists, and listens again if it does not.
    pub fn on_time(&mut self, now: Duration) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let is_here = identity(&self.path).is_ok_and(|it| it == self.identity);
        if is_here || self.listen_again().is_ok() {
            (self.next, self.wait, self.nowhere) = (Some(now + LOOK_AGAIN), TRY_AGAIN, false);
            return;
        }
        self.nowhere = self.path.parent().is_some_and(|parent| parent.symlink_metadata().is_err());
        self.next = Some(now + self.wait);
        self.wait = (self.wait * 2).min(LOOK_AGAIN);
    }

    /// Whether the directory is gone, so that no daemon can connect.
    pub fn is_nowhere(&self) -> bool {
        self.nowhere
    }

    /// Removes the socket file.
    pub fn clear(&self) {
        let _ = fs::remove_file(&self.path);
    }

    fn listen_again(&mut self) -> io::Result<()> {
        let listener = listen_by(&self.path, &self.unfinished)?;
        self.identity = identity(&self.path)?;
        self.listener = listener;
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    path.symlink_metadata().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::socket::connect_to;

    const fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn place() -> (tempfile::TempDir, PathBuf, SocketPlace) {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("h/0123456789ab.sock");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let place = SocketPlace::listen(&path).unwrap();
        (ground, path, place)
    }

    #[test]
    fn a_socket_that_is_gone_or_stale_is_made_again_by_who_is_alone() {
        let (_ground, path, mut place) = place();
        fs::remove_file(&path).unwrap();
        place.on_time(second(5));
        assert!(!path.exists(), "a daemon is there");
        place.set(second(5), true);
        place.on_time(second(5));
        connect_to(&path).unwrap();
        assert_eq!(place.deadline(), Some(second(35)));

        // Something else lies there, which is not ours to remove.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "plain").unwrap();
        place.on_time(second(34));
        assert_eq!(place.deadline(), Some(second(35)));
        for (now, next) in [(35, 36), (36, 38), (38, 42)] {
            place.on_time(second(now));
            assert_eq!((place.deadline(), place.is_nowhere()), (Some(second(next)), false));
        }
        fs::remove_file(&path).unwrap();
        place.on_time(second(42));
        connect_to(&path).unwrap();
        assert_eq!(place.deadline(), Some(second(72)));
        place.set(second(43), false);
        assert_eq!(place.deadline(), None);
    }

    #[test]
    fn a_directory_that_is_gone_leaves_nowhere_to_listen_until_it_is_back() {
        let (_ground, path, mut place) = place();
        let directory = path.parent().unwrap();
        fs::remove_dir_all(directory).unwrap();
        place.set(second(0), true);
        place.on_time(second(0));
        assert!(place.is_nowhere());
        fs::create_dir(directory).unwrap();
        place.hurry();
        place.on_time(second(0));
        assert!(!place.is_nowhere());
        connect_to(&path).unwrap();
    }

    #[test]
    fn who_looks_for_ever_does_not_look_often() {
        let (_ground, path, mut place) = place();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        place.set(second(0), true);
        let mut looks = 0;
        while place.deadline().is_some_and(|next| next <= second(3_600)) {
            let next = place.deadline().unwrap();
            place.on_time(next);
            looks += 1;
        }
        assert!(looks <= 3_600 / 30 + 6, "{looks}");
    }

    #[test]
    fn a_socket_that_was_left_unfinished_keeps_nobody_from_listening() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("0123456789ab.sock");
        for leave in [
            |path: &Path| drop(fs::write(path, "")),
            |path: &Path| {
                drop(std::os::unix::net::UnixListener::bind(path).unwrap());
            },
        ] {
            leave(&unfinished(&path));
            let place = SocketPlace::listen(&path).unwrap();
            assert!(!unfinished(&path).exists());
            place.clear();
        }
        let _place = SocketPlace::listen(&path).unwrap();
        let taken = SocketPlace::listen(&path).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
