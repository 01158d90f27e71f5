//! Searches of the index: the newest lines and commands that match, in bounded time.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rusqlite::{ErrorCode, OptionalExtension, Row, Transaction, params};

use crate::core::ids::{SessionId, TenantId};
use crate::core::wait::line_matcher::LineMatcher;
use crate::store::index::database::{FileStart, IndexError};
use crate::store::index::hits::{CommandHit, IndexHit, IndexHits};
use crate::store::index::words::match_expression;
use crate::store::index::writer::SearchIndex;

/// How many steps of its machine SQLite takes between two looks at the time.
const STEPS_BETWEEN: i32 = 10_000;

/// What to search for, and where.
pub struct IndexQuery<'a> {
    pub matcher: &'a mut LineMatcher,
    /// Only these sessions; all if `None`.
    pub sessions: Option<&'a [SessionId]>,
    /// Whether the caller may know of a session.
    pub sees: &'a dyn Fn(SessionId, &TenantId) -> bool,
    /// Only what was indexed or began at this time or later, in milliseconds since 1970.
    pub since_ms: u64,
    pub hits_max: usize,
}

/// Says whether the time for a search is up.
pub type Expired = Arc<dyn Fn() -> bool + Send + Sync>;

impl fmt::Debug for IndexQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexQuery").field("matcher", &self.matcher).finish_non_exhaustive()
    }
}

/// A session that the index knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSession {
    pub id: SessionId,
    pub tenant: TenantId,
}

/// The index as it was at one moment.
pub struct IndexView<'a> {
    /// Its files, newest first; there is one at least.
    files: Vec<(FileStart, Transaction<'a>)>,
    /// The file that is read.
    reads: Cell<FileStart>,
    expired: Expired,
}

