//! A daemon in this process, and clients that speak to it line by line.
//!
//! The clients know the wire and none of the daemon's types, so that a mistake in those shows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use termgate::config::Config;
use termgate::config::paths::RuntimePaths;
use termgate::config::sources::Sources;
use termgate::transport::daemon::ending::DaemonEnd;
use termgate::transport::daemon::upgrade::DaemonProgram;
use termgate::transport::daemon::{DaemonError, DaemonSettings, serve};
use termgate::transport::unix::handed::Handed;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::home::Home;
use crate::harness::line_client::{Answer, Messages, Requests, halves, hello};
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::soon;

/// How long what a test has started waits for a daemon that does not come any more.
const ORPHAN_TTL: Duration = Duration::from_secs(20);

/// How a client says which protocol it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Once, with `initialize`.
    Legacy,
    /// With every request.
    Modern,
}

impl Era {
    pub(crate) const BOTH: [Self; 2] = [Self::Legacy, Self::Modern];
}

/// The program of a daemon that runs in this process, where nothing may take its place.
pub(crate) fn program() -> DaemonProgram {
    DaemonProgram { path: "/nowhere/termgate".into(), words: Vec::new(), check: Vec::new() }
}

/// A daemon's environment. What the account that runs the test has in its home is no part of it.
fn variables(home: &Home) -> impl Iterator<Item = (&'static str, String)> {
    home.environment().into_iter().filter(|(name, _)| ["PATH", "HOME"].contains(name))
}

/// A running daemon with directories of its own.
#[derive(Debug)]
pub(crate) struct TestDaemon {
    pub(crate) paths: RuntimePaths,
    home: Home,
    serving: JoinHandle<Result<DaemonEnd, DaemonError>>,
}

impl TestDaemon {
    /// A daemon that allows writing.
    pub(crate) async fn writable() -> Self {
        Self::configured(|config| config.allow_write = true).await
    }

    /// A daemon as it is when nobody configured anything.
    pub(crate) async fn read_only() -> Self {
        Self::configured(|_| {}).await
    }

    /// A daemon with changes to the built-in configuration.
    pub(crate) async fn configured(change: impl FnOnce(&mut Config)) -> Self {
        Self::begin(Home::new(), change).await
    }

    /// Stops the daemon, and starts the next one in the same directories.
    pub(crate) async fn restarted(self, change: impl FnOnce(&mut Config)) -> Self {
        Self::begin(self.end().await, change).await
    }

    async fn begin(home: Home, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::built_in();
        // A test that fails leaves nothing behind.
        config.holding.orphan_ttl = ORPHAN_TTL;
        change(&mut config);
        let paths = home.paths();
        let environment = variables(&home).map(|(name, value)| (name.into(), value.into()));
        let settings = DaemonSettings {
            config,
            sources: Sources::default(),
            read_only: false,
            paths: paths.clone(),
            environment: environment.collect(),
            default_cwd: home.ground().to_owned(),
            shim: PathBuf::from(PROGRAM),
            state: Some(home.path("state")),
            handed: Handed::default(),
            linger: None,
            program: program(),
        };
        let (tell, ready) = oneshot::channel();
        let serving = tokio::spawn(serve(settings, move |_| tell.send(()).unwrap()));
        soon("the daemon to start", ready).await.unwrap();
        Self { paths, home, serving }
    }

    /// A path for a file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    /// What a variable of the daemon's environment says.
    pub(crate) fn variable(&self, name: &str) -> String {
        variables(&self.home).find(|it| it.0 == name).unwrap().1
    }

    /// A client at the door of all sessions.
    pub(crate) async fn client(&self, era: Era) -> Wire {
        Wire::connect(self.paths.gateway(), era).await
    }

    /// A client at the operators' door.
    pub(crate) async fn operator(&self) -> Wire {
        Wire::connect(&self.paths.operator(), Era::Legacy).await
    }

