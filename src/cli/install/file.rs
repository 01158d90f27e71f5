//! Reads, backs up and atomically replaces a client's file.
//!
//! It follows links, so that a file that a user keeps elsewhere stays there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::cli::install::format::FileFormatError;

/// The largest file that termgate reads, in bytes.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How many backups are read, the newest first.
const BACKUPS_MAX: usize = 16;
/// The mark between the file's name and the time in a backup's name.
const BACKUP_MARK: &str = ".termgate-";
const BACKUP_END: &str = ".bak";
/// How many backups can be made in the same second.
const SAME_SECOND_MAX: u64 = 1_000;

/// The file that marks a directory as made by termgate.
const MADE: &str = ".termgate-made";

/// Some editors write this at the start of a text. It is not content.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is a broken symbolic link")]
    DanglingLink,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is not a text file")]
    NotText,
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    #[error("it is read-only")]
    ReadOnly,
    #[error("it changed meanwhile")]
    Changed,
    #[error(transparent)]
    FileFormat(#[from] FileFormatError),
}

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct ClientFile {
    /// The path with links resolved.
    path: PathBuf,
    /// The content with its byte order mark, if any; none when the file does not exist.
    whole: Option<String>,
}

impl ClientFile {
    /// Reads a file, which may not exist.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Err(_) if path.is_symlink() => return Err(FileError::DanglingLink),
            Err(_) => return Ok(Self { path: path.to_owned(), whole: None }),
        };
        let whole = Some(read_text(&path)?);
        Ok(Self { path, whole })
    }

    /// The path with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content without a byte order mark; none when the file does not exist.
    pub fn text(&self) -> Option<&str> {
        self.whole.as_deref().map(without_mark)
    }

    /// The contents before termgate's changes, newest first. Unreadable backups are skipped.
    pub fn earlier(&self) -> Vec<String> {
        let mut backups = self.backups();
        backups.sort_by(|one, other| other.cmp(one));
        backups.truncate(BACKUPS_MAX);
        let texts = backups.iter().filter_map(|(_, path)| read_text(path).ok());
        texts.map(|text| without_mark(&text).to_owned()).collect()
    }

    /// Replaces the content and keeps a byte order mark. It makes no backup.
    ///
    /// # Errors
    /// Nothing was changed, with the reason.
    pub fn replace(&self, text: &str) -> Result<(), FileError> {
        if self.whole.is_some() {
            self.check_writable()?;
        }
        if let Some(directory) = self.path.parent() {
            make_directory(directory)?;
        }
        let marked = self.whole.as_ref().is_some_and(|whole| whole.starts_with(BYTE_ORDER_MARK));
        let whole = if marked { format!("{BYTE_ORDER_MARK}{text}") } else { text.to_owned() };
        let (fresh, mut file) = self.fresh()?;
        let written = self.fill(&mut file, &whole).and_then(|()| {
            self.check_unchanged()?;
            Ok(fs::rename(&fresh, &self.path)?)
        });
        or_gone(&fresh, written)
    }

    /// Removes the file without a backup, when its content is not worth one.
    pub fn remove(&self) -> Result<(), FileError> {
        self.check_writable()?;
        self.check_unchanged()?;
        Ok(fs::remove_file(&self.path)?)
    }

    /// Removes what termgate left beside it: its backups, and if the file is gone, directories that termgate made for
    /// it.
    pub fn clean_up(&self) {
        for (_, backup) in self.backups() {
            // Another process may have removed it.
            let _ = fs::remove_file(backup);
        }
        if let Some(directory) = self.path.parent().filter(|_| !self.path.exists()) {
            leave_directory(directory);
        }
    }

    pub fn is_like(&self, other: &Self) -> bool {
        self.whole == other.whole
    }

    fn check_writable(&self) -> Result<(), FileError> {
        // A replacement would succeed, but against the intent of the user who made the file read-only.
        if fs::metadata(&self.path)?.permissions().readonly() {
            return Err(FileError::ReadOnly);
        }
        Ok(())
    }

    /// Copies the file to a backup, if it exists, and returns the backup's path.
    pub fn back_up(&self, now: SystemTime) -> Result<Option<PathBuf>, FileError> {
        let Some(whole) = &self.whole else { return Ok(None) };
        self.check_writable()?;
        let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let candidates = (since..since + SAME_SECOND_MAX).map(|second| self.backup_path(second));
        for path in candidates {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    return or_gone(&path, self.fill(&mut file, whole)).map(|()| Some(path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
    }

    /// Creates a new file beside it.
    fn fresh(&self) -> Result<(PathBuf, File), FileError> {
        let name = format!("{}.termgate-new-{}", self.name(), std::process::id());
        let path = self.path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((path, file))
    }

    /// Writes a text with the mode and owner of the existing file.
    fn fill(&self, file: &mut File, text: &str) -> Result<(), FileError> {
        file.write_all(text.as_bytes())?;
        if self.whole.is_some() {
            let there = fs::metadata(&self.path)?;
            let own = file.metadata()?;
            if (there.uid(), there.gid()) != (own.uid(), own.gid()) {
                fchown(&*file, Some(there.uid()), Some(there.gid()))?;
            }
            file.set_permissions(PermissionsExt::from_mode(there.mode() & 0o7777))?;
        }
        Ok(file.sync_all()?)
    }

    fn check_unchanged(&self) -> Result<(), FileError> {
        let now = match read_text(&self.path) {
            Ok(text) => Some(text),
            Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if now == self.whole { Ok(()) } else { Err(FileError::Changed) }
    }

    fn backups(&self) -> Vec<(u64, PathBuf)> {
        let Some(entries) = self.path.parent().and_then(|it| fs::read_dir(it).ok()) else {
            return Vec::new();
        };
        let begins = format!("{}{BACKUP_MARK}", self.name());
        let backup = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let second = name.to_str()?.strip_prefix(&begins)?.strip_suffix(BACKUP_END)?;
            Some((second.parse().ok()?, entry.path()))
        };
        entries.flatten().filter_map(backup).collect()
    }

    fn backup_path(&self, second: u64) -> PathBuf {
        self.path.with_file_name(format!("{}{BACKUP_MARK}{second}{BACKUP_END}", self.name()))
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Creates a directory with its parents, and marks the topmost that was missing.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let topmost = directory.ancestors().take_while(|it| !it.exists()).last();
    fs::create_dir_all(directory)?;
    topmost.map_or(Ok(()), |topmost| fs::write(topmost.join(MADE), ""))
}

/// Removes a directory and its parents while they are empty, up to one that termgate made.
pub fn leave_directory(directory: &Path) {
    for directory in directory.ancestors() {
        if !directory.ancestors().any(|it| it.join(MADE).exists()) {
            return;
        }
        let mark = directory.join(MADE);
        let is_empty = fs::read_dir(directory).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| entry.path() == mark))
        });
        if is_empty {
            let _ = fs::remove_file(mark);
        }
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

/// Removes an incomplete file. The first error matters, not a failure to remove.
fn or_gone<T>(path: &Path, made: Result<T, FileError>) -> Result<T, FileError> {
    if made.is_err() {
        let _ = fs::remove_file(path);
    }
    made
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

fn read_text(path: &Path) -> Result<String, FileError> {
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(FileError::TooLarge(BYTES_MAX));
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText)
}

#[cfg(test)]
mod tests;
