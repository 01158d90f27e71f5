//! The gateway of the crate `mcp-proxy`, before a server on pipes, and a client of its HTTP door.
//!
//! Another program has this name too. The one meant does not tell its version, but has other options.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::support::child::Owned;
use crate::support::samples::now;
use crate::support::tool_server;

/// An option of it that the other program does not have, as `--help` names it.
const OPTION: &str = "--config <";
/// What to do where it is missing.
pub(crate) const MISSING: &str =
    "the crate mcp-proxy is not in PATH: `cargo install --locked mcp-proxy --version '^0.6'`";
/// How long it may take to start.
const START_MAX: Duration = Duration::from_secs(10);

/// A running gateway, and a connection to it that is kept alive.
#[derive(Debug)]
pub(crate) struct McpProxy {
    reader: BufReader<TcpStream>,
    address: String,
    /// A header with its line end; empty until the greeting was answered.
    session: String,
    request: String,
    head: String,
    answer: Vec<u8>,
    _process: Owned,
    _directory: TempDir,
}

impl McpProxy {
    /// Starts it with a server of tools called `mount` behind it, where the bench itself may run, and greets
    /// it; `None` if it is not installed.
    ///
    /// # Errors
    /// Why it does not run.
    pub(crate) fn start() -> anyhow::Result<Option<Self>> {
        let help = Command::new("mcp-proxy").arg("--help").output();
        if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(OPTION)) {
            return Ok(None);
        }
        let directory = tempfile::tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = format!(
            "[proxy]\nname = \"bench\"\nseparator = \"__\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n\
             [[backends]]\nname = \"mount\"\ntransport = \"stdio\"\ncommand = {:?}\nargs = [\"{}\"]\n",
            address.port(),
            std::env::current_exe()?,
            tool_server::SERVE,
        );
        let path = directory.path().join("proxy.toml");
        fs::write(&path, config)?;
        let mut command = Command::new("mcp-proxy");
        command.arg("--config").arg(path).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map(Owned).context("cannot start mcp-proxy")?;
        let give_up = now() + START_MAX;
        let stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(error) => ensure!(now() < give_up, "mcp-proxy does not listen: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(1));
        };
        stream.set_nodelay(true)?;
        let mut started = Self {
            reader: BufReader::new(stream),
            address: address.to_string(),
            session: String::new(),
            request: String::new(),
            head: String::new(),
            answer: Vec::new(),
            _process: process,
            _directory: directory,
        };
        started.post(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
        )?;
        started.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(Some(started))
    }

    /// Calls a tool with arguments written as JSON.
    ///
    /// # Errors
    /// When it has gone, and when the answer is an error of any kind.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> anyhow::Result<&str> {
        self.post(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))?;
        let answer = str::from_utf8(&self.answer)?;
        let done = answer.contains(r#""result":"#) && !answer.contains(r#""isError":true"#);
        ensure!(done, "mcp-proxy: {answer}");
        Ok(answer)
    }

    fn post(&mut self, body: &str) -> anyhow::Result<()> {
        let Self { reader, address, session, request, head, answer, .. } = self;
        request.clear();
        write!(
            request,
            "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        reader.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            head.clear();
            ensure!(reader.read_line(head)? > 0, "mcp-proxy has gone");
            let Some((name, value)) = head.trim_end().split_once(": ") else {
                match head.trim_end() {
                    "" => break,
                    status => ensure!(status.starts_with("HTTP/1.1 2"), "mcp-proxy: {status}"),
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse()?;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                *session = format!("{name}: {value}\r\n");
            }
        }
        answer.resize(length, 0);
        Ok(reader.read_exact(answer)?)
    }
}