    /// A client at the door of one session.
    pub(crate) async fn at_session(&self, session: &str, era: Era) -> Wire {
        Wire::connect(&self.paths.session(session.parse().unwrap()), era).await
    }

    /// A client at the door of one session that never writes.
    pub(crate) async fn at_read_only(&self, session: &str, era: Era) -> Wire {
        Wire::connect(&self.paths.session_read_only(session.parse().unwrap()), era).await
    }

    /// Stops the daemon as an operator does, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.end().await;
    }

    async fn end(self) -> Home {
        let operator = self.operator().await;
        self.end_by(operator).await
    }

    /// The same through a connection that is open already.
    pub(crate) async fn stop_by(self, operator: Wire) {
        self.end_by(operator).await;
    }

    async fn end_by(self, mut operator: Wire) -> Home {
        operator.send("termgate/stop", json!({})).await;
        let ended = soon("the daemon to end", self.serving).await.unwrap().unwrap();
        assert_eq!(ended, DaemonEnd::Stopped);
        assert!(!self.paths.gateway().exists(), "the socket is still there");
        self.home
    }
}

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

impl Wire {
    /// Connects and greets.
    pub(crate) async fn connect(path: &Path, era: Era) -> Self {
        let mut wire = Self::silent(path, era).await;
        wire.greet().await;
        wire
    }

    /// Connects and says nothing.
    pub(crate) async fn silent(path: &Path, era: Era) -> Self {
        Self::over(UnixStream::connect(path).await.unwrap(), era)
    }

    /// Speaks over a stream, and says nothing.
    pub(crate) fn over(stream: UnixStream, era: Era) -> Self {
        let (requests, messages) = halves(stream);
        Self { sender: Sender { requests, era }, receiver: Receiver(messages) }
    }

    /// Says hello as its era does.
    pub(crate) async fn greet(&mut self) {
        match self.sender.era {
            Era::Legacy => {
                self.request("initialize", hello("tester")).await.unwrap();
                self.sender.notify("notifications/initialized", json!({})).await;
            }
            Era::Modern => {
                self.request("server/discover", json!({})).await.unwrap();
            }
        }
    }

    /// Sends a request and waits for its result, or its error of the protocol.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Answer {
        let id = self.send(method, params).await;
        self.receiver.answer(id).await
    }

    /// Sends a request and gives back its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.sender.request(method, params).await
    }

    /// Sends a call of a tool and gives back its id.
    pub(crate) async fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.sender.call(tool, arguments).await
    }

    /// Waits for the answer of a call that was sent.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.receiver.answer(id).await.unwrap()
    }

    /// Calls a tool and waits for what it answers, which may be an error of the tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments).await;
        self.answer(id).await
    }

    /// Calls a tool that must succeed, and gives back its structured result.
    pub(crate) async fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        structured(&self.call(tool, arguments).await)
    }

    /// Calls a tool that must fail, and gives back the code of its error.
    pub(crate) async fn error_code(&mut self, tool: &str, arguments: Value) -> String {
        error_code(&self.call(tool, arguments).await)
    }

    /// The names of the tools that are listed.
    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).await.unwrap();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        listed["tools"].as_array().unwrap().iter().map(name).collect()
    }

    /// Starts a shell line in a session that nobody holds, and gives back the session's id.
    pub(crate) async fn start(&mut self, line: &str) -> String {
        let arguments = json!({"command": "sh", "args": ["-c", line], "lease": false});
        let created = self.structured("create_session", arguments).await;
        created["session"]["id"].as_str().unwrap().to_owned()
    }

    /// Starts a program that writes the next `bytes` bytes it is given into `log`, unchanged, and
    /// then ends.
    pub(crate) async fn start_recorder(&mut self, log: &Path, bytes: usize) -> String {
        let log = log.display();
        let line = format!("stty raw -echo; printf recording; exec head -c {bytes} > {log}");
        let session = self.start(&line).await;
        self.wait_for(json!({"session": session, "text": "recording", "since": 0})).await;
        session
    }

    /// Waits until the program of a session has ended.
    pub(crate) async fn wait_for_exit(&mut self, session: &str) {
        let waited = self.wait_for(json!({"session": session, "exit": true})).await;
        assert_eq!(waited["outcome"], "exited");
    }

    /// Waits for what happens in a session; it must happen.
    pub(crate) async fn wait_for(&mut self, arguments: Value) -> Value {
        let waited = self.structured("wait_for", arguments.clone()).await;
        assert_ne!(waited["outcome"], "timeout", "waited in vain for {arguments}: {waited}");
        waited
    }

    /// Takes the lease of a session, waiting for it if need be, and gives back the grant.
    pub(crate) async fn acquire(&mut self, session: &str) -> Value {
        self.structured("acquire_lease", json!({"session": session, "wait_ms": 30_000})).await
    }
}

