//! The data structure of the outbox: the queued lines and the progress of the current one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use rmcp::model::RequestId;
use tokio::io::AsyncWrite;
use tokio::sync::oneshot;

use crate::mcp::call_result::CallAnswer;
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::outbox::{Closed, Segments};

/// The maximum number of line parts per write.
const SLICES_MAX: usize = 64;

/// Whether a lane has ended; shared by the lane and its lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Mute(Arc<AtomicBool>);

impl Mute {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn is_of(&self, lane: &Self) -> bool {
        Arc::ptr_eq(&self.0, &lane.0)
    }
}

/// One line. Its segments shrink from the front as they are written.
#[derive(Debug)]
pub(super) struct OutgoingLine {
    segments: Segments,
    _room: ReservedSpace,
}

impl OutgoingLine {
    pub(super) fn new(segments: Segments, room: ReservedSpace) -> Self {
        let last = segments.iter().rev().find_map(|segment| segment.last());
        debug_assert_eq!(last, Some(&b'\n'), "a message is one whole line");
        Self { segments, _room: room }
    }

    fn len(&self) -> usize {
        self.segments.iter().map(Bytes::len).sum()
    }

    /// Consumes up to `taken` bytes and returns how many belonged to this line.
    fn advance(&mut self, taken: usize) -> usize {
        let mut left = taken;
        for segment in &mut self.segments {
            let step = left.min(segment.len());
            segment.advance(step);
            left -= step;
        }
        taken - left
    }
}

#[derive(Debug)]
struct Push {
    line: OutgoingLine,
    mute: Mute,
    receipt: oneshot::Sender<()>,
}

#[derive(Debug)]
enum CurrentLine {
    Reply(OutgoingLine),
    Push(Push),
}

/// Where the lines go. It is written to under the lock of its queue only.
pub(super) struct OutgoingSocket(pub(super) Pin<Box<dyn AsyncWrite + Send>>);

impl fmt::Debug for OutgoingSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutgoingSocket")
    }
}

/// What is known of a reply before it is sent.
#[derive(Debug, Default)]
pub(super) struct ExpectedReply {
    /// The space reserved for it.
    pub(super) room: Option<ReservedSpace>,
    /// What answers the request in place of the library's message.
    pub(super) answer: Option<CallAnswer>,
}

/// The lines to write: the started one, then replies, then pushes.
#[derive(Debug, Default)]
pub(super) struct OutboxQueue {
    /// The requests whose replies are expected.
    pub(super) expected: HashMap<RequestId, ExpectedReply>,
    started: Option<CurrentLine>,
    replies: VecDeque<OutgoingLine>,
    pushes: VecDeque<Push>,
    unsent_replies: usize,
    unsent_pushes: usize,
    closed: bool,
    pub(super) socket: Option<OutgoingSocket>,
    /// The task of the writer, while it sleeps because nothing is queued.
    writer: Option<Waker>,
}

impl OutboxQueue {
    pub(super) fn add_reply(&mut self, line: OutgoingLine) -> Result<(), Closed> {
        if self.closed {
            return Err(Closed);
        }
        self.unsent_replies += line.len();
        self.replies.push_back(line);
        Ok(())
    }

    /// Adds a push, of which the socket has taken the first bytes.
    pub(super) fn add_push(
        &mut self,
        mut line: OutgoingLine,
        taken: usize,
        mute: &Mute,
        receipt: oneshot::Sender<()>,
    ) {
        line.advance(taken);
        self.unsent_pushes += line.len();
        let push = Push { line, mute: mute.clone(), receipt };
        if taken > 0 {
            // It was idle, so nothing else is started.
            self.started = Some(CurrentLine::Push(push));
        } else {
            self.pushes.push_back(push);
        }
        self.wake_writer();
    }

    pub(super) fn mute(&mut self, lane: &Mute) {
        lane.0.store(true, Ordering::Release);
        let unsent = &mut self.unsent_pushes;
        self.pushes.retain(|push| {
            let stays = !push.mute.is_of(lane);
            *unsent -= if stays { 0 } else { push.line.len() };
            stays
        });
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.expected.clear();
        self.wake_writer();
    }

