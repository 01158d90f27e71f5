//! A client of the daemon that commands use: calls tools, reads resources, observes sessions, and resumes under the
//! next daemon.
//!
//! It turns the protocol's answers into data, text and failures.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::cli::duration::millis;
use crate::cli::expected::expected_at;
use crate::cli::failure::CliFailure;
use crate::cli::output::{CommandOutput, CommandReport, note_to_all};
use crate::core::code::Code;
use crate::core::token::Secret;
use crate::transport::client::exchange::PendingReply;
use crate::transport::client::{Client, ClientError, ConnectError, reach};
use crate::wire::error::ErrorWire;
use crate::wire::error::{ENVELOPE_KEY, Envelope};
use crate::wire::policy::APPROVAL_WAIT_KEY;
use crate::wire::session::{SessionList, SessionWire};

/// How long to wait for the next daemon after one that exited.
pub const RETURN_MAX: Duration = Duration::from_secs(10);
/// The request that calls a tool.
const CALL: &str = "tools/call";
/// How often to check whether the shim answers.
pub const SILENCE_LOOK: Duration = Duration::from_millis(500);

/// How long a command waits for an approval.
const APPROVAL_WAIT: Duration = Duration::from_secs(600);

/// The message for a tool of a mounted server that fails without a text.
const FAILED_SILENTLY: &str = "the tool failed and does not say why";

#[derive(Debug)]
pub struct DaemonClient {
    client: Client,
    path: PathBuf,
    news: watch::Receiver<u64>,
}

/// The result of a tool.
#[derive(Clone, Debug, Default)]
pub struct ToolAnswer {
    /// The structured result.
    pub data: Value,
    /// The text content.
    pub text: String,
    /// The protocol revision of the result.
    pub mcp_version: Option<Cow<'static, str>>,
}

