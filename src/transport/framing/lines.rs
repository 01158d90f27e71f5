//! Lines out of a stream of bytes, within bounds of length, time and shared memory.
//!
//! It must not know what a line says. Giving up a read in its middle loses nothing: what came of a
//! line is kept here until the rest comes.

use std::future::Future;
use std::io;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use rmcp::model::RequestId;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant, timeout_at};

use crate::transport::framing::envelope::IdFinder;
use crate::transport::limits::{LINE_FREE, Limits};

/// Bytes asked of the stream at least and at most in one read.
const READ_MIN: usize = 4 * 1024;
const READ_MAX: usize = 64 * 1024;

/// What came next.
#[derive(Debug)]
pub enum Input {
    /// A line that is not empty, without its end.
    Line(Line),
    /// A line that was too long, as a whole, the id of the message that it was, and how many bytes
    /// a line may have.
    TooLong { id: Option<RequestId>, bytes_max: usize },
    /// The end of the stream, or a deadline that passed: nothing more will come.
    End,
}

/// A line, and the shared memory it occupies for as long as it is kept.
#[derive(Debug)]
pub struct Line {
    bytes: BytesMut,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Line {
    /// The bytes of the line, its end left out.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes)
    }

    /// The line with its end, to be passed on.
    pub fn into_whole(mut self) -> Bytes {
        self.bytes.truncate(self.bytes().len());
        self.bytes.put_u8(b'\n');
        self.bytes.freeze()
    }
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// A line is being skipped, since it is too long to be kept.
    skipped: Option<IdFinder>,
    memory: Option<OwnedSemaphorePermit>,
    shared: Arc<Semaphore>,
    greeting_by: Option<Instant>,
    line_by: Option<Instant>,
    inside_message: Duration,
    line_max: usize,
    reset: bool,
    returned: Option<Input>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Starts reading; the time to the first message starts with it.
    pub fn new(stream: R, limits: &Limits) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            searched: 0,
            skipped: None,
            memory: None,
            shared: limits.parsing.clone(),
            greeting_by: Some(Instant::now() + limits.first_message),
            line_by: None,
            inside_message: limits.inside_message,
            line_max: limits.line_max,
            reset: false,
            returned: None,
        }
    }

    /// Whether the other end closed the stream before it had read all that was sent to it.
    pub fn was_reset(&self) -> bool {
        self.reset
    }

    /// Notes that the client has shown to speak the protocol: it may be silent from now on.
    pub fn greeted(&mut self) {
        self.greeting_by = None;
    }

    /// Gives back what came last, to be the next again.
    pub fn put_back(&mut self, input: Input) {
        self.returned = Some(input);
    }

    /// Waits for the next line. Cancel-safe.
    pub async fn next(&mut self) -> Input {
        if let Some(input) = self.returned.take() {
            return input;
        }
        loop {
            if let Some(input) = self.take() {
                return input;
            }
            // A line that has begun must end in time, however slowly this is called.
            if self.line_by.is_none() && (self.skipped.is_some() || !self.buffer.is_empty()) {
                self.line_by = Some(Instant::now() + self.inside_message);
            }
            let deadline = self.line_by.into_iter().chain(self.greeting_by).min();
            match within(deadline, self.fill()).await {
                Ok(read) if read > 0 => {}
                Ok(_) => return self.take_rest(),
                Err(error) => {
                    self.reset = error.kind() == io::ErrorKind::ConnectionReset;
                    return Input::End;
                }
            }
        }
    }

    /// Takes a line that is in the buffer as a whole, or notices that one is too long.
    fn take(&mut self) -> Option<Input> {
        loop {
            let newline = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(offset) = newline else {
                self.searched = self.buffer.len();
                self.overflow();
                return None;
            };
            let length = self.searched + offset;
            let mut bytes = self.cut(length + 1);
            bytes.truncate(length);
            let memory = self.memory.take();
            if self.skipped.is_some() || length > self.line_max {
                return Some(self.end_skipping(&bytes));
            }
            if bytes.is_empty() || *bytes == *b"\r" {
                continue;
            }
            return Some(Input::Line(Line { bytes, _memory: memory }));
        }
    }

    /// Drops the line in the buffer when it has grown too long, or is the rest of one that had.
    fn overflow(&mut self) {
        if self.skipped.is_some() || self.buffer.len() > self.line_max {
            self.skipped.get_or_insert_default().feed(&self.buffer);
            self.buffer = BytesMut::new();
            self.searched = 0;
            self.memory = None;
        }
    }

    fn end_skipping(&mut self, rest: &[u8]) -> Input {
        let mut finder = self.skipped.take().unwrap_or_default();
        finder.feed(rest);
        Input::TooLong { id: finder.into_id(), bytes_max: self.line_max }
    }

    /// Takes what stands before the end of the stream, since a complete message needs no line end.
    fn take_rest(&mut self) -> Input {
        let bytes = self.cut(self.buffer.len());
        if self.skipped.is_some() {
            return self.end_skipping(&bytes);
        }
        if bytes.is_empty() {
            return Input::End;
        }
        Input::Line(Line { bytes, _memory: self.memory.take() })
    }

    fn cut(&mut self, length: usize) -> BytesMut {
        let line = self.buffer.split_to(length);
        if length > LINE_FREE {
            // The rest would keep the long line's memory alive.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        self.searched = 0;
        self.line_by = None;
        line
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let step = self.buffer.len().clamp(READ_MIN, READ_MAX);
        self.occupy(self.buffer.len() + step).await;
        self.buffer.reserve(step);
        self.stream.read_buf(&mut self.buffer).await
    }

    /// Waits until a line of this many bytes may be held.
    async fn occupy(&mut self, bytes: usize) {
        let held = self.memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.saturating_sub(LINE_FREE).div_ceil(1024);
        let Some(missing) = wanted.checked_sub(held).filter(|missing| *missing > 0) else { return };
        let more = self.shared.clone().acquire_many_owned(missing as u32).await;
        match (&mut self.memory, more.ok()) {
            (Some(memory), Some(more)) => memory.merge(more),
            (None, more) => self.memory = more,
            (Some(_), None) => {}
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
