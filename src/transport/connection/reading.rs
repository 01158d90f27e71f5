//! What a client sends, dealt with in order and within bounds: tool calls here, the rest by the
//! library.
//!
//! It must not know which tools exist. CallHandler run inside this one task, so that none costs a task of
//! its own and its answer is on its way as soon as it is there.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, RequestId,
};
use tokio::io::AsyncRead;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

use crate::mcp::call::{CallHandler, CallParams, Reply, ToolCall};
use crate::mcp::connection::Connection;
use crate::mcp::outbox::Closed;
use crate::mcp::outbox::budget::Room;
use crate::mcp::request_class::{Span, busy_call, busy_request};
use crate::mcp::request_order::TurnSlot;
use crate::transport::authentication::AUTHENTICATE_METHOD;
use crate::transport::connection::in_flight::{Full, InFlight, Runner};
use crate::transport::connection::incoming::Incoming;
use crate::transport::connection::intake::Intake;
use crate::transport::connection::library::Library;
use crate::transport::framing::lines::Lines;
use crate::transport::framing::{Refusal, answer_line, error_line};
use crate::transport::limits::Limits;

/// A call that runs; it ends without a reply when it is cancelled.
type Calling<'a> = Pin<Box<dyn Future<Output = (RequestId, Option<Reply>)> + Send + 'a>>;

/// The reading side of a connection.
pub(super) struct Reading<'a, H, R> {
    handler: &'a H,
    connection: Arc<Connection>,
    intake: Intake<R>,
    in_flight: InFlight,
    calls: FuturesUnordered<Calling<'a>>,
    library: Library,
    greeted: bool,
    winding_up: Duration,
}

impl<'a, H: CallHandler + Sync, R: AsyncRead + Send + Unpin> Reading<'a, H, R> {
    /// The reading side of a connection on which nothing was read yet.
    pub(super) fn new(
        handler: &'a H,
        lines: Lines<R>,
        connection: Arc<Connection>,
        (in_flight, library): (InFlight, Library),
        limits: &Limits,
    ) -> Self {
        Self {
            handler,
            connection,
            intake: Intake::new(lines, limits),
            in_flight,
            calls: FuturesUnordered::new(),
            library,
            greeted: false,
            winding_up: limits.winding_up,
        }
    }

    /// Reads until the end of input, then waits until what is in flight is answered.
    pub(super) async fn run(mut self) {
        while let Some(read) = self.next().await {
            if !self.connection.may_speak() {
                // What it said last counts no more than what it would say next.
                self.connection.gone.cancel();
                return;
            }
            match read {
                Ok(message) => self.admit(message),
                Err(refusal) => self.refuse(&refusal),
            }
        }
        let over_by = Instant::now() + self.winding_up;
        // Until then a call may still take a lease, or type with one that its client has.
        let _ = timeout_at(over_by, self.all_accepted()).await;
        self.connection.ended.cancel();
        if timeout_at(over_by, self.wind_up()).await.is_err() {
            // Whoever is late is not answered, and nobody waits for them any longer.
            self.connection.outbox.close();
        }
    }

    /// Waits until each request that was read has taken effect or stands in line, while calls go
    /// on.
    async fn all_accepted(&mut self) {
        let last = self.connection.turnstile.turn();
        loop {
            let (id, reply) = tokio::select! {
                biased;
                () = last.wait() => return,
                Some(called) = self.calls.next() => called,
            };
            self.answer(&id, reply);
        }
    }

    /// Waits for the next message that may be taken, while calls go on; none at the end of input.
    async fn next(&mut self) -> Option<Result<Incoming, Refusal>> {
        loop {
            // A client that sends without a pause must not keep its answers from being written.
            consume_budget().await;
            let Self { intake, in_flight, connection, calls, library, .. } = self;
            let reading = async {
                in_flight.readable().await;
                connection.outbox.relieved().await;
                if library.ready(in_flight).await { intake.next().await } else { None }
            };
            let (id, reply) = tokio::select! {
                biased;
                Some(called) = calls.next() => called,
                read = reading => return read,
            };
            self.answer(&id, reply);
        }
    }

