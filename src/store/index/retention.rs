//! How much the index keeps. Text is in several files one after the other, and the oldest file is removed as a whole.

use std::time::Duration;

use crate::store::index::database::{FileStart, IndexFiles};

/// How many files share what is kept, so that about this part of it goes at once.
const PARTS: u32 = 8;

/// How much the index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// The most bytes of all files, but for one batch.
    pub bytes_max: u64,
    /// The age at which text is removed, if not an eighth of it earlier.
    pub age_max: Duration,
}

impl IndexLimits {
    /// The time before which text is too old, in milliseconds since 1970.
    pub(super) fn oldest_ms(self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(millis(self.age_max))
    }

    /// Whether a file of so many bytes has enough, so that the next one begins.
    pub(super) fn is_full(self, start: FileStart, bytes: u64, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(start.0);
        bytes >= self.bytes_max / u64::from(PARTS) || age_ms >= millis(self.age_max / PARTS)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Removes the oldest files as long as all of their text is too old, or all files together are too long. The newest
/// file stays.
pub(super) fn remove_old(files: &IndexFiles, limits: IndexLimits, now_ms: u64) {
    let (all, oldest_ms) = (files.all(), limits.oldest_ms(now_ms));
    let mut bytes: u64 = all.iter().map(|start| files.bytes(*start)).sum();
    for (start, next) in all.iter().zip(all.iter().skip(1)) {
        // What the next file has is newer than all of this one.
        let is_old = next.0 < oldest_ms;
        if !is_old && bytes <= limits.bytes_max {
            break;
        }
        bytes = bytes.saturating_sub(files.bytes(*start));
        if let Err(error) = files.remove(*start) {
            tracing::warn!(%error, "old text cannot be removed from the search index");
            break;
        }
    }
    files.forget_damaged(oldest_ms);
}
