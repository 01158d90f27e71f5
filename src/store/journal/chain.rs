//! Checks that records follow each other: numbers without a gap, hashes that cover the hash before, and one outcome
//! for each intent.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::store::journal::line::{NO_HASH, RecordHash, RecordKind, RecordLine, split_hash};

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("it is no record")]
    NotARecord,
    #[error("its number is {found}, and {expected} was next")]
    Number { expected: u64, found: u64 },
    #[error("its hash does not cover what it says and what was before it")]
    Hash,
    #[error("it is the outcome of {0}, which is no open intent")]
    NoIntent(u64),
    #[error("the journal was damaged before it, so a new chain begins here")]
    NewChain,
}

/// The numbers by which clients know events: microseconds that passed from record to record. What passed says nothing of
/// how many records there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EventNumbers {
    /// The last one; 0 if there was none.
    last: u64,
    /// When that was, in microseconds since 1970.
    at: u64,
}

impl EventNumbers {
    fn next(&mut self, at: SystemTime) -> u64 {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let at = u64::try_from(at).unwrap_or(u64::MAX);
        // The clock may be set back.
        let passed = at.saturating_sub(self.at).max(1);
        *self = Self { last: self.last.saturating_add(passed), at };
        self.last
    }

    fn note(&mut self, record: &RecordLine<'_>) {
        let last = self.last.max(record.event_number());
        *self = Self { last, at: record.at_ms.saturating_mul(1_000) };
    }
}

/// The state of a chain after the records so far.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The first record that was seen, the last one, and its hash.
    first: Option<u64>,
    last: Option<(u64, RecordHash)>,
    /// The number and the hash of the record before that.
    before: Option<(u64, RecordHash)>,
    open: BTreeSet<u64>,
    /// How many records were appended by daemons that had to give way.
    void: usize,
    numbers: EventNumbers,
}

impl Chain {
    /// A chain of which only the number of the last record is known. What follows is a new chain.
    pub fn broken_at(last: u64, open: BTreeSet<u64>) -> Self {
        Self { last: Some((last, NO_HASH)), open, ..Self::default() }
    }

    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// The number and the hash of the last record.
    pub fn last(&self) -> Option<(u64, RecordHash)> {
        self.last
    }

    /// The number of the next record, and the hash that its hash covers.
    pub fn next(&self) -> (u64, RecordHash) {
        self.last.map_or((1, NO_HASH), |(last, hash)| (last.saturating_add(1), hash))
    }

    /// The number for clients of a record that is appended now.
    pub fn next_event_number(&mut self, at: SystemTime) -> u64 {
        self.numbers.next(at)
    }

    /// The newest number for clients.
    pub fn last_event_number(&self) -> u64 {
        self.numbers.last
    }

    /// The intents without an outcome.
    pub fn open(&self) -> &BTreeSet<u64> {
        &self.open
    }

    /// How many records were appended by daemons that had to give way. They are in no chain.
    pub fn void(&self) -> usize {
        self.void
    }

    /// Takes the next line, without its end. A line that is a record is the last one afterwards, whatever is wrong
    /// with it, so that one damage is one error.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn push<'a>(&mut self, line: &'a str) -> Result<RecordLine<'a>, ChainError> {
        let (body, hash) = split_hash(line).ok_or(ChainError::NotARecord)?;
        let record: RecordLine<'a> =
            serde_json::from_str(line).map_err(|_| ChainError::NotARecord)?;
        self.numbers.note(&record);
        let is_segment = record.kind == RecordKind::Segment;
        let told = record.after.as_deref().and_then(RecordHash::parse).filter(|_| is_segment);
        if record.took_over
            && told.is_some()
            && self
                .before
                .is_some_and(|(it, hash)| record.seq == it.saturating_add(1) && told == Some(hash))
        {
            // The daemon that stood still appended once more. Its act had no effect.
            self.void += 1;
            self.last = self.before.take();
            self.open = record.open.iter().copied().collect();
        }
        let (expected, before) = match (self.last, told) {
            (Some((last, hash)), _) => (last.saturating_add(1), hash),
            // The oldest file that is left says what was before it.
            (None, Some(told)) => (record.seq, told),
            (None, None) => return Err(ChainError::NotARecord),
        };
        let judged = if record.seq != expected {
            Err(ChainError::Number { expected, found: record.seq })
        } else if before.after(body.as_bytes()) == hash {
            Ok(())
        } else if told.is_some_and(|told| told != before && told.after(body.as_bytes()) == hash) {
            Err(ChainError::NewChain)
        } else {
            Err(ChainError::Hash)
        };
        if self.first.is_none() {
            self.first = Some(record.seq);
            self.open.extend(&record.open);
        }
        self.before = self.last.replace((record.seq, hash));
        judged?;
        self.note(record.seq, record.kind, record.of)?;
        Ok(record)
    }

    /// Takes the next record, which was just written.
    pub fn advance(&mut self, kind: RecordKind, of: Option<u64>, hash: RecordHash) {
        let (seq, _) = self.next();
        self.first.get_or_insert(seq);
        self.before = self.last.replace((seq, hash));
        let noted = self.note(seq, kind, of);
        debug_assert_eq!(noted, Ok(()), "only open intents get an outcome");
    }

    fn note(&mut self, seq: u64, kind: RecordKind, of: Option<u64>) -> Result<(), ChainError> {
        match kind {
            RecordKind::Intent => {
                self.open.insert(seq);
            }
            RecordKind::Outcome => {
                let of = of.unwrap_or_default();
                if !self.open.remove(&of) {
                    return Err(ChainError::NoIntent(of));
                }
            }
            RecordKind::Opened
            | RecordKind::Segment
            | RecordKind::More
            | RecordKind::Late
            | RecordKind::Refused
            | RecordKind::Discarded
            | RecordKind::Event => {}
        }
        Ok(())
    }
}
