//! The database file: its tables, how it is opened, and how one that cannot be used is set aside.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The version of the tables. A file of another version is set aside.
const VERSION: i32 = 1;
/// How long a transaction waits for that of another process.
const BUSY_MAX: Duration = Duration::from_secs(2);
/// The tables. Texts are stored once: the full-text tables keep words only, and read the texts from the others.
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
    CREATE INDEX command_at ON command (at);
    CREATE VIRTUAL TABLE chunk_words USING fts5 (
        text, content = 'chunk', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0'
    );
    CREATE VIRTUAL TABLE command_words USING fts5 (
        text, content = 'command', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0'
    );
    INSERT INTO chunk_words (chunk_words, rank) VALUES ('secure-delete', 1);
    INSERT INTO command_words (command_words, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER chunk_added AFTER INSERT ON chunk BEGIN
        INSERT INTO chunk_words (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER chunk_removed AFTER DELETE ON chunk BEGIN
        INSERT INTO chunk_words (chunk_words, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER command_added AFTER INSERT ON command BEGIN
        INSERT INTO command_words (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER command_removed AFTER DELETE ON command BEGIN
        INSERT INTO command_words (command_words, rowid, text) VALUES ('delete', old.id, old.text);
    END;
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

/// The place of the database.
#[derive(Clone, Debug)]
pub(super) struct IndexFile {
    directory: PathBuf,
}

/// Which file is at a path.
pub(super) type FileIdentity = (u64, u64);

impl IndexFile {
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.join("index.db")
    }

    /// Which file is there now.
    pub(super) fn identity(&self) -> Option<FileIdentity> {
        fs::symlink_metadata(self.path()).ok().map(|it| (it.dev(), it.ino()))
    }

    /// Opens the database for its writer, and creates it and its directory where they are missing.
    pub(super) fn open_writer(&self) -> Result<Connection, IndexError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // SQLite gives the files beside it the same mode. A file that exists must not be opened and closed here, which
        // would release the locks that other connections of this process have.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let mut connection = self.connect()?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power failure may take the newest rows, and never damages the file.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
        // What is deleted must not stay readable in free pages.
        connection.pragma_update(None, "secure_delete", "FAST")?;
        let create =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i32 = create.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 =
            create.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        if version == 0 && tables == 0 {
            create.execute_batch(TABLES)?;
            create.pragma_update(None, "user_version", VERSION)?;
        } else if version != VERSION {
            return Err(IndexError::Damaged(format!("its version is {version}, not {VERSION}")));
        }
        create.commit()?;
        Ok(connection)
    }

    /// Opens an existing database for searches.
    pub(super) fn open_reader(&self) -> Result<Connection, IndexError> {
        if self.identity().is_none() {
            return Err(IndexError::NotReady);
        }
        let connection = self.connect()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    fn connect(&self) -> Result<Connection, IndexError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        // The directory may be reached through links; the file itself may not be one.
        let path = fs::canonicalize(&self.directory)?.join("index.db");
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_MAX)?;
        Ok(connection)
    }

    /// Moves the database out of the way, in place of one that was moved earlier. Returns where it is now.
    pub(super) fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = self.directory.join("index.db.damaged");
        // Without the database they mean nothing, and must not be applied to the next one.
        for beside in ["index.db-wal", "index.db-shm"] {
            match fs::remove_file(self.directory.join(beside)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(self.path(), &aside)?;
        File::open(&self.directory)?.sync_all()?;
        Ok(aside)
    }
}
