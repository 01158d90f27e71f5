//! The unsent messages of one connection: replies first, then pushes, within a size limit.
//!
//! This module bounds the memory used for a client that never reads.

pub mod budget;
mod queue;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rmcp::model::RequestId;
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, oneshot};

use crate::mcp::call_result::CallAnswer;
use crate::mcp::outbox::budget::{ReservedSpace, Rooms};
use crate::mcp::outbox::queue::{ExpectedReply, Mute, OutboxQueue, OutgoingLine, OutgoingSocket};

/// The maximum of unsent bytes per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentLimits {
    /// For replies. Further replies wait for space.
    pub replies_max: usize,
    pub pushes_max: usize,
}

impl Default for UnsentLimits {
    fn default() -> Self {
        Self { replies_max: 768 * 1024, pushes_max: 256 * 1024 }
    }
}

/// One line including its end, in up to three parts, so that connections can share the long one. Unused parts are
/// empty.
pub type Segments = [Bytes; 3];

/// The connection accepts no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The socket has taken the whole line.
    Written,
    /// The line was not sent: its lane was closed or the connection ended.
    Dropped,
}

/// The unsent messages of one connection; cheap to clone.
#[derive(Clone, Debug)]
pub struct Outbox(Arc<OutboxState>);

#[derive(Debug)]
struct OutboxState {
    queue: Mutex<OutboxQueue>,
    relieved: Notify,
    limits: UnsentLimits,
    replies: Rooms,
    pushes: Rooms,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new(UnsentLimits::default())
    }
}

impl Outbox {
    pub fn new(limits: UnsentLimits) -> Self {
        Self(Arc::new(OutboxState {
            queue: Mutex::default(),
            relieved: Notify::new(),
            limits,
            replies: Rooms::new(limits.replies_max),
            pushes: Rooms::new(limits.pushes_max),
        }))
    }

    /// Waits until a reply of about `estimate` bytes fits beside the unsent ones.
    ///
    /// A larger estimate than the limit waits until nothing is unsent. Call it after passing the turn and before
    /// building the reply.
    pub async fn room(&self, estimate: usize) -> ReservedSpace {
        self.0.replies.reserve(estimate).await
    }

    /// Waits until a push of about `estimate` bytes fits beside the unsent pushes.
    pub async fn push_room(&self, estimate: usize) -> ReservedSpace {
        self.0.pushes.reserve(estimate).await
    }

    /// Like [`Outbox::push_room`], if it is free now.
    pub fn push_room_now(&self, estimate: usize) -> Option<ReservedSpace> {
        self.0.pushes.reserve_now(estimate)
    }

    /// Links `room` to the expected reply of request `id`; it is held until the reply is sent.
    ///
    /// Does nothing when no reply is expected, for example after a cancel.
    pub fn attach(&self, id: &RequestId, room: ReservedSpace) {
        if let Some(expected) = self.lock().expected.get_mut(id) {
            expected.room = Some(room);
        }
    }

    /// Sets what answers request `id` in place of the library's message: the library's types would write it in another
    /// way.
    pub fn set_answer(&self, id: &RequestId, answer: CallAnswer) {
        if let Some(expected) = self.lock().expected.get_mut(id) {
            expected.answer = Some(answer);
        }
    }

    /// Takes what answers request `id` in place of the library's message, if anything does.
    pub fn take_answer(&self, id: &RequestId) -> Option<CallAnswer> {
        self.lock().expected.get_mut(id)?.answer.take()
    }

    pub fn expect(&self, id: RequestId) {
        self.lock().expected.insert(id, ExpectedReply::default());
    }

    pub fn forget(&self, id: &RequestId) {
        self.lock().expected.remove(id);
    }

    /// Queues one line, including its end, before all pushes.
    ///
    /// `id` names the request that it answers, if any. A reply is never rejected for its size, because the number of
    /// requests in flight is limited.
    pub fn reply(&self, id: Option<&RequestId>, line: Bytes) -> Result<(), Closed> {
        let mut queue = self.lock();
        let room = id.and_then(|id| queue.expected.remove(id)?.room);
        self.add_reply(&mut queue, room, line)?;
        queue.wake_writer();
        Ok(())
    }

    /// Like [`Outbox::reply`], for the task that runs [`Outbox::write_to`]. It does not wake that task, which finds
    /// the line at its next poll.
    pub fn reply_here(&self, room: Option<ReservedSpace>, line: Bytes) -> Result<(), Closed> {
        self.add_reply(&mut self.lock(), room, line)
    }

    fn add_reply(
        &self,
        queue: &mut OutboxQueue,
        room: Option<ReservedSpace>,
        line: Bytes,
    ) -> Result<(), Closed> {
        let room = self.0.replies.fit(room, line.len());
        queue.add_reply(OutgoingLine::new([line, Bytes::new(), Bytes::new()], room))
    }

