//! Messages as lines: one per line, in both directions, bounded in length and number.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// The longest message of a server, in bytes.
pub const MESSAGE_MAX: usize = 8 * 1024 * 1024;
pub const TOO_LONG: &str = "it wrote a message that is too long";

/// How many messages of a server wait to be looked at, and how many wait to be written to it.
const LINES_AHEAD: usize = 16;
const UNWRITTEN_MAX: usize = 128;

/// What comes from a server.
#[derive(Debug)]
pub enum FromServer {
    Line(Vec<u8>),
    /// It will not answer this request, which may have had an effect.
    Lost {
        request: u64,
        problem: String,
    },
    /// It has ended, or cannot be used any longer.
    Closed(String),
}

/// The server does not read what is written to it.
#[derive(Debug)]
pub struct NotReading;

/// The messages to and from a server.
#[derive(Debug)]
pub struct Lines {
    to: Option<mpsc::Sender<Vec<u8>>>,
    from: mpsc::Receiver<FromServer>,
}

impl Lines {
    /// The lines, and their other ends: where to read what was sent, and where to put what comes.
    pub fn new() -> (Self, mpsc::Receiver<Vec<u8>>, mpsc::Sender<FromServer>) {
        let (to, unwritten) = mpsc::channel(UNWRITTEN_MAX);
        let (read, from) = mpsc::channel(LINES_AHEAD);
        (Self { to: Some(to), from }, unwritten, read)
    }

    /// Sends a line. It is written when the server reads.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send(&self, line: Vec<u8>) -> Result<(), NotReading> {
        let to = self.to.as_ref().ok_or(NotReading)?;
        to.try_send(line).map_err(|_| NotReading)
    }

    /// What comes next; `None` at the end. Cancelling this loses nothing.
    pub async fn next(&mut self) -> Option<FromServer> {
        self.from.recv().await
    }

    /// Sends nothing more.
    pub fn close(&mut self) {
        self.to = None;
    }
}

/// Writes lines until there are no more, or nobody reads.
pub async fn write_lines(mut stream: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stream.write_all(&line).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// Reads lines until they end.
pub async fn read_lines(stream: impl AsyncRead + Unpin, to: mpsc::Sender<FromServer>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    loop {
        let read = match bounded_line(&mut reader, MESSAGE_MAX).await {
            Ok(BoundedLine::Whole(line)) => FromServer::Line(line),
            Ok(BoundedLine::Cut(_)) => FromServer::Closed(TOO_LONG.to_owned()),
            Ok(BoundedLine::End) | Err(_) => FromServer::Closed("it ended".to_owned()),
        };
        let is_last = matches!(read, FromServer::Closed(_));
        if to.send(read).await.is_err() || is_last {
            return;
        }
    }
}

/// A line of bounded length.
#[derive(Debug, PartialEq, Eq)]
pub enum BoundedLine {
    Whole(Vec<u8>),
    /// The beginning of a longer one; the rest is read next.
    Cut(Vec<u8>),
    End,
}

/// Reads a line of at most this many bytes. A last line without an end counts as one.
///
/// # Errors
/// The system's error.
pub async fn bounded_line(
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
