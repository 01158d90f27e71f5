//! Runs the MCP library, which answers all requests except tool calls, over channels.
//!
//! Its messages enter the outbox in the order in which it sends them.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::serve_directly_with_ct;
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::mpsc;

use crate::mcp::connection::Connection;
use crate::mcp::outbox::{Closed, Delivery, PushLane, PushReceipt};
use crate::transport::connection::in_flight::InFlight;
use crate::transport::framing::{call_line, message_line};

/// The sending end of the channel to the library.
#[derive(Debug)]
pub(super) struct Library {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    /// The unanswered `initialize` request. Later messages depend on its result.
    greeting: Option<RequestId>,
}

impl Library {
    /// Creates both ends: ours, and the transport for the library.
    pub(super) fn new(
        connection: Arc<Connection>,
        in_flight: InFlight,
    ) -> (Self, LibraryTransport) {
        // One message at a time; the others stay in the socket.
        let (sender, messages) = mpsc::channel(1);
        let common = connection.outbox.lane();
        let ours = Self { messages: sender, greeting: None };
        (ours, LibraryTransport { messages, connection, in_flight, common })
    }

    /// Waits until the library accepts another message; `false` when it has ended.
    pub(super) async fn ready(&mut self, in_flight: &InFlight) -> bool {
        if let Some(greeting) = &self.greeting {
            in_flight.ended(greeting).await;
            self.greeting = None;
        }
        self.messages.reserve().await.is_ok()
    }

    /// Passes a request to the library. Call [`Library::ready`] first.
    pub(super) fn hand_on_request(&mut self, id: RequestId, request: ClientRequest) {
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.greeting = Some(id.clone());
        }
        self.hand_on(ClientJsonRpcMessage::request(request, id));
    }

    /// Passes any message to the library. Call [`Library::ready`] first.
    pub(super) fn hand_on(&self, message: ClientJsonRpcMessage) {
        if self.messages.try_send(message).is_err() {
            tracing::trace!("a message came after the end");
        }
    }
}

/// The transport that the library uses.
#[derive(Debug)]
pub(super) struct LibraryTransport {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    connection: Arc<Connection>,
    in_flight: InFlight,
    /// The lane of messages that belong to no request.
    common: PushLane,
}

impl LibraryTransport {
    /// Runs the library until its input ends or it stops.
    pub(super) async fn run<H: ServerHandler>(self, handler: H) {
        let id = self.connection.id.0;
        // The library cancels its token at every end, and not every end is a hang-up.
        let service = self.connection.gone.child_token();
        // The reading side decides which protocol revision applies to a request.
        match serve_directly_with_ct(handler, self, None, service).waiting().await {
            Ok(reason) => tracing::debug!(connection = id, ?reason, "connection ended"),
            Err(error) => tracing::error!(connection = id, %error, "the service failed"),
        }
    }

    /// Queues a message of the library. Returns a receipt, except for answers and for messages of a request that has
    /// ended.
    fn queue(&self, message: ServerJsonRpcMessage) -> Option<PushReceipt> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                let lane = self.lane_of(&message)?;
                let segments = [message_line(&message, None), Bytes::new(), Bytes::new()];
                return Some(self.connection.outbox.push(&lane, None, segments));
            }
        };
        // A request may be cancelled here before the library learns of it. Then no answer is sent.
        let awaited = id.is_none_or(|id| self.in_flight.end(id));
        if awaited && self.connection.outbox.reply(id, self.answer_line(&message, id)).is_err() {
            tracing::trace!(connection = self.connection.id.0, "an answer came too late");
        }
        None
    }

    /// The line of an answer: the library's, unless another one was set for its request.
    fn answer_line(&self, message: &ServerJsonRpcMessage, id: Option<&RequestId>) -> Bytes {
        match id.and_then(|id| Some((id, self.connection.outbox.take_answer(id)?))) {
            Some((id, answer)) => call_line(&mut Vec::new(), id, &answer),
            None => message_line(message, id),
        }
    }

    /// The lane of a message. `None` when its request has ended.
    fn lane_of(&self, message: &ServerJsonRpcMessage) -> Option<PushLane> {
        let JsonRpcMessage::Notification(message) = message else {
            return Some(self.common.clone());
        };
        match message.notification.get_meta().subscription_id() {
            Some(id) => self.in_flight.lane(&id),
            None => Some(self.common.clone()),
        }
    }
}

impl Transport<RoleServer> for LibraryTransport {
    type Error = Closed;

    /// Queues a message at once, so that messages keep their order.
    ///
    /// Except for answers, the future completes when the message is written or dropped.
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
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.connection.outbox.close();
        Ok(())
    }
}