    fn admit(&mut self, message: Incoming) {
        match message {
            Incoming::Call { id, params } => self.begin(id, params),
            Incoming::Other(message) => match *message {
                JsonRpcMessage::Request(request) => self.hand_on(request.id, request.request),
                // It may hold a token, and the library logs what it is handed.
                JsonRpcMessage::Notification(notification)
                    if is_authentication(&notification.notification) => {}
                JsonRpcMessage::Notification(notification) => {
                    self.note_cancel(&notification.notification);
                    self.library.hand_on(JsonRpcMessage::Notification(notification));
                }
                answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
                    self.library.hand_on(answer);
                }
            },
        }
    }

    /// Begins a tool call, in its turn.
    fn begin(&mut self, id: RequestId, params: CallParams) {
        let (stop, stopped) = AbortHandle::new_pair();
        match self.in_flight.admit(&id, Span::of_call(&params), Runner::Here(stop)) {
            Ok(()) => self.greet(),
            Err(Full::IdInUse) => return self.refuse(&Refusal::IdInUse(id)),
            Err(Full::Busy) => {
                let busy = busy_call(&params);
                return self.reply(None, answer_line(&id, Ok(&busy)));
            }
        }
        let call = ToolCall { params, turn: self.connection.turnstile.turn() };
        let answering = AssertUnwindSafe(self.handler.answer(call)).catch_unwind();
        let answering = Abortable::new(answering, stopped);
        self.calls.push(Box::pin(async move {
            let reply = match answering.await {
                Ok(Ok(reply)) => Some(reply),
                Ok(Err(_)) => Some(Err(panicked()).into()),
                Err(_) => None,
            };
            (id, reply)
        }));
    }

    /// Sends the reply to a call that has ended.
    fn answer(&self, id: &RequestId, reply: Option<Reply>) {
        if let Some(Reply { result, room }) = reply {
            let line = answer_line(id, result.as_ref());
            self.in_flight.end(id);
            self.reply(room, line);
        }
    }

    /// Hands any other request on to the library.
    fn hand_on(&mut self, id: RequestId, mut request: ClientRequest) {
        if let ClientRequest::CustomRequest(custom) = &request {
            let method = custom.method.clone();
            if method == AUTHENTICATE_METHOD {
                return self.refuse(&Refusal::NotFirst { id, method });
            }
        }
        if !opens(&request)
            && let Err(error) = self.handler.revision(request.get_meta())
        {
            return self.reply(None, error_line(Some(&id), &error));
        }
        let lane = self.connection.outbox.lane();
        match self.in_flight.admit(&id, Span::of(&request), Runner::Library(lane.clone())) {
            Ok(()) => self.greet(),
            Err(Full::IdInUse) => return self.refuse(&Refusal::IdInUse(id)),
            Err(Full::Busy) => return self.reply(None, error_line(Some(&id), &busy_request())),
        }
        self.connection.outbox.expect(id.clone());
        let extensions = request.extensions_mut();
        extensions.insert(self.in_flight.running(&id));
        extensions.insert(lane);
        extensions.insert(self.connection.clone());
        extensions.insert(TurnSlot::new(self.connection.turnstile.turn()));
        self.library.hand_on_request(id, request);
    }

    /// Notes that the client has shown to speak the protocol.
    fn greet(&mut self) {
        if !self.greeted {
            self.greeted = true;
            self.intake.greeted();
        }
    }

    /// Ends a cancelled request here already, so that nothing is sent for it any more.
    fn note_cancel(&self, notification: &ClientNotification) {
        if let ClientNotification::CancelledNotification(cancelled) = notification
            && let Some(id) = &cancelled.params.request_id
            && self.in_flight.end(id)
        {
            self.connection.outbox.forget(id);
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        tracing::debug!(connection = self.connection.id.0, %refusal, "message refused");
        self.reply(None, refusal.to_line());
    }

    /// Queues an answer. That the client has gone is no error of anybody here.
    fn reply(&self, room: Option<Room>, line: Bytes) {
        if let Err(Closed) = self.connection.outbox.reply_here(room, line) {
            tracing::trace!(connection = self.connection.id.0, "an answer came too late");
        }
    }

    /// After the end of input: ends what waits or stands, since no cancel can come any more and
    /// whoever closes wants to go, and waits for the rest.
    async fn wind_up(&mut self) {
        while let Some(id) = self.in_flight.any_long() {
            let params = CancelledNotificationParam::new(Some(id), Some("end of input".to_owned()));
            let cancelled = ClientNotification::from(CancelledNotification::new(params));
            self.note_cancel(&cancelled);
            if !self.library.ready(&self.in_flight).await {
                return;
            }
            self.library.hand_on(ClientJsonRpcMessage::notification(cancelled));
        }
        while let Some((id, reply)) = self.calls.next().await {
            self.answer(&id, reply);
        }
        self.in_flight.emptied().await;
    }
}

fn panicked() -> ErrorData {
    ErrorData::internal_error("the request failed inside the daemon", None)
}

fn is_authentication(notification: &ClientNotification) -> bool {
    matches!(notification, ClientNotification::CustomNotification(it) if it.method == AUTHENTICATE_METHOD)
}

/// Whether a request may come before a client has said which revision it speaks.
fn opens(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
    )
}
