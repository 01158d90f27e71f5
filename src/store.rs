//! What outlives the daemon on disk: the journal, and the search index.

#[cfg(test)]
mod failing_calls;
pub mod index;
pub mod journal;
