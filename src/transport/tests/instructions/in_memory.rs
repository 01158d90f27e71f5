//! A daemon whose sessions have terminals in memory, its clients, and the shell in such a terminal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::config::Config;
use crate::core::caller::{Caller, Kind};
use crate::core::frame::Size;
use crate::core::ids::{ConnectionId, PrincipalId};
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::Server;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::session::pty::account::own_uid;
use crate::session::pty::tests::fake::FakeTerminal;
use crate::session::tests::listed::{list_session, play};
use crate::store::journal::writer::Journal;
use crate::transport::connection::{link, serve};
use crate::transport::daemon::Assembly;
use crate::transport::daemon::journal::{journal_limits, keep_journal};
use crate::transport::daemon::places::Places;

const SIZE: Size = Size { rows: 24, cols: 80 };
const NONCE: &str = "0123456789abcdef0123456789abcdef";
/// What a client says first.
const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"counting","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);
/// What a delta begins with.
const DELTA: &str = r#"{"jsonrpc":"2.0","method":"termgate/delta""#;
/// More than is on its way to a client at once.
const SOCKET_BYTES: usize = 64 * 1024;

struct DaemonInMemory {
    assembly: Assembly,
    _directory: TempDir,
}

impl DaemonInMemory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { allow_write: true, ..Config::built_in() };
        let journal = Journal::at(directory.path().to_owned(), journal_limits(&config));
        let clock = Clock::paused();
        // Nothing is synced to the disk: other threads do that.
        drop(keep_journal(journal.clone(), &clock));
        let assembly = Assembly::new(&config, Places::default(), &journal, clock);
        Self { assembly, _directory: directory }
    }

    /// A session, and its program's end of the terminal.
    fn session(&self) -> (Session, FakeTerminal) {
        list_session(&self.assembly.registry, SIZE, NONCE)
    }

    /// A client that has greeted.
    async fn client(&self) -> ClientInMemory {
        let doors = &self.assembly.doors;
        let number = doors.numbers.fetch_add(1, Ordering::Relaxed);
        let kind = Kind::Agent;
        let caller = Caller {
            principal: PrincipalId::Connection(number),
            connection: ConnectionId(number),
            tenant: self.assembly.registry.own_tenant().clone(),
            kind,
            label: Arc::from(kind.as_str()),
        };
        let (near, far) = tokio::io::duplex(SOCKET_BYTES);
        let (reader, writer) = tokio::io::split(far);
        let (shared, limits) =
            (Arc::clone(&doors.shared), doors.limits.borrow().connection.clone());
        tokio::spawn(async move {
            shared.gateway.daemon().principals.enter(&caller);
            let connection = Arc::new(Connection::new(caller.connection, limits.unsent));
            let standing = Standing::of_member(caller, own_uid(), Door::Gateway, Reach::Tenant);
            let server = Server::new(shared, Arc::clone(&connection), standing);
            serve(server, link::plain(reader, writer).in_lines(&limits), connection, &limits).await;
        });
        let stream = BufReader::new(near);
        let mut client = ClientInMemory { stream, line: String::new(), requests: 0 };
        client.send(GREETING).await;
        client.next_line().await;
        client
    }
}

struct ClientInMemory {
    stream: BufReader<DuplexStream>,
    line: String,
    requests: u64,
}

impl ClientInMemory {
    /// Calls a tool, and returns the line with its answer.
    async fn call(&mut self, tool: &str, arguments: Value) -> &str {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.request("tools/call", &params).await;
        self.next_line().await
    }

    /// Begins to observe a session, and reads the delta with what it shows already.
    async fn observe(&mut self, session: &str) {
        self.request("termgate/observe", &format!(r#"{{"session":"{session}"}}"#)).await;
        self.next_delta().await;
    }

    async fn next_delta(&mut self) {
        let delta = self.next_line().await;
        assert!(delta.starts_with(DELTA), "{delta}");
    }

    async fn next_line(&mut self) -> &str {
        self.line.clear();
        self.stream.read_line(&mut self.line).await.unwrap();
        &self.line
    }

    async fn request(&mut self, method: &str, params: &str) {
        self.requests += 1;
        let id = self.requests;
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.send(&(request + "\n")).await;
    }

    async fn send(&mut self, lines: &str) {
        self.stream.get_mut().write_all(lines.as_bytes()).await.unwrap();
    }
}

/// A client that has the lease of a session whose shell is at its prompt.
pub(super) struct AgentInMemory {
    /// The id of the session.
    pub(super) id: String,
    client: ClientInMemory,
    _daemon: DaemonInMemory,
}

impl AgentInMemory {
    pub(super) async fn at_prompt() -> Self {
        let daemon = DaemonInMemory::new();
        let (session, terminal) = daemon.session();
        let id = session.id().to_string();
        terminal.push(prompt());
        tokio::spawn(play(terminal, |typed| typed.iter().flat_map(|byte| answer(*byte)).collect()));
        let mut client = daemon.client().await;
        client.call("acquire_lease", json!({"session": id})).await;
        Self { id, client, _daemon: daemon }
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> &str {
        self.client.call(tool, arguments).await
    }
}

/// Clients that observe one session.
pub(super) struct Audience {
    observers: Vec<ClientInMemory>,
    terminal: FakeTerminal,
    _daemon: DaemonInMemory,
}

impl Audience {
    pub(super) async fn of(count: usize) -> Self {
        let daemon = DaemonInMemory::new();
        let (session, terminal) = daemon.session();
        let mut observers = Vec::new();
        for _ in 0..count {
            let mut observer = daemon.client().await;
            observer.observe(&session.id().to_string()).await;
            observers.push(observer);
        }
        Self { observers, terminal, _daemon: daemon }
    }

    /// Changes a row, and waits until each observer has the delta.
    pub(super) async fn see_change(&mut self) {
        self.terminal.push("k");
        for observer in &mut self.observers {
            observer.next_delta().await;
        }
    }
}

/// What the shell writes when it reads this: it echoes what is typed, and each line is a command that prints.
fn answer(typed: u8) -> Vec<u8> {
    match typed {
        b'\r' => {
            let row = |number| format!("row {number} of the output\r\n");
            let output = (0..10).map(row).collect::<String>();
            format!("\r\n{}{output}{}{}", mark("C"), mark("D;0"), prompt()).into_bytes()
        }
        other => vec![other],
    }
}

fn prompt() -> String {
    format!("{}$ {}", mark("A"), mark("B"))
}

fn mark(mark: &str) -> String {
    format!("\x1b]133;{mark};nonce={NONCE}\x1b\\")
}
