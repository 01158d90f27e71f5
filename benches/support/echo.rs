//! A line echo on the daemon's runtime: what a round trip costs when nothing is done with it.
//!
//! It knows nothing of calls. It is a process of its own, as the daemon is, and answers each line
//! with as many bytes as the daemon does.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::support::child::Owned;
use crate::support::placement::Placement;
use crate::support::samples::now;

/// The argument that makes the bench serve instead.
const SERVE: &str = "--echo";
/// How long it may take to start.
const START_MAX: Duration = Duration::from_secs(10);

/// A connection to an echo.
#[derive(Debug)]
pub(crate) struct Echo {
    reader: BufReader<UnixStream>,
    request: Vec<u8>,
    answer: Vec<u8>,
    _process: Owned,
    _directory: TempDir,
}

impl Echo {
    /// Starts one whose requests and answers have these lengths in bytes.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(
        placement: Placement,
        request: usize,
        answer: usize,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("echo.sock");
        let mut command = placement.command(std::env::current_exe()?);
        command.arg(SERVE).arg(&socket).arg(answer.to_string());
        let process = command.spawn().map(Owned).context("cannot start the echo")?;
        let give_up = now() + START_MAX;
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => ensure!(now() < give_up, "the echo does not listen: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(1));
        };
        Ok(Self {
            reader: BufReader::new(stream),
            request: line(request),
            answer: Vec::new(),
            _process: process,
            _directory: directory,
        })
    }

    /// One line there and back.
    ///
    /// # Errors
    /// When it has gone.
    pub(crate) fn call(&mut self) -> anyhow::Result<()> {
        self.reader.get_mut().write_all(&self.request)?;
        self.answer.clear();
        let length = self.reader.read_until(b'\n', &mut self.answer)?;
        ensure!(length > 0, "the echo has gone");
        Ok(())
    }
}

/// Serves, if that is what this process was started for; then it never ends by itself.
///
/// # Errors
/// Why it cannot serve.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, socket, answer] = arguments.as_slice() else { return Ok(false) };
    if asked != SERVE {
        return Ok(false);
    }
    let answer = line(answer.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker, as the daemon's connections are.
    runtime.block_on(runtime.spawn(serve(PathBuf::from(socket), answer)))??;
    Ok(true)
}

async fn serve(socket: impl AsRef<Path>, answer: Vec<u8>) -> anyhow::Result<()> {
    let (stream, _) = UnixListener::bind(socket)?.accept().await?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = tokio::io::BufReader::new(reader);
    let mut request = Vec::new();
    while reader.read_until(b'\n', &mut request).await? > 0 {
        writer.write_all(&answer).await?;
        request.clear();
    }
    Ok(())
}

fn line(bytes: usize) -> Vec<u8> {
    let mut line = vec![b'x'; bytes.saturating_sub(1)];
    line.push(b'\n');
    line
}
