//! One record as a line of JSON, which ends with its hash.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::core::caller::Caller;
use crate::core::journal::{ActOutcome, Intent, JournalEntry};
use crate::store::journal::event::{caller_of, details_of, epoch_of, kind_of};

/// What the hash of the first record of a journal covers.
pub const NO_HASH: RecordHash = RecordHash([0; 32]);

/// The longest line that a reader accepts: a message of 4 MiB, escaped.
pub const LINE_MAX: usize = 32 << 20;

/// The room for a line that most need, in bytes.
const LINE_BYTES: usize = 512;

/// How each line begins, and what it begins with before it has a number.
const NUMBER_MEMBER: &str = "{\"seq\":";
const UNNUMBERED: &str = "{\"seq\":0";

/// Follows the number of a record.
const TIME_MEMBER: &str = ",\"number\":";

/// Follows the content of each line, before its hash.
const HASH_MEMBER: &str = ",\"hash\":\"";

/// SHA-256 of the hash before it and the line without its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHash(pub [u8; 32]);

impl RecordHash {
    /// The hash of a record: `body` is its line up to, and without, the member `hash`.
    pub fn after(self, body: &[u8]) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(body).finalize().into())
    }

    /// Its spelling.
    fn digits(self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        std::array::from_fn(|at| {
            let byte = self.0[at / 2];
            DIGITS[usize::from(if at % 2 == 0 { byte >> 4 } else { byte & 0xf })]
        })
    }

    /// 64 hexadecimal digits in lower case. With a second spelling, a byte of a line could change unnoticed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Display for RecordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.digits().iter().try_for_each(|digit| f.write_char((*digit).into()))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A daemon begins to write the journal.
    Opened,
    /// A file begins.
    Segment,
    #[default]
    Intent,
    More,
    Outcome,
    Late,
    Refused,
    Discarded,
    // As the first journals called changes of leases.
    #[serde(alias = "lease")]
    Event,
}

/// One record. Members that do not apply are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordLine<'a> {
    pub seq: u64,
    /// What clients know an event by: it grows with time alone, so that nobody can count records of others.
    #[serde(skip_serializing)]
    pub number: Option<u64>,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub kind: RecordKind,
    /// The intent that this belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub act: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub session: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub by: Option<Cow<'a, str>>,
    /// `agent`, `human` or `operator`.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub by_kind: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub tenant: Option<Cow<'a, str>>,
    /// Of the session that a refused act was about, where it is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub session_tenant: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub door: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Of the rules of policy, or the one that an approval was asked for by.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub decision: Option<Cow<'a, str>>,
    /// The bytes, where they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub text: Option<Cow<'a, str>>,
    /// The bytes otherwise.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub base64: Option<Cow<'a, str>>,
    /// The command that the bytes have the terminal run.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub command: Option<Cow<'a, str>>,
    /// How many bytes, where they are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// SHA-256 of the bytes, where they are not kept.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub sha256: Option<Cow<'a, str>>,
    /// The bytes are withheld, because a program read a secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub arguments: Option<Cow<'a, RawValue>>,
    /// The kind of an event.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub event: Option<Cow<'a, str>>,
    /// What else is known of an event, as an object.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub details: Option<Cow<'a, RawValue>>,
    /// `done`, `failed`, `refused`, `given_up` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub result: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub code: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub reason: Option<Cow<'a, str>>,
    /// How many were refused before that have no record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// Of a segment: the daemon took the journal over from one that stood still.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub took_over: bool,
    /// Of a segment: the hash that its own hash covers.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub after: Option<Cow<'a, str>>,
    /// Of a segment: the intents without an outcome so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u64>,
    /// Of a daemon: its version and process.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub version: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// SHA-256 of the hash before and this line without this member.
    #[serde(skip_serializing, borrow)]
    pub hash: Option<Cow<'a, str>>,
}

impl<'a> RecordLine<'a> {
    /// A record without a number.
    pub fn new(at: SystemTime, kind: RecordKind) -> Self {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Self { at_ms, kind, ..Self::default() }
    }

    /// The record of an entry. Without `keep_input`, bytes are counted and hashed instead.
    pub fn of_entry(at: SystemTime, entry: &'a JournalEntry<'a>, keep_input: bool) -> Self {
        let line = |kind| Self::new(at, kind);
        match entry {
            JournalEntry::Intent(intent) => {
                line(RecordKind::Intent).with_intent(intent, keep_input)
            }
            JournalEntry::More { of, content } => {
                Self { of: Some(of.0), ..line(RecordKind::More) }.with_content(content, keep_input)
            }
            JournalEntry::Outcome { of, outcome } => {
                Self { of: Some(of.0), ..line(RecordKind::Outcome) }.with_outcome(outcome)
            }
            JournalEntry::Late { intent, outcome } => {
                line(RecordKind::Late).with_intent(intent, keep_input).with_outcome(outcome)
            }
            JournalEntry::Refused { intent, tenant, code, reason, left_out } => Self {
                session_tenant: (**tenant != intent.by.tenant).then(|| tenant.as_str().into()),
                result: Some("refused".into()),
                code: Some((*code).into()),
                reason: reason.map(Cow::Borrowed),
                left_out: (*left_out > 0).then_some(*left_out),
                ..line(RecordKind::Refused).with_intent(intent, keep_input)
            },
            JournalEntry::Discarded { session, writer, bytes, cause } => Self {
                session: Some(session.to_string().into()),
                discarded: Some(*bytes),
                reason: Some((*cause).into()),
                ..line(RecordKind::Discarded).with_caller(writer)
            },
            JournalEntry::Event { scope, event } => {
                let caller = caller_of(event);
                let about = line(RecordKind::Event);
                let about = caller.map_or(about.clone(), |caller| about.with_caller(caller));
                Self {
                    event: Some(kind_of(event).into()),
                    session: scope.session.map(|session| session.to_string().into()),
                    tenant: Some(scope.tenant.as_str().into()),
                    epoch: epoch_of(event).map(|epoch| epoch.0),
                    details: details_of(event, keep_input)
                        .and_then(|details| serde_json::value::to_raw_value(&details).ok())
                        .map(Cow::Owned),
                    ..about
                }
            }
        }
    }

