//! A bridge between a client and daemons that do just what a test says.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::*;
use crate::core::code::Code;
use crate::transport::connection::link;
use crate::transport::unix::impostor::ExpectedDaemon;

/// How long a test waits for what must come; only a broken bridge ever lets it pass.
const SAFETY: Duration = Duration::from_secs(30);

async fn soon<F: Future>(waiting: F) -> F::Output {
    timeout(SAFETY, waiting).await.expect("waited in vain")
}

/// One end of a connection, line by line.
struct Lined<R, W> {
    reader: tokio::io::Lines<BufReader<R>>,
    writer: W,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lined<R, W> {
    fn new(reader: R, writer: W) -> Self {
        Self { reader: BufReader::new(reader).lines(), writer }
    }

    async fn hear(&mut self) -> Value {
        let line = soon(self.reader.next_line()).await.unwrap().expect("the other end is there");
        serde_json::from_str(&line).unwrap()
    }

    async fn say(&mut self, message: Value) {
        soon(self.writer.write_all(format!("{message}\n").as_bytes())).await.unwrap();
    }

    async fn answer(&mut self, request: &Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": {}})).await;
    }
}

type Daemon = Lined<OwnedReadHalf, OwnedWriteHalf>;

/// A bridge, its client, and the place where its daemons listen.
struct Bridged {
    client: Lined<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    listener: UnixListener,
    _directory: TempDir,
}

impl Bridged {
    /// Does something with a bridge and the first daemon that it is joined with.
    async fn with(test: impl AsyncFnOnce(Self, Daemon)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gateway.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(near);
        let client = Lined::new(reader, writer);
        let bridged = Self { client, listener, _directory: directory };
        let testing = async {
            let first = bridged.daemon().await;
            test(bridged, first).await;
        };
        tokio::select! {
            () = testing => {}
            () = run(path, far) => panic!("the bridge ended"),
        }
    }

    /// The next daemon that the bridge joins, once it has greeted.
    async fn daemon(&self) -> Daemon {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        let (reader, writer) = stream.into_split();
        let mut daemon = Lined::new(reader, writer);
        let greeting = daemon.hear().await;
        assert_eq!(greeting["method"], "server/discover");
        daemon.answer(&greeting).await;
        daemon
    }
}

async fn run(path: PathBuf, stream: DuplexStream) {
    let dial = async |_| {
        let undialed =
            |error| Undialed { code: Code::UpstreamUnavailable, reason: format!("{error}") };
        Upstream::connect(&path, ExpectedDaemon::Ours, None).await.map_err(undialed)
    };
    let upstream = dial(Dial::ConnectOrStart).await.unwrap();
    let (reader, writer) = tokio::io::split(stream);
    bridge(link::plain(reader, writer), upstream, dial, CreationDefaults::default()).await;
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize(id: u64) -> Value {
    request(id, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}))
}

#[tokio::test]
async fn a_handshake_that_a_daemon_read_before_it_died_is_made_with_the_next() {
    Bridged::with(async |mut bridged: Bridged, mut first: Daemon| {
        let (hello, tools) = (initialize(1), request(3, "tools/list", json!({})));
        let call = request(2, "tools/call", json!({"name": "list_sessions"}));
        for message in [&hello, &call, &tools] {
            bridged.client.say(message.clone()).await;
            assert_eq!(first.hear().await, *message);
        }
        drop(first);
        let lost = bridged.client.hear().await;
        assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(2), &json!(-32010)));
        assert_eq!(lost["error"]["data"]["error_code"], "upstream_restarted");
        let mut next = bridged.daemon().await;
        for message in [&hello, &tools] {
            assert_eq!(next.hear().await, *message);
            next.answer(message).await;
            assert_eq!(bridged.client.hear().await["id"], message["id"]);
        }
        // What is answered is answered once, and the next line is a new one.
        bridged.client.say(call.clone()).await;
        assert_eq!(next.hear().await, call);
    })
    .await;
}

#[tokio::test]
async fn a_daemon_may_answer_what_is_repeated_to_it_before_it_reads_the_rest() {
    const SUBSCRIPTIONS: u64 = 4_000;
    Bridged::with(async |mut bridged: Bridged, mut first: Daemon| {
        let hello = initialize(0);
        let subscribing = (1..=SUBSCRIPTIONS).map(|id| {
            let uri = format!("termgate://{}/{id}", "x".repeat(200));
            request(id, "resources/subscribe", json!({"uri": uri}))
        });
        for message in std::iter::once(hello).chain(subscribing) {
            bridged.client.say(message).await;
            let heard = first.hear().await;
            first.answer(&heard).await;
            bridged.client.hear().await;
        }
        drop(first);
        let mut next = bridged.daemon().await;
        for _ in 0..=SUBSCRIPTIONS {
            let mut answer = next.hear().await;
            answer["result"] = json!({"pad": "x".repeat(1_000)});
            answer.as_object_mut().unwrap().retain(|name, _| name != "method" && name != "params");
            next.say(answer).await;
        }
        let call = request(9_999, "tools/call", json!({"name": "list_sessions"}));
        bridged.client.say(call.clone()).await;
        assert_eq!(next.hear().await, call);
    })
    .await;
}
