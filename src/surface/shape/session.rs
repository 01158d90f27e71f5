//! A session as lists show it.
//!
//! Made from the session's newest frame and counters, without asking its task.

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::lease::view::LeaseView;
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::session::handle::Session;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::silent::Known;
use crate::surface::shape::activity::ActivityShape;
use crate::surface::shape::budget::abridged;
use crate::surface::shape::gap::GapWire;
use crate::surface::shape::{ExitShape, LeaseShape};

/// How many characters of the last line a list shows.
const LAST_LINE_CHARACTERS: usize = 120;

/// How many bytes of a session's long texts are told, as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    title: usize,
    command: usize,
    cwd: usize,
}

/// What each session of a list has: some twenty of them fit into one result, whatever they show.
pub const IN_LIST: Share = Share { title: 160, command: 240, cwd: 160 };

/// What a session has that is told alone: its title whole, and a directory as long as they get.
pub const ALONE: Share = Share { title: 1_600, command: 4_000, cwd: 4_096 };

/// One session of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionWire {
    pub id: String,
    pub name: String,
    pub title: String,
    pub command: String,
    pub pid: i32,
    pub cwd: String,
    pub rows: u16,
    pub cols: u16,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitShape>,
    pub activity: ActivityShape,
    pub idle_ms: u64,
    pub last_line: String,
    pub watermark: u64,
    pub lease: LeaseShape,
    pub observers: usize,
    pub history_rows: usize,
    /// What its program wrote so far, in bytes.
    pub output_bytes: u64,
    /// What of it nobody will see, the newest losses last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    pub write_allowed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Of `title`, `command` or `cwd` only the beginning is told here, and ends in `…`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl SessionWire {
    /// What is known of a session now.
    pub fn of_known(known: &Known, write_allowed: bool, now: Moment) -> Self {
        match known {
            Known::Here(session) => Self::of(session, write_allowed, now),
            Known::Silent(record) => Self::silent(record, write_allowed),
        }
    }

    /// What its record says; everything else is as of a session where nothing ever happened.
    fn silent(record: &SessionRecord, write_allowed: bool) -> Self {
        Self {
            id: record.id.to_string(),
            name: record.name.to_string(),
            title: String::new(),
            command: record.command.clone(),
            pid: 0,
            cwd: record.cwd.display().to_string(),
            rows: record.size.map_or(0, |size| size.rows),
            cols: record.size.map_or(0, |size| size.cols),
            state: "running",
            exit: None,
            activity: ActivityShape::silent(),
            idle_ms: 0,
            last_line: String::new(),
            watermark: 0,
            lease: LeaseShape::of(&LeaseView::default()),
            observers: 0,
            history_rows: 0,
            output_bytes: 0,
            lost_output: Vec::new(),
            write_allowed,
            tags: record.tags.clone(),
            cut: false,
        }
    }

    /// The session as it is now.
    pub fn of(session: &Session, write_allowed: bool, now: Moment) -> Self {
        let frame = session.frame();
        let about = session.about();
        let size = frame.size.value;
        let lease = LeaseShape::of(&frame.lease.value);
        let last = frame.lines.iter().rev().find(|line| !line.value.text.is_empty());
        let last_line = last.map(|line| line.value.text.to_string()).unwrap_or_default();
        Self {
            id: session.id().to_string(),
            name: session.name().to_string(),
            title: frame.title.value.to_string(),
            command: about.command.clone(),
            pid: about.pid,
            cwd: cwd_of(session),
            rows: size.rows,
            cols: size.cols,
            state: if frame.exit.value.is_some() { "exited" } else { "running" },
            exit: frame.exit.value.map(ExitShape::from),
            activity: (&*frame.activity.value).into(),
            idle_ms: now.since(session.live().changed_at(&frame)).as_millis() as u64,
            last_line: last_line.chars().take(LAST_LINE_CHARACTERS).collect(),
            watermark: frame.watermark.0,
            lease: lease.expiring(session.live().lease_expires_at(), now),
            observers: session.live().observers(),
            history_rows: frame.history.len(),
            output_bytes: session.live().output_bytes.get(),
            lost_output: GapWire::among(session.live().gaps().as_slice(), ..),
            write_allowed,
            tags: about.tags.clone(),
            cut: false,
        }
    }

    /// The same with so much of its long texts.
    #[must_use]
    pub fn within(mut self, share: Share) -> Self {
        let Share { title, command, cwd } = share;
        for (text, bytes_max) in
            [(&mut self.title, title), (&mut self.command, command), (&mut self.cwd, cwd)]
        {
            let told = abridged(text, bytes_max);
            self.cut |= told != *text;
            *text = told;
        }
        self
    }

    /// What it runs, for a model, on one line.
    pub fn command_told(&self) -> String {
        abridged(&one_line(&self.command), IN_LIST.command)
    }

    /// One line that tells a model what it needs to choose a session.
    pub fn summary(&self) -> String {
        if self.activity.is_silent() {
            let command = self.command_told();
            return format!(
                "{} {:?} {command} (goes on, but nobody answers for its terminal yet)",
                self.id, self.name
            );
        }
        let state = self.exit.map_or_else(|| self.activity.summary(), |exit| exit.to_string());
        let lease = match &self.lease.by {
            Some(by) => format!("held by {by}, {} waiting", self.lease.waiters),
            None => "free".to_owned(),
        };
        let lost = if self.lost_output.is_empty() { "" } else { ", some output is lost" };
        let command = self.command_told();
        format!(
            "{} {:?} {command} ({}x{}, {state}, idle {} ms{lost}) lease: {lease}; last line: {}",
            self.id,
            self.name,
            self.cols,
            self.rows,
            self.idle_ms,
            one_line(&self.last_line)
        )
    }
}

/// Where the program says it is, or where it was started when it never said.
pub fn cwd_of(session: &Session) -> String {
    match session.live().directory() {
        Some(directory) => directory.to_string(),
        None => session.about().cwd.display().to_string(),
    }
}
