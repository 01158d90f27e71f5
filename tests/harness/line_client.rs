//! A client's end of a connection, line by line.
//!
//! It knows the wire and none of the program's types, so that a mistake in those shows.

use std::collections::VecDeque;
use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::harness::waiting::soon;

/// The result of a request, or its error of the protocol.
pub(crate) type Answer = Result<Value, Value>;

/// The two halves of a connection.
pub(crate) fn halves(stream: UnixStream) -> (Requests, Messages) {
    let (reader, writer) = stream.into_split();
    let messages = Messages { reader: BufReader::new(reader), kept: VecDeque::new() };
    (Requests { writer, last_id: 0 }, messages)
}

/// The parameters of `initialize`.
pub(crate) fn hello(name: &str) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": name, "version": "1"},
    })
}

/// The writing half, which numbers its requests.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) writer: OwnedWriteHalf,
    last_id: u64,
}

impl Requests {
    /// The line of a request under a new id.
    pub(crate) fn line(&mut self, method: &str, params: &Value) -> (u64, String) {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, format!("{request}\n"))
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(format!("{notification}\n").as_bytes()).await
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        soon("the daemon to read", self.writer.write_all(bytes)).await
    }
}

/// The reading half. What is read while something else is waited for is kept. `None` is the end.
#[derive(Debug)]
pub(crate) struct Messages {
    reader: BufReader<OwnedReadHalf>,
    pub(crate) kept: VecDeque<Value>,
}

impl Messages {
    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Value>> {
        match self.kept.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.read().await,
        }
    }

    /// Waits for the answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> io::Result<Option<Answer>> {
        let is_answer = |message: &Value| message["id"] == id && message["method"].is_null();
        let answer = self.first(is_answer).await?;
        Ok(answer.map(|mut answer| match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(answer["error"].take()),
        }))
    }

    /// Waits for the first message of a kind that was not taken yet.
    pub(crate) async fn first(
        &mut self,
        wanted: impl Fn(&Value) -> bool,
    ) -> io::Result<Option<Value>> {
        if let Some(index) = self.kept.iter().position(&wanted) {
            return Ok(self.kept.remove(index));
        }
        loop {
            match self.read().await? {
                Some(message) if !wanted(&message) => self.kept.push_back(message),
                read => return Ok(read),
            }
        }
    }

    /// Waits for the first line that is read from now on and has this in it.
    pub(crate) async fn line_with(&mut self, what: &str) -> io::Result<Option<String>> {
        while let Some(line) = self.read_line().await? {
            if line.contains(what) {
                return Ok(Some(line));
            }
            self.kept.push_back(serde_json::from_str(&line)?);
        }
        Ok(None)
    }

    async fn read(&mut self) -> io::Result<Option<Value>> {
        // A daemon that is killed may be in the middle of a line.
        Ok(self.read_line().await?.map(|line| serde_json::from_str(&line)).transpose()?)
    }

    async fn read_line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        match soon("the daemon's next message", self.reader.read_line(&mut line)).await {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(line)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }
}
