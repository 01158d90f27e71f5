//! Reads the messages of a client and sorts them: tool calls, which the connection runs, and those for the library.
//!
//! Long lines are parsed on other threads, and cancelling a read loses nothing.

use std::collections::BTreeMap;

use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio_util::task::AbortOnDropHandle;

use crate::mcp::call::{CALL_METHOD, CallParams, WRITTEN_METHODS, WrittenParams};
use crate::mount::json::reading::without_halves;
use crate::transport::framing::lines::{InputLine, LineInput, LineReader};
use crate::transport::framing::{self, ClientAnswer, MessageRefusal, RawRequest};
use crate::transport::limits::Limits;
use crate::transport::line_memory::ReadingRoom;

#[derive(Debug)]
pub(super) enum Incoming {
    Call {
        id: RequestId,
        params: CallParams,
    },
    /// To a request of the daemon.
    Answer(ClientAnswer),
    Other(Box<ClientJsonRpcMessage>),
}

/// A long line that a task parses. A separate task always continues, so it cannot hold the memory forever.
type Aside = AbortOnDropHandle<Result<Incoming, MessageRefusal>>;

pub(super) struct Intake<R> {
    lines: LineReader<R>,
    aside: Option<Aside>,
    parsing: ReadingRoom,
    tokens_max: usize,
}

impl<R: AsyncRead + Unpin> Intake<R> {
    pub(super) fn new(lines: LineReader<R>, limits: &Limits) -> Self {
        let parsing = limits.parsing.clone();
        Self { lines, aside: None, parsing, tokens_max: limits.tokens_max }
    }

    /// Notes that the client speaks the protocol, which ends the first time limit.
    pub(super) fn greeted(&mut self) {
        self.lines.greeted();
    }

    /// Waits for the next message or refusal. `None` at the end of input. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Incoming, MessageRefusal>> {
        let aside = match &mut self.aside {
            Some(aside) => aside,
            None => match self.lines.next().await {
                LineInput::Line(line) if line.is_short() => {
                    return Some(read(line.bytes(), self.tokens_max));
                }
                LineInput::Line(line) => {
                    let reading = read_aside(line, self.parsing.clone(), self.tokens_max);
                    self.aside.insert(AbortOnDropHandle::new(tokio::spawn(reading)))
                }
                LineInput::Refused(refusal) => return Some(Err(refusal)),
                LineInput::End => return None,
            },
        };
        let read = aside.await;
        self.aside = None;
        Some(read.unwrap_or(Err(MessageRefusal::NotJson)))
    }
}

/// Reads a line of at most `tokens_max` structural tokens. Does not parse a tool call into the library's types.
fn read(line: &[u8], tokens_max: usize) -> Result<Incoming, MessageRefusal> {
    framing::check(line, tokens_max)?;
    let Some(request) = RawRequest::read(line) else {
        return match ClientAnswer::read(line) {
            Some(answer) => Ok(Incoming::Answer(answer)),
            None => framing::parse(line).map(Box::new).map(Incoming::Other),
        };
    };
    if request.method == CALL_METHOD {
        return match request.params() {
            Ok(params) => Ok(Incoming::Call { id: request.id, params }),
            Err(error) => {
                let half = request.params.and_then(argument_with_half).map(|name| {
                    format!("`{name}` has half a character; write both halves, or neither")
                });
                let problem = half.unwrap_or_else(|| error.to_string());
                Err(MessageRefusal::BadParams { id: request.id, problem })
            }
        };
    }
    let written = WRITTEN_METHODS.contains(&&*request.method).then_some(request.params).flatten();
    read_other(line, written).map(Box::new).map(Incoming::Other)
}

/// The argument that cannot be read, though it is JSON: half a character is no text.
fn argument_with_half(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct OnlyArguments<'a> {
        #[serde(borrow)]
        arguments: BTreeMap<String, &'a RawValue>,
    }
    let OnlyArguments { arguments } = serde_json::from_str(params.get()).ok()?;
    let is_unreadable = |value: &RawValue| serde_json::from_str::<Value>(value.get()).is_err();
    let mut unreadable = arguments.into_iter().filter(|(_, value)| is_unreadable(value));
    let (name, value) = unreadable.next()?;
    serde_json::from_str::<Value>(&without_halves(value.get())).is_ok().then_some(name)
}

/// Reads a line for the library, and keeps parameters that a server may get as the client wrote them.
fn read_other(
    line: &[u8],
    written: Option<&RawValue>,
) -> Result<ClientJsonRpcMessage, MessageRefusal> {
    let Some(params) = written else { return framing::parse(line) };
    let mut message: ClientJsonRpcMessage =
        framing::parse(line).or_else(|refusal| match str::from_utf8(line) {
            // The library reads no halves of characters.
            Ok(line) if line.contains("\\u") => framing::parse(without_halves(line).as_bytes()),
            Ok(_) | Err(_) => Err(refusal),
        })?;
    if let JsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(WrittenParams(params.to_owned()));
    }
    Ok(message)
}

async fn read_aside(
    line: InputLine,
    parsing: ReadingRoom,
    tokens_max: usize,
) -> Result<Incoming, MessageRefusal> {
    let length = line.bytes().len();
    let read = parsing.read(length, move || read(line.bytes(), tokens_max)).await;
    // Parsing does not fail. A panic counts as an invalid message.
    read.unwrap_or(Err(MessageRefusal::NotJson))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::io::AsyncWriteExt;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn who_waits_for_room_and_does_not_go_on_keeps_it_from_nobody() {
        let limits = Limits { parsing: ReadingRoom::of_bytes(64 * 1024), ..Limits::default() };
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let mut intake = Intake::new(LineReader::new(far, &limits), &limits);
        intake.greeted();
        let (go_on, told) = mpsc::channel::<()>();
        let all = limits.parsing.clone().read(64 * 1024, move || told.recv().is_ok());
        let mut all = std::pin::pin!(all);
        assert!(all.as_mut().now_or_never().is_none());
        let line = format!("{{\"jsonrpc\":\"2.0\",\"x\":\"{}\"}}\n", "x".repeat(60_000));
        near.write_all(line.as_bytes()).await.unwrap();
        // It asks for room, and then nobody asks for what it says.
        assert!(timeout(Duration::from_millis(50), intake.next()).await.is_err());
        go_on.send(()).unwrap();
        assert_eq!(all.await, Some(true));
        let other = limits.parsing.clone().read(64 * 1024, || ());
        assert_eq!(timeout(Duration::from_secs(60), other).await, Ok(Some(())));
        assert!(matches!(intake.next().await, Some(Err(_))));
    }
}
