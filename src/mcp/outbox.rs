//! What one connection has still to send: replies first, then pushes, and never more than a bound.
//!
//! It must not know what the lines mean nor what kind of socket takes them. All that a client which
//! never reads can cost is decided here.

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

use crate::mcp::outbox::budget::{Room, Rooms};
use crate::mcp::outbox::queue::{Line, Mute, Queue};

/// How many unsent bytes one connection may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentLimits {
    /// Of replies; what is over it must wait for room.
    pub replies_max: usize,
    pub pushes_max: usize,
}

impl Default for UnsentLimits {
    fn default() -> Self {
        Self { replies_max: 768 * 1024, pushes_max: 256 * 1024 }
    }
}

/// One line to send, its end included, in up to three parts, so that the long one can be shared
/// between connections. Parts that are not needed are empty.
pub type Segments = [Bytes; 3];

/// Says that the connection takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The socket has taken all of it.
    Written,
    /// It was not sent: its lane was closed or the connection ended.
    Dropped,
}

/// The lines one connection has still to send; cheap to clone.
#[derive(Clone, Debug)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
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
    /// An outbox with nothing in it.
    pub fn new(limits: UnsentLimits) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            relieved: Notify::new(),
            limits,
            replies: Rooms::new(limits.replies_max),
            pushes: Rooms::new(limits.pushes_max),
        }))
    }

    /// Waits until a reply of about `estimate` bytes fits beside what is unsent.
    ///
    /// An estimate above the whole bound waits until nothing else is unsent. Ask after the turn was
    /// passed on, and build the reply only then.
    pub async fn room(&self, estimate: usize) -> Room {
        self.0.replies.reserve(estimate).await
    }

    /// Waits until a push of about `estimate` bytes fits beside the pushes that are unsent.
    pub async fn push_room(&self, estimate: usize) -> Room {
        self.0.pushes.reserve(estimate).await
    }

    /// Says that the reply to request `id` was built under `room`, which is held until it is sent.
    ///
    /// Does nothing when no reply is expected, as after a cancel.
    pub fn attach(&self, id: &RequestId, room: Room) {
        if let Some(place) = self.lock().rooms.get_mut(id) {
            *place = Some(room);
        }
    }

    /// Expects a reply to request `id`.
    pub fn expect(&self, id: RequestId) {
        self.lock().rooms.insert(id, None);
    }

    /// Expects no reply to request `id` any more.
    pub fn forget(&self, id: &RequestId) {
        self.lock().rooms.remove(id);
    }

    /// Queues one whole line, its end included, ahead of all pushes.
    ///
    /// `id` names the request it answers, if it answers one. A reply is never refused for want of
    /// room: the bound on requests in flight bounds them.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the connection takes nothing more.
    pub fn reply(&self, id: Option<&RequestId>, line: Bytes) -> Result<(), Closed> {
        let mut queue = self.lock();
        let room = id.and_then(|id| queue.rooms.remove(id)).flatten();
        self.add_reply(&mut queue, room, line)?;
        queue.wake_writer();
        Ok(())
    }

    /// Does the same in the task that runs [`Outbox::write_to`], before that is polled again: it
    /// finds the line then, and waking it would only make the task run once more for nothing.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the connection takes nothing more.
    pub fn reply_here(&self, room: Option<Room>, line: Bytes) -> Result<(), Closed> {
        self.add_reply(&mut self.lock(), room, line)
    }

    fn add_reply(&self, queue: &mut Queue, room: Option<Room>, line: Bytes) -> Result<(), Closed> {
        let room = self.0.replies.fit(room, line.len());
        queue.add_reply(Line::new([line, Bytes::new(), Bytes::new()], room))
    }

    /// Queues one whole line behind all replies and earlier pushes.
    ///
    /// The receipt completes when the socket has taken it: an observer waits for that, so that it
    /// has one push outstanding at most and sends the sum of what it missed next.
    pub fn push(&self, lane: &PushLane, room: Option<Room>, segments: Segments) -> PushReceipt {
        let (sender, receiver) = oneshot::channel();
        let length = segments.iter().map(Bytes::len).sum();
        let room = self.0.pushes.fit(room, length);
        self.lock().add_push(Line::new(segments, room), &lane.mute, sender);
        PushReceipt(receiver)
    }

    /// Makes a lane for pushes which can be ended by themselves.
    pub fn lane(&self) -> PushLane {
        PushLane { outbox: self.clone(), mute: Mute::default() }
    }

    /// How many bytes are queued and not yet taken by the socket.
    pub fn unsent_bytes(&self) -> usize {
        self.lock().unsent()
    }

    /// Waits until the unsent replies are at most half of what they may be.
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

    /// Takes nothing more; what is queued is still sent.
    pub fn close(&self) {
        self.lock().close();
        self.0.replies.close();
        self.0.pushes.close();
    }

    /// Takes nothing more and drops what is queued.
    pub fn abandon(&self) {
        self.close();
        self.lock().clear();
        self.0.relieved.notify_waiters();
    }

    /// Writes all that is queued into `socket`, now and later, until [`Outbox::close`].
    ///
    /// What is written is chosen anew each time the socket takes bytes, so a reply goes ahead of
    /// pushes that wait for a slow client. Only one task may do this.
    ///
    /// # Errors
    ///
    /// What the socket answered; nothing more can be sent then.
    pub async fn write_to<W: AsyncWrite>(&self, socket: W) -> io::Result<()> {
        let mut socket = pin!(socket);
        let written = poll_fn(|context| self.poll_write(socket.as_mut(), context)).await;
        self.abandon();
        written
    }

    fn poll_write<W: AsyncWrite>(
        &self,
        mut socket: Pin<&mut W>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            // The lock is held over a write that never blocks: were it given up, the lines chosen
            // could change before their bytes are counted off.
            let mut queue = self.lock();
            if queue.is_empty() {
                ready!(socket.as_mut().poll_flush(context))?;
                return queue.poll_closed(context);
            }
            let taken =
                ready!(queue.poll_slices(|slices| {
                    socket.as_mut().poll_write_vectored(context, slices)
                }))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            queue.advance(taken);
            if queue.unsent_replies() <= self.0.limits.replies_max / 2 {
                self.0.relieved.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
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
    /// Ends the lane: nothing of it is queued any more, and what waits is dropped.
    ///
    /// Only a line whose first bytes are already in the socket is finished.
    pub fn close(&self) {
        self.outbox.lock().mute(&self.mute);
    }
}

/// Completes when its push is written or dropped.
#[derive(Debug)]
#[must_use = "waiting for it is what keeps an observer from flooding a slow client"]
pub struct PushReceipt(oneshot::Receiver<()>);

impl Future for PushReceipt {
    type Output = Delivery;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Delivery> {
        Pin::new(&mut self.0).poll(context).map(|written| match written {
            Ok(()) => Delivery::Written,
            Err(_) => Delivery::Dropped,
        })
    }
}

#[cfg(test)]
mod tests;