    /// Discards the queue and closes the socket.
    pub(super) fn clear(&mut self) {
        self.socket = None;
        self.started = None;
        self.replies.clear();
        self.pushes.clear();
        self.unsent_replies = 0;
        self.unsent_pushes = 0;
    }

    pub(super) fn unsent(&self) -> usize {
        self.unsent_replies + self.unsent_pushes
    }

    pub(super) fn unsent_replies(&self) -> usize {
        self.unsent_replies
    }

    pub(super) fn is_empty(&self) -> bool {
        self.started.is_none() && self.replies.is_empty() && self.pushes.is_empty()
    }

    /// Completes when the queue is closed; otherwise the next line wakes the writer.
    pub(super) fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Whether a push is dropped because its lane or the connection has ended.
    pub(super) fn refuses(&self, lane: &Mute) -> bool {
        self.closed || lane.is_set()
    }

    /// Whether the writer sleeps because nothing is queued.
    pub(super) fn is_idle(&self) -> bool {
        self.writer.is_some() && self.is_empty()
    }

    /// Writes a line that is not queued, if this is idle. Returns how many bytes the socket took.
    ///
    /// So no task is woken for a line that goes out whole. The rest is for the writer, which gets an error again.
    pub(super) fn write_at_once(&mut self, segments: [&Bytes; 3]) -> usize {
        let idle = self.is_idle();
        let Some(OutgoingSocket(socket)) = self.socket.as_mut().filter(|_| idle) else { return 0 };
        let context = &mut Context::from_waker(Waker::noop());
        let slices = segments.map(|segment| IoSlice::new(segment));
        let taken = match socket.as_mut().poll_write_vectored(context, &slices) {
            Poll::Ready(Ok(taken)) => taken,
            Poll::Ready(Err(_)) | Poll::Pending => return 0,
        };
        if socket.as_mut().poll_flush(context).is_pending() {
            self.wake_writer();
        }
        taken
    }

    /// Passes the next bytes to the socket.
    ///
    /// The caller holds the lock, and a write never blocks. Otherwise the chosen lines could change before their bytes
    /// are counted.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(OutgoingSocket(socket)) = &mut self.socket else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let started = self.started.iter().map(|started| match started {
            CurrentLine::Reply(line) => line,
            CurrentLine::Push(push) => &push.line,
        });
        let lines = started.chain(&self.replies).chain(self.pushes.iter().map(|push| &push.line));
        let parts = lines.flat_map(|line| &line.segments).filter(|part| !part.is_empty());
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
            count += 1;
        }
        let taken = ready!(socket.as_mut().poll_write_vectored(context, &slices[..count]))?;
        if taken == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(taken);
        Poll::Ready(Ok(()))
    }

    /// Passes on what a buffered socket holds.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Some(OutgoingSocket(socket)) => socket.as_mut().poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Consumes written bytes, in the order of [`OutboxQueue::poll_write`].
    fn advance(&mut self, taken: usize) {
        let mut left = taken;
        while left > 0 {
            let Some(mut next) = self.next_line() else { return };
            let (line, unsent) = match &mut next {
                CurrentLine::Reply(line) => (line, &mut self.unsent_replies),
                CurrentLine::Push(push) => (&mut push.line, &mut self.unsent_pushes),
            };
            let step = line.advance(left);
            left -= step;
            *unsent -= step;
            if line.len() > 0 {
                self.started = Some(next);
            } else if let CurrentLine::Push(push) = next {
                // The pusher may have dropped the receipt.
                let _ = push.receipt.send(());
            }
        }
    }

    fn next_line(&mut self) -> Option<CurrentLine> {
        let reply = |queue: &mut Self| queue.replies.pop_front().map(CurrentLine::Reply);
        let push = |queue: &mut Self| queue.pushes.pop_front().map(CurrentLine::Push);
        self.started.take().or_else(|| reply(self)).or_else(|| push(self))
    }

    pub(super) fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}
