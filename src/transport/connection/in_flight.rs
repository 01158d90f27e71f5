//! The requests of one connection that are not answered, and how many of them may be.
//!
//! It must not know sockets. The bounds here are what keeps a client from starting more
//! work than the daemon is willing to hold for it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::AbortHandle;
use rmcp::model::{ErrorData, RequestId};
use tokio::sync::Notify;

use crate::mcp::outbox::{Outbox, PushLane};
use crate::mcp::request_class::Span;
use crate::transport::framing::error_line;
use crate::transport::limits::Limits;

/// Handlers of cancelled requests that may be still on their way out.
const LEAVING_MAX: usize = 64;

/// Who runs a request, and what ends it there.
#[derive(Clone, Debug)]
pub(super) enum Runner {
    /// The connection itself, which stops it.
    Here(AbortHandle),
    /// The library, which stops it by itself; its pushes end with the lane.
    Library(PushLane),
}

/// A request that is not answered.
#[derive(Debug)]
struct Entry {
    span: Span,
    runner: Runner,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Its id belongs to a request in flight.
    IdInUse,
    /// Too many long requests are in flight.
    Busy,
}

/// The requests in flight; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct InFlight(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    changed: Notify,
    outbox: Outbox,
    short_max: usize,
    long_max: usize,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<RequestId, Entry>,
    long: usize,
    running: usize,
}

impl InFlight {
    pub(super) fn new(outbox: Outbox, limits: &Limits) -> Self {
        let (short_max, long_max) = (limits.short_max, limits.long_max);
        Self(Arc::new(Shared {
            table: Mutex::default(),
            changed: Notify::new(),
            outbox,
            short_max,
            long_max,
        }))
    }

    /// Takes a request in.
    pub(super) fn admit(&self, id: &RequestId, span: Span, runner: Runner) -> Result<(), Full> {
        let mut table = self.lock();
        if table.entries.contains_key(id) {
            return Err(Full::IdInUse);
        }
        if span.is_long() && table.long >= self.0.long_max {
            return Err(Full::Busy);
        }
        table.long += usize::from(span.is_long());
        table.entries.insert(id.clone(), Entry { span, runner });
        Ok(())
    }

    /// What the library's handler of a request holds while it runs.
    pub(super) fn running(&self, id: &RequestId) -> Running {
        self.lock().running += 1;
        let held = Held { in_flight: self.clone(), id: id.clone(), outbox: self.0.outbox.clone() };
        Running { _held: Arc::new(held) }
    }

    /// Ends a request: it is answered or cancelled, and nothing more is sent for it.
    ///
    /// `false` when it was not in flight.
    pub(super) fn end(&self, id: &RequestId) -> bool {
        let ended = self.lock().remove(id);
        self.0.changed.notify_waiters();
        match ended.map(|entry| entry.runner) {
            Some(Runner::Here(call)) => call.abort(),
            Some(Runner::Library(lane)) => lane.close(),
            None => return false,
        }
        true
    }

    /// Waits until another request may be read.
    pub(super) async fn readable(&self) {
        let running_max = self.0.short_max + self.0.long_max + LEAVING_MAX;
        let short_max = self.0.short_max;
        self.until(|table| table.short() < short_max && table.running < running_max).await;
    }

    /// Waits until this request is answered or cancelled.
    pub(super) async fn ended(&self, id: &RequestId) {
        self.until(|table| !table.entries.contains_key(id)).await;
    }

    /// Waits until every request is answered or cancelled.
    pub(super) async fn emptied(&self) {
        self.until(|table| table.entries.is_empty()).await;
    }

    async fn until(&self, holds: impl Fn(&Table) -> bool) {
        // Looked at first, since that is cheaper than getting ready to wait.
        while !holds(&self.lock()) {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// A request that may stay open long, if one is in flight.
    pub(super) fn any_long(&self) -> Option<RequestId> {
        let table = self.lock();
        let mut entries = table.entries.iter();
        entries.find(|(_, entry)| entry.span.is_long()).map(|(id, _)| id.clone())
    }

    /// The lane of a request in flight at the library.
    pub(super) fn lane(&self, id: &RequestId) -> Option<PushLane> {
        match &self.lock().entries.get(id)?.runner {
            Runner::Library(lane) => Some(lane.clone()),
            Runner::Here(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn remove(&mut self, id: &RequestId) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.long -= usize::from(entry.span.is_long());
        Some(entry)
    }

    fn short(&self) -> usize {
        self.entries.len() - self.long
    }
}

/// Held by the handler of a request for as long as it runs, which may be longer than the request
/// is in flight: a cancelled one is no longer answered, but has yet to stop.
#[derive(Clone, Debug)]
pub(super) struct Running {
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    in_flight: InFlight,
    id: RequestId,
    outbox: Outbox,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.in_flight.lock().running -= 1;
        self.in_flight.0.changed.notify_waiters();
        // The library never answers a request whose handler panicked.
        if std::thread::panicking() && self.in_flight.end(&self.id) {
            let error = ErrorData::internal_error("the request failed inside the daemon", None);
            // A client that has gone needs no answer.
            let _ = self.outbox.reply(Some(&self.id), error_line(Some(&self.id), &error));
        }
    }
}
