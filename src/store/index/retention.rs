//! How much the index keeps: the oldest text and commands are removed beyond so many bytes or days.

use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use crate::store::index::database::IndexError;

/// How much the index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// The most bytes of the database.
    pub bytes_max: u64,
    /// The age at which text is removed.
    pub age_max: Duration,
}

/// How many chunks are removed at once, and how many times in one transaction.
const CHUNKS: i64 = 64;
const STEPS: usize = 16;
/// How many free pages are given back to the file system at once.
const PAGES: i64 = 1_024;

impl IndexLimits {
    /// The time before which text is too old, in milliseconds since 1970.
    pub(super) fn oldest_ms(self, now_ms: u64) -> i64 {
        let age = u64::try_from(self.age_max.as_millis()).unwrap_or(u64::MAX);
        i64::try_from(now_ms.saturating_sub(age)).unwrap_or(i64::MAX)
    }
}

/// Keeps the file from growing much beyond the limit, also if removing is slower than writing.
pub(super) fn bound_file(connection: &Connection, limits: IndexLimits) -> Result<(), IndexError> {
    let pages = (limits.bytes_max + limits.bytes_max / 4) / page_bytes(connection)?.unsigned_abs();
    connection.pragma_update(None, "max_page_count", i64::try_from(pages).unwrap_or(i64::MAX))?;
    Ok(())
}

/// Removes what is too old or too much, in bounded work. The next call continues.
pub(super) fn prune(
    transaction: &Transaction<'_>,
    limits: IndexLimits,
    now_ms: u64,
) -> Result<(), IndexError> {
    let oldest = limits.oldest_ms(now_ms);
    let mut removed = 0;
    for _ in 0..STEPS {
        let old =
            "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk ORDER BY id LIMIT ?1) AND at < ?2";
        let count = transaction.prepare_cached(old)?.execute(params![CHUNKS, oldest])?;
        removed += count;
        if count < CHUNKS as usize {
            break;
        }
    }
    removed +=
        transaction.prepare_cached("DELETE FROM command WHERE at < ?1")?.execute([oldest])?;
    for _ in 0..STEPS {
        if used_bytes(transaction)? <= limits.bytes_max {
            break;
        }
        let most = "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk ORDER BY id LIMIT ?1)";
        removed += transaction.prepare_cached(most)?.execute([CHUNKS])?;
        // Commands go with the text of their time.
        let commands = "DELETE FROM command WHERE at < (SELECT at FROM chunk ORDER BY id LIMIT 1)";
        transaction.prepare_cached(commands)?.execute([])?;
    }
    if removed > 0 {
        let sessions = "DELETE FROM session WHERE (ended OR at < ?1)
            AND NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.session = session.id)
            AND NOT EXISTS (SELECT 1 FROM command WHERE command.session = session.id)";
        transaction.prepare_cached(sessions)?.execute([oldest])?;
    }
    Ok(())
}

/// Gives free pages back to the file system if the file is longer than its limit.
pub(super) fn shrink(connection: &Connection, limits: IndexLimits) -> Result<(), IndexError> {
    let pages = pragma(connection, "page_count")?;
    if pages.saturating_mul(page_bytes(connection)?).unsigned_abs() > limits.bytes_max {
        let mut vacuum =
            connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut freed = vacuum.query([])?;
        while freed.next()?.is_some() {}
    }
    Ok(())
}

/// The bytes of the pages that are in use.
pub(super) fn used_bytes(connection: &Connection) -> Result<u64, IndexError> {
    let pages = pragma(connection, "page_count")? - pragma(connection, "freelist_count")?;
    Ok(pages.saturating_mul(page_bytes(connection)?).unsigned_abs())
}

fn page_bytes(connection: &Connection) -> Result<i64, IndexError> {
    pragma(connection, "page_size")
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, IndexError> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}
