//! One act of the journal for people: its records in one line.

use std::borrow::Cow;

use crate::core::one_line::one_line;
use crate::store::journal::line::{RecordKind, RecordLine};
use crate::wire::date::rfc3339;

pub(super) const HEAD: [&str; 7] = ["RECORD", "TIME", "WHO", "SESSION", "ACT", "WHAT", "RESULT"];

/// How much of what was typed a line shows, in characters.
const WHAT_MAX: usize = 60;

/// An act and its records so far.
#[derive(Debug)]
pub(super) struct RecordedAct {
    /// Of its first record.
    pub(super) number: u64,
    pub(super) lines: Vec<String>,
    columns: [String; 5],
    what: String,
    result: String,
}

impl RecordedAct {
    /// The act that a record begins, if it begins one.
    pub(super) fn of(record: &RecordLine<'_>, line: &str) -> Option<Self> {
        let result = match record.kind {
            RecordKind::Intent => "not known yet".to_owned(),
            RecordKind::Refused | RecordKind::Late => outcome(record),
            RecordKind::Discarded | RecordKind::Opened => String::new(),
            RecordKind::Event if is_act(record) => String::new(),
            RecordKind::Event | RecordKind::Segment | RecordKind::More | RecordKind::Outcome => {
                return None;
            }
        };
        Some(Self {
            number: record.seq,
            lines: vec![line.to_owned()],
            columns: columns(record),
            what: what(record),
            result,
        })
    }

    /// Adds a record that names this act.
    pub(super) fn add(&mut self, record: &RecordLine<'_>, line: &str) {
        self.lines.push(line.to_owned());
        match record.kind {
            RecordKind::More => self.what += &what(record),
            RecordKind::Outcome => {
                self.result = outcome(record);
            }
            RecordKind::Opened
            | RecordKind::Segment
            | RecordKind::Intent
            | RecordKind::Refused
            | RecordKind::Late
            | RecordKind::Discarded
            | RecordKind::Event => {}
        }
    }

    pub(super) fn row(&self) -> [String; 7] {
        let [number, time, who, session, act] = self.columns.clone();
        [number, time, who, session, act, shortened(&self.what), self.result.clone()]
    }
}

/// One record as a line of a stream.
pub fn in_stream(record: &RecordLine<'_>) -> String {
    match record.kind {
        RecordKind::Segment => String::new(),
        RecordKind::Event if !is_act(record) => String::new(),
        RecordKind::More => format!("{}: then {}", of(record), shortened(&what(record))),
        RecordKind::Outcome => one_line(&format!("{}: {}", of(record), outcome(record))).into(),
        RecordKind::Intent
        | RecordKind::Refused
        | RecordKind::Late
        | RecordKind::Event
        | RecordKind::Discarded
        | RecordKind::Opened => {
            let [number, time, who, session, act] = columns(record);
            let what = shortened(&what(record));
            let has_result = matches!(record.kind, RecordKind::Refused | RecordKind::Late);
            let result = if has_result { outcome(record) } else { String::new() };
            let cells = [number, time, who, session, act, what, result];
            let cells = cells.iter().filter(|cell| !cell.is_empty());
            cells.map(|cell| one_line(cell)).collect::<Vec<_>>().join("  ")
        }
    }
}

/// Whether it is of an act, or of a lease that changed without an act of its holder. Other events are in
/// `termgate events`.
pub(super) fn is_act(record: &RecordLine<'_>) -> bool {
    /// What a holder does itself has a record as an act.
    const OWN: [&str; 3] = ["lease_granted", "lease_renewed", "lease_released"];
    // The first journals had no events but of leases.
    let kind = record.event.as_deref().unwrap_or("lease_");
    record.kind != RecordKind::Event || (kind.starts_with("lease_") && !OWN.contains(&kind))
}

fn of(record: &RecordLine<'_>) -> u64 {
    record.of.unwrap_or_default()
}

fn columns(record: &RecordLine<'_>) -> [String; 5] {
    let text = |member: &Option<Cow<'_, str>>| member.as_deref().unwrap_or_default().to_owned();
    let act = act_of(record).to_owned();
    let time = rfc3339(record.at_ms / 1_000);
    [record.seq.to_string(), time, text(&record.by), text(&record.session), act]
}

/// The word for an act.
pub(super) fn act_of<'a>(record: &'a RecordLine<'_>) -> &'a str {
    match record.kind {
        RecordKind::Event => "lease",
        RecordKind::Discarded => "discarded",
        RecordKind::Opened => "daemon",
        RecordKind::Segment
        | RecordKind::Intent
        | RecordKind::More
        | RecordKind::Outcome
        | RecordKind::Refused
        | RecordKind::Late => record.act.as_deref().unwrap_or_default(),
    }
}

/// What was done, as far as it is recorded.
fn what(record: &RecordLine<'_>) -> String {
    if record.secret {
        return "(a secret)".to_owned();
    }
    if let Some(command) = &record.command {
        return command.to_string();
    }
    if let Some(bytes) = record.input() {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    if let Some(bytes) = record.bytes {
        return format!("({bytes} bytes)");
    }
    if let Some(arguments) = &record.arguments {
        return arguments.get().to_owned();
    }
    let reason = record.reason.as_deref().unwrap_or_default();
    match record.kind {
        RecordKind::Event => {
            let details = record.details.as_ref().map_or("", |details| details.get());
            let change = record.event.as_deref().or(record.result.as_deref()).unwrap_or_default();
            format!("{change} {details}")
        }
        RecordKind::Discarded => {
            format!("{} bytes: {reason}", record.discarded.unwrap_or_default())
        }
        RecordKind::Opened => {
            let version = record.version.as_deref().unwrap_or_default();
            format!("started: version {version}, process {}", record.pid.unwrap_or_default())
        }
        RecordKind::Segment
        | RecordKind::Intent
        | RecordKind::More
        | RecordKind::Outcome
        | RecordKind::Refused
        | RecordKind::Late => String::new(),
    }
}

fn outcome(record: &RecordLine<'_>) -> String {
    let result = record.result.as_deref().unwrap_or_default();
    let code = record.code.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
    let reason = record.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let count = |count: Option<usize>, word: &str| {
        count.map(|count| format!(", {count} bytes {word}")).unwrap_or_default()
    };
    let (discarded, queued) =
        (count(record.discarded, "discarded"), count(record.queued, "queued"));
    let left_out =
        record.left_out.map(|count| format!(", {count} more like it")).unwrap_or_default();
    format!("{result}{code}{reason}{discarded}{queued}{left_out}")
}

/// On one line, with an ellipsis if it is long.
fn shortened(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(WHAT_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}
