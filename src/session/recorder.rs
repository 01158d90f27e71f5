//! The way to the journal for all that acts: each act is recorded before it takes effect.

use std::fmt;
use std::sync::Arc;

use crate::core::journal::{ActOutcome, JournalEntry, NotRecorded, RecordNumber};

type Append = dyn Fn(&JournalEntry<'_>) -> Result<RecordNumber, NotRecorded> + Send + Sync;
type Note = dyn Fn(&JournalEntry<'_>) + Send + Sync;

/// Appends to the journal; cheap to clone.
#[derive(Clone)]
pub struct ActRecorder {
    append: Arc<Append>,
    note: Arc<Note>,
}

impl fmt::Debug for ActRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActRecorder")
    }
}

impl ActRecorder {
    /// `append` fails where nothing may be done that is not recorded. `note` keeps what has happened already.
    pub fn new(
        append: impl Fn(&JournalEntry<'_>) -> Result<RecordNumber, NotRecorded> + Send + Sync + 'static,
        note: impl Fn(&JournalEntry<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self { append: Arc::new(append), note: Arc::new(note) }
    }

    /// Records what is about to be done.
    ///
    /// # Errors
    /// Returns [`NotRecorded`] if it cannot be. Then it must not be done.
    pub fn append(&self, entry: &JournalEntry<'_>) -> Result<RecordNumber, NotRecorded> {
        (self.append)(entry)
    }

    /// Records what has happened.
    pub fn note(&self, entry: &JournalEntry<'_>) {
        (self.note)(entry);
    }

    pub fn conclude(&self, of: RecordNumber, outcome: ActOutcome<'_>) {
        self.note(&JournalEntry::Outcome { of, outcome });
    }
}

#[cfg(test)]
pub(in crate::session) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::core::journal::ActContent;

    /// A journal in memory.
    #[derive(Clone, Debug, Default)]
    pub(in crate::session) struct TestJournal(Arc<TestRecords>);

    #[derive(Debug, Default)]
    struct TestRecords {
        lines: Mutex<Vec<String>>,
        is_full: AtomicBool,
    }

    impl TestJournal {
        pub(in crate::session) fn recorder(&self) -> ActRecorder {
            let (appended, noted) = (self.clone(), self.clone());
            let append = move |entry: &JournalEntry<'_>| {
                if appended.0.is_full.load(Ordering::Relaxed) {
                    return Err(NotRecorded("full".to_owned()));
                }
                Ok(appended.add(entry))
            };
            ActRecorder::new(append, move |entry: &JournalEntry<'_>| {
                noted.add(entry);
            })
        }

        /// Has every further act refused.
        pub(in crate::session) fn fill(&self, is_full: bool) {
            self.0.is_full.store(is_full, Ordering::Relaxed);
        }

        /// The records so far, each in a few words.
        pub(in crate::session) fn lines(&self) -> Vec<String> {
            self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }

        fn add(&self, entry: &JournalEntry<'_>) -> RecordNumber {
            let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let number = lines.len() as u64 + 1;
            lines.push(format!("{number} {}", in_words(entry)));
            RecordNumber(number)
        }
    }

    fn in_words(entry: &JournalEntry<'_>) -> String {
        match entry {
            JournalEntry::Intent(intent) => {
                let by = intent.by.name();
                let epoch = intent.epoch.map_or("-".to_owned(), |epoch| epoch.to_string());
                format!("{} by {by} in {epoch}: {}", intent.act, content_in_words(&intent.content))
            }
            JournalEntry::More { of, content } => {
                format!("more of {}: {}", of.0, content_in_words(content))
            }
            JournalEntry::Outcome { of, outcome } => format!("outcome of {}: {outcome:?}", of.0),
            JournalEntry::Late { intent, outcome } => format!("{} late: {outcome:?}", intent.act),
            JournalEntry::Refused { intent, code, .. } => format!("{} refused: {code}", intent.act),
            JournalEntry::Discarded { bytes, cause, .. } => format!("{bytes} discarded: {cause}"),
            JournalEntry::Lease { epoch, change, .. } => format!("lease {epoch}: {change}"),
        }
    }

    fn content_in_words(content: &ActContent<'_>) -> String {
        match content {
            ActContent::Command { command, .. } => format!("command {command}"),
            ActContent::Bytes(bytes) => String::from_utf8_lossy(bytes).escape_debug().to_string(),
            ActContent::Secret => "(secret)".to_owned(),
            ActContent::Arguments(json) => (*json).to_owned(),
            ActContent::Nothing => "()".to_owned(),
        }
    }
}