/// What a call that succeeded says to programs.
pub(crate) fn structured(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "the call failed: {result}");
    result["structuredContent"].clone()
}

/// The code of a call that failed.
pub(crate) fn error_code(result: &Value) -> String {
    assert_eq!(result["isError"], true, "the call did not fail: {result}");
    result["structuredContent"]["error_code"].as_str().unwrap().to_owned()
}

/// The writing half of a client.
#[derive(Debug)]
pub(crate) struct Sender {
    requests: Requests,
    era: Era,
}

impl Sender {
    /// How it says which protocol it speaks.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Sends bytes as they are.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.requests.write(bytes).await.unwrap();
    }

    /// Sends bytes, unless the daemon has hung up.
    pub(crate) async fn raw_unless_over(&mut self, bytes: &[u8]) {
        // Whether it took them is what its end tells.
        let _ = self.requests.write(bytes).await;
    }

    /// Sends as much as the socket takes at once, and says how much that was.
    pub(crate) fn raw_now(&self, bytes: &[u8]) -> usize {
        match self.requests.writer.try_write(bytes) {
            Ok(taken) => taken,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the socket takes nothing: {error}"),
        }
    }

    /// The line of a request as this client's era writes it, under a new id.
    pub(crate) fn line(&mut self, method: &str, mut params: Value) -> (u64, String) {
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            let capabilities = &mut meta["io.modelcontextprotocol/clientCapabilities"];
            if capabilities.is_null() {
                *capabilities = json!({});
            }
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tester", "version": "1"});
        }
        self.requests.line(method, &params)
    }

    /// Sends a request and gives back its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        let (id, line) = self.line(method, params);
        self.raw(line.as_bytes()).await;
        id
    }

    /// Sends a call of a tool and gives back its id.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.requests.notify(method, &params).await.unwrap();
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
}

/// The reading half of a client. What is read while something else is waited for is kept.
#[derive(Debug)]
pub(crate) struct Receiver(Messages);

impl Receiver {
    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        there(self.0.next().await)
    }

    /// Waits for the result of a request, or its error of the protocol.
    pub(crate) async fn answer(&mut self, id: u64) -> Answer {
        there(self.0.answer(id).await)
    }

    /// Waits for a notification and gives back its parameters.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        self.first(|message| message["method"] == method).await["params"].take()
    }

    /// Waits for the first message of a kind that was not taken yet.
    pub(crate) async fn first(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        there(self.0.first(wanted).await)
    }

    /// Waits for the first line that is read from now on and has this in it.
    pub(crate) async fn line_with(&mut self, what: &str) -> String {
        there(self.0.line_with(what).await)
    }

    /// The messages that were read and not taken.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Value> {
        self.0.kept.iter()
    }

    /// Waits until the daemon has hung up, and gives back all that was not taken before.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.0.next().await.unwrap() {
            rest.push(message);
        }
        rest
    }

    /// Waits until the daemon has hung up.
    pub(crate) async fn hears_the_end(&mut self) {
        self.rest().await;
    }
}

fn there<T>(read: std::io::Result<Option<T>>) -> T {
    read.unwrap().expect("the daemon hung up")
}
