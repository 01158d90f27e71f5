//! The files of the index that are open for searches.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::store::index::database::{FileIdentity, FileStart, IndexError, IndexFiles};

/// A file that is open for searches.
pub(super) struct OpenReader {
    pub(super) start: FileStart,
    identity: Option<FileIdentity>,
    pub(super) connection: Connection,
}

/// The files that the last search left open for the next one.
#[derive(Default)]
pub(super) struct OpenReaders(Mutex<Vec<OpenReader>>);

impl OpenReaders {
    /// Opens the files as they are now, newest first.
    ///
    /// # Errors
    /// Returns why one of them cannot be opened.
    pub(super) fn take(&self, files: &IndexFiles) -> Result<Vec<OpenReader>, IndexError> {
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut kept: BTreeMap<_, _> = kept.into_iter().map(|it| (it.start, it)).collect();
        let mut readers = Vec::new();
        for start in files.all().into_iter().rev() {
            let identity = files.identity(start);
            let reader = match kept.remove(&start).filter(|kept| kept.identity == identity) {
                Some(kept) => kept,
                None => match files.open_reader(start) {
                    Ok(connection) => OpenReader { start, identity, connection },
                    // It was removed meanwhile.
                    Err(_) if files.identity(start).is_none() => continue,
                    Err(error) => return Err(error),
                },
            };
            readers.push(reader);
        }
        Ok(readers)
    }

    /// Leaves files open for the next search.
    pub(super) fn keep(&self, readers: Vec<OpenReader>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = readers;
    }
}
