//! An observer that counts what it is told: rows, and the bytes of their text.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::ensure;

use crate::support::observers::observe;

/// What an observer was told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) rows: usize,
    pub(crate) text_bytes: usize,
}

/// A connection that observes one session.
#[derive(Debug)]
pub(crate) struct Observer(BufReader<UnixStream>);

impl Observer {
    /// Begins, and leaves out what the session shows already.
    ///
    /// # Errors
    /// When observing is refused.
    pub(crate) fn start(socket: &Path, session: &str, lane: &str) -> anyhow::Result<Self> {
        observe(socket, session, lane).map(Self)
    }

    /// Counts what comes until a row has this text.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) fn until(mut self, text: &str) -> anyhow::Result<Told> {
        let mut told = Told::default();
        loop {
            let mut line = String::new();
            ensure!(self.0.read_line(&mut line)? > 0, "the daemon has gone");
            let line: serde_json::Value = serde_json::from_str(&line)?;
            let updates = line["params"]["updates"].as_array().cloned().unwrap_or_default();
            let rows = updates.iter().filter(|update| update["type"] == "row");
            let mut found = false;
            for row in rows {
                let shown = row["text"].as_str().unwrap_or_default();
                told.rows += 1;
                told.text_bytes += shown.len() + 1;
                found |= shown.contains(text);
            }
            if found {
                return Ok(told);
            }
        }
    }
}
