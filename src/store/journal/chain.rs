//! Checks that records follow each other: numbers without a gap, hashes that cover the hash before, and one outcome
//! for each intent.

use std::collections::BTreeSet;

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
}

impl Chain {
    /// A chain of which only the number of the last record is known. What follows is a new chain.
    pub fn broken_at(last: u64, open: BTreeSet<u64>) -> Self {
        Self { first: None, last: Some((last, NO_HASH)), before: None, open, void: 0 }
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