impl fmt::Debug for IndexView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexView").finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Reads the index as it is now, until `expired` says that the time is up. Blocks, so it is not for a runtime's
    /// worker.
    ///
    /// # Errors
    /// Returns why it cannot be read. A damaged file is set aside with the next batch.
    pub fn view<T>(
        &self,
        expired: Expired,
        mut read: impl FnMut(&IndexView<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        // SQLite reports some I/O errors as damage, so only a second failure counts.
        match self.view_once(&expired, &mut read, &mut None) {
            Err(IndexError::Damaged(_)) => {}
            viewed => return viewed,
        }
        let mut damaged = None;
        let viewed = self.view_once(&expired, &mut read, &mut damaged);
        if let (Some(shared), Some(start)) = (self.shared(), damaged) {
            shared.note_damaged(start);
        }
        viewed
    }

    fn view_once<T>(
        &self,
        expired: &Expired,
        read: &mut impl FnMut(&IndexView<'_>) -> Result<T, IndexError>,
        damaged: &mut Option<FileStart>,
    ) -> Result<T, IndexError> {
        let shared = self.shared().ok_or(IndexError::NotReady)?;
        let mut readers = shared.readers.take(&shared.files)?;
        let newest = readers.first().ok_or(IndexError::NotReady)?.start;
        let mut files = Vec::with_capacity(readers.len());
        for reader in &mut readers {
            let is_over = Arc::clone(expired);
            reader.connection.progress_handler(STEPS_BETWEEN, Some(move || is_over()))?;
            files.push((reader.start, reader.connection.transaction()?));
        }
        let expired = Arc::clone(expired);
        let view = IndexView { files, reads: Cell::new(newest), expired };
        let result = read(&view);
        if matches!(result, Err(IndexError::Damaged(_))) {
            *damaged = Some(view.reads.get());
        }
        drop(view);
        if result.is_ok() {
            shared.readers.keep(readers);
        }
        result
    }
}

impl IndexView<'_> {
    /// The file that knows all sessions.
    fn newest(&self) -> Result<&Transaction<'_>, IndexError> {
        let (start, newest) = self.files.first().ok_or(IndexError::NotReady)?;
        self.reads.set(*start);
        Ok(newest)
    }

    /// Up to which rows the index has these sessions, and how many rows of them it lacks.
    ///
    /// # Errors
    /// Returns why the index cannot be read.
    pub fn positions(
        &self,
        sessions: &[SessionId],
    ) -> Result<BTreeMap<SessionId, (u64, u64)>, IndexError> {
        let sql = "SELECT next_row, skipped FROM session WHERE id = ?1";
        let mut statement = self.newest()?.prepare_cached(sql)?;
        let mut positions = BTreeMap::new();
        for session in sessions {
            let read = |row: &Row<'_>| Ok((unsigned(row, 0)?, unsigned(row, 1)?));
            let found = statement.query_row([session.number() as i64], read).optional()?;
            positions.extend(found.map(|found| (*session, found)));
        }
        Ok(positions)
    }

    /// The newest sessions of this name, or whose id begins like this.
    ///
    /// # Errors
    /// Returns why the index cannot be read.
    pub fn sessions_named(&self, given: &str) -> Result<Vec<KnownSession>, IndexError> {
        /// So many are looked at; more have the same name only if all of them are seen by others.
        const MOST: i64 = 1_024;
        let sql = "SELECT id, tenant FROM session
            WHERE name = ?1 OR (?2 AND printf('%012x', id) >= ?1 AND printf('%012x', id) < ?1 || 'g')
            ORDER BY at DESC LIMIT ?3";
        let may_be_id = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut statement = self.newest()?.prepare_cached(sql)?;
        let mut rows = statement.query(params![given, may_be_id, MOST])?;
        let mut known = Vec::new();
        while let Some(row) = rows.next()? {
            if let (Some(id), Some(tenant)) = (session_id(unsigned(row, 0)?), tenant(row, 1)?) {
                known.push(KnownSession { id, tenant });
            }
        }
        Ok(known)
    }

    /// The newest lines and commands that match.
    ///
    /// # Errors
    /// Returns why the index cannot be read.
    pub fn search(&self, mut query: IndexQuery<'_>) -> Result<IndexHits, IndexError> {
        let mut found = IndexHits::default();
        let mut until_ms = u64::MAX;
        for (start, file) in &self.files {
            // What a file has is older than the next one.
            if found.hits.len() >= query.hits_max || until_ms < query.since_ms {
                break;
            }
            (until_ms, _) = (start.0, self.reads.set(*start));
            match self.search_file(file, &mut query, &mut found) {
                Err(IndexStop::Unfinished) => {
                    found.unfinished = true;
                    break;
                }
                Err(IndexStop::Failed(error)) => return Err(error),
                Ok(()) => {}
            }
        }
        found.hits.sort_by_key(|hit| std::cmp::Reverse(hit.at_ms));
        // A command may be in the file in which it ended and in the next one.
        let mut commands = HashSet::new();
        found.hits.retain(|hit| {
            let command = hit.command.as_ref();
            command.is_none_or(|command| commands.insert((hit.session, command.number)))
        });
        found.hits.truncate(query.hits_max);
        Ok(found)
    }

    fn search_file(
        &self,
        file: &Transaction<'_>,
        query: &mut IndexQuery<'_>,
        found: &mut IndexHits,
    ) -> Result<(), IndexStop> {
        let sessions = sessions_in(file, query)?;
        if sessions.is_empty() {
            return Ok(());
        }
        let ids = sessions.keys().map(|id| id.number().to_string()).collect::<Vec<_>>();
        let ids = format!("[{}]", ids.join(","));
        for entries in [SearchedTable::Chunks, SearchedTable::Commands] {
            self.search_entries((file, entries), (&sessions, &ids), query, found)?;
        }
        Ok(())
    }

    fn search_entries(
        &self,
        (file, entries): (&Transaction<'_>, SearchedTable),
        (sessions, ids): (&BTreeMap<SessionId, String>, &str),
        query: &mut IndexQuery<'_>,
        found: &mut IndexHits,
    ) -> Result<(), IndexStop> {
        let words = query.matcher.wanted_words().and_then(match_expression);
        let mut statement = file.prepare_cached(&entries.sql(words.is_some()))?;
        let since = i64::try_from(query.since_ms).unwrap_or(i64::MAX);
        let mut rows = match &words {
            Some(words) => statement.query(params![since, ids, words])?,
            None => statement.query(params![since, ids])?,
        };
        let before = found.hits.len();
        while let Some(row) = rows.next()? {
            let Some(id) = session_id(unsigned(row, 0)?) else { continue };
            let Some(name) = sessions.get(&id) else { continue };
            entries.matches(row, (id, name), query, &mut found.hits)?;
            if found.hits.len() - before >= query.hits_max {
                break;
            }
            if (self.expired)() {
                return Err(IndexStop::Unfinished);
            }
        }
        Ok(())
    }
}

