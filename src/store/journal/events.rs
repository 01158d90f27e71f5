//! Reads events back from a journal.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::core::event::source::{ToldEvent, ToldEvents};
use crate::core::ids::SessionId;
use crate::core::shell::commands::record::CommandId;
use crate::store::journal::line::{RecordKind, RecordLine, event_number_of};
use crate::store::journal::reader::read_file_from;
use crate::store::journal::segment::files;

/// How much of the newest records is searched for what was told of sessions, in bytes.
const TOLD_BYTES: u64 = 16 << 20;

/// Where in a line its kind must be: behind three numbers.
const KIND_WITHIN: usize = 96;
/// Where in a line its number must be.
const NUMBER_WITHIN: usize = 64;

/// So many bytes are read rather than searched for a place to begin.
const NEAR: u64 = 8 * 1024;

/// One event as it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Grows with each event, by the microseconds that passed at least.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub kind: String,
    pub session: Option<String>,
    /// Of the session, else of who caused it. `None` for the daemon itself.
    pub tenant: Option<String>,
    pub by: Option<String>,
    pub epoch: Option<u64>,
    pub details: Map<String, Value>,
}

impl EventRecord {
    fn of_line(line: &str) -> Option<Self> {
        let head = &line.as_bytes()[..line.len().min(KIND_WITHIN)];
        let may_be = |kind: &str| head.windows(kind.len()).any(|it| it == kind.as_bytes());
        if !may_be(r#""kind":"event""#) && !may_be(r#""kind":"ref"#) && !may_be(r#""kind":"op"#) {
            return None;
        }
        let record: RecordLine<'_> = serde_json::from_str(line).ok()?;
        let (kind, details) = match record.kind {
            RecordKind::Event => {
                let details = record.details.as_ref().map(|raw| raw.get());
                let details = details.map(serde_json::from_str).transpose().ok()?;
                (record.event.as_deref()?.to_owned(), details)
            }
            RecordKind::Refused => {
                let RecordLine { act, code, left_out, decision, command, .. } = &record;
                let details = json!({"act": act, "code": code, "left_out": left_out, "decision_id": decision, "command": command});
                ("refused".to_owned(), Some(details))
            }
            RecordKind::Opened => {
                let details = json!({"version": record.version, "pid": record.pid});
                ("daemon_started".to_owned(), Some(details))
            }
            RecordKind::Segment
            | RecordKind::Intent
            | RecordKind::More
            | RecordKind::Outcome
            | RecordKind::Late
            | RecordKind::Discarded => return None,
        };
        let mut details = match details {
            Some(Value::Object(members)) => members,
            Some(_) | None => Map::new(),
        };
        details.retain(|_, value| !value.is_null());
        Some(Self {
            seq: record.event_number(),
            at_ms: record.at_ms,
            kind,
            session: record.session.map(Into::into),
            tenant: record.session_tenant.or(record.tenant).map(Into::into),
            by: record.by.map(Into::into),
            epoch: record.epoch,
            details,
        })
    }

    /// Adds what a later daemon must know of it so as not to tell it again.
    fn add_to(&self, told: &mut HashMap<SessionId, ToldEvents>) {
        let Some(session) = self.session.as_deref().and_then(|id| id.parse().ok()) else { return };
        if self.kind == "session_removed" {
            told.remove(&session);
        } else if let Some(event) = self.told() {
            let of = told.entry(session).or_default();
            of.tenant = self.tenant.as_deref().and_then(|tenant| tenant.parse().ok());
            of.add(&event);
        }
    }

    fn told(&self) -> Option<ToldEvent> {
        let number = |member| self.details.get(member).and_then(Value::as_u64);
        Some(match self.kind.as_str() {
            "command_started" => ToldEvent::CommandStarted(CommandId(number("command_id")?)),
            "command_ended" => ToldEvent::CommandEnded(CommandId(number("command_id")?)),
            "bell" => ToldEvent::Bell(number("count")?),
            "notification" | "progress" | "left_out" => {
                ToldEvent::Sent { offset: number("offset")? }
            }
            "needs_input" => ToldEvent::NeedsInput,
            "session_created" => ToldEvent::SessionCreated,
            "session_ended" => ToldEvent::SessionEnded,
            _ => return None,
        })
    }
}

/// Which events are wanted.
#[derive(Clone, Copy)]
pub struct EventQuery<'a> {
    /// Only events after this number, oldest first; without it the newest.
    pub since: Option<u64>,
    /// The most events.
    pub limit: usize,
    pub wants: &'a dyn Fn(&EventRecord) -> bool,
}

impl fmt::Debug for EventQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { since, limit, .. } = self;
        f.debug_struct("EventQuery").field("since", since).field("limit", limit).finish()
    }
}

/// Events in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventPage {
    pub events: Vec<EventRecord>,
    /// Everything up to this number was looked through.
    pub looked_to: u64,
    /// Events between the first and the last one that were asked for are gone.
    pub is_broken: bool,
}

/// Reads events; takes as long as reading the files that it needs.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub fn events(directory: &Path, query: &EventQuery<'_>) -> io::Result<EventPage> {
    let files = numbered(files(directory)?)?;
    let is_cut = files.first().is_some_and(|it| it.first_record > 1);
    let first = files.first().map_or(0, |it| it.first);
    let is_broken = is_cut && query.since.is_some_and(|since| since < first);
    let looked_to = query.since.unwrap_or_default();
    let page = EventPage { looked_to, is_broken, ..EventPage::default() };
    match query.since {
        Some(since) => events_since(&files, since, query, page),
        None => newest_events(&files, query, page),
    }
}

