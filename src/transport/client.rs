//! The command line's end of a connection to a daemon: calls with answers, and deltas in order.
//!
//! It speaks the protocol itself: the library's client runs each notification in its own task, which reorders deltas.

pub mod exchange;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::core::token::Secret;
use crate::mcp::request_class::OBSERVE_METHOD;
use crate::transport::client::exchange::{OpenRequests, PendingReply};
use crate::transport::framing::AUTHENTICATE_METHOD;
use crate::transport::unix::dial::{ROOM_MAX, connect_or_wait};
use crate::transport::unix::impostor::{ExpectedDaemon, Impostor, check_listener};
use crate::wire::error::ErrorWire;

/// Deltas that may wait for an observer. Above this, the client stops reading from the daemon.
const DELTAS_MAX: usize = 64;

/// How long a daemon may take to greet.
pub(in crate::transport) const GREETING_MAX: Duration = Duration::from_secs(5);

/// The time between two attempts to reach a daemon. It grows with the time since the first.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(10);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// Why there is no connection to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no socket.
    #[error("no daemon is running")]
    Absent,
    /// No process listens at the socket.
    #[error("the daemon's socket is stale")]
    Refused,
    #[error("cannot reach the daemon: {0}")]
    Io(#[source] io::Error),
    /// Another program listens at the socket.
    #[error("{0}, and is no daemon of yours")]
    Impostor(Impostor),
    /// The listener hung up at once, as a daemon does on clients that it does not admit.
    #[error("the daemon hung up")]
    HungUp,
    /// The listener did not greet in time, or not as a daemon does.
    #[error("the daemon does not greet")]
    NoGreeting,
    /// The daemon rejects the token, or has no room for the client; contains its error data.
    #[error("the daemon does not take this client: {}", .0.message)]
    Rejected(Box<ErrorWire>),
}

impl ConnectError {
    /// Whether the listener may be a daemon that is ending.
    pub fn may_be_ending(&self) -> bool {
        matches!(self, Self::HungUp | Self::NoGreeting)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            Self::Absent
        } else if error.kind() == io::ErrorKind::ConnectionRefused {
            Self::Refused
        } else {
            Self::Io(error)
        }
    }
}

impl From<Impostor> for ConnectError {
    fn from(impostor: Impostor) -> Self {
        match impostor {
            // As if it had hung up before it ended.
            Impostor::Ended => Self::HungUp,
            Impostor::User { .. }
            | Impostor::Directory { .. }
            | Impostor::Inside { .. }
            | Impostor::Unknown { .. } => Self::Impostor(impostor),
        }
    }
}

/// Connects to the daemon whose socket is at `path`, to which nothing was said yet; waits up to [`ROOM_MAX`]
/// where too many others do.
pub async fn dial(path: &Path, expected: ExpectedDaemon) -> Result<UnixStream, ConnectError> {
    let stream = connect_or_wait(path, ROOM_MAX).await?;
    check_listener(&stream, path, expected)?;
    Ok(stream)
}

/// Connects until it succeeds, the time is over, or `waits` says that the failure is final. Connects at least once.
///
/// Every wait for a daemon is this one, whether it starts, ends, restarts or is upgraded.
pub async fn reach<T, E>(
    connect: impl AsyncFn() -> Result<T, E>,
    most: Duration,
    mut waits: impl FnMut(&E) -> bool,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        match connect().await {
            Err(error) if begun.elapsed() < most && waits(&error) => {
                let elapsed = begun.elapsed();
                let interval = (elapsed / 16).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX);
                sleep(interval.min(most.saturating_sub(elapsed))).await;
            }
            reached => return reached,
        }
    }
}

/// Says why a request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The daemon has gone.
    #[error("the daemon has gone")]
    Closed,
    /// The request is longer than a daemon takes.
    #[error("the request is too large: {bytes} bytes")]
    TooLarge { bytes: usize },
    /// The daemon answered with an error of the protocol.
    #[error("{message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    /// The answer has not the form it should have.
    #[error("the daemon's answer is malformed")]
    Malformed,
}

/// A connection to a daemon, closed when dropped.
#[derive(Debug)]
pub struct Client {
    exchange: Arc<OpenRequests>,
    driver: JoinHandle<()>,
}

impl Client {
    /// Connects to the daemon whose socket is at `path`, and greets it.
    pub async fn connect(path: &Path, expected: ExpectedDaemon) -> Result<Self, ConnectError> {
        Self::connect_as(path, expected, None).await
    }

