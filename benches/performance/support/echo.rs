//! A line echo on the daemon's runtime: what a round trip costs when nothing is done with it.
//!
//! It knows nothing of calls. It is a process of its own, as the daemon is, and answers each line
//! with as many bytes as the daemon does.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::support::child::Owned;
use crate::support::empty_tool::{EMPTY_TOOL, serve};
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
    _server: Served,
}

/// A process of this program that serves one connection, and where it listens.
#[derive(Debug)]
pub(crate) struct Served {
    _process: Owned,
    _directory: TempDir,
}

impl Served {
    /// Starts one in a role, with the number of bytes it is to answer, and connects.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start(
        placement: Placement,
        role: &str,
        answer: usize,
    ) -> anyhow::Result<(Self, UnixStream)> {
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("served.sock");
        let mut command = placement.command(std::env::current_exe()?);
        command.arg(role).arg(&socket).arg(answer.to_string());
        let process = command.spawn().map(Owned).context("cannot start a yardstick")?;
        let give_up = now() + START_MAX;
        loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => {
                    return Ok((Self { _process: process, _directory: directory }, stream));
                }
                Err(error) => ensure!(now() < give_up, "the yardstick does not listen: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
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
        let (server, stream) = Served::start(placement, SERVE, answer)?;
        let (reader, request) = (BufReader::new(stream), line(request));
        Ok(Self { reader, request, answer: Vec::new(), _server: server })
    }

    /// So many lines there, then as many back.
    ///
    /// # Errors
    /// When it has gone.
    pub(crate) fn call(&mut self, in_flight: usize) -> anyhow::Result<()> {
        for _ in 0..in_flight {
            self.reader.get_mut().write_all(&self.request)?;
        }
        for _ in 0..in_flight {
            self.answer.clear();
            let length = self.reader.read_until(b'\n', &mut self.answer)?;
            ensure!(length > 0, "the echo has gone");
        }
        Ok(())
    }
}

/// Serves one connection, if that is what this process was started for.
///
/// # Errors
/// Why it cannot serve.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, socket, answer] = arguments.as_slice() else { return Ok(false) };
    let (socket, answer) = (PathBuf::from(socket), answer.parse().unwrap_or_default());
    // As many threads as the daemon has.
    let workers = std::thread::available_parallelism()?.get().div_ceil(2);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    let accepted = async { Ok::<_, anyhow::Error>(UnixListener::bind(socket)?.accept().await?.0) };
    // On a worker, as the daemon's connections are.
    match asked.as_str() {
        SERVE => {
            runtime.block_on(runtime.spawn(async move { echo(accepted.await?, answer).await }))
        }
        EMPTY_TOOL => runtime.block_on(runtime.spawn(async move {
            serve(accepted.await?, answer).await;
            Ok(())
        })),
        _ => return Ok(false),
    }??;
    Ok(true)
}

async fn echo(stream: tokio::net::UnixStream, answer: usize) -> anyhow::Result<()> {
    let answer = line(answer);
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
