//! Reads lines from a byte stream within limits of length, time and memory.
//!
//! Cancelling a read loses nothing: an incomplete line stays here.

use std::future::Future;
use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use rmcp::model::RequestId;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Duration, Instant, timeout_at};

use crate::transport::framing::MessageRefusal;
use crate::transport::limits::{LINE_FREE, LINE_SHORT, Limits};
use crate::transport::line_memory::{Begun, KeptMemory, LineMemory};

/// The minimum and maximum size of one read.
const READ_MIN: usize = 4 * 1024;
const READ_MAX: usize = 64 * 1024;
/// The longest id that is found, in bytes of JSON.
const ID_BYTES_MAX: usize = 256;

#[derive(Debug)]
pub enum LineInput {
    /// A line that is not empty, without its end.
    Line(InputLine),
    /// A line that was discarded, and the answer to it.
    Refused(MessageRefusal),
    /// The end of the stream, or a deadline that passed. No input follows.
    End,
}

/// A line and the memory quota that it uses while it is kept.
#[derive(Debug)]
pub struct InputLine {
    bytes: BytesMut,
    _kept: Option<KeptMemory>,
}

impl InputLine {
    /// The bytes of the line without its end.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes)
    }

    /// Whether it is short enough to parse at once, while other clients wait.
    pub fn is_short(&self) -> bool {
        self.bytes.len() <= LINE_SHORT
    }

    /// The line with its end, ready to be sent.
    pub fn into_whole(mut self) -> Bytes {
        self.bytes.truncate(self.bytes().len());
        self.bytes.put_u8(b'\n');
        self.bytes.freeze()
    }
}

#[derive(Debug)]
pub struct LineReader<R> {
    stream: R,
    /// Bytes received last.
    buffer: BytesMut,
    /// The length of the buffer's start that contains no line end.
    searched: usize,
    /// The earlier part of a long line.
    long: Option<Long>,
    share: LineMemory,
    greeting_by: Option<Instant>,
    line_by: Option<Instant>,
    inside_message: Duration,
    line_max: usize,
    reset: bool,
    returned: Option<LineInput>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Starts reading, and the time limit of the first message.
    pub fn new(stream: R, limits: &Limits) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            searched: 0,
            long: None,
            share: limits.incoming.clone(),
            greeting_by: Some(Instant::now() + limits.first_message),
            line_by: None,
            inside_message: limits.inside_message,
            line_max: limits.line_max,
            reset: false,
            returned: None,
        }
    }

    /// Whether the other end closed the stream before it had read everything.
    pub fn was_reset(&self) -> bool {
        self.reset
    }

    /// Notes that the client speaks the protocol. From now on it may stay silent.
    pub fn greeted(&mut self) {
        self.greeting_by = None;
    }

    /// Returns an input to the front.
    pub fn put_back(&mut self, input: LineInput) {
        self.returned = Some(input);
    }

    /// Waits for the next line. Cancel-safe.
    pub async fn next(&mut self) -> LineInput {
        if let Some(input) = self.returned.take() {
            return input;
        }
        loop {
            if let Some(input) = self.take() {
                return input;
            }
            // A started line has a deadline, however rarely this is called.
            if self.line_by.is_none() && (self.long.is_some() || !self.buffer.is_empty()) {
                self.line_by = Some(Instant::now() + self.inside_message);
            }
            let deadline = self.line_by.into_iter().chain(self.greeting_by).min();
            match within(deadline, self.fill()).await {
                Ok(read) if read > 0 => {}
                Ok(_) => return self.take_rest(),
                Err(error) => {
                    self.reset = error.kind() == io::ErrorKind::ConnectionReset;
                    return LineInput::End;
                }
            }
        }
    }

    /// Takes a complete line from the buffer, or moves an incomplete long one out of it.
    fn take(&mut self) -> Option<LineInput> {
        loop {
            let newline = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(offset) = newline else {
                self.searched = self.buffer.len();
                if self.long.is_some() || self.searched > LINE_FREE.min(self.line_max) {
                    let share = &self.share;
                    let long = self.long.get_or_insert_with(|| Long::begin(share));
                    long.add(&self.buffer, self.line_max);
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let mut last = self.buffer.split_to(self.searched + offset + 1);
            last.truncate(last.len() - 1);
            if let Some(input) = self.end_line(last) {
                return Some(input);
            }
        }
    }

    /// Takes the rest before the end of the stream, because a complete message needs no line end.
    fn take_rest(&mut self) -> LineInput {
        let last = self.buffer.split();
        self.end_line(last).unwrap_or(LineInput::End)
    }

    /// The line that ends with these bytes. `None` if it is empty.
    fn end_line(&mut self, last: BytesMut) -> Option<LineInput> {
        self.searched = 0;
        self.line_by = None;
        if let Some(long) = self.long.take() {
            // The remaining slice would keep the long line's memory alive.
            self.buffer = BytesMut::from(&self.buffer[..]);
            return Some(long.end(&last, self.line_max));
        }
        if last.len() > self.line_max {
            return Some(Long::begin(&self.share).end(&last, self.line_max));
        }
        let is_empty = last.is_empty() || *last == *b"\r";
        (!is_empty).then_some(LineInput::Line(InputLine { bytes: last, _kept: None }))
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let most = if self.long.is_some() { READ_MAX } else { self.buffer.len() };
        self.buffer.reserve(most.clamp(READ_MIN, READ_MAX));
        self.stream.read_buf(&mut self.buffer).await
    }
}

/// The start of a long line.
#[derive(Debug)]
struct Long {
    /// Sees all bytes, including discarded ones.
    id: IdFinder,
    kept: Result<Begun, Dropped>,
}

/// Why a long line was discarded.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    TooLong,
    GaveWay,
}

