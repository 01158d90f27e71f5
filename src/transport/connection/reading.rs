//! Reads a client's messages in order and within limits. Tool calls run here, all else in the library.
//!
//! Calls run inside this one task: a call needs no task of its own, and its answer is queued at once.

use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
use crate::mcp::outbox::budget::ReservedSpace;
use crate::mcp::request_class::{RequestClass, busy_call, busy_request};
use crate::session::request_order::TurnSlot;
use crate::transport::connection::in_flight::{Full, InFlight, Runner};
use crate::transport::connection::intake::{Incoming, Intake};
use crate::transport::connection::library::Library;
use crate::transport::framing::lines::LineReader;
use crate::transport::framing::{
    AUTHENTICATE_METHOD, ClientAnswer, MessageRefusal, call_line, error_line,
};
use crate::transport::limits::Limits;

const INITIALIZE_METHOD: &str = "initialize";

type Answering<'a> = Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;

/// A running call. A cancelled call ends without a reply.
struct RunningCall<'a> {
    id: RequestId,
    answering: Abortable<Answering<'a>>,
}

impl Future for RunningCall<'_> {
    type Output = (RequestId, Option<Reply>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.answering.poll_unpin(context).map(|reply| (self.id.clone(), reply.ok()))
    }
}

pub(super) struct RequestReader<'a, H, R> {
    handler: &'a H,
    connection: Arc<Connection>,
    intake: Intake<R>,
    in_flight: InFlight,
    /// The running calls, and one that never ends: a set whose every member was polled wakes its task again.
    calls: FuturesUnordered<RunningCall<'a>>,
    library: Library,
    /// Where answers are written.
    buffer: Vec<u8>,
    greeted: bool,
    winding_up: Duration,
}

