//! The MCP library, which answers all requests but tool calls, over a transport of ours.
//!
//! It must not read or write the connection: what the library is to see is handed to it, and what it
//! says goes into the outbox in the order it says it.

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
use crate::transport::framing::message_line;

/// The way to the library.
#[derive(Debug)]
pub(super) struct Library {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    /// The greeting, while it is not answered: what follows depends on what is agreed on.
    greeting: Option<RequestId>,
}

impl Library {
    /// The two ends of the way: ours, and the transport that the library is run over.
    pub(super) fn new(connection: Arc<Connection>, in_flight: InFlight) -> (Self, Wire) {
        // One message at a time: those that wait stay in the socket.
        let (sender, messages) = mpsc::channel(1);
        let common = connection.outbox.lane();
        let ours = Self { messages: sender, greeting: None };
        (ours, Wire { messages, connection, in_flight, common })
    }

    /// Waits until it takes another message; `false` when it takes none any more.
    pub(super) async fn ready(&mut self, in_flight: &InFlight) -> bool {
        if let Some(greeting) = &self.greeting {
            in_flight.ended(greeting).await;
            self.greeting = None;
        }
        self.messages.reserve().await.is_ok()
    }

    /// Hands a request on. It was waited for room before.
    pub(super) fn hand_on_request(&mut self, id: RequestId, request: ClientRequest) {
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.greeting = Some(id.clone());
        }
        self.hand_on(ClientJsonRpcMessage::request(request, id));
    }

    /// Hands on any message. It was waited for room before.
    pub(super) fn hand_on(&self, message: ClientJsonRpcMessage) {
        if self.messages.try_send(message).is_err() {
            tracing::trace!("a message came after the end");
        }
    }
}

/// The transport the library sees.
#[derive(Debug)]
pub(super) struct Wire {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    connection: Arc<Connection>,
    in_flight: InFlight,
    /// Carries what belongs to no request.
    common: PushLane,
}

impl Wire {
    /// Runs the library until nothing more comes or it ends by itself.
    pub(super) async fn run<H: ServerHandler>(self, handler: H) {
        let id = self.connection.id.0;
        // A token of its own: the library cancels it at every end, and not every end is a hang-up.
        let service = self.connection.gone.child_token();
        // Which revision a request is answered for is decided where it is read.
        match serve_directly_with_ct(handler, self, None, service).waiting().await {
            Ok(reason) => tracing::debug!(connection = id, ?reason, "connection ended"),
            Err(error) => tracing::error!(connection = id, %error, "the service failed"),
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
                let segments = [message_line(&message, None), Bytes::new(), Bytes::new()];
                return Some(self.connection.outbox.push(&lane, None, segments));
            }
        };
        // A request may end here before the library hears of its cancel; then nobody is answered.
        let awaited = id.is_none_or(|id| self.in_flight.end(id));
        if awaited && self.connection.outbox.reply(id, message_line(&message, id)).is_err() {
            tracing::trace!(connection = self.connection.id.0, "an answer came too late");
        }
        None
    }

    /// The lane a message of ours goes by; `None` when the request it belongs to has ended.
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

impl Transport<RoleServer> for Wire {
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
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.connection.outbox.close();
        Ok(())
    }
}
