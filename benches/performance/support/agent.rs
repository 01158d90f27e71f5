//! The plainest MCP client there is: a line out, a line in, one call at a time.
//!
//! It must not cost anything worth measuring: requests are text made in place, and of answers only
//! what is asked for is looked for. The control client of the yardstick is written the same way.

use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// What the answer of a tool that failed has in it.
const FAILED: &str = r#""isError":true"#;

/// A greeted connection to a daemon, or to another server.
#[derive(Debug)]
pub(crate) struct Agent {
    reader: BufReader<File>,
    writer: File,
    request: String,
    answer: String,
    last_id: u64,
}

impl Agent {
    /// Connects and greets.
    ///
    /// # Errors
    /// When nobody listens there, or not as an MCP server does.
    pub(crate) fn connect(socket: &Path) -> anyhow::Result<Self> {
        Self::greet(UnixStream::connect(socket).context("cannot reach the daemon")?)
    }

    /// Greets whoever is at the other end.
    ///
    /// # Errors
    /// When it does not answer as an MCP server does.
    pub(crate) fn greet(stream: UnixStream) -> anyhow::Result<Self> {
        let writer = stream.try_clone()?;
        Self::greet_on(stream.into(), writer.into())
    }

    /// The same of a server that is read and written by two descriptors.
    ///
    /// # Errors
    /// When it does not answer as an MCP server does.
    pub(crate) fn greet_on(reader: OwnedFd, writer: OwnedFd) -> anyhow::Result<Self> {
        let (reader, writer) = (BufReader::new(File::from(reader)), File::from(writer));
        let (request, answer) = (String::new(), String::new());
        let mut agent = Self { reader, writer, request, answer, last_id: 0 };
        agent.request(
            "initialize",
            format_args!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"bench","version":"0"}}}}"#
            ),
        )?;
        let greeted = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        agent.writer.write_all(greeted)?;
        Ok(agent)
    }

    /// Calls a tool with arguments written as JSON, and gives back the whole line of the answer.
    ///
    /// # Errors
    /// When the daemon has gone, and when the answer is an error of any kind.
    pub(crate) fn call(&mut self, tool: &str, arguments: Arguments<'_>) -> anyhow::Result<&str> {
        let params = format_args!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.request("tools/call", params)
    }

    /// How many sessions are listed, in as many calls as that takes.
    ///
    /// # Errors
    /// When the daemon has gone.
    pub(crate) fn count_sessions(&mut self) -> anyhow::Result<usize> {
        let (mut count, mut after) = (0, String::new());
        loop {
            let listed = self.call("list_sessions", format_args!("{{{after}}}"))?;
            count += listed.matches(r#""output_bytes":"#).count();
            if !listed.contains(r#""left_out":"#) {
                return Ok(count);
            }
            let last = listed.rsplit_once(r#","name":""#).context("no name is listed")?.1;
            let (last, _) = last.split_once('"').context("a name has no end")?;
            after = format!(r#""after":"{last}""#);
        }
    }

    /// Asks nothing but for an answer.
    ///
    /// # Errors
    /// When the daemon has gone.
    pub(crate) fn ping(&mut self) -> anyhow::Result<()> {
        self.request("ping", format_args!("{{}}"))?;
        Ok(())
    }

    /// How many bytes the list of tools is.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn list_tools(&mut self) -> anyhow::Result<usize> {
        let answer = self.request("tools/list", format_args!("{{}}"))?;
        let answer: serde_json::Value = serde_json::from_str(answer)?;
        Ok(answer["result"]["tools"].to_string().len())
    }

    /// Calls a tool without waiting for the answer.
    ///
    /// # Errors
    /// When the daemon has gone.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Arguments<'_>) -> anyhow::Result<()> {
        self.ask("tools/call", format_args!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
    }

    fn ask(&mut self, method: &str, params: Arguments<'_>) -> anyhow::Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        self.request.clear();
        writeln!(
            self.request,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        )?;
        Ok(self.writer.write_all(self.request.as_bytes())?)
    }

    fn request(&mut self, method: &str, params: Arguments<'_>) -> anyhow::Result<&str> {
        self.ask(method, params)?;
        self.answer().with_context(|| format!("{method} failed"))
    }

    /// The next answer to what was asked, as a whole line.
    ///
    /// # Errors
    /// When the daemon has gone, and when it is an error of any kind.
    pub(crate) fn answer(&mut self) -> anyhow::Result<&str> {
        self.read_line()?;
        // What comes unasked names a method first.
        while self.answer.starts_with(r#"{"jsonrpc":"2.0","method":"#) {
            self.read_line()?;
        }
        let done = self.answer.contains(r#""result":"#) && !self.answer.contains(FAILED);
        ensure!(done, "{}", self.answer);
        Ok(&self.answer)
    }

    fn read_line(&mut self) -> anyhow::Result<()> {
        self.answer.clear();
        let length = self.reader.read_line(&mut self.answer)?;
        ensure!(length > 0, "the daemon has gone");
        Ok(())
    }
}

/// The first number called `name` in an answer.
///
/// # Errors
/// When there is none.
pub(crate) fn number(answer: &str, name: &str) -> anyhow::Result<u64> {
    let quoted = format!("\"{name}\":");
    let missing = || format!("no {name} in: {answer}");
    let start = answer.find(&quoted).with_context(missing)? + quoted.len();
    let digits = answer[start..].bytes().take_while(u8::is_ascii_digit);
    Ok(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
