//! An observer: a connection that is sent what a session shows, and throws it away.
//!
//! It understands nothing of what it is sent but that it began.

use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

/// What is said: the greeting, and what is to be observed.
const SAID: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"watcher","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"termgate/observe","params":{"session":"SESSION","lane":"LANE"}}"#,
    "\n",
);
/// How long the first delta may take.
const FIRST_MAX: Duration = Duration::from_secs(10);

/// Observes a session until the daemon or this is gone.
#[derive(Debug)]
pub(crate) struct Watcher(UnixStream);

impl Watcher {
    /// Begins at a socket of a daemon and waits for the first delta.
    ///
    /// # Errors
    /// When none comes.
    pub(crate) fn start(socket: &Path, session: &str) -> anyhow::Result<Self> {
        Self::of_lane(socket, session, "foreground")
    }

    /// Begins with so much of what scrolled off.
    ///
    /// # Errors
    /// When no delta comes.
    pub(crate) fn of_lane(socket: &Path, session: &str, lane: &str) -> anyhow::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(SAID.replace("SESSION", session).replace("LANE", lane).as_bytes())?;
        stream.set_read_timeout(Some(FIRST_MAX))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        while !line.contains("termgate/delta") {
            line.clear();
            ensure!(reader.read_line(&mut line)? > 0, "the daemon has gone");
            ensure!(!line.contains(r#""error":"#), "observing failed: {line}");
        }
        stream.set_read_timeout(None)?;
        std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        Ok(Self(stream))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Its thread then reads the end.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
