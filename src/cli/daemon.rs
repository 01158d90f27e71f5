//! A connection to a daemon, for commands: calls tools, reads resources, observes sessions.
//!
//! It turns the protocol's answers into data, text and failures.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::transport::client::exchange::PendingReply;
use crate::transport::client::{Client, ClientError, ConnectError};
use crate::wire::error::ErrorWire;
use crate::wire::error::{ENVELOPE_KEY, Envelope};
use crate::wire::session::{SessionList, SessionWire};

#[derive(Debug)]
pub struct Daemon {
    client: Client,
    path: PathBuf,
}

/// The result of a tool.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The structured result.
    pub data: Value,
    /// The text content.
    pub text: String,
    /// The protocol revision of the result.
    pub mcp_version: Option<String>,
}

impl Daemon {
    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when no daemon answers.
    pub async fn connect(path: &Path) -> Result<Self, Failure> {
        Self::try_connect(path)
            .await
            .map_err(|source| Failure::unreachable(path.to_owned(), source))
    }

    /// Connects to the daemon at this socket, for callers that handle a missing daemon.
    ///
    /// # Errors
    /// No daemon answers, with the reason.
    pub async fn try_connect(path: &Path) -> Result<Self, ConnectError> {
        let client = Client::connect(path).await?;
        Ok(Self { client, path: path.to_owned() })
    }

    /// Calls a tool with the members of `arguments`; null counts as absent.
    ///
    /// # Errors
    /// The error of the tool or the daemon.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Failure> {
        self.post(tool, arguments)?.wait().await
    }

    /// Sends a call and returns at once; wait for the answer later. Dropping it cancels the call.
    ///
    /// # Errors
    /// The daemon is gone, or the call is too large.
    pub fn post(&self, tool: &str, arguments: Value) -> Result<Posted, Failure> {
        let session = arguments["session"].as_str().map(Box::from);
        let params = json!({"name": tool, "arguments": members(arguments)});
        Ok(Posted { reply: self.client.post("tools/call", &params)?, session })
    }

    /// Reads a JSON resource.
    ///
    /// # Errors
    /// There is no such resource, or the daemon is gone.
    pub async fn read<T: DeserializeOwned>(&self, uri: &str) -> Result<T, Failure> {
        let (text, _) = self.read_text(uri).await?;
        Ok(serde_json::from_str(&text).map_err(|_| ClientError::Malformed)?)
    }

    /// Reads a resource: its text and its `_meta`.
    ///
    /// # Errors
    /// As [`Daemon::read`].
    pub async fn read_text(&self, uri: &str) -> Result<(String, Value), Failure> {
        let mut result = self.client.request("resources/read", json!({"uri": uri})).await?;
        let text = result.pointer_mut("/contents/0/text").map(Value::take);
        let Some(Value::String(text)) = text else { return Err(ClientError::Malformed.into()) };
        let meta = result.pointer_mut("/contents/0/_meta").map(Value::take);
        Ok((text, meta.unwrap_or_default()))
    }

    /// Finds a session by id, unique prefix of an id, or name.
    ///
    /// # Errors
    /// There is no such session, or the daemon is gone.
    pub async fn session(&self, given: &str) -> Result<SessionWire, Failure> {
        let listed = self.call("list_sessions", json!({"session": given})).await?;
        let mut sessions = listed.read::<SessionList>()?.sessions;
        Ok(sessions.pop().ok_or(ClientError::Malformed)?)
    }

    /// Subscribes to changes of a resource, which increase [`Client::news`].
    ///
    /// # Errors
    /// There is no such resource, or the daemon is gone.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Failure> {
        self.client.request("resources/subscribe", json!({"uri": uri})).await?;
        Ok(())
    }

    /// The connection itself, for requests that are not calls.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The path of the daemon's socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A call whose answer is pending.
#[derive(Debug)]
pub struct Posted {
    reply: PendingReply,
    /// The session of the call.
    session: Option<Box<str>>,
}

impl Posted {
    /// # Errors
    /// As [`Daemon::call`].
    pub async fn wait(self) -> Result<Answer, Failure> {
        let result = self.reply.wait_for_call().await?;
        let data = result.structured_content.unwrap_or_default();
        let text = result.content.iter().filter_map(|block| block.as_text());
        let text = text.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
        if result.is_error == Some(true) {
            let error = ErrorWire::deserialize(data).map_err(|_| ClientError::Malformed)?;
            return Err(Failure::of_tool(error).about(self.session));
        }
        let envelope = result.meta.and_then(|mut meta| meta.0.remove(ENVELOPE_KEY));
        let envelope = envelope.and_then(|it| serde_json::from_value::<Envelope>(it).ok());
        Ok(Answer { data, text, mcp_version: envelope.and_then(|it| it.mcp_version) })
    }
}

impl Answer {
    /// The report of a successful command, with `text` for people.
    pub fn report(self, text: impl Into<String>) -> Report {
        Report {
            data: self.data,
            text: text.into(),
            notes: Vec::new(),
            exit: Exit::Done,
            mcp_version: self.mcp_version,
        }
    }

    /// The report of a successful command, with the tool's own text for people.
    pub fn report_as_told(mut self) -> Report {
        let text = std::mem::take(&mut self.text);
        self.report(text.trim_end())
    }

    /// Parses the result as the tool's result type.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] when it has another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(T::deserialize(&self.data).map_err(|_| ClientError::Malformed)?)
    }
}

fn members(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(members) => {
            members.into_iter().filter(|(_, value)| !value.is_null()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