    /// Sends one line after all replies and earlier pushes: at once, or from the queue.
    ///
    /// The receipt completes when the socket has taken the line. An observer waits for it, so it has at most one
    /// unsent push and combines later changes.
    pub fn push(
        &self,
        lane: &PushLane,
        room: Option<ReservedSpace>,
        segments: Segments,
    ) -> PushReceipt {
        let parts = segments.each_ref();
        self.push_locked(&mut self.lock(), lane, room, parts)
    }

    /// Like [`Outbox::push`], for a line that needs no room, because nothing is unsent. `None` if something is.
    pub fn push_if_idle(&self, lane: &PushLane, segments: [&Bytes; 3]) -> Option<PushReceipt> {
        let mut queue = self.lock();
        queue.is_idle().then(|| self.push_locked(&mut queue, lane, None, segments))
    }

    fn push_locked(
        &self,
        queue: &mut OutboxQueue,
        lane: &PushLane,
        room: Option<ReservedSpace>,
        segments: [&Bytes; 3],
    ) -> PushReceipt {
        if queue.refuses(&lane.mute) {
            return PushReceipt::Known(Delivery::Dropped);
        }
        let taken = queue.write_at_once(segments);
        let length = segments.iter().map(|segment| segment.len()).sum();
        if taken == length {
            return PushReceipt::Known(Delivery::Written);
        }
        let (sender, receiver) = oneshot::channel();
        let line = OutgoingLine::new(segments.map(Bytes::clone), self.0.pushes.fit(room, length));
        queue.add_push(line, taken, &lane.mute, sender);
        PushReceipt::Awaited(receiver)
    }

    /// Creates a lane for pushes that can be ended together.
    pub fn lane(&self) -> PushLane {
        PushLane { outbox: self.clone(), mute: Mute::default() }
    }

    /// The number of queued bytes that the socket has not taken.
    pub fn unsent_bytes(&self) -> usize {
        self.lock().unsent()
    }

    /// Waits until at most half of the limit of unsent replies is used.
    pub async fn relieved(&self) {
        while self.lock().unsent_replies() > self.0.limits.replies_max / 2 {
            let mut relieved = pin!(self.0.relieved.notified());
            relieved.as_mut().enable();
            if self.lock().unsent_replies() <= self.0.limits.replies_max / 2 {
                return;
            }
            relieved.await;
        }
    }

    /// Accepts no more messages; queued ones are still sent.
    pub fn close(&self) {
        self.lock().close();
        self.0.replies.close();
        self.0.pushes.close();
    }

    /// Accepts no more messages and discards the queue.
    pub fn abandon(&self) {
        self.close();
        self.lock().clear();
        self.0.relieved.notify_waiters();
    }

    /// Writes queued and later messages to `socket` until [`Outbox::close`]. Only one task may call this.
    ///
    /// The order is decided each time the socket takes bytes. So a reply overtakes pushes that wait for a slow client.
    /// While this sleeps because nothing is queued, pushes are written where they are made.
    pub async fn write_to(&self, socket: impl AsyncWrite + Send + 'static) -> io::Result<()> {
        self.lock().socket = Some(OutgoingSocket(Box::pin(socket)));
        let written = poll_fn(|context| self.poll_write(context)).await;
        self.abandon();
        written
    }

    fn poll_write(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut queue = self.lock();
            if queue.is_empty() {
                ready!(queue.poll_flush(context))?;
                return queue.poll_closed(context);
            }
            ready!(queue.poll_write(context))?;
            if queue.unsent_replies() <= self.0.limits.replies_max / 2 {
                self.0.relieved.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutboxQueue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pushes of one request or subscription, which end together; cheap to clone.
#[derive(Clone, Debug)]
pub struct PushLane {
    outbox: Outbox,
    mute: Mute,
}

impl PushLane {
    /// Ends the lane: discards queued and later pushes, except a line that is partly written.
    pub fn close(&self) {
        self.outbox.lock().mute(&self.mute);
    }
}

/// Completes when its push is written or dropped.
#[derive(Debug)]
#[must_use = "waiting for it is what keeps an observer from flooding a slow client"]
pub enum PushReceipt {
    /// What became of the line at once.
    Known(Delivery),
    Awaited(oneshot::Receiver<()>),
}

impl Future for PushReceipt {
    type Output = Delivery;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Delivery> {
        match &mut *self {
            Self::Known(delivery) => Poll::Ready(*delivery),
            Self::Awaited(written) => {
                Pin::new(written).poll(context).map(|written| match written {
                    Ok(()) => Delivery::Written,
                    Err(_) => Delivery::Dropped,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
