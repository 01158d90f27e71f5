//! Messages as lines: one per line, in both directions, bounded in length and number.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::mount::fence::EpochGate;
use crate::mount::log::LOG_LINE_MAX;
use crate::mount::long_message::LongMessage;

/// The longest message of a server, in bytes.
pub const MESSAGE_MAX: usize = 8 * 1024 * 1024;

/// How much of a longer message is skipped, in bytes.
const SKIPPED_MAX: usize = 256 * 1024 * 1024;

/// How many messages of a server wait to be looked at, and how many wait to be written to it.
const LINES_AHEAD: usize = 16;
const UNWRITTEN_MAX: usize = 128;

/// What comes from a server.
#[derive(Debug)]
pub enum FromServer {
    Line(Vec<u8>),
    /// A line in the stream of this request's answer, to which it belongs.
    Within {
        request: u64,
        line: Vec<u8>,
    },
    /// There is no answer to this request, which may have had an effect.
    Lost {
        request: u64,
        problem: LostAnswer,
    },
    /// It has ended, or cannot be used any longer.
    Closed(String),
}

/// Why there is no answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostAnswer {
    /// The server gives none.
    #[error("{0}")]
    Silent(String),
    #[error("it wrote a message of more than {} MiB", MESSAGE_MAX >> 20)]
    TooLong,
}

/// The server does not read what is written to it.
#[derive(Debug)]
pub struct NotReading;

/// The messages to and from a server.
#[derive(Debug)]
pub struct Lines {
    to: Option<mpsc::Sender<WaitingLine>>,
    from: mpsc::Receiver<FromServer>,
}

impl Lines {
    /// The lines, and their other ends: where to read what was sent, and where to put what comes.
    pub fn new() -> (Self, WaitingLines, mpsc::Sender<FromServer>) {
        let (to, unwritten) = mpsc::channel(UNWRITTEN_MAX);
        let (read, from) = mpsc::channel(LINES_AHEAD);
        (Self { to: Some(to), from }, WaitingLines(unwritten), read)
    }

