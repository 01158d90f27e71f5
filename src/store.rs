//! What outlives the daemon on disk: the journal, and the search index.

pub mod index;
pub mod journal;
