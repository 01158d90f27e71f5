//! A client that speaks to whatever daemon there is, line by line, and bears that it goes away.

use std::collections::VecDeque;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long anything may take; only what is broken ever lets it pass.
pub(crate) const SAFETY: Duration = Duration::from_secs(30);
/// How often is looked for what nobody tells.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// Waits for what must happen, but not for ever.
pub(crate) async fn soon<F: Future>(what: &str, waiting: F) -> F::Output {
    timeout(SAFETY, waiting).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Looks until a condition holds, and no longer than `patience`.
pub(crate) async fn within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            sleep(LOOK).await;
        }
    };
    timeout(patience, looking).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// The daemon went away before it answered, or was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// What a tool answered: its result, or what it said of its failure.
pub(crate) type Answer = Result<Value, Value>;

/// Where one daemon after the other lets clients in.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) path: PathBuf,
    /// Changes when a daemon that may still be connected with has lost its place.
    pub(crate) replaced: watch::Receiver<()>,
}

impl Gateway {
    /// Connects to whoever is there next, until another one has its place.
    pub(crate) async fn find(&self) -> Client {
        Client::look_for(&self.path, Some(self.replaced.clone())).await
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    reader: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    last_id: u64,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
    /// Says when it is given up though nobody hung up.
    replaced: Option<watch::Receiver<()>>,
}

impl Client {
    /// Connects and greets.
    pub(crate) async fn connect(path: &Path) -> Result<Self, Gone> {
        Self::reach(path, None).await
    }

    /// Greets whoever is at the other end.
    pub(crate) async fn over(stream: UnixStream) -> Result<Self, Gone> {
        Self::greet(stream, None).await
    }

    async fn reach(path: &Path, replaced: Option<watch::Receiver<()>>) -> Result<Self, Gone> {
        Self::greet(UnixStream::connect(path).await.map_err(|_| Gone)?, replaced).await
    }

    async fn greet(
        stream: UnixStream,
        replaced: Option<watch::Receiver<()>>,
    ) -> Result<Self, Gone> {
        let (reader, writer) = stream.into_split();
        let reader = BufReader::new(reader).lines();
        let mut client = Self { reader, writer, last_id: 0, kept: VecDeque::new(), replaced };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "outlive", "version": "1"},
        });
        let id = client.send("initialize", hello).await?;
        client.answer(id).await?.unwrap();
        client.tell("notifications/initialized").await?;
        Ok(client)
    }

    /// Connects to whoever is there next.
    pub(crate) async fn find(path: &Path) -> Self {
        Self::look_for(path, None).await
    }

    async fn look_for(path: &Path, replaced: Option<watch::Receiver<()>>) -> Self {
        let looking = async {
            loop {
                let mut replaced = replaced.clone();
                // It must change from now on.
                let _ = replaced.as_mut().map(watch::Receiver::mark_unchanged);
                match Self::reach(path, replaced).await {
                    Ok(client) => return client,
                    Err(Gone) => sleep(LOOK).await,
                }
            }
        };
        soon("a daemon", looking).await
    }

    /// Sends a request and gives back its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Result<u64, Gone> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request).await?;
        Ok(id)
    }

    /// Sends a call of a tool and gives back its id.
    pub(crate) async fn send_call(&mut self, tool: &str, arguments: Value) -> Result<u64, Gone> {
        self.send("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn tell(&mut self, method: &str) -> Result<(), Gone> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": {}})).await
    }

    async fn write(&mut self, message: &Value) -> Result<(), Gone> {
        let line = format!("{message}\n");
        let written = self.writer.write_all(line.as_bytes());
        soon("the daemon to read", written).await.map_err(|_| Gone)
    }

    /// Waits for the result of a request, or its error of the protocol.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Answer, Gone> {
        let is_answer = |message: &Value| message["id"] == id && message["method"].is_null();
        let mut answer = match self.kept.iter().position(is_answer) {
            Some(index) => self.kept.remove(index).unwrap(),
            None => loop {
                let message = self.read().await?;
                if is_answer(&message) {
                    break message;
                }
                self.kept.push_back(message);
            },
        };
        Ok(match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(answer["error"].take()),
        })
    }

    /// Waits for what a tool answers.
    pub(crate) async fn answer_of_call(&mut self, id: u64) -> Result<Answer, Gone> {
        let mut result = self.answer(id).await?.unwrap();
        let failed = result["isError"] == true;
        let said = result["structuredContent"].take();
        Ok(if failed { Err(said) } else { Ok(said) })
    }

    /// Calls a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Gone> {
        let id = self.send_call(tool, arguments).await?;
        self.answer_of_call(id).await
    }

    /// Calls a tool of a daemon that stays; it must succeed.
    pub(crate) async fn must(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments.clone()).await.expect("the daemon stays");
        answer.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
    }

    /// Reads a resource of a daemon that stays: what it holds.
    pub(crate) async fn read_resource(&mut self, uri: &str) -> Value {
        let id = self.send("resources/read", json!({"uri": uri})).await.unwrap();
        let mut read = self.answer(id).await.unwrap().unwrap();
        read["contents"][0].take()
    }

    /// Reads a resource that is JSON.
    pub(crate) async fn read_facts(&mut self, uri: &str) -> Value {
        serde_json::from_str(self.read_resource(uri).await["text"].as_str().unwrap()).unwrap()
    }

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Result<Value, Gone> {
        match self.kept.pop_front() {
            Some(message) => Ok(message),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Result<Value, Gone> {
        let replaced = async {
            match &mut self.replaced {
                Some(replaced) => replaced.changed().await.map_err(drop).unwrap_or_default(),
                None => pending().await,
            }
        };
        let line = soon("the daemon's next message", async {
            tokio::select! {
                biased;
                () = replaced => Err(Gone),
                line = self.reader.next_line() => line.map_err(|_| Gone)?.ok_or(Gone),
            }
        });
        let line = line.await?;
        // A daemon that is killed may be in the middle of a line.
        serde_json::from_str(&line).map_err(|_| Gone)
    }
}

/// Starts a shell line in a session that nobody holds, and gives back the session.
pub(crate) async fn start(client: &mut Client, line: &str) -> Started {
    let arguments = json!({"command": "sh", "args": ["-c", line], "lease": false});
    let created = client.must("create_session", arguments).await;
    let id = created["session"]["id"].as_str().unwrap().to_owned();
    Started { id, pid: i32::try_from(created["session"]["pid"].as_i64().unwrap()).unwrap() }
}

/// A session, and the process it was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) pid: i32,
}

/// What a daemon lists of a session.
pub(crate) async fn listed(client: &mut Client, session: &str) -> Value {
    client.must("list_sessions", json!({"session": session})).await["sessions"][0].take()
}
