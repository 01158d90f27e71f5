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

/// The lines to write: the started one, then replies, then pushes.
#[derive(Debug, Default)]
pub(super) struct OutboxQueue {
    /// The requests whose replies are expected, and the space reserved for them.
    pub(super) rooms: HashMap<RequestId, Option<ReservedSpace>>,
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

    /// Adds a push. On an ended lane or connection, drops it and thereby its receipt.
    pub(super) fn add_push(
        &mut self,
        line: OutgoingLine,
        mute: &Mute,
        receipt: oneshot::Sender<()>,
    ) {
        if self.closed || mute.is_set() {
            return;
        }
        self.unsent_pushes += line.len();
        self.pushes.push_back(Push { line, mute: mute.clone(), receipt });
        self.write_now();
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
        self.rooms.clear();
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

    /// Writes what was added, unless the writer is busy with earlier lines.
    ///
    /// So no task is woken for a line that the socket takes at once. The writer does the rest, and gets an error again.
    pub(super) fn write_now(&mut self) {
        if self.writer.is_none() {
            return;
        }
        let context = &mut Context::from_waker(Waker::noop());
        while !self.is_empty() && matches!(self.poll_write(context), Poll::Ready(Ok(()))) {}
        if !self.is_empty() || self.poll_flush(context).is_pending() {
            self.wake_writer();
        }
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

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}