/// A file of a journal.
#[derive(Debug)]
struct NumberedFile {
    first_record: u64,
    /// The number for clients of its first record, which is no event.
    first: u64,
    path: PathBuf,
}

/// The files, each with the number of its first record. One that retention has removed since is left out.
fn numbered(files: Vec<(u64, PathBuf)>) -> io::Result<Vec<NumberedFile>> {
    let mut numbered = Vec::with_capacity(files.len());
    for (first_record, path) in files {
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        // One without a record is about to begin.
        let first = number_at(&file, 0)?.unwrap_or(u64::MAX);
        numbered.push(NumberedFile { first_record, first, path });
    }
    Ok(numbered)
}

fn events_since(
    files: &[NumberedFile],
    since: u64,
    query: &EventQuery<'_>,
    mut page: EventPage,
) -> io::Result<EventPage> {
    let mut newest = 0;
    let after = files.partition_point(|it| it.first <= since);
    for NumberedFile { path, .. } in &files[after.saturating_sub(1)..] {
        let is_there = each_line(path, start_of(path, since)?, |seq, line| {
            newest = newest.max(seq);
            if seq > since {
                page.looked_to = seq;
                let event = EventRecord::of_line(line).filter(|event| (query.wants)(event));
                page.events.extend(event);
            }
            if page.events.len() < query.limit { Continue(()) } else { Break(()) }
        })?;
        page.is_broken |= !is_there;
        if page.events.len() >= query.limit {
            return Ok(page);
        }
    }
    if newest > 0 && newest < since {
        // Another journal has begun.
        page.is_broken = true;
        page.looked_to = 0;
        return events_since(files, 0, query, page);
    }
    Ok(page)
}

fn newest_events(
    files: &[NumberedFile],
    query: &EventQuery<'_>,
    mut page: EventPage,
) -> io::Result<EventPage> {
    for NumberedFile { path, .. } in files.iter().rev() {
        let mut found = Vec::new();
        each_line(path, 0, |seq, line| {
            page.looked_to = page.looked_to.max(seq);
            found.extend(EventRecord::of_line(line).filter(|event| (query.wants)(event)));
            Continue(())
        })?;
        found.append(&mut page.events);
        page.events = found;
        if page.events.len() >= query.limit {
            page.events.drain(..page.events.len() - query.limit);
            break;
        }
    }
    Ok(page)
}

/// What the newest records tell of each session that is not removed.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub(super) fn told_events(directory: &Path) -> io::Result<HashMap<SessionId, ToldEvents>> {
    let files = files(directory)?;
    let mut bytes = 0;
    let is_within = |(_, path): &&(u64, PathBuf)| {
        bytes += path.metadata().map_or(0, |metadata| metadata.len());
        bytes <= TOLD_BYTES
    };
    let newest: Vec<_> = files.iter().rev().take_while(is_within).collect();
    let mut told = HashMap::<SessionId, ToldEvents>::new();
    for (_, path) in newest.into_iter().rev() {
        each_line(path, 0, |_, line| {
            if let Some(event) = EventRecord::of_line(line) {
                event.add_to(&mut told);
            }
            Continue(())
        })?;
    }
    Ok(told)
}

/// Calls `each` with the number and the text of every record of a file from an offset on, until it breaks off. Returns
/// whether the file is there: retention may have removed it.
fn each_line(
    path: &Path,
    from: u64,
    mut each: impl FnMut(u64, &str) -> ControlFlow<()>,
) -> io::Result<bool> {
    let read = read_file_from(path, from, |_, line| {
        let numbered = line.and_then(|line| Some((event_number_of(line)?, line)));
        numbered.map_or(Continue(()), |(number, line)| each(number, line))
    });
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        read => read.map(|()| true),
    }
}

/// The number for clients of the record that begins at this offset.
fn number_at(file: &File, offset: u64) -> io::Result<Option<u64>> {
    let mut head = [0; NUMBER_WITHIN];
    let read = file.read_at(&mut head, offset)?;
    // What follows the numbers may be cut.
    let end = head[..read].iter().position(|byte| !byte.is_ascii()).unwrap_or(read);
    Ok(str::from_utf8(&head[..end]).ok().and_then(event_number_of))
}

/// An offset of the file before the first record after `since`, where a line begins. Numbers grow along the file.
fn start_of(path: &Path, since: u64) -> io::Result<u64> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let (mut low, mut high) = (0, file.metadata()?.len());
    while high - low > NEAR {
        let middle = low + (high - low) / 2;
        let begins = next_line(&file, middle, high)?;
        let number = begins.map(|begins| number_at(&file, begins)).transpose()?.flatten();
        match (number, begins) {
            (Some(number), Some(begins)) if number <= since => low = begins,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Where the first line begins after an offset, if that is before `end`.
fn next_line(file: &File, mut offset: u64, end: u64) -> io::Result<Option<u64>> {
    let mut block = [0; NEAR as usize / 2];
    while offset < end {
        let count = file.read_at(&mut block, offset)?;
        if let Some(at) = block[..count].iter().position(|byte| *byte == b'\n') {
            let begins = offset + at as u64 + 1;
            return Ok(Some(begins).filter(|begins| *begins < end));
        }
        if count == 0 {
            break;
        }
        offset += count as u64;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
