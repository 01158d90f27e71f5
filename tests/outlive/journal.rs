//! What the journal says after a storm: each line that a program read has its record, and none was written twice.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::outlive::home::Home;

/// Enough for a storm.
pub(crate) const SETTINGS: &str = "[journal]\nbytes = 4294967296\n";

/// How often each input of a session was recorded, by its outcome.
#[derive(Debug, Default)]
struct Recorded {
    done: usize,
    unknown: usize,
}

/// The inputs of each session as the journal has them.
#[derive(Debug, Default)]
pub(crate) struct JournalInputs(BTreeMap<(String, String), Recorded>);

impl JournalInputs {
    /// Reads the journal, which must be sound.
    pub(crate) fn read(home: &Home) -> Self {
        let verified = home.printed("journal verify");
        assert!(verified.contains("all hashes match"), "{verified}");
        let exported = home.printed("journal export");
        let mut intents = BTreeMap::new();
        let mut inputs = Self::default();
        for line in exported.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            if let Some(text) = record["text"].as_str() {
                intents.insert(record["seq"].as_u64(), (word("session"), text.to_owned()));
            }
            if record["kind"] == "outcome"
                && let Some(input) = intents.remove(&record["of"].as_u64())
            {
                let recorded = inputs.0.entry(input).or_default();
                match (word("result").as_str(), record["written"].as_u64()) {
                    ("done", Some(1..)) => recorded.done += 1,
                    ("done", _) => {}
                    _ => recorded.unknown += 1,
                }
            }
        }
        inputs
    }

    /// Asserts that this was written to the session, and not twice by acts whose outcome is known.
    pub(crate) fn has(&self, session: &str, input: &str) {
        let recorded = self.0.get(&(session.to_owned(), input.to_owned()));
        let Some(Recorded { done, unknown }) = recorded else {
            panic!("{session} read {input:?}, which no record has");
        };
        assert!(*done <= 1, "{input:?} was written {done} times to {session}");
        assert!(done + unknown > 0, "{input:?} was discarded for {session}");
    }
}
