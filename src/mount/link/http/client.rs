//! The client of HTTP: connections over TCP, TLS or a Unix socket, and requests to one server.
//!
//! It uses no proxy, and follows redirects only to another path of the same server.

use std::error::Error;
use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::core::mount::server::check_url;
use crate::mount::link::http::long_messages::LongMessages;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The time between two attempts at a socket where too many connect.
const CONNECT_AGAIN: Duration = Duration::from_millis(20);

/// How many idle connections are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// How long an idle connection is kept: less than the five seconds after which the servers of Node and uvicorn end it. A
/// request that meets that end may have been taken or not.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// How many redirects one request follows.
const REDIRECTS_MAX: usize = 3;

/// A server that speaks HTTP.
#[derive(Clone, Debug)]
pub struct HttpServer {
    uri: Uri,
    /// Marked as secrets.
    headers: HeaderMap,
    socket: Option<PathBuf>,
    /// Those of the mount, which may have several servers there.
    long: LongMessages,
}

impl HttpServer {
    /// A server with this URL and these headers, whose variables are expanded.
    ///
    /// # Errors
    /// What is wrong with them, without their values.
    pub fn new(
        url: &str,
        headers: &[(String, String)],
        socket: Option<PathBuf>,
    ) -> Result<Self, String> {
        check_url(url).map_err(|problem| format!("url: {problem}"))?;
        let uri: Uri = url.parse().map_err(|error| format!("url: {error}"))?;
        let mut map = HeaderMap::new();
        map.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("termgate/", env!("CARGO_PKG_VERSION"))),
        );
        for (name, value) in headers {
            let wrong =
                |_| format!("headers.{name}: the value has a character that a header cannot have");
            let mut value = HeaderValue::from_str(value).map_err(wrong)?;
            value.set_sensitive(true);
            let id: HeaderName = name
                .parse()
                .map_err(|_| format!("headers: `{name}` is not the name of a header"))?;
            map.insert(id, value);
        }
        Ok(Self { uri, headers: map, socket, long: LongMessages::new() })
    }
}

/// Why a request has no response.
#[derive(Debug)]
pub(super) enum NoResponse {
    /// There is no connection, so nothing was asked.
    NotConnected(String),
    /// The connection ended.
    Broken(String),
}

/// A client of one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    dialer: Dialer,
    /// Where the server is, after its redirects.
    uri: Mutex<Uri>,
    headers: HeaderMap,
    /// The places for what it answers.
    pub(super) long: LongMessages,
}

#[derive(Debug)]
enum Dialer {
    Tcp(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
    Unix(Client<UnixConnector, Full<Bytes>>),
}

impl HttpClient {
    /// # Errors
    /// The certificates of the system cannot be read.
    pub(super) fn new(server: &HttpServer) -> Result<Self, String> {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(IDLE_CONNECTIONS_MAX).pool_idle_timeout(IDLE_MAX);
        builder.pool_timer(TokioTimer::new());
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_MAX));
        tcp.set_nodelay(true);
        let is_tls = server.uri.scheme_str() == Some("https");
        let dialer = match &server.socket {
            Some(path) => Dialer::Unix(builder.build(UnixConnector(Arc::from(path.as_path())))),
            None if is_tls => {
                tcp.enforce_http(false);
                let tls = HttpsConnectorBuilder::new().with_native_roots();
                let tls = tls.map_err(|error| {
                    format!("cannot read the certificates of this machine: {error}")
                })?;
                Dialer::Tls(builder.build(tls.https_only().enable_http1().wrap_connector(tcp)))
            }
            None => Dialer::Tcp(builder.build(tcp)),
        };
        let (uri, headers) = (Mutex::new(server.uri.clone()), server.headers.clone());
        Ok(Self { dialer, uri, headers, long: server.long.clone() })
    }

    /// Sends a request, with these headers beside those of the server.
    pub(super) async fn send(
        &self,
        method: Method,
        own: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, NoResponse> {
        let mut left = REDIRECTS_MAX;
        loop {
            let uri = self.uri.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            request.headers_mut().extend(self.headers.clone());
            request.headers_mut().extend(own.clone());
            let answered = match &self.dialer {
                Dialer::Tcp(client) => client.request(request),
                Dialer::Tls(client) => client.request(request),
                Dialer::Unix(client) => client.request(request),
            };
            let response = answered.await.map_err(|error| {
                let is_connect = error.is_connect();
                let told = with_causes(&error);
                if is_connect { NoResponse::NotConnected(told) } else { NoResponse::Broken(told) }
            })?;
            let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
            let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
            let target = location.and_then(|location| same_server(&uri, location));
            match target.filter(|_| left > 0 && moved.contains(&response.status())) {
                Some(target) => {
                    left -= 1;
                    *self.uri.lock().unwrap_or_else(PoisonError::into_inner) = target;
                }
                None => return Ok(response),
            }
        }
    }
}

/// The place that a redirect leads to, if it is at the same server.
fn same_server(from: &Uri, location: &str) -> Option<Uri> {
    let is_path = location.starts_with('/') && !location.starts_with("//");
    if is_path {
        let parts = (from.scheme_str()?, from.authority()?);
        return format!("{}://{}{location}", parts.0, parts.1).parse().ok();
    }
    let target: Uri = location.parse().ok()?;
    let is_same = target.scheme() == from.scheme() && target.authority() == from.authority();
    is_same.then_some(target)
}

/// An error with what caused it, of which the first says little.
fn with_causes(error: &dyn Error) -> String {
    let (mut told, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        // Writing to a text cannot fail.
        let _ = write!(told, ": {error}");
        cause = error.source();
    }
    told
}

/// Connects to a Unix socket, whatever the URL says.
#[derive(Clone, Debug)]
struct UnixConnector(Arc<Path>);

impl Service<Uri> for UnixConnector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = Arc::clone(&self.0);
        Box::pin(async move {
            let connected = timeout(CONNECT_MAX, connect(&path)).await;
            Ok(TokioIo::new(connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?))
        })
    }
}

/// Connects to a socket, also if more connect to it than it lets in at once.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(CONNECT_AGAIN).await,
            connected => return connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_at_the_server() {
        let from: Uri = "https://a.example/mcp".parse().unwrap();
        let target = |location: &str| same_server(&from, location).map(|it| it.to_string());
        assert_eq!(target("/mcp/").as_deref(), Some("https://a.example/mcp/"));
        assert_eq!(target("https://a.example/b").as_deref(), Some("https://a.example/b"));
        for other in [
            "//b.example/",
            "https://b.example/",
            "http://a.example/",
            "https://a.example:1/",
            "mcp",
        ] {
            assert_eq!(target(other), None, "{other}");
        }
    }

    #[test]
    fn headers_are_secrets_also_when_they_are_wrong() {
        let header = |value: &str| [("Authorization".to_owned(), value.to_owned())];
        let server = HttpServer::new("http://a/", &header("secret"), None).unwrap();
        assert!(!format!("{server:?}").contains("secret"));
        let error = HttpServer::new("http://a/", &header("secret\n"), None).unwrap_err();
        assert!(error.starts_with("headers.Authorization: ") && !error.contains("secret"));
    }
}
