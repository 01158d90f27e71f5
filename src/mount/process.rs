//! The process of a server: its pipes, and its end with all processes of its group.
//!
//! A daemon that is killed closes the pipes, by which servers end. There is no signal for the daemon's death: the
//! kernel would send it when the thread ends that started the server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::mount::log::{LOG_LINE_MAX, ServerLog};

/// The longest message of a server, in bytes.
const LINE_MAX: usize = 8 * 1024 * 1024;
/// How many messages of a server wait to be looked at, and how many wait to be written to it.
const LINES_AHEAD: usize = 16;
const UNWRITTEN_MAX: usize = 128;

/// How long a server may take to end before it is killed, and how often it is looked at meanwhile.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// A server that is to be started.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    pub command: String,
    pub args: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
}

/// What comes from a server.
#[derive(Debug)]
pub enum FromServer {
    Line(Vec<u8>),
    /// It closed its output, which is how it ends.
    Closed,
    /// It wrote more than fits in a message.
    TooLong,
}

/// The server does not read what is written to it.
#[derive(Debug)]
pub struct NotReading;

/// A running server. Dropping it kills its group.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    to: Option<mpsc::Sender<Vec<u8>>>,
    from: mpsc::Receiver<FromServer>,
    _pipes: JoinSet<()>,
}

impl ServerProcess {
    /// Starts a server in a process group of its own.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(program: &ServerProgram, log: &ServerLog) -> io::Result<Self> {
        let mut command = Command::new(&program.command);
        command.args(&program.args).env_clear().envs(&program.environment);
        command.current_dir(&program.cwd).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let mut pipes = JoinSet::new();
        let (to, unwritten) = mpsc::channel(UNWRITTEN_MAX);
        let (read, from) = mpsc::channel(LINES_AHEAD);
        if let Some(stdin) = child.stdin.take() {
            pipes.spawn(write_lines(stdin, unwritten));
        }
        if let Some(stdout) = child.stdout.take() {
            pipes.spawn(read_lines(stdout, read));
        }
        if let Some(stderr) = child.stderr.take() {
            pipes.spawn(keep_log(stderr, log.clone()));
        }
        Ok(Self { child, group, to: Some(to), from, _pipes: pipes })
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a line. It is written when the server reads.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send(&self, line: Vec<u8>) -> Result<(), NotReading> {
        let to = self.to.as_ref().ok_or(NotReading)?;
        to.try_send(line).map_err(|_| NotReading)
    }

    /// The next line. Cancelling this loses nothing.
    pub async fn next(&mut self) -> FromServer {
        self.from.recv().await.unwrap_or(FromServer::Closed)
    }

    /// Ends it with all processes of its group: asks, waits two seconds, and kills.
    pub async fn end(mut self) {
        self.to = None;
        let Some(group) = self.group else { return };
        let _ = killpg(group, Signal::SIGTERM);
        let until = Instant::now() + GRACE;
        while !has_ended(group) && Instant::now() < until {
            sleep(LOOK).await;
        }
        // It is not reaped yet, so the number of the group is still its own.
        let _ = killpg(group, Signal::SIGKILL);
        self.group = None;
        let _ = self.child.wait().await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Whether a child has ended, without reaping it.
fn has_ended(child: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive))
}

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_lines(stdout: ChildStdout, to: mpsc::Sender<FromServer>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    loop {
        let read = match bounded_line(&mut reader, LINE_MAX).await {
            Ok(BoundedLine::Whole(line)) => FromServer::Line(line),
            Ok(BoundedLine::Cut(_)) => FromServer::TooLong,
            Ok(BoundedLine::End) | Err(_) => FromServer::Closed,
        };
        let is_last = !matches!(read, FromServer::Line(_));
        if to.send(read).await.is_err() || is_last {
            return;
        }
    }
}

async fn keep_log(stderr: ChildStderr, log: ServerLog) {
    let mut reader = BufReader::new(stderr);
    loop {
        match bounded_line(&mut reader, LOG_LINE_MAX).await {
            Ok(BoundedLine::Whole(line) | BoundedLine::Cut(line)) => log.add(&line),
            Ok(BoundedLine::End) | Err(_) => return,
        }
    }
}

/// A line of bounded length.
#[derive(Debug, PartialEq, Eq)]
enum BoundedLine {
    Whole(Vec<u8>),
    /// The beginning of a longer one; the rest is read next.
    Cut(Vec<u8>),
    End,
}

/// Reads a line of at most this many bytes. A last line without an end counts as one.
async fn bounded_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    most: usize,
) -> io::Result<BoundedLine> {
    let mut line = Vec::new();
    loop {
        let read = reader.fill_buf().await?;
        if read.is_empty() {
            let is_end = line.is_empty();
            return Ok(if is_end { BoundedLine::End } else { BoundedLine::Whole(line) });
        }
        let room = most - line.len();
        let end = read.iter().take(room + 1).position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len().min(room));
        line.extend_from_slice(&read[..taken]);
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(BoundedLine::Whole(line));
        }
        if line.len() == most {
            return Ok(BoundedLine::Cut(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_however_they_come() {
        for capacity in 1..8 {
            let mut reader = BufReader::with_capacity(capacity, &b"ab\n\nabcdefg\nend"[..]);
            let mut lines = Vec::new();
            loop {
                match bounded_line(&mut reader, 4).await.unwrap() {
                    BoundedLine::Whole(line) => lines.push((line, true)),
                    BoundedLine::Cut(line) => lines.push((line, false)),
                    BoundedLine::End => break,
                }
            }
            let lines: Vec<_> =
                lines.iter().map(|(line, whole)| (str::from_utf8(line).unwrap(), *whole)).collect();
            let expected =
                [("ab", true), ("", true), ("abcd", false), ("efg", true), ("end", true)];
            assert_eq!(lines, expected, "{capacity}");
        }
    }
}