    fn with_caller(self, by: &'a Caller) -> Self {
        Self {
            by: Some(by.name().to_string().into()),
            by_kind: Some(by.kind.as_str().into()),
            tenant: Some(by.tenant.as_str().into()),
            ..self
        }
    }

    fn with_intent(self, intent: &Intent<'a>, keep_input: bool) -> Self {
        let Intent { by, door, session, act, epoch, decision, content } = intent;
        Self {
            act: Some((*act).into()),
            session: session.map(|session| session.to_string().into()),
            connection: Some(by.connection.0),
            door: door.map(|door| door.as_str().into()),
            epoch: epoch.map(|epoch| epoch.0),
            decision: decision.map(|decision| decision.to_string().into()),
            ..self.with_caller(by).with_content(content, keep_input)
        }
    }

    pub(super) fn with_outcome(self, outcome: &ActOutcome<'a>) -> Self {
        let result = |word: &'static str| Some(Cow::Borrowed(word));
        match *outcome {
            ActOutcome::Done { epoch } => {
                Self { result: result("done"), epoch: epoch.map(|epoch| epoch.0), ..self }
            }
            ActOutcome::Written { epoch, written, discarded, queued } => Self {
                result: result("done"),
                epoch: epoch.map(|epoch| epoch.0),
                written: Some(written),
                discarded: (discarded > 0).then_some(discarded),
                queued: (queued > 0).then_some(queued),
                ..self
            },
            ActOutcome::Failed { code, reason } => Self {
                result: result("failed"),
                code: code.map(Cow::Borrowed),
                reason: Some(reason.into()),
                ..self
            },
            ActOutcome::GivenUp => Self { result: result("given_up"), ..self },
            ActOutcome::Unknown => Self { result: result("unknown"), ..self },
        }
    }

    /// The line without its number and its hash, for [`write_line`].
    ///
    /// # Errors
    /// Returns an error if a member has no JSON form.
    pub fn unnumbered(&self) -> serde_json::Result<UnnumberedLine> {
        debug_assert_eq!(self.seq, 0);
        let mut json = Vec::with_capacity(LINE_BYTES);
        serde_json::to_writer(&mut json, self)?;
        Ok(UnnumberedLine { json })
    }

    /// The number that clients know an event by. Older records have none of their own.
    pub fn event_number(&self) -> u64 {
        self.number.unwrap_or(self.seq)
    }

    /// The bytes for the terminal, where they are kept.
    pub fn input(&self) -> Option<Cow<'_, [u8]>> {
        match (&self.text, &self.base64) {
            (Some(text), _) => Some(Cow::Borrowed(text.as_bytes())),
            (None, Some(coded)) => STANDARD.decode(coded.as_bytes()).ok().map(Cow::Owned),
            (None, None) => None,
        }
    }
}

/// The line of a record without its number and its hash.
#[derive(Debug)]
pub struct UnnumberedLine {
    /// All of the record, with the number 0.
    json: Vec<u8>,
}

impl UnnumberedLine {
    fn members(&self) -> &[u8] {
        &self.json[UNNUMBERED.len()..self.json.len() - 1]
    }
}

/// Appends a line, with its end, to `text`, and returns its hash.
pub fn write_line(
    text: &mut Vec<u8>,
    (seq, number): (u64, u64),
    unnumbered: &UnnumberedLine,
    before: RecordHash,
) -> RecordHash {
    let start = text.len();
    text.extend_from_slice(NUMBER_MEMBER.as_bytes());
    // A vector takes all that is written to it.
    let _ = write!(text, "{seq}{TIME_MEMBER}{number}");
    text.extend_from_slice(unnumbered.members());
    let hash = before.after(&text[start..]);
    text.extend_from_slice(HASH_MEMBER.as_bytes());
    text.extend_from_slice(&hash.digits());
    text.extend_from_slice(b"\"}\n");
    hash
}

/// The number that clients know the event of a line by, from the beginning of the line.
pub fn event_number_of(head: &str) -> Option<u64> {
    let (seq, rest) = head.strip_prefix(NUMBER_MEMBER)?.split_once(',')?;
    let own = rest.strip_prefix(&TIME_MEMBER[1..]);
    let digits = own.map_or(Some(seq), |own| own.split_once(',').map(|(number, _)| number));
    digits?.parse().ok()
}

/// The part of a line that its hash covers, and that hash. `None` if the line has none.
pub fn split_hash(line: &str) -> Option<(&str, RecordHash)> {
    let (body, hash) = line.rsplit_once(HASH_MEMBER)?;
    Some((body, RecordHash::parse(hash.strip_suffix("\"}")?)?))
}
