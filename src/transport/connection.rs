//! One connection of one client: messages in, messages out, in order and within bounds.
//!
//! It must not know which tools exist. The MCP library runs what arrives; this transport decides
//! what may arrive, hands out the turns, and writes answers in the order the library gives them.

mod in_flight;
pub mod link;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use crate::mcp::connection::Connection;
use crate::mcp::long::{self, Span};
use crate::mcp::outbox::{Closed, Delivery, PushLane, PushReceipt};
use crate::mcp::turn::TurnSlot;
use crate::transport::connection::in_flight::{Entry, Full, InFlight};
use crate::transport::connection::link::Link;
use crate::transport::framing::lines::{Input, Lines};
use crate::transport::framing::{self, Refusal};
use crate::transport::limits::Limits;

/// Serves one client until it has gone or ended its input and got its answers.
///
/// When this returns, and also when it is dropped, everything of the connection is over: its tokens
/// are cancelled, its outbox is closed.
pub async fn serve<H, R, W, G>(
    handler: H,
    link: Link<R, W, G>,
    connection: Arc<Connection>,
    limits: &Limits,
) where
    H: ServerHandler,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send,
    G: Future<Output = ()> + Send,
{
    let over = Over(connection.clone());
    let Link { reader, writer, hangup } = link;
    let wire = Wire::new(reader, connection.clone(), limits);
    let serving = async {
        run(handler, wire).await;
        connection.outbox.close();
        // The client gets its last answers if it reads them, and no more than this time for it.
        let _ = timeout(limits.closing, connection.gone.cancelled()).await;
        connection.gone.cancel();
    };
    let writing = async {
        let written = connection.gone.run_until_cancelled(connection.outbox.write_to(writer)).await;
        if let Some(Err(error)) = written {
            tracing::debug!(connection = connection.id.0, %error, "the client takes nothing more");
        }
        connection.gone.cancel();
        connection.outbox.abandon();
    };
    let watching = async {
        connection.gone.run_until_cancelled(hangup).await;
        connection.gone.cancel();
    };
    tokio::join!(serving, writing, watching);
    drop(over);
}

/// Runs the library over the wire until it ends.
async fn run<H: ServerHandler, R: AsyncRead + Send + Unpin + 'static>(handler: H, wire: Wire<R>) {
    let id = wire.connection.id.0;
    // A token of its own: the library cancels it at every end, and not every end is a hang-up.
    let service = wire.connection.gone.child_token();
    match handler.serve_with_ct(wire, service).await {
        Ok(running) => match running.waiting().await {
            Ok(reason) => tracing::debug!(connection = id, ?reason, "connection ended"),
            Err(error) => tracing::error!(connection = id, %error, "the service failed"),
        },
        // The error may hold the whole message, which is none of the log's business.
        Err(_) => tracing::debug!(connection = id, "connection ended before it was established"),
    }
}

/// Ends everything of a connection, in whatever way its service ends.
struct Over(Arc<Connection>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.gone.cancel();
        self.0.outbox.abandon();
    }
}

/// The transport the library sees.
struct Wire<R> {
    connection: Arc<Connection>,
    lines: Lines<R>,
    in_flight: InFlight,
    /// Carries what belongs to no request.
    common: PushLane,
    limits: Limits,
    greeted: bool,
    /// Set at the end of input: when to stop waiting for the requests in flight.
    over_by: Option<Instant>,
}

impl<R: AsyncRead + Send + Unpin> Wire<R> {
    fn new(reader: R, connection: Arc<Connection>, limits: &Limits) -> Self {
        Self {
            lines: Lines::new(reader, limits),
            in_flight: InFlight::new(connection.outbox.clone(), limits),
            common: connection.outbox.lane(),
            limits: limits.clone(),
            greeted: false,
            over_by: None,
            connection,
        }
    }

