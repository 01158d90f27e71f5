//! The data structure of the outbox: the queued lines and the progress of the current one.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use rmcp::model::RequestId;
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

    /// Queues a push. On an ended lane or connection, drops it and thereby its receipt.
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
        self.rooms.clear();
        self.wake_writer();
    }

    pub(super) fn clear(&mut self) {
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

    /// Passes the next bytes to `write`.
    pub(super) fn poll_slices(
        &self,
        write: impl FnOnce(&[IoSlice<'_>]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
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
        write(&slices[..count])
    }

    /// Consumes written bytes, in the order of [`OutboxQueue::poll_slices`].
    pub(super) fn advance(&mut self, taken: usize) {
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
