//! The way to the journal for all that acts: each act is recorded before it takes effect.

use std::fmt;
use std::sync::Arc;

use crate::core::event::source::ToldEvents;
use crate::core::ids::SessionId;
use crate::core::journal::{ActOutcome, JournalEntry, NotRecorded, RecordNumber};

type Append = dyn Fn(&JournalEntry<'_>) -> Result<RecordNumber, NotRecorded> + Send + Sync;
type NoteEntry = dyn Fn(&JournalEntry<'_>) + Send + Sync;
type ToldOf = dyn Fn(SessionId) -> Option<ToldEvents> + Send + Sync;

/// Appends to the journal; cheap to clone.
#[derive(Clone)]
pub struct ActRecorder {
    append: Arc<Append>,
    note: Arc<NoteEntry>,
    told: Arc<ToldOf>,
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
        Self { append: Arc::new(append), note: Arc::new(note), told: Arc::new(|_| None) }
    }

    /// `told` says what daemons before told of a session.
    #[must_use]
    pub fn with_told(
        self,
        told: impl Fn(SessionId) -> Option<ToldEvents> + Send + Sync + 'static,
    ) -> Self {
        Self { told: Arc::new(told), ..self }
    }

    /// The events of a session that are recorded, if it is of a daemon before.
    pub fn told(&self, session: SessionId) -> Option<ToldEvents> {
        (self.told)(session)
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
    use crate::core::event::Event;
    use crate::core::journal::ActContent;

    /// A journal in memory.
    #[derive(Clone, Debug, Default)]
    pub(in crate::session) struct TestJournal(Arc<TestRecords>);

    #[derive(Debug, Default)]
    struct TestRecords {
        lines: Mutex<Vec<String>>,
        events: Mutex<Vec<Event>>,
        is_full: AtomicBool,
    }

    impl TestJournal {
        pub(in crate::session) fn recorder(&self) -> ActRecorder {
            let (appended, noted) = (self.clone(), self.clone());
            let append = move |entry: &JournalEntry<'_>| {
                if appended.0.is_full.load(Ordering::Relaxed) {
                    return Err(NotRecorded { why: "full".to_owned(), is_taken: false });
                }
                Ok(appended.add(entry))
            };
            ActRecorder::new(append, move |entry: &JournalEntry<'_>| {
                if let JournalEntry::Event { event, .. } = entry {
                    noted.events_of().push(event.clone());
                } else {
                    noted.add(entry);
                }
            })
        }

        /// Has every further act refused.
        pub(in crate::session) fn fill(&self, is_full: bool) {
            self.0.is_full.store(is_full, Ordering::Relaxed);
        }

        /// The events so far.
        pub(in crate::session) fn events(&self) -> Vec<Event> {
            self.events_of().clone()
        }

        fn events_of(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
            self.0.events.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// The records of acts so far, each in a few words.
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
            JournalEntry::Event { event, .. } => format!("event {event:?}"),
        }
    }

    fn content_in_words(content: &ActContent<'_>) -> String {
        match content {
            ActContent::Command { command, .. } => format!("command {command}"),
            ActContent::Bytes(bytes) => String::from_utf8_lossy(bytes).escape_debug().to_string(),
            ActContent::Secret => "(secret)".to_owned(),
            ActContent::RefusedCommand(input) | ActContent::RefusedInput(input) => {
                input.told.to_owned()
            }
            ActContent::Arguments(json) => (*json).to_owned(),
            ActContent::Nothing => "()".to_owned(),
        }
    }
}
