//! Lines of JSON from a client: any split of the bytes gives the same messages, and what is too large is refused.
//!
//! Messages are inputs as they are. A byte 0 and another one stand for so many KiB of `x`, so that long lines are short
//! inputs.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use termgate::transport::framing::lines::{LineInput, LineReader};
use termgate::transport::framing::{MessageRefusal, RawRequest, check as check_tokens, parse};
use termgate::transport::limits::{DEPTH_MAX, LINE_FREE, Limits};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::{Builder, Runtime};

use super::choices::Choices;

/// Longer than the part of a line that needs no shared memory.
const LINE_MAX: usize = LINE_FREE + 20 * 1024;
const TOKENS_MAX: usize = 60;
const BYTES_MAX: usize = 400 * 1024;
/// The longest id that is found in a line that is not kept.
const ID_BYTES_MAX: usize = 256;

/// The bytes that an input stands for.
fn grown(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = data.iter();
    while let Some(byte) = rest.next() {
        match (byte, rest.as_slice().first()) {
            (0, Some(count)) => {
                rest.next();
                bytes.resize(bytes.len() + 1024 * usize::from(*count), b'x');
            }
            (byte, _) => bytes.push(*byte),
        }
        if bytes.len() > BYTES_MAX {
            break;
        }
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

/// What a reader returned.
#[derive(Debug, PartialEq)]
enum Message {
    Line(Vec<u8>),
    Refused(MessageRefusal),
}

/// A stream that gives its bytes in pieces.
struct Pieces<'a>(VecDeque<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            if !later.is_empty() {
                self.0.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What a reader returns for these pieces.
fn read(pieces: Vec<&[u8]>) -> Vec<Message> {
    thread_local! {
        static RUNTIME: Runtime =
            Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    }
    let limits = Limits::patient(LINE_MAX);
    let mut messages = Vec::new();
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let mut reader = LineReader::new(Pieces(pieces.into()), &limits);
            loop {
                match reader.next().await {
                    LineInput::Line(line) => messages.push(Message::Line(line.bytes().to_vec())),
                    LineInput::Refused(refusal) => messages.push(Message::Refused(refusal)),
                    LineInput::End => break,
                }
            }
        });
    });
    messages
}

pub fn check(data: &[u8]) {
    let bytes = grown(data);
    let messages = read(Choices::of(data).pieces(&bytes));
    let mut found = messages.iter();
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line == b"\r" {
            continue;
        }
        match found.next() {
            Some(Message::Line(read)) => {
                assert_eq!(read, text);
                assert!(line.len() <= LINE_MAX);
                check_line(text);
            }
            Some(Message::Refused(refusal)) => {
                assert!(line.len() > LINE_MAX, "{} bytes were refused", line.len());
                let MessageRefusal::TooLarge { id, .. } = refusal else { panic!("{refusal:?}") };
                check_id(line, id.as_ref());
                check_refusal(refusal);
            }
            None => panic!("a line of {} bytes is missing", line.len()),
        }
    }
    assert_eq!(found.next(), None);
}

/// Checks that an answer is one short line of JSON.
fn check_refusal(refusal: &MessageRefusal) {
    let line = refusal.to_line();
    let text = line.strip_suffix(b"\n").expect("an answer is a line");
    assert!(!text.contains(&b'\n'));
    let answer: Value = serde_json::from_slice(text).expect("an answer is JSON");
    assert!(answer["error"]["code"].is_i64() && answer.get("id").is_some(), "{answer}");
}

/// Checks the id in the answer to a line that was not kept, where the line has one that is plain to see.
fn check_id(line: &[u8], id: Option<&RequestId>) {
    let member = b"\"id\":";
    let is_plain = line.windows(member.len()).filter(|it| it == member).count() == 1
        && line.windows(4).filter(|it| it == b"\"id\"").count() == 1
        && !line.contains(&b'\\');
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
    let given = message.get("id").filter(|given| given.to_string().len() < ID_BYTES_MAX);
    if let (Some(given), true) = (given, is_plain) {
        assert_eq!(id, serde_json::from_value(given.clone()).ok().as_ref());
    }
}

fn check_line(line: &[u8]) {
    let verdict = check_tokens(line, TOKENS_MAX);
    if let Ok(counted) = serde_json::from_slice::<Counted>(line) {
        let excessive = counted.tokens > TOKENS_MAX || counted.depth > DEPTH_MAX;
        assert_eq!(verdict.is_err(), excessive, "{counted:?}");
    }
    if let Err(refusal) = verdict {
        assert!(matches!(refusal, MessageRefusal::TooComplex { .. }));
        return check_refusal(&refusal);
    }
    match parse::<ClientJsonRpcMessage>(line) {
        Ok(_) => {
            let message: Value = serde_json::from_slice(line).expect("what is parsed is JSON");
            assert!(message.is_object());
            assert!(
                message.get("params").is_none_or(|params| params.is_object() || params.is_null())
            );
        }
        Err(refusal) => check_refusal(&refusal),
    }
    if let Some(request) = RawRequest::read(line) {
        // A text with half a character is none for this parser.
        if let Ok(message) = serde_json::from_slice::<Value>(line) {
            assert_eq!(message["method"], *request.method);
        }
        let params = request.params::<Value>();
        assert!(params.map_or(true, |params| params.is_object()));
    }
}

/// The braces, brackets, commas and colons of a value, and its levels, as a parser sees them.
#[derive(Debug, Default)]
struct Counted {
    tokens: usize,
    depth: usize,
}

impl Counted {
    fn add(&mut self, inner: &Self) {
        self.tokens += inner.tokens;
        self.depth = self.depth.max(inner.depth);
    }

    /// The same with its brackets, and the commas between members.
    fn closed(self, members: usize) -> Self {
        Self { tokens: self.tokens + 1 + members.saturating_sub(1), depth: self.depth + 1 }
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counter)
    }
}

struct Counter;

impl<'de> Visitor<'de> for Counter {
    type Value = Counted;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_unit<E>(self) -> Result<Counted, E> {
        Ok(Counted::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Counted, A::Error> {
        let (mut all, mut count) = (Counted::default(), 0);
        while let Some(item) = items.next_element::<Counted>()? {
            all.add(&item);
            count += 1;
        }
        Ok(all.closed(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Counted, A::Error> {
        let (mut all, mut count) = (Counted::default(), 0);
        while let Some((Key, value)) = members.next_entry::<Key, Counted>()? {
            all.add(&value);
            all.tokens += 1;
            count += 1;
        }
        Ok(all.closed(count))
    }
}

/// The name of a member, which does not matter.
struct Key;

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|_| Self)
    }
}