impl<'a, H: CallHandler + Sync, R: AsyncRead + Send + Unpin> RequestReader<'a, H, R> {
    /// Creates the reading side of a new connection.
    pub(super) fn new(
        handler: &'a H,
        lines: LineReader<R>,
        connection: Arc<Connection>,
        (in_flight, library): (InFlight, Library),
        limits: &Limits,
    ) -> Self {
        let (_, stopped) = AbortHandle::new_pair();
        let answering = Abortable::new(Box::pin(pending()) as Answering<'a>, stopped);
        let never = RunningCall { id: RequestId::Number(0), answering };
        Self {
            handler,
            connection,
            intake: Intake::new(lines, limits),
            in_flight,
            calls: FuturesUnordered::from_iter([never]),
            library,
            buffer: Vec::new(),
            greeted: false,
            winding_up: limits.winding_up,
        }
    }

    /// Reads until the end of input, then waits until the requests in flight are answered.
    pub(super) async fn run(mut self) {
        while let Some(read) = self.next().await {
            if !self.connection.may_speak() {
                // A message read after the token ended does not count.
                self.connection.gone.cancel();
                return;
            }
            match read {
                Ok(message) => self.admit(message),
                Err(refusal) => self.refuse(&refusal),
            }
        }
        let over_by = Instant::now() + self.winding_up;
        // Until the end is announced, a call may still acquire a lease or use one.
        let _ = timeout_at(over_by, self.all_accepted()).await;
        self.connection.ended.cancel();
        if timeout_at(over_by, self.wind_up()).await.is_err() {
            // Later answers are discarded.
            self.connection.outbox.close();
        }
    }

    /// Waits until each request that was read has taken effect or waits in a queue. Calls continue meanwhile.
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

    /// Waits for the next message while calls continue. `None` at the end of input.
    async fn next(&mut self) -> Option<Result<Incoming, MessageRefusal>> {
        loop {
            // A client that sends without a pause must not delay its own answers.
            consume_budget().await;
            let Self { intake, in_flight, connection, calls, library, .. } = self;
            let reading = async {
                in_flight.readable(&connection.asked).await;
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
            Incoming::Answer(ClientAnswer { id, answer }) => {
                self.connection.asked.answer(&id, answer)
            }
            Incoming::Other(message) => match *message {
                JsonRpcMessage::Request(request) => self.hand_on(request.id, request.request),
                // It may contain a token, and the library logs its messages.
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

    /// Starts a tool call, in request order.
    fn begin(&mut self, id: RequestId, params: CallParams) {
        let class = RequestClass::of_call(&params);
        match self.in_flight.check(&id, class) {
            Ok(()) => self.greet(),
            Err(Full::IdInUse) => return self.refuse(&MessageRefusal::IdInUse(id)),
            Err(Full::Busy) => {
                let line = call_line(&mut self.buffer, &id, &Ok(busy_call(&params)));
                return self.reply(None, line);
            }
        }
        let call = ToolCall { params, turn: self.connection.turnstile.turn() };
        let answering = AssertUnwindSafe(self.handler.answer(call)).catch_unwind();
        let mut answering: Answering<'a> =
            Box::pin(answering.map(|reply| reply.unwrap_or_else(|_| Err(panicked()).into())));
        // Most reads are done at once, and need no place among the running calls.
        if let Some(reply) = answering.as_mut().now_or_never() {
            return self.answer(&id, Some(reply));
        }
        let (stop, stopped) = AbortHandle::new_pair();
        self.in_flight.add(&id, class, Runner::Here(stop));
        self.calls.push(RunningCall { id, answering: Abortable::new(answering, stopped) });
    }

    fn answer(&mut self, id: &RequestId, reply: Option<Reply>) {
        if let Some(Reply { result, room }) = reply {
            let line = call_line(&mut self.buffer, id, &result);
            self.in_flight.end(id);
            self.reply(room, line);
        }
    }

    /// Passes any other request to the library.
    fn hand_on(&mut self, id: RequestId, mut request: ClientRequest) {
        if matches!(&request, ClientRequest::CustomRequest(it) if it.method == AUTHENTICATE_METHOD)
        {
            return self.refuse(&MessageRefusal::NotFirst(id));
        }
        if !opens(&request)
            && let Err(error) = self.handler.revision(request.get_meta())
        {
            return self.reply(None, error_line(Some(&id), &error));
        }
        let class = RequestClass::of(&request);
        match self.in_flight.check(&id, class) {
            Ok(()) => self.greet(),
            Err(Full::IdInUse) => return self.refuse(&MessageRefusal::IdInUse(id)),
            Err(Full::Busy) => return self.reply(None, error_line(Some(&id), &busy_request())),
        }
        let lane = self.connection.outbox.lane();
        self.in_flight.add(&id, class, Runner::Library(lane.clone()));
        self.connection.outbox.expect(id.clone());
        let extensions = request.extensions_mut();
        extensions.insert(self.in_flight.running(&id));
        extensions.insert(lane);
        extensions.insert(self.connection.clone());
        extensions.insert(TurnSlot::new(self.connection.turnstile.turn()));
        self.library.hand_on_request(id, request);
    }

    /// Notes that the client speaks the protocol.
    fn greet(&mut self) {
        if !self.greeted {
            self.greeted = true;
            self.intake.greeted();
        }
    }

    /// Ends a cancelled request here, before the library does, so that nothing more is sent for it.
    fn note_cancel(&self, notification: &ClientNotification) {
        if let ClientNotification::CancelledNotification(cancelled) = notification
            && let Some(id) = &cancelled.params.request_id
            && self.in_flight.end(id)
        {
            self.connection.outbox.forget(id);
        }
    }

    fn refuse(&self, refusal: &MessageRefusal) {
        tracing::debug!(connection = self.connection.id.0, %refusal, "message refused");
        if let Some(RequestId::String(id)) = refusal.id()
            && self.connection.asked.refuse(id, refusal)
        {
            // An answer is not answered.
            return;
        }
        self.reply(None, refusal.to_line());
    }

    /// Queues an answer. A client that has gone is not an error.
    fn reply(&self, room: Option<ReservedSpace>, line: Bytes) {
        if let Err(Closed) = self.connection.outbox.reply_here(room, line) {
            tracing::trace!(connection = self.connection.id.0, "an answer came too late");
        }
    }

    /// After the end of input, cancels long requests, because no cancel can arrive any more. Then waits for the rest.
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
        while self.calls.len() > 1
            && let Some((id, reply)) = self.calls.next().await
        {
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

/// Whether a client may send the request before it has named its protocol revision.
fn opens(request: &ClientRequest) -> bool {
    // An `initialize` with other parameters is no such request to the library. Its error says what is wrong with them.
    let is_malformed_initialize =
        matches!(request, ClientRequest::CustomRequest(it) if it.method == INITIALIZE_METHOD);
    is_malformed_initialize
        || matches!(
            request,
            ClientRequest::InitializeRequest(_)
                | ClientRequest::DiscoverRequest(_)
                | ClientRequest::PingRequest(_)
        )
}
