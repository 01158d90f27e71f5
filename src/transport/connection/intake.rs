//! The messages of a client: lines, read as what they mean.
//!
//! It must not know what is in flight. A long line is read where it keeps nobody waiting, and giving
//! up in the middle of that loses nothing.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio::io::AsyncRead;

use crate::transport::connection::incoming::{self, Incoming};
use crate::transport::framing::Refusal;
use crate::transport::framing::lines::{Input, Line, Lines};
use crate::transport::limits::Limits;
use crate::transport::line_memory::ReadingRoom;

/// A long line that is being read.
type Aside = Pin<Box<dyn Future<Output = Result<Incoming, Refusal>> + Send>>;

/// Reads the messages of one client.
pub(super) struct Intake<R> {
    lines: Lines<R>,
    aside: Option<Aside>,
    parsing: ReadingRoom,
    tokens_max: usize,
}

impl<R> fmt::Debug for Intake<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> Intake<R> {
    pub(super) fn new(lines: Lines<R>, limits: &Limits) -> Self {
        let parsing = limits.parsing.clone();
        Self { lines, aside: None, parsing, tokens_max: limits.tokens_max }
    }

    /// Notes that the client has shown to speak the protocol.
    pub(super) fn greeted(&mut self) {
        self.lines.greeted();
    }

    /// Waits for the next message, or what to answer to a line that is none; none at the end of
    /// input. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Incoming, Refusal>> {
        let aside = match &mut self.aside {
            Some(aside) => aside,
            None => match self.lines.next().await {
                Input::Line(line) if line.is_short() => {
                    return Some(incoming::read(line.bytes(), self.tokens_max));
                }
                Input::Line(line) => {
                    let reading = read_aside(line, self.parsing.clone(), self.tokens_max);
                    self.aside.insert(Box::pin(reading))
                }
                Input::Refused(refusal) => return Some(Err(refusal)),
                Input::End => return None,
            },
        };
        let read = aside.await;
        self.aside = None;
        Some(read)
    }
}

async fn read_aside(
    line: Line,
    parsing: ReadingRoom,
    tokens_max: usize,
) -> Result<Incoming, Refusal> {
    let length = line.bytes().len();
    let read = parsing.read(length, move || incoming::read(line.bytes(), tokens_max)).await;
    // Nothing in it fails; whatever would is as good as no message.
    read.unwrap_or(Err(Refusal::NotJson))
}
