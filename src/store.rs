//! What outlives the daemon on disk: the journal.

pub mod journal;