    /// Sends a line. It is written when the server reads, unless the gate is closed by then.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send(&self, line: Vec<u8>, gate: Option<EpochGate>) -> Result<(), NotReading> {
        self.send_with(line, gate, Vec::new())
    }

    /// The same, with what is said of it in headers, where there are some.
    ///
    /// # Errors
    /// As of [`Lines::send`].
    pub fn send_with(
        &self,
        line: Vec<u8>,
        gate: Option<EpochGate>,
        headers: Vec<(String, String)>,
    ) -> Result<(), NotReading> {
        let to = self.to.as_ref().ok_or(NotReading)?;
        to.try_send(WaitingLine { line, headers, gate }).map_err(|_| NotReading)
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

/// The lines that wait to be written.
#[derive(Debug)]
pub struct WaitingLines(mpsc::Receiver<WaitingLine>);

/// A line that waits to be written.
#[derive(Debug)]
pub struct WaitingLine {
    pub line: Vec<u8>,
    /// What is said of it in headers, where there are some.
    pub headers: Vec<(String, String)>,
    gate: Option<EpochGate>,
}

impl WaitingLine {
    /// Waits until it may not be written any more.
    async fn closed(&self) {
        match &self.gate {
            Some(gate) => gate.closed().await,
            None => std::future::pending().await,
        }
    }
}

impl WaitingLines {
    /// The next line that may be written; `None` at the end.
    pub async fn next(&mut self) -> Option<WaitingLine> {
        loop {
            let waiting = self.0.recv().await?;
            if waiting.gate.as_ref().is_none_or(EpochGate::is_open) {
                return Some(waiting);
            }
        }
    }
}

/// Writes lines until there are no more, or nobody reads. A line that was begun is finished.
pub async fn write_lines(mut stream: impl AsyncWrite + Unpin, mut lines: WaitingLines) {
    while let Some(waiting) = lines.next().await {
        let begun = tokio::select! {
            biased;
            () = waiting.closed() => continue,
            begun = stream.write(&waiting.line) => begun,
        };
        let Ok(begun @ 1..) = begun else { return };
        let rest = &waiting.line[begun..];
        if stream.write_all(rest).await.is_err() || stream.flush().await.is_err() {
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
            Ok(BoundedLine::Cut(begin)) => skip_line(&mut reader, begin).await,
            Ok(BoundedLine::End) | Err(_) => return,
        };
        let is_last = matches!(read, FromServer::Closed(_));
        if to.send(read).await.is_err() || is_last {
            return;
        }
    }
}

/// Reads the rest of a line that is too long, and keeps nothing of it. If it is an answer, its request has none.
async fn skip_line(reader: &mut (impl AsyncBufRead + Unpin), mut begin: Vec<u8>) -> FromServer {
    let closed = || FromServer::Closed(LostAnswer::TooLong.to_string());
    let mut message = LongMessage::default();
    message.feed(&begin);
    begin.truncate(LOG_LINE_MAX);
    let mut skipped = 0;
    loop {
        let Ok(read) = reader.fill_buf().await else { return closed() };
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        message.feed(&read[..taken]);
        skipped += taken;
        // A server that writes without end is of no use any more.
        if read.is_empty() || skipped > SKIPPED_MAX || !message.may_be_one() {
            return closed();
        }
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return match message.answered() {
                Some(request) => FromServer::Lost { request, problem: LostAnswer::TooLong },
                // The log says how it began.
                None => FromServer::Line(begin),
            };
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
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::core::ids::Epoch;
    use crate::mount::fence::Fence;

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

    #[tokio::test]
    async fn a_message_that_is_too_long_loses_the_answer_to_its_request_alone() {
        let text = "x".repeat(MESSAGE_MAX);
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let (to, mut from) = mpsc::channel(1);
        let reading = tokio::spawn(read_lines(far, to));
        let writing = tokio::spawn(async move {
            for line in [
                format!(r#"{{"result":{{"id":1,"t":"{text}\"}}"}},"jsonrpc":"2.0","id":7}}"#),
                format!(r#"{{"id":8,"method":"roots/list","params":{{"t":"{text}"}}}}"#),
                r#"{"id":9,"result":{}}"#.to_owned(),
                format!("x{text}"),
            ] {
                near.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        });
        let lost = from.recv().await.unwrap();
        let is_of = |wanted| matches!(lost, FromServer::Lost { request, .. } if request == wanted);
        assert!(is_of(7));
        for (begin, most) in [(r#"{"id":8,"method""#, LOG_LINE_MAX), (r#"{"id":9"#, 20)] {
            let Some(FromServer::Line(line)) = from.recv().await else { panic!("{begin}") };
            assert!(line.starts_with(begin.as_bytes()) && line.len() <= most, "{begin}");
        }
        let Some(FromServer::Closed(problem)) = from.recv().await else { panic!("it goes on") };
        assert!(problem.contains("8 MiB"), "{problem}");
        reading.await.unwrap();
        writing.abort();
    }

    #[tokio::test]
    async fn a_line_of_an_epoch_that_is_over_is_not_begun() {
        let fence = Arc::new(Fence::default());
        fence.set(Some(Epoch(1)));
        let gate = || Some(EpochGate::new(Arc::clone(&fence), Epoch(1)));
        let (lines, unwritten, _read) = Lines::new();
        lines.send(b"first\n".to_vec(), gate()).unwrap();
        lines.send(b"second\n".to_vec(), gate()).unwrap();
        lines.send(b"third\n".to_vec(), None).unwrap();
        let (near, mut far) = tokio::io::duplex(4);
        let writing = tokio::spawn(write_lines(near, unwritten));
        let mut begun = [0; 2];
        far.read_exact(&mut begun).await.unwrap();
        fence.set(Some(Epoch(2)));
        drop(lines);
        let mut rest = String::new();
        far.read_to_string(&mut rest).await.unwrap();
        writing.await.unwrap();
        assert_eq!((&begun, rest.as_str()), (b"fi", "rst\nthird\n"));
    }

    #[tokio::test]
    async fn a_line_that_nobody_reads_goes_with_its_epoch() {
        let fence = Arc::new(Fence::default());
        fence.set(Some(Epoch(1)));
        let (lines, unwritten, _read) = Lines::new();
        let (mut near, mut far) = tokio::io::duplex(1);
        near.write_all(b"x").await.unwrap();
        lines.send(b"old\n".to_vec(), Some(EpochGate::new(Arc::clone(&fence), Epoch(1)))).unwrap();
        let writing = tokio::spawn(write_lines(near, unwritten));
        tokio::task::yield_now().await;
        fence.set(None);
        drop(lines);
        writing.await.unwrap();
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "x");
    }
}