impl Long {
    fn begin(share: &LineMemory) -> Self {
        Self { id: IdFinder::default(), kept: Ok(share.begin()) }
    }

    fn add(&mut self, bytes: &[u8], line_max: usize) {
        self.id.feed(bytes);
        let Ok(begun) = &self.kept else { return };
        let dropped = match begun.so_far() {
            Some(before) if before + bytes.len() > line_max => Dropped::TooLong,
            Some(_) if begun.add(bytes) => return,
            Some(_) | None => Dropped::GaveWay,
        };
        self.kept = Err(dropped);
    }

    fn end(mut self, last: &[u8], line_max: usize) -> LineInput {
        self.add(last, line_max);
        let kept = self.kept.and_then(|begun| begun.end().ok_or(Dropped::GaveWay));
        let id = self.id.into_id();
        match kept {
            Ok((bytes, kept)) => LineInput::Line(InputLine { bytes, _kept: Some(kept) }),
            Err(Dropped::TooLong) => {
                LineInput::Refused(MessageRefusal::TooLarge { id, bytes_max: line_max })
            }
            Err(Dropped::GaveWay) => LineInput::Refused(MessageRefusal::GaveWay(id)),
        }
    }
}

async fn within<T>(
    deadline: Option<Instant>,
    reading: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, reading).await?,
        None => reading.await,
    }
}

/// The current position in the message object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Key,
    Value,
}

/// Finds the id of a message that is too long to keep, while its bytes pass.
#[derive(Debug, Default)]
struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    place: Member,
    /// The start of the current key or id.
    text: Vec<u8>,
    /// Whether the next value is the id.
    is_id: bool,
    found: Option<RequestId>,
}

impl IdFinder {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.found.is_some() {
                return;
            }
            self.take(*byte);
        }
    }

    fn into_id(self) -> Option<RequestId> {
        self.found
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            self.collect(byte);
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            b':' if self.depth == 1 && self.place == Member::Key => {
                self.is_id = self.text == br#""id""#;
                self.place = Member::Value;
                self.text.clear();
            }
            _ => {
                self.in_string = byte == b'"';
                self.collect(byte);
            }
        }
    }

    /// Keeps a byte that may belong to a top-level key or to the id.
    fn collect(&mut self, byte: u8) {
        let wanted = self.depth == 1 && (self.place == Member::Key || self.is_id);
        let is_between = !self.in_string && byte.is_ascii_whitespace();
        if wanted && !is_between && self.text.len() < ID_BYTES_MAX {
            self.text.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.is_id {
            self.found = serde_json::from_slice(&self.text).ok();
        }
        (self.is_id, self.place) = (false, Member::Key);
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(message: &str) -> Option<RequestId> {
        let whole = find(message.bytes().map(|byte| vec![byte]));
        assert_eq!(whole, find([message.as_bytes().to_vec()]), "in pieces and at once");
        whole
    }

    fn find(pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<RequestId> {
        let mut finder = IdFinder::default();
        pieces.into_iter().for_each(|piece| finder.feed(&piece));
        finder.into_id()
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let number = Some(RequestId::Number(3));
        assert_eq!(id_of(r#"{"jsonrpc":"2.0","id":3,"method":"m"}"#), number);
        assert_eq!(id_of(r#"{"params":{"id":7,"a":[{"id":8}]}, "id" : 3 }"#), number);
        let text = Some(RequestId::String("a\"b".into()));
        assert_eq!(id_of(r#"{"id":"a\"b","x":1}"#), text);
        let spaced = Some(RequestId::String("a b ".into()));
        assert_eq!(id_of(r#"{ "id" : "a b " , "x":1}"#), spaced);
    }

    #[test]
    fn what_only_looks_like_an_id_is_none() {
        for message in [
            r#"{"params":{"id":3}}"#,
            r#"{"x":"\"id\":3,"}"#,
            r#"{"x":"id","y":3}"#,
            r#"{"i d":3}"#,
            r#"{"id":null}"#,
            r#"{"id":{"a":1}}"#,
            r#"{"id":3"#,
            r#"[{"id":3}]"#,
            "xxx",
            "",
        ] {
            assert_eq!(id_of(message), None, "{message}");
        }
    }

    #[test]
    fn an_id_that_is_too_long_is_none() {
        assert_eq!(id_of(&format!(r#"{{"id":"{}"}}"#, "x".repeat(ID_BYTES_MAX))), None);
    }
}
