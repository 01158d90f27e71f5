//! An observer that counts what it is told: rows, and the bytes of their text.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

/// How long nothing may come.
const SILENT_MAX: Duration = Duration::from_secs(20);

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
        let mut stream = UnixStream::connect(socket)?;
        let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"observer","version":"0"}}}"#;
        let greeted = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let observe = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"termgate/observe","params":{{"session":"{session}","lane":"{lane}"}}}}"#
        );
        writeln!(stream, "{greeting}\n{greeted}\n{observe}")?;
        stream.set_read_timeout(Some(SILENT_MAX))?;
        let mut observer = Self(BufReader::new(stream));
        while !observer.line()?.contains("termgate/delta") {}
        Ok(observer)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line)? > 0, "the daemon has gone");
        ensure!(!line.contains(r#""error":{"#), "observing failed: {line}");
        Ok(line)
    }

    /// Counts what comes until a row has this text.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) fn until(mut self, text: &str) -> anyhow::Result<Told> {
        let mut told = Told::default();
        loop {
            let line: serde_json::Value = serde_json::from_str(&self.line()?)?;
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
