//! Change notifications for one file, from inotify.
//!
//! The directory is watched, because a replaced file is a new inode.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::session::pty::watch::watch;

/// Events of a file in the directory.
const OF_FILE: AddWatchFlags = AddWatchFlags::IN_MOVED_TO
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_ATTRIB);

/// Events of the directory after which it sends no more.
const OF_DIRECTORY: AddWatchFlags = AddWatchFlags::IN_DELETE_SELF
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_UNMOUNT)
    .union(AddWatchFlags::IN_IGNORED);

#[derive(Debug)]
pub struct Changes {
    inotify: Inotify,
    ready: AsyncFd<OwnedFd>,
    name: OsString,
    /// The directory above the file's, with the name of that.
    above: Option<(WatchDescriptor, OsString)>,
}

impl Changes {
    /// Watches the file at `path` from now on, whether or not it exists. Its directory must exist. Call it within a
    /// runtime.
    ///
    /// # Errors
    /// Returns the kernel's error, such as a missing directory or too many watches.
    pub fn of(path: &Path) -> io::Result<Self> {
        let missing = || io::Error::from(io::ErrorKind::InvalidInput);
        let (directory, name) = path.parent().zip(path.file_name()).ok_or_else(missing)?;
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let flags = OF_FILE | AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
        inotify.add_watch(directory, flags | AddWatchFlags::IN_ONLYDIR)?;
        let ready = watch(inotify.as_fd().try_clone_to_owned()?, Interest::READABLE)?;
        Ok(Self { inotify, ready, name: name.to_owned(), above: None })
    }

    /// The same, and told at once when the directory is removed: the kernel tells the directory itself only when
    /// nobody has a file open anywhere in it.
    ///
    /// # Errors
    /// As for [`Changes::of`].
    pub fn of_file_in_use(path: &Path) -> io::Result<Self> {
        let mut changes = Self::of(path)?;
        let directory = path.parent();
        if let Some((above, name)) = directory.and_then(|it| it.parent().zip(it.file_name())) {
            let removed = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
            let watch = changes.inotify.add_watch(above, removed | AddWatchFlags::IN_ONLYDIR)?;
            changes.above = Some((watch, name.to_owned()));
        }
        Ok(changes)
    }

    /// Waits for the next change; several changes may be reported as one.
    ///
    /// # Errors
    /// Returns `NotFound` when the directory is gone, otherwise the kernel's error. No change is reported after an
    /// error.
    pub async fn next(&self) -> io::Result<()> {
        loop {
            let mut guard = self.ready.readable().await?;
            match self.inotify.read_events() {
                Ok(events) if events.iter().any(|event| self.ends(event)) => {
                    return Err(io::ErrorKind::NotFound.into());
                }
                Ok(events) if events.iter().any(|event| self.concerns(event)) => return Ok(()),
                Ok(_) => {}
                Err(Errno::EAGAIN) => guard.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the directory is gone, or nothing more will be told of it.
    fn ends(&self, event: &InotifyEvent) -> bool {
        match &self.above {
            Some((above, name)) if event.wd == *above => event.name.as_ref() == Some(name),
            Some(_) | None => event.mask.intersects(OF_DIRECTORY),
        }
    }

    fn concerns(&self, event: &InotifyEvent) -> bool {
        let is_above = self.above.as_ref().is_some_and(|(above, _)| event.wd == *above);
        let is_named = event.name.as_ref() == Some(&self.name);
        // After a queue overflow the lost events are unknown.
        is_named && !is_above || event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn told(changes: &Changes) -> io::Result<()> {
        timeout(Duration::from_secs(30), changes.next()).await.expect("a change is told")
    }

    #[tokio::test]
    async fn a_file_that_is_made_replaced_changed_or_removed_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("file"), directory.path().join("other"));
        let changes = Changes::of(&path).unwrap();
        fs::write(&path, "one").unwrap();
        told(&changes).await.unwrap();
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        told(&changes).await.unwrap();
        fs::remove_file(&path).unwrap();
        told(&changes).await.unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_is_removed_is_told_while_a_file_in_it_is_open() {
        let ground = tempfile::tempdir().unwrap();
        let directory = ground.path().join("state");
        fs::create_dir_all(directory.join("deep")).unwrap();
        let changes = Changes::of_file_in_use(&directory.join("file")).unwrap();
        let open = fs::File::create(directory.join("deep/open")).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(told(&changes).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(open);
    }

    #[tokio::test]
    async fn the_files_beside_it_are_not_told() {
        let directory = tempfile::tempdir().unwrap();
        let changes = Changes::of(&directory.path().join("file")).unwrap();
        fs::write(directory.path().join("other"), "one").unwrap();
        let next = std::pin::pin!(changes.next());
        // What happened is readable at once, so that whatever is told is told now.
        assert!(timeout(Duration::ZERO, next).await.is_err());
    }

    #[tokio::test]
    async fn the_end_of_the_directory_is_the_end_of_the_news() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("below");
        fs::create_dir(&below).unwrap();
        let changes = Changes::of(&below.join("file")).unwrap();
        fs::remove_dir(&below).unwrap();
        assert!(told(&changes).await.is_err());
        assert!(Changes::of(&below.join("file")).is_err());
    }
}
