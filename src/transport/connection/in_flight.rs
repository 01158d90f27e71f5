//! The requests of one connection without an answer yet, and their limits.
//!
//! The limits bound the work that one client can start.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::AbortHandle;
use rmcp::model::{ErrorData, RequestId};
use tokio::sync::Notify;

use crate::mcp::client_requests::ClientRequests;
use crate::mcp::outbox::{Outbox, PushLane};
use crate::mcp::request_class::RequestClass;
use crate::transport::framing::error_line;
use crate::transport::limits::Limits;

/// Cancelled handlers that may still be running.
const LEAVING_MAX: usize = 64;

/// Where a request runs and how it is stopped.
#[derive(Clone, Debug)]
pub(super) enum Runner {
    /// The connection runs the request and aborts it.
    Here(AbortHandle),
    /// The library runs the request and stops it; closing the lane ends its pushes.
    Library(PushLane),
}

#[derive(Debug)]
struct InFlightRequest {
    span: RequestClass,
    runner: Runner,
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    IdInUse,
    /// Too many long requests are in flight.
    Busy,
}

/// The requests in flight; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct InFlight(Arc<SharedRequests>);

#[derive(Debug)]
struct SharedRequests {
    table: Mutex<RequestTable>,
    changed: Notify,
    outbox: Outbox,
    short_max: usize,
    long_max: usize,
}

#[derive(Debug, Default)]
struct RequestTable {
    entries: HashMap<RequestId, InFlightRequest>,
    long: usize,
    running: usize,
}

impl InFlight {
    pub(super) fn new(outbox: Outbox, limits: &Limits) -> Self {
        let (short_max, long_max) = (limits.short_max, limits.long_max);
        Self(Arc::new(SharedRequests {
            table: Mutex::default(),
            changed: Notify::new(),
            outbox,
            short_max,
            long_max,
        }))
    }

    /// Checks whether a request may start.
    pub(super) fn check(&self, id: &RequestId, span: RequestClass) -> Result<(), Full> {
        let table = self.lock();
        if table.entries.contains_key(id) {
            return Err(Full::IdInUse);
        }
        if span.is_long() && table.long >= self.0.long_max {
            return Err(Full::Busy);
        }
        Ok(())
    }

    /// Counts a request that was checked just before.
    pub(super) fn add(&self, id: &RequestId, span: RequestClass, runner: Runner) {
        let mut table = self.lock();
        table.long += usize::from(span.is_long());
        table.entries.insert(id.clone(), InFlightRequest { span, runner });
    }

    /// Returns a guard that the library's handler holds while it runs.
    pub(super) fn running(&self, id: &RequestId) -> Arc<RunningHandler> {
        self.lock().running += 1;
        Arc::new(RunningHandler { in_flight: self.clone(), id: id.clone() })
    }

    /// Ends a request that was answered or cancelled; nothing more is sent for it.
    ///
    /// Returns `false` when it was not in flight.
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

    /// Waits until another message may be read. A request that waits for an answer of the client does not count as short:
    /// the answer must be read.
    pub(super) async fn readable(&self, asked: &ClientRequests) {
        let running_max = self.0.short_max + self.0.long_max + LEAVING_MAX;
        let short_max = self.0.short_max;
        let may_read = |table: &RequestTable| {
            let short = table.short();
            table.running < running_max
                && (short < short_max || short < short_max + asked.pending())
        };
        while !may_read(&self.lock()) {
            let mut asks = pin!(asked.asks().notified());
            asks.as_mut().enable();
            tokio::select! {
                () = self.until(may_read) => return,
                () = asks => {}
            }
        }
    }

    /// Waits until this request is answered or cancelled.
    pub(super) async fn ended(&self, id: &RequestId) {
        self.until(|table| !table.entries.contains_key(id)).await;
    }

    /// Waits until every request is answered or cancelled.
    pub(super) async fn emptied(&self) {
        self.until(|table| table.entries.is_empty()).await;
    }

    async fn until(&self, holds: impl Fn(&RequestTable) -> bool) {
        // Check first, because registering a waiter costs more.
        while !holds(&self.lock()) {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Any long request in flight.
    pub(super) fn any_long(&self) -> Option<RequestId> {
        let table = self.lock();
        let mut entries = table.entries.iter();
        entries.find(|(_, entry)| entry.span.is_long()).map(|(id, _)| id.clone())
    }

    /// The lane of a request that the library runs.
    pub(super) fn lane(&self, id: &RequestId) -> Option<PushLane> {
        match &self.lock().entries.get(id)?.runner {
            Runner::Library(lane) => Some(lane.clone()),
            Runner::Here(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, RequestTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestTable {
    fn remove(&mut self, id: &RequestId) -> Option<InFlightRequest> {
        let entry = self.entries.remove(id)?;
        self.long -= usize::from(entry.span.is_long());
        Some(entry)
    }

    fn short(&self) -> usize {
        self.entries.len() - self.long
    }
}

/// Held by a request's handler while it runs. A cancelled request leaves the table before its handler stops.
#[derive(Debug)]
pub(super) struct RunningHandler {
    in_flight: InFlight,
    id: RequestId,
}

impl Drop for RunningHandler {
    fn drop(&mut self) {
        self.in_flight.lock().running -= 1;
        self.in_flight.0.changed.notify_waiters();
        // The library never answers a request whose handler panicked.
        if std::thread::panicking() && self.in_flight.end(&self.id) {
            let error = ErrorData::internal_error("the request failed inside the daemon", None);
            // The client may have gone.
            let _ =
                self.in_flight.0.outbox.reply(Some(&self.id), error_line(Some(&self.id), &error));
        }
    }
}