impl DaemonClient {
    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] when no daemon answers.
    pub async fn connect(path: &Path) -> Result<Self, CliFailure> {
        Self::try_connect(path)
            .await
            .map_err(|source| CliFailure::unreachable(path.to_owned(), source))
    }

    /// Connects to the daemon at this socket, for callers that handle a missing daemon.
    pub async fn try_connect(path: &Path) -> Result<Self, ConnectError> {
        Self::try_connect_as(path, None).await
    }

    /// The same as the owner of a token, who sees other sessions.
    pub async fn try_connect_as(
        path: &Path,
        secret: Option<&Secret>,
    ) -> Result<Self, ConnectError> {
        let client = Client::connect_as(path, expected_at(path), secret).await?;
        Ok(Self { news: client.news(), client, path: path.to_owned() })
    }

    /// Waits at most this long for the next daemon at the same socket, and continues with it. Requests and observations
    /// end with the old one; only the caller knows which to repeat.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] when none answers by then.
    pub async fn resume(&mut self, most: Duration) -> Result<(), CliFailure> {
        self.resume_while(most, || true).await
    }

    /// Resumes as [`DaemonClient::resume`] does, and waits only while `worth_it` holds.
    pub async fn resume_while(
        &mut self,
        most: Duration,
        worth_it: impl Fn() -> bool,
    ) -> Result<(), CliFailure> {
        let begun = Instant::now();
        let connect = async || {
            // The timeout covers a process that listens but does not greet.
            let left = most.saturating_sub(begun.elapsed());
            let connected = timeout(left, Self::try_connect(&self.path)).await;
            connected.unwrap_or(Err(ConnectError::NoGreeting))
        };
        let found = reach(connect, most, |_| worth_it()).await;
        *self = found.map_err(|source| CliFailure::unreachable(self.path.clone(), source))?;
        Ok(())
    }

    /// Calls a tool with the members of `arguments`; null counts as absent.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolAnswer, CliFailure> {
        self.post(tool, arguments)?.wait().await
    }

    /// Makes a call that rules may ask about, and waits for its approval: that ends with the command.
    pub async fn act(&self, tool: &str, arguments: Value) -> Result<ToolAnswer, CliFailure> {
        self.post_patiently(tool, arguments, APPROVAL_WAIT)?.wait().await
    }

    /// Sends a call and returns at once; wait for the answer later. Dropping it cancels the call.
    pub fn post(&self, tool: &str, arguments: Value) -> Result<Posted, CliFailure> {
        self.post_with(json!({}), tool, arguments)
    }

    /// Sends a call as [`DaemonClient::post`] does. If rules ask about it, a note says how to let it pass, and it waits
    /// at most this long.
    pub fn post_patiently(
        &self,
        tool: &str,
        arguments: Value,
        most: Duration,
    ) -> Result<Posted, CliFailure> {
        let (tool_again, arguments_again) = (tool.to_owned(), arguments.clone());
        let again =
            CallAgain { tool: tool_again, arguments: arguments_again, begun: Instant::now(), most };
        let posted = self.post_with(waiting(Duration::ZERO), tool, arguments)?;
        Ok(Posted { again: Some(again), ..posted })
    }

    fn post_with(&self, meta: Value, tool: &str, arguments: Value) -> Result<Posted, CliFailure> {
        let given = [&arguments["session"], &arguments["sessions"][0]];
        let session = given.into_iter().find_map(Value::as_str).map(Box::from);
        let reply = self.client.post(CALL, &params(meta, tool, arguments))?;
        Ok(Posted { reply, session, again: None, asked: watch::Sender::new(None) })
    }

    /// Reads a JSON resource.
    pub async fn read<T: DeserializeOwned>(&self, uri: &str) -> Result<T, CliFailure> {
        let (text, _) = self.read_text(uri).await?;
        Ok(serde_json::from_str(&text).map_err(|_| ClientError::Malformed)?)
    }

    /// Reads a resource: its text and its `_meta`.
    pub async fn read_text(&self, uri: &str) -> Result<(String, Value), CliFailure> {
        let mut result = self.client.request("resources/read", json!({"uri": uri})).await?;
        let text = result.pointer_mut("/contents/0/text").map(Value::take);
        let Some(Value::String(text)) = text else { return Err(ClientError::Malformed.into()) };
        let meta = result.pointer_mut("/contents/0/_meta").map(Value::take);
        Ok((text, meta.unwrap_or_default()))
    }

    /// Finds a session by id, unique prefix of an id, or name.
    pub async fn session(&self, given: &str) -> Result<SessionWire, CliFailure> {
        let listed = self.call("list_sessions", json!({"session": given})).await?;
        let mut sessions = listed.read::<SessionList>()?.sessions;
        Ok(sessions.pop().ok_or(ClientError::Malformed)?)
    }

    /// Whether a session's shim is silent, as the daemon reports after this delay.
    pub async fn is_silent(&self, session: &str, after: Duration) -> Result<bool, CliFailure> {
        sleep(after).await;
        match self.session(session).await {
            Ok(session) => Ok(session.activity.is_silent()),
            Err(gone @ CliFailure::Request(ClientError::Closed)) => Err(gone),
            // The next request about the session gets the same error.
            Err(_) => Ok(false),
        }
    }

    /// Waits until a session's shim answers, with a note for a person if it is silent at first.
    pub async fn outlast_silence(
        &self,
        session: &str,
        name: &str,
        output: &CommandOutput,
    ) -> Result<(), CliFailure> {
        if self.is_silent(session, Duration::ZERO).await? {
            output.note(&format!(
                "[{name}: its terminal does not answer; waiting for it, C-c to stop]"
            ));
            while self.is_silent(session, SILENCE_LOOK).await? {}
        }
        Ok(())
    }

    /// Subscribes to changes of a resource, which count as [`DaemonClient::news`].
    pub async fn subscribe(&self, uri: &str) -> Result<(), CliFailure> {
        self.client.request("resources/subscribe", json!({"uri": uri})).await?;
        Ok(())
    }

    /// Changes whenever a subscribed resource of this daemon has changed.
    pub fn news(&mut self) -> &mut watch::Receiver<u64> {
        &mut self.news
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
    again: Option<CallAgain>,
    /// The approval that it had to wait for.
    asked: watch::Sender<Option<String>>,
}

/// Says whether a call had to wait for an approval.
#[derive(Clone, Debug)]
pub struct AskedAbout(watch::Receiver<Option<String>>);

