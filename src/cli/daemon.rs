//! A daemon as commands see it: tools to call and sessions to observe.
//!
//! It knows no command; it turns the protocol's answers into data, text and failures.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::transport::client::{Client, ClientError, ConnectError, Reply};
use crate::wire::envelope::{Envelope, KEY};
use crate::wire::session::{SessionList, SessionWire};

/// A connection to a daemon.
#[derive(Debug)]
pub struct Daemon {
    client: Client,
    path: PathBuf,
}

/// What a tool answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The structured result.
    pub data: Value,
    /// The compact form.
    pub text: String,
    /// The protocol revision it was made for.
    pub mcp_version: Option<String>,
}

impl Daemon {
    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when there is none.
    pub async fn connect(path: &Path) -> Result<Self, Failure> {
        Self::try_connect(path)
            .await
            .map_err(|source| Failure::unreachable(path.to_owned(), source))
    }

    /// Connects to the daemon at this socket, for those who know what to do when there is none.
    ///
    /// # Errors
    /// Why there is no daemon to talk to.
    pub async fn try_connect(path: &Path) -> Result<Self, ConnectError> {
        let client = Client::connect(path).await?;
        Ok(Self { client, path: path.to_owned() })
    }

    /// Calls a tool with the members of `arguments`; a null counts as left out.
    ///
    /// # Errors
    /// What the tool or the daemon answered instead of a result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Failure> {
        self.post(tool, arguments)?.wait().await
    }

    /// Calls a tool at once; its answer is waited for afterwards. Giving it up cancels the call.
    ///
    /// # Errors
    /// That the daemon has gone, or that the call is too large.
    pub fn post(&self, tool: &str, arguments: Value) -> Result<Posted, Failure> {
        let session = arguments["session"].as_str().map(Box::from);
        let params = json!({"name": tool, "arguments": members(arguments)});
        Ok(Posted { reply: self.client.post("tools/call", &params)?, session })
    }

    /// Reads a resource that is JSON.
    ///
    /// # Errors
    /// That there is none of this name here, or that the daemon has gone.
    pub async fn read<T: DeserializeOwned>(&self, uri: &str) -> Result<T, Failure> {
        let (text, _) = self.read_text(uri).await?;
        Ok(serde_json::from_str(&text).map_err(|_| ClientError::Malformed)?)
    }

    /// Reads a resource: its text, and what is told of it besides.
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

    /// The session of this id, unique prefix of one, or name.
    ///
    /// # Errors
    /// That there is none, or that the daemon has gone.
    pub async fn session(&self, given: &str) -> Result<SessionWire, Failure> {
        let listed = self.call("list_sessions", json!({"session": given})).await?;
        let mut sessions = listed.read::<SessionList>()?.sessions;
        Ok(sessions.pop().ok_or(ClientError::Malformed)?)
    }

    /// Asks to be told when a resource changes: [`Client::news`] counts up then.
    ///
    /// # Errors
    /// That there is none of this name here, or that the daemon has gone.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Failure> {
        self.client.request("resources/subscribe", json!({"uri": uri})).await?;
        Ok(())
    }

    /// The connection itself, for requests that are no calls.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where its socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A call whose answer is to come.
#[derive(Debug)]
pub struct Posted {
    reply: Reply,
    /// The session that it is about.
    session: Option<Box<str>>,
}

impl Posted {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`Daemon::call`].
    pub async fn wait(self) -> Result<Answer, Failure> {
        let result = self.reply.wait_for_call().await?;
        let data = result.structured_content.unwrap_or_default();
        let text = result.content.iter().filter_map(|block| block.as_text());
        let text = text.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
        if result.is_error == Some(true) {
            return Err(Failure::of_tool(data).about(self.session));
        }
        let envelope = result.meta.and_then(|mut meta| meta.0.remove(KEY));
        let envelope = envelope.and_then(|it| serde_json::from_value::<Envelope>(it).ok());
        Ok(Answer { data, text, mcp_version: envelope.and_then(|it| it.mcp_version) })
    }
}

impl Answer {
    /// The answer as the end of a command that went well, with `text` for people.
    pub fn report(self, text: impl Into<String>) -> Report {
        Report {
            data: self.data,
            text: text.into(),
            notes: Vec::new(),
            exit: Exit::Done,
            mcp_version: self.mcp_version,
        }
    }

    /// The answer with the tool's own text for people.
    pub fn report_as_told(mut self) -> Report {
        let text = std::mem::take(&mut self.text);
        self.report(text.trim_end())
    }

    /// The result as the type that its tool writes.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] when it is none.
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