    /// Takes a message in, or deals with it here and gives back nothing.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        match message {
            JsonRpcMessage::Request(mut request) => {
                self.admit_request(&request.id, &mut request.request)?;
                self.greet();
                Some(JsonRpcMessage::Request(request))
            }
            JsonRpcMessage::Notification(notification) => {
                self.note_cancel(&notification.notification);
                Some(JsonRpcMessage::Notification(notification))
            }
            answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => Some(answer),
        }
        // Before the first request the library takes anything else for the end.
        .filter(|_| self.greeted)
    }

    fn admit_request(&mut self, id: &RequestId, request: &mut ClientRequest) -> Option<()> {
        if let ClientRequest::CustomRequest(custom) = request
            && is_of_the_protocol(&custom.method)
        {
            let method = custom.method.clone();
            self.refuse(&Refusal::BadParams { id: id.clone(), method });
            return None;
        }
        let lane = self.connection.outbox.lane();
        let entry = Entry {
            span: Span::of(request),
            lane: lane.clone(),
            progress: request.get_meta().get_progress_token(),
        };
        let running = match self.in_flight.admit(id, entry) {
            Ok(running) => running,
            Err(Full::IdInUse) => {
                self.refuse(&Refusal::IdInUse(id.clone()));
                return None;
            }
            Err(Full::Busy) => {
                self.answer_busy(id, request);
                return None;
            }
        };
        self.connection.outbox.expect(id.clone());
        let extensions = request.extensions_mut();
        extensions.insert(running);
        extensions.insert(lane);
        extensions.insert(self.connection.clone());
        extensions.insert(TurnSlot::new(self.connection.turnstile.turn()));
        Some(())
    }

    fn greet(&mut self) {
        if !self.greeted {
            self.greeted = true;
            self.lines.greeted();
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

    fn answer_busy(&self, id: &RequestId, request: &ClientRequest) {
        let answer = match long::busy(request) {
            Ok(result) => ServerJsonRpcMessage::response(result, id.clone()),
            Err(error) => ServerJsonRpcMessage::error(error, Some(id.clone())),
        };
        self.reply(None, to_line(&answer, Some(id)));
    }

    /// Queues an answer. That the client has gone is no error of anybody here.
    fn reply(&self, id: Option<&RequestId>, line: Bytes) {
        if let Err(Closed) = self.connection.outbox.reply(id, line) {
            tracing::trace!(connection = self.connection.id.0, "an answer came too late");
        }
    }

    /// Queues a message of the library's; what is no answer leaves a receipt, unless the request it
    /// belongs to has ended.
    fn queue(&self, message: ServerJsonRpcMessage) -> Option<PushReceipt> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                let lane = self.lane_of(&message)?;
                let segments = [to_line(&message, None), Bytes::new(), Bytes::new()];
                return Some(self.connection.outbox.push(&lane, None, segments));
            }
        };
        self.reply(id, to_line(&message, id));
        if let Some(id) = id {
            self.in_flight.end(id);
        }
        None
    }

    /// After the end of input: ends what stands, waits for the rest, then tells the library.
    async fn wind_up(&mut self, over_by: Instant) -> Option<ClientJsonRpcMessage> {
        if let Some(id) = self.in_flight.standing() {
            let reason = Some("end of input".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let cancelled = ClientNotification::from(CancelledNotification::new(params));
            self.note_cancel(&cancelled);
            return Some(ClientJsonRpcMessage::notification(cancelled));
        }
        // Whoever is late gets a little more time from the library, and no answer after that.
        let _ = timeout_at(over_by, self.in_flight.emptied()).await;
        None
    }

    /// The lane a message of ours goes by; `None` when the request it belongs to has ended.
    fn lane_of(&self, message: &ServerJsonRpcMessage) -> Option<PushLane> {
        let JsonRpcMessage::Notification(message) = message else {
            return Some(self.common.clone());
        };
        if let ServerNotification::ProgressNotification(progress) = &message.notification {
            return self.in_flight.lane_of_progress(&progress.params.progress_token);
        }
        match message.notification.get_meta().subscription_id() {
            Some(id) => self.in_flight.lane(&id),
            None => Some(self.common.clone()),
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Wire<R> {
    type Error = Closed;

    /// Queues a message at once, so that messages leave in the order of the calls.
    ///
    /// For what is no answer, the future completes when the client has taken it.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let receipt = self.queue(message);
        async move {
            match receipt {
                Some(receipt) => match receipt.await {
                    Delivery::Written => Ok(()),
                    Delivery::Dropped => Err(Closed),
                },
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(over_by) = self.over_by {
                return self.wind_up(over_by).await;
            }
            self.in_flight.readable().await;
            self.connection.outbox.relieved().await;
            match self.lines.next().await {
                Input::Line(line) => match framing::parse(line.bytes(), self.limits.tokens_max) {
                    Ok(message) => {
                        if let Some(message) = self.admit(message) {
                            return Some(message);
                        }
                    }
                    Err(refusal) => self.refuse(&refusal),
                },
                Input::TooLong => self.refuse(&Refusal::TooLarge),
                Input::End => {
                    self.over_by = Some(Instant::now() + self.limits.winding_up);
                    self.connection.ended.cancel();
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.connection.outbox.close();
        Ok(())
    }
}

fn to_line(message: &ServerJsonRpcMessage, id: Option<&RequestId>) -> Bytes {
    framing::to_line(message).unwrap_or_else(|_| {
        framing::error_line(id, ErrorData::internal_error("the answer has no JSON form", None))
    })
}

/// Whether a method is one the library knows, so that it cannot be anybody's extension.
fn is_of_the_protocol(method: &str) -> bool {
    const METHODS: [&str; 15] = [
        "ping",
        "initialize",
        "server/discover",
        "completion/complete",
        "logging/setLevel",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    ];
    METHODS.contains(&method)
}

#[cfg(test)]
mod tests;
