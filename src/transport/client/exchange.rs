//! The requests a client waits for, and the one task that writes them and reads what comes back.
//!
//! It must not know what a request means: results and deltas are JSON here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{CallToolResult, ErrorCode};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::mcp::outbox::Outbox;
use crate::transport::client::ClientError;
use crate::transport::framing::lines::{LineInput, LineReader};
use crate::transport::framing::to_line;
use crate::transport::limits::{ANSWER_MAX, LINE_MAX, Limits};

/// What is shared between a client, its observations and the task that drives them.
#[derive(Debug, Default)]
pub struct OpenRequests {
    outbox: Outbox,
    waiting: Mutex<AwaitedReplies>,
    /// How often a resource that was subscribed to has changed.
    pub(super) news: watch::Sender<u64>,
    /// How often the tools that are listed have changed.
    pub(super) switched: watch::Sender<u64>,
    /// Cancelled when the daemon has gone.
    pub(super) ended: CancellationToken,
}

#[derive(Debug, Default)]
struct AwaitedReplies {
    last_id: i64,
    waiters: HashMap<i64, ReplyChannels>,
    ended: bool,
}

#[derive(Debug)]
struct ReplyChannels {
    reply: oneshot::Sender<Result<Value, ClientError>>,
    deltas: Option<mpsc::Sender<Value>>,
}

impl OpenRequests {
    /// Sends a request; its notifications, if it has any, go to `deltas`.
    pub(super) fn request(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
        deltas: Option<mpsc::Sender<Value>>,
    ) -> Result<PendingReply, ClientError> {
        let (sender, reply) = oneshot::channel();
        let id = self.lock().enter(ReplyChannels { reply: sender, deltas })?;
        let pending = PendingReply { exchange: self.clone(), id, reply: Some(reply) };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if let Err(error) = self.send(&request) {
            self.lock().waiters.remove(&id);
            return Err(error);
        }
        Ok(pending)
    }

    pub(super) fn notify(&self, method: &str, params: &Value) -> Result<(), ClientError> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&self, message: &Value) -> Result<(), ClientError> {
        let line = to_line(message).map_err(|_| ClientError::Malformed)?;
        // A daemon could not even say whose message it was.
        if line.len() > LINE_MAX {
            return Err(ClientError::TooLarge { bytes: line.len() });
        }
        self.outbox.reply(None, line).map_err(|_| ClientError::Closed)
    }

    async fn take_in(&self, message: Value) {
        match (message.get("method"), message.get("id")) {
            (Some(method), Some(id)) => self.answer(method, id),
            (Some(method), None) if method == "notifications/resources/updated" => {
                self.news.send_modify(|count| *count += 1);
            }
            (Some(method), None) if method == "notifications/tools/list_changed" => {
                self.switched.send_modify(|count| *count += 1);
            }
            (Some(_), None) => self.pass_on(message).await,
            (None, Some(id)) => {
                let waiter = id.as_i64().and_then(|id| self.lock().waiters.remove(&id));
                if let Some(waiter) = waiter {
                    // Whoever asked may have given up in this moment.
                    let _ = waiter.reply.send(reply_of(message));
                }
            }
            (None, None) => {}
        }
    }

    /// Passes a notification on to the observation it names.
    async fn pass_on(&self, mut notification: Value) {
        let observe = notification.pointer("/params/observe").and_then(Value::as_i64);
        let deltas = observe.and_then(|id| self.lock().waiters.get(&id)?.deltas.clone());
        if let Some(deltas) = deltas {
            // Whoever observed may have given up in this moment.
            let _ = deltas.send(notification["params"].take()).await;
        }
    }

    /// Answers a request of the daemon's: older protocols let it ask whether anybody is there.
    fn answer(&self, method: &Value, id: &Value) {
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        if method == "ping" {
            answer["result"] = json!({});
        } else {
            let code = ErrorCode::METHOD_NOT_FOUND.0;
            answer["error"] = json!({"code": code, "message": method});
        }
        // A daemon that has gone waits for no answer.
        let _ = self.send(&answer);
    }

    fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.waiters.clear();
        drop(waiting);
        self.outbox.abandon();
        self.ended.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, AwaitedReplies> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AwaitedReplies {
    fn enter(&mut self, waiter: ReplyChannels) -> Result<i64, ClientError> {
        if self.ended {
            return Err(ClientError::Closed);
        }
        self.last_id += 1;
        self.waiters.insert(self.last_id, waiter);
        Ok(self.last_id)
    }
}

fn reply_of(mut message: Value) -> Result<Value, ClientError> {
    if let Some(result) = message.get_mut("result") {
        return Ok(result.take());
    }
    let error = message.get_mut("error").ok_or(ClientError::Malformed)?;
    Err(ClientError::Refused {
        code: error["code"].as_i64().ok_or(ClientError::Malformed)?,
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        data: error.get_mut("data").map(Value::take),
    })
}

/// The reply to one request; cancels the request when dropped before it came.
#[derive(Debug)]
pub struct PendingReply {
    exchange: Arc<OpenRequests>,
    id: i64,
    reply: Option<oneshot::Receiver<Result<Value, ClientError>>>,
}

impl PendingReply {
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Waits for the reply, which comes once.
    pub async fn wait(&mut self) -> Result<Value, ClientError> {
        let Some(reply) = &mut self.reply else { return Err(ClientError::Closed) };
        let answer = reply.await.unwrap_or(Err(ClientError::Closed));
        self.reply = None;
        answer
    }

    /// Waits for the result of a tool, if the request called one.
    pub async fn wait_for_call(&mut self) -> Result<CallToolResult, ClientError> {
        serde_json::from_value(self.wait().await?).map_err(|_| ClientError::Malformed)
    }

    /// Sends a further request on the same connection.
    pub fn followed_by(&self, method: &str, params: &Value) -> Result<Self, ClientError> {
        self.exchange.request(method, params, None)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if self.exchange.lock().waiters.remove(&self.id).is_some() {
            // A daemon that has gone has nothing to cancel.
            let _ = self.exchange.notify("notifications/cancelled", &json!({"requestId": self.id}));
        }
    }
}

/// Writes and reads until either direction ends, and then tells everybody who waits.
pub(super) async fn drive<R, W>(exchange: Arc<OpenRequests>, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + 'static,
{
    let ended = DriverEnd(exchange);
    let mut lines = LineReader::new(reader, &Limits::patient(ANSWER_MAX));
    let reading = async {
        while let LineInput::Line(line) = lines.next().await {
            if let Ok(message) = serde_json::from_slice(line.bytes()) {
                ended.0.take_in(message).await;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        written = ended.0.outbox.write_to(writer) => {
            tracing::debug!(ok = written.is_ok(), "the daemon reads no more");
        }
    }
}

/// Tells everybody who waits that nothing more will come, in whatever way the driving ends.
struct DriverEnd(Arc<OpenRequests>);

impl Drop for DriverEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}
