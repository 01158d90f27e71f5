//! A client that speaks to whatever daemon there is, line by line, and bears that it goes away.

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::harness::line_client::{Answer, Messages, Requests, halves, hello};
use crate::harness::waiting::{LOOK, soon};

/// The daemon went away before it answered, or was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

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
    requests: Requests,
    messages: Messages,
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
        let (requests, messages) = halves(stream);
        let mut client = Self { requests, messages, replaced };
        let id = client.send("initialize", hello("outlive")).await?;
        client.answer(id).await?.unwrap();
        let told = client.requests.notify("notifications/initialized", &json!({})).await;
        told.map_err(|_| Gone)?;
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
        let (id, line) = self.requests.line(method, &params);
        self.requests.write(line.as_bytes()).await.map_err(|_| Gone)?;
        Ok(id)
    }

    /// Sends a call of a tool and gives back its id.
    pub(crate) async fn send_call(&mut self, tool: &str, arguments: Value) -> Result<u64, Gone> {
        self.send("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Waits for the result of a request, or its error of the protocol.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Answer, Gone> {
        unless_replaced(&mut self.replaced, self.messages.answer(id)).await
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
        unless_replaced(&mut self.replaced, self.messages.next()).await
    }
}

/// What is read of a daemon, unless it is given up before.
async fn unless_replaced<T>(
    replaced: &mut Option<watch::Receiver<()>>,
    reading: impl Future<Output = io::Result<Option<T>>>,
) -> Result<T, Gone> {
    let replaced = async {
        match replaced {
            Some(replaced) => replaced.changed().await.map_err(drop).unwrap_or_default(),
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        read = reading => read.ok().flatten().ok_or(Gone),
        () = replaced => Err(Gone),
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