    /// The same as the owner of a token.
    pub async fn connect_as(
        path: &Path,
        expected: ExpectedDaemon,
        secret: Option<&Secret>,
    ) -> Result<Self, ConnectError> {
        let (reader, writer) = dial(path, expected).await?.into_split();
        Self::met(reader, writer, secret).await
    }

    /// Greets the daemon at the other end of two streams.
    ///
    /// # Errors
    ///
    /// [`ConnectError::HungUp`] when it does not answer at all, [`ConnectError::Rejected`] when it has no room for the
    /// client, and [`ConnectError::NoGreeting`] when it does not answer as a daemon does.
    pub async fn over<R, W>(reader: R, writer: W) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + 'static,
    {
        Self::met(reader, writer, None).await
    }

    async fn met<R, W>(reader: R, writer: W, secret: Option<&Secret>) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + 'static,
    {
        let exchange = Arc::new(OpenRequests::default());
        let driver = tokio::spawn(exchange::drive(exchange.clone(), reader, writer));
        let client = Self { exchange, driver };
        match timeout(GREETING_MAX, client.greet(secret)).await {
            Ok(Ok(())) => Ok(client),
            Ok(Err(ClientError::Closed)) => Err(ConnectError::HungUp),
            Ok(Err(ClientError::Refused { data: Some(data), .. })) => {
                let told = serde_json::from_value(data).map(ConnectError::Rejected);
                Err(told.unwrap_or(ConnectError::NoGreeting))
            }
            Ok(Err(_)) | Err(_) => Err(ConnectError::NoGreeting),
        }
    }

    async fn greet(&self, secret: Option<&Secret>) -> Result<(), ClientError> {
        if let Some(secret) = secret {
            let shown = json!({"token": secret.reveal()});
            self.request(AUTHENTICATE_METHOD, shown).await?;
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "termgate", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request("initialize", params).await?;
        self.exchange.notify("notifications/initialized", &json!({}))
    }

    /// Calls a tool. That the call failed is a result as well: see its `is_error`.
    ///
    /// Giving up the call cancels it.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, ClientError> {
        let params = json!({"name": name, "arguments": arguments});
        self.post("tools/call", &params)?.wait_for_call().await
    }

    /// Sends any request and waits for its result. Giving up waiting cancels it.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.post(method, &params)?.wait().await
    }

    /// Sends a request at once; its answer is waited for afterwards, and what was sent before it
    /// comes first.
    pub fn post(&self, method: &str, params: &Value) -> Result<PendingReply, ClientError> {
        self.exchange.request(method, params, None)
    }

    /// Observes a session; `params` are those of `termgate/observe`.
    ///
    /// # Errors
    ///
    /// That the daemon has gone; what it thinks of the parameters comes with the first
    /// [`DeltaStream::next`].
    pub fn observe(&self, params: &Value) -> Result<DeltaStream, ClientError> {
        self.open(OBSERVE_METHOD, params)
    }

    /// Sends a request that stays open, and whose notifications name it as `observe`.
    pub fn open(&self, method: &str, params: &Value) -> Result<DeltaStream, ClientError> {
        let (sender, deltas) = mpsc::channel(DELTAS_MAX);
        let pending = self.exchange.request(method, params, Some(sender))?;
        Ok(DeltaStream { deltas, pending, result: Value::Null })
    }

    /// Counts up whenever a resource that was subscribed to has changed.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.exchange.news.subscribe()
    }

    /// Counts up whenever writing may have been switched on or off: other tools are listed then.
    pub fn switched(&self) -> watch::Receiver<u64> {
        self.exchange.switched.subscribe()
    }

    /// Completes when the daemon has gone.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.exchange.ended.clone().cancelled_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The deltas of one open request, in the order they were sent; cancels it when dropped.
///
/// Someone who observes must keep taking deltas: while too many wait, answers to other requests of
/// the same connection wait behind them.
#[derive(Debug)]
pub struct DeltaStream {
    deltas: mpsc::Receiver<Value>,
    pending: PendingReply,
    result: Value,
}

impl DeltaStream {
    /// Waits for the next delta; `None` when the daemon ended the observation.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        if let Some(delta) = self.deltas.recv().await {
            return Ok(Some(delta));
        }
        self.result = self.pending.wait().await?;
        Ok(None)
    }

    /// The id of the request, by which other requests may name it.
    pub fn id(&self) -> i64 {
        self.pending.id()
    }

    /// What the daemon said at the end; null before.
    pub fn result(&self) -> &Value {
        &self.result
    }
}

#[cfg(test)]
mod tests;
