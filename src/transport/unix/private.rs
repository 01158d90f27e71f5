//! Files that only our user may access.
//!
//! Checks use the open file, so that it cannot be replaced between the check and the read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::unistd::Uid;

#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is not a file")]
    NotAFile,
    #[error("it belongs to uid {owner}, and we are uid {us}")]
    Owner { owner: u32, us: u32 },
    #[error("others may read or change it, its mode is {mode:04o}; run: chmod 600 {}", path.display())]
    Mode { path: PathBuf, mode: u32 },
    #[error("it has more than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
}

/// Reads a text of at most `bytes_max` bytes. Follows symbolic links.
///
/// # Errors
/// Fails when the file cannot be read, is too large, or is accessible to other users.
pub fn read(path: &Path, bytes_max: u64) -> Result<String, PrivateError> {
    // A blocking open would hang on a FIFO.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    judge(path, &file.metadata()?)?;
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(PrivateError::TooLarge { bytes_max });
    }
    Ok(text)
}

/// Creates a new file and syncs it to disk.
///
/// # Errors
/// Returns the system's error, also when the path exists. A file that was not written completely is removed.
pub fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // The first error is returned; a leftover file matters less.
        let _ = fs::remove_file(path);
    }
    written
}

/// Creates or replaces a file in one step. Only one process at a time may call this.
///
/// # Errors
/// Returns the system's error.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    create(&fresh, text)?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Truncates a file, or creates an empty one. Needs no space on a full disk and follows no symbolic link.
///
/// # Errors
/// Returns the system's error; the file is then unchanged.
pub fn empty(path: &Path) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(flags);
    options.open(path).map(drop)
}

fn judge(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    let (owner, us) = (metadata.uid(), Uid::effective().as_raw());
    let mode = metadata.permissions().mode() & 0o7777;
    if !metadata.is_file() {
        return Err(PrivateError::NotAFile);
    }
    if owner != us {
        return Err(PrivateError::Owner { owner, us });
    }
    if mode & 0o077 != 0 {
        return Err(PrivateError::Mode { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn what_was_made_is_for_us_alone_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        create(&path, "text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(read(&path, 4).unwrap(), "text");
        assert!(matches!(read(&path, 3), Err(PrivateError::TooLarge { bytes_max: 3 })));
        replace(&path, "other").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(read(&path, 5).unwrap(), "other");
    }

    #[test]
    fn what_is_there_is_not_written_over_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        create(&path, "text").unwrap();
        symlink(directory.path().join("elsewhere"), &link).unwrap();
        for there in [&path, &link] {
            let error = create(there, "more").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(read(&path, 9).unwrap(), "text");
    }

    #[test]
    fn emptying_leaves_an_empty_file_and_follows_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        for _ in 0..2 {
            empty(&path).unwrap();
            assert_eq!(read(&path, 0).unwrap(), "");
            replace(&path, "text").unwrap();
        }
        symlink(&path, &link).unwrap();
        empty(&link).unwrap_err();
        assert_eq!(read(&path, 4).unwrap(), "text");
    }

    #[test]
    fn what_others_could_read_or_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        create(&path, "text").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601, 0o644, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = read(&path, 9).unwrap_err();
            assert!(matches!(error, PrivateError::Mode { mode: found, .. } if found == mode));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path, 9).is_ok());
    }

    #[test]
    fn only_a_file_is_read_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        for there in [directory.path(), &pipe] {
            assert!(matches!(read(there, 9), Err(PrivateError::NotAFile)));
        }
        assert!(matches!(read(&directory.path().join("none"), 9), Err(PrivateError::Io(_))));
    }
}