/// The sessions of a file that are searched, with their names: texts of others are not read.
fn sessions_in(
    file: &Transaction<'_>,
    query: &IndexQuery<'_>,
) -> Result<BTreeMap<SessionId, String>, IndexStop> {
    let mut statement = file.prepare_cached("SELECT id, tenant, name FROM session")?;
    let mut rows = statement.query([])?;
    let mut sessions = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (id, tenant) = (session_id(unsigned(row, 0)?), tenant(row, 1)?);
        let (Some(id), Some(tenant)) = (id, tenant) else { continue };
        let is_wanted = query.sessions.is_none_or(|wanted| wanted.contains(&id));
        if is_wanted && (query.sees)(id, &tenant) {
            sessions.insert(id, str_of(row, 2)?.to_owned());
        }
    }
    Ok(sessions)
}

/// Why a search ends early.
enum IndexStop {
    Unfinished,
    Failed(IndexError),
}

impl From<rusqlite::Error> for IndexStop {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Self::Unfinished,
            _ => Self::Failed(error.into()),
        }
    }
}

/// The tables with texts.
#[derive(Clone, Copy, Debug)]
enum SearchedTable {
    Chunks,
    Commands,
}

impl SearchedTable {
    /// Selects entries of the sessions `?2` since `?1`, newest first, and only those with the words `?3` if there are
    /// words.
    fn sql(self, has_words: bool) -> String {
        let (table, columns) = match self {
            Self::Chunks => ("chunk", "e.first_row, e.rows"),
            Self::Commands => ("command", "e.row, e.number, e.duration, e.code, e.cwd, e.by"),
        };
        let (from, matched, order) = match has_words {
            true => (
                format!("{table}_words w CROSS JOIN {table} e ON e.id = w.rowid"),
                format!("{table}_words MATCH ?3 AND"),
                "w.rowid",
            ),
            false => (format!("{table} e"), String::new(), "e.id"),
        };
        format!(
            "SELECT e.session, e.at, e.text, {columns} FROM {from}
             WHERE {matched} e.session IN (SELECT value FROM json_each(?2)) AND e.at >= ?1
             ORDER BY {order} DESC"
        )
    }

    /// Adds what matches of an entry, newest first.
    fn matches(
        self,
        row: &Row<'_>,
        (session, name): (SessionId, &str),
        query: &mut IndexQuery<'_>,
        hits: &mut Vec<IndexHit>,
    ) -> Result<(), IndexStop> {
        let (at_ms, text) = (unsigned(row, 1)?, str_of(row, 2)?);
        let hit =
            |number: u64, text: &str, found: Range<usize>, command: Option<CommandHit>| IndexHit {
                session,
                name: name.to_owned(),
                row: number,
                at_ms,
                text: text.to_owned(),
                found,
                command,
            };
        let mut find = |text: &str| query.matcher.find(text).map_err(|_| IndexStop::Unfinished);
        let first = unsigned(row, 3)?;
        match self {
            Self::Chunks => {
                let rows = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
                let (rows, _) = rows.as_chunks::<4>();
                let lines: Vec<_> = rows.iter().zip(text.split('\n')).collect();
                for (row, line) in lines.into_iter().rev() {
                    if let Some(found) = find(line)? {
                        let number = first + u64::from(u32::from_le_bytes(*row));
                        hits.push(hit(number, line, found, None));
                    }
                }
            }
            Self::Commands => {
                if let Some(found) = find(text)? {
                    let command = CommandHit {
                        number: unsigned(row, 4)?,
                        duration_ms: unsigned(row, 5)?,
                        exit_code: row.get(6)?,
                        directory: row.get(7)?,
                        by: row.get(8)?,
                    };
                    hits.push(hit(first, text, found, Some(command)));
                }
            }
        }
        Ok(())
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

fn str_of<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, rusqlite::Error> {
    row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)
}

fn session_id(number: u64) -> Option<SessionId> {
    format!("{number:012x}").parse().ok()
}

fn tenant(row: &Row<'_>, column: usize) -> Result<Option<TenantId>, rusqlite::Error> {
    Ok(str_of(row, column)?.parse().ok())
}