impl AskedAbout {
    /// The approval that it waits for, or waited for before it took effect.
    pub fn approval(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits until it waits for an approval; for ever if it never does.
    pub async fn asked(mut self) {
        if self.0.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }
}

/// A call that is made again while it waits for an approval.
#[derive(Debug)]
struct CallAgain {
    tool: String,
    arguments: Value,
    begun: Instant,
    /// How long it waits for its approval in all.
    most: Duration,
}

/// How long a call that is made again waits first, and then each time. Where its terminal has changed, it has another
/// approval than before, which is told then.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const NEXT_WAIT: Duration = Duration::from_secs(60);

impl Posted {
    pub fn asked_about(&self) -> AskedAbout {
        AskedAbout(self.asked.subscribe())
    }

    pub async fn wait(mut self) -> Result<ToolAnswer, CliFailure> {
        let mut wait = FIRST_WAIT;
        loop {
            let answer = self.answer().await;
            let id = answer.as_ref().err().and_then(approval_of);
            let (Some(again), Some(id)) = (&self.again, id) else { return answer };
            let left = again.most.saturating_sub(again.begun.elapsed());
            if left.is_zero() {
                return answer;
            }
            if self.asked.borrow().as_ref() != Some(&id) {
                note_to_all(&format!("waits for an approval: termgate approve {id}"));
                self.asked.send_replace(Some(id));
            }
            // An equal call at the same state of the terminal has the same approval.
            let again = params(waiting(wait.min(left)), &again.tool, again.arguments.clone());
            self.reply = self.reply.followed_by(CALL, &again)?;
            wait = NEXT_WAIT;
        }
    }

    async fn answer(&mut self) -> Result<ToolAnswer, CliFailure> {
        let result = self.reply.wait_for_call().await?;
        let text = result.content.iter().filter_map(|block| block.as_text());
        let text = text.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
        // Results of mounted servers have their own form.
        let data = match result.structured_content {
            Some(data) => data,
            None => json!({"content": result.content}),
        };
        if result.is_error == Some(true) {
            let Ok(error) = ErrorWire::deserialize(&data) else {
                let text = if text.is_empty() { FAILED_SILENTLY.to_owned() } else { text };
                return Err(CliFailure::ToolFailed { text, result: data });
            };
            return Err(CliFailure::Tool { error: Box::new(error), session: self.session.clone() });
        }
        let envelope = result.meta.and_then(|mut meta| meta.0.remove(ENVELOPE_KEY));
        let envelope = envelope.and_then(|it| serde_json::from_value::<Envelope>(it).ok());
        Ok(ToolAnswer { data, text, mcp_version: envelope.and_then(|it| it.mcp_version) })
    }
}

impl ToolAnswer {
    /// The report of a successful command, with `text` for people.
    pub fn report(self, text: impl Into<String>) -> CommandReport {
        CommandReport { mcp_version: self.mcp_version, ..CommandReport::new(self.data, text) }
    }

    /// The report of a successful command, with the tool's own text for people.
    pub fn report_as_told(mut self) -> CommandReport {
        let text = std::mem::take(&mut self.text);
        self.report(text.trim_end())
    }

    /// The report of a successful command, with the tool's own text as a note.
    pub fn report_as_note(mut self) -> CommandReport {
        let notes = vec![std::mem::take(&mut self.text)];
        CommandReport { notes, ..self.report("") }
    }

    /// Parses the result as the tool's result type.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] when it has another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, CliFailure> {
        Ok(T::deserialize(&self.data).map_err(|_| ClientError::Malformed)?)
    }
}

/// The `_meta` of a call that waits this long for an approval.
fn waiting(most: Duration) -> Value {
    json!({APPROVAL_WAIT_KEY: millis(most)})
}

/// The approval that a call needs and for which it did not wait.
fn approval_of(failure: &CliFailure) -> Option<String> {
    let CliFailure::Tool { error, .. } = failure else { return None };
    let details = error.details.as_ref().filter(|_| error.code() == Code::ApprovalRequired)?;
    details.approval_id.clone()
}

fn params(meta: Value, tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": members(arguments), "_meta": meta})
}

fn members(arguments: Value) -> Map<String, Value> {
    let Value::Object(members) = arguments else { return Map::new() };
    members.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
