//! The database files: their tables, how they are opened, and how one that cannot be used is set aside.
//!
//! Each is named for the time at which it begins, and has all text from then on until the next one begins. Nothing is
//! ever removed from a file: the oldest file is, as a whole.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction};
use uuid::Uuid;

/// The version of the tables. A file of another version is set aside.
const VERSION: i32 = 3;
/// How long a transaction waits for that of another process.
const BUSY_MAX: Duration = Duration::from_secs(2);
/// The tables. Texts are stored once: the full-text tables know only which words an entry has.
///
/// `chunk.rows` has four bytes for each line of the text: how far its first row is from `first_row`.
const TABLES: &str = "
    CREATE TABLE session (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        next_row INTEGER NOT NULL,
        skipped INTEGER NOT NULL,
        at INTEGER NOT NULL,
        ended INTEGER NOT NULL
    );
    CREATE TABLE chunk (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        at INTEGER NOT NULL,
        first_row INTEGER NOT NULL,
        rows BLOB NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX chunk_session ON chunk (session, id);
    CREATE TABLE command (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,
        duration INTEGER NOT NULL,
        code INTEGER,
        row INTEGER NOT NULL,
        by TEXT,
        cwd TEXT,
        text TEXT NOT NULL,
        UNIQUE (session, number)
    );
    CREATE VIRTUAL TABLE chunk_words USING fts5 (
        words, content = '', detail = none, columnsize = 0, tokenize = 'ascii'
    );
    CREATE VIRTUAL TABLE command_words USING fts5 (
        words, content = '', detail = none, columnsize = 0, tokenize = 'ascii'
    );
";

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the search index is damaged: {0}")]
    Damaged(String),
    #[error("the search index cannot be used: {0}")]
    Unusable(String),
    #[error("the search index is not ready")]
    NotReady,
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        let damaged = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
        match error.sqlite_error_code() {
            Some(code) if damaged.contains(&code) => Self::Damaged(error.to_string()),
            _ => Self::Unusable(error.to_string()),
        }
    }
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// The place of the databases.
#[derive(Clone, Debug)]
pub(super) struct IndexFiles {
    directory: PathBuf,
}

/// Which file is at a path.
pub(super) type FileIdentity = (u64, u64);

/// When a file begins, in milliseconds since 1970; its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileStart(pub(super) u64);

impl IndexFiles {
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn path(&self, start: FileStart) -> PathBuf {
        self.directory.join(format!("index-{}.db", start.0))
    }

    /// The files that are there, oldest first.
    pub(super) fn all(&self) -> Vec<FileStart> {
        let start = |name: &str| name.strip_prefix("index-")?.strip_suffix(".db")?.parse().ok();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut all: Vec<_> =
            entries.filter_map(|it| Some(FileStart(start(it.file_name().to_str()?)?))).collect();
        all.sort_unstable();
        all
    }

    /// Which file is there now.
    pub(super) fn identity(&self, start: FileStart) -> Option<FileIdentity> {
        fs::symlink_metadata(self.path(start)).ok().map(|it| (it.dev(), it.ino()))
    }

    /// The bytes of a file, with those beside it that SQLite has not moved into it yet.
    pub(super) fn bytes(&self, start: FileStart) -> u64 {
        let length = |path: PathBuf| fs::symlink_metadata(path).map_or(0, |it| it.len());
        length(self.path(start)) + length(self.beside(start, "-wal"))
    }

    fn beside(&self, start: FileStart, suffix: &str) -> PathBuf {
        self.directory.join(format!("index-{}.db{suffix}", start.0))
    }

    /// Creates a file that knows the sessions which `fill` adds. It appears under its name as a whole.
    pub(super) fn create(
        &self,
        start: FileStart,
        fill: impl FnOnce(&Transaction<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let new = self.directory.join(format!(".{}.new", Uuid::new_v4().simple()));
        let created = self.create_at(&new, fill).and_then(|()| {
            // Another process may have created the same one.
            match fs::hard_link(&new, self.path(start)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
                _ => Ok(()),
            }
        });
        let _ = fs::remove_file(&new);
        created
    }

    fn create_at(
        &self,
        new: &Path,
        fill: impl FnOnce(&Transaction<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        let mut connection = self.connect(new)?;
        let create = connection.transaction()?;
        create.execute_batch(TABLES)?;
        create.pragma_update(None, "user_version", VERSION)?;
        fill(&create)?;
        create.commit()?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }

    /// Opens a file for its writer.
    pub(super) fn open_writer(&self, start: FileStart) -> Result<Connection, IndexError> {
        let connection = self.connect(&self.path(start))?;
        // SQLite gives the files beside it the same mode.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power failure may take the newest rows, and never damages the file.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
        let version: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match version {
            VERSION => Ok(connection),
            _ => Err(IndexError::Damaged(format!("its version is {version}, not {VERSION}"))),
        }
    }

    /// Opens a file for searches.
    pub(super) fn open_reader(&self, start: FileStart) -> Result<Connection, IndexError> {
        let connection = self.connect(&self.path(start))?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    fn connect(&self, path: &Path) -> Result<Connection, IndexError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        // The directory may be reached through links; the file itself may not be one.
        let name = path.file_name().ok_or(IndexError::NotReady)?;
        let connection =
            Connection::open_with_flags(fs::canonicalize(&self.directory)?.join(name), flags)?;
        connection.busy_timeout(BUSY_MAX)?;
        Ok(connection)
    }

    /// Removes a file for good.
    pub(super) fn remove(&self, start: FileStart) -> io::Result<()> {
        fs::remove_file(self.path(start))?;
        self.remove_beside(start)
    }

    fn remove_beside(&self, start: FileStart) -> io::Result<()> {
        for suffix in ["-wal", "-shm"] {
            match fs::remove_file(self.beside(start, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves a file out of the way, in place of one that was moved earlier. Returns where it is now.
    pub(super) fn set_aside(&self, start: FileStart) -> io::Result<PathBuf> {
        let aside = self.damaged();
        // Without the database they mean nothing, and must not be applied to another.
        self.remove_beside(start)?;
        fs::rename(self.path(start), &aside)?;
        File::open(&self.directory)?.sync_all()?;
        Ok(aside)
    }

    /// Removes the file that was set aside, if it is older than this.
    pub(super) fn forget_damaged(&self, oldest_ms: u64) {
        let at_ms = |it: Metadata| it.mtime().saturating_mul(1_000);
        let set_aside = fs::symlink_metadata(self.damaged()).map(at_ms);
        if set_aside.is_ok_and(|at_ms| at_ms.unsigned_abs() < oldest_ms) {
            let _ = fs::remove_file(self.damaged());
        }
    }

    fn damaged(&self) -> PathBuf {
        self.directory.join("index.db.damaged")
    }
}
