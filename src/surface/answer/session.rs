//! Sessions, leases and lost output as answers show them, from the newest frame and counters.

use std::fmt;
use std::ops::RangeBounds;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::core::frame::Frame;
use crate::core::human_duration::rough;
use crate::core::invisible::with_invisible_shown;
use crate::core::lease::request::Grant;
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::core::policy::Standing;
use crate::core::shell::commands::record::CommandRecord;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::session::pty::signal::name_of_signal;
use crate::session::records::Gap;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::silent::{Known, KnownAs};
use crate::surface::answer::budget::{IN_LIST, TextBounds, abridged};
use crate::wire::activity::ActivityWire;
use crate::wire::date::rfc3339;
use crate::wire::lease::{GrantWire, LeaseWire};
use crate::wire::session::{ExitWire, GapWire, SessionState, SessionWire};

/// How many characters of the last line a list shows.
const LAST_LINE_CHARACTERS: usize = 120;

/// What a session has that is told alone: its title whole, and a directory as long as they get.
pub const ALONE: TextBounds = TextBounds { title: 1_600, command: 4_000, cwd: 4_096 };

impl SessionWire {
    /// What is known of a session now, for this caller.
    pub fn of_known(known: &Known, to: &Standing, write_allowed: bool, now: Moment) -> Self {
        let session = match &known.as_is {
            KnownAs::Here(session) => Self::of(session, write_allowed, now),
            KnownAs::Silent(record) => Self::silent(record, write_allowed),
        };
        let is_own = *known.tenant() == to.caller.tenant;
        Self { tenant: (!is_own).then(|| known.tenant().to_string()), ..session }
    }

    /// What its record says; everything else is as of a session where nothing ever happened.
    fn silent(record: &SessionRecord, write_allowed: bool) -> Self {
        Self {
            id: record.id.to_string(),
            name: record.name.to_string(),
            title: String::new(),
            command: with_invisible_shown(&record.command).into_owned(),
            pid: 0,
            cwd: one_line(&record.cwd.display().to_string()).into_owned(),
            rows: record.size.map_or(0, |size| size.rows),
            cols: record.size.map_or(0, |size| size.cols),
            state: SessionState::Running,
            exit: None,
            activity: ActivityWire::silent(),
            state_ms: None,
            idle_ms: 0,
            last_line: String::new(),
            watermark: 0,
            lease: LeaseWire::default(),
            observers: 0,
            history_rows: 0,
            output_bytes: 0,
            lost_output: Vec::new(),
            write_allowed,
            tags: record.tags.clone(),
            tenant: None,
            sandbox: record.confinement.sandbox,
            user: record.confinement.user,
            cut: false,
        }
    }

    /// The session as it is now.
    pub fn of(session: &Session, write_allowed: bool, now: Moment) -> Self {
        let frame = session.frame();
        let about = session.about();
        let size = frame.size.value;
        let lease = LeaseWire::from(&*frame.lease.value);
        let last = frame.lines.iter().rev().find(|line| !line.value.text.is_empty());
        let last_line = last.map(|line| line.value.text.to_string()).unwrap_or_default();
        Self {
            id: session.id().to_string(),
            name: session.name().to_string(),
            title: frame.title.value.to_string(),
            command: with_invisible_shown(&about.command).into_owned(),
            pid: about.pid,
            cwd: one_line(&cwd_of(session)).into_owned(),
            rows: size.rows,
            cols: size.cols,
            state: match frame.exit.value {
                Some(_) => SessionState::Exited,
                None => SessionState::Running,
            },
            exit: frame.exit.value.map(ExitWire::from),
            activity: (&*frame.activity.value).into(),
            state_ms: session.live().state_since().map(|since| now.since(since).as_millis() as u64),
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
            tenant: None,
            sandbox: about.confinement.sandbox,
            user: about.confinement.user,
            cut: false,
        }
    }

    /// The same with so much of its long texts.
    #[must_use]
    pub fn within(mut self, most: TextBounds) -> Self {
        let TextBounds { title, command, cwd } = most;
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
                "{} {:?} {command} (running, but its terminal does not answer yet)",
                self.id, self.name
            );
        }
        let state =
            self.exit.map_or_else(|| self.activity.summary().to_string(), |exit| exit.to_string());
        let lease = match &self.lease.by {
            Some(by) => format!("held by {by}, {} waiting", self.lease.waiters),
            None => "free".to_owned(),
        };
        let lost = if self.lost_output.is_empty() { "" } else { ", some output is lost" };
        let command = self.command_told();
        format!(
            "{} {:?} {command} ({}x{}, {state}, idle {}{lost}) lease: {lease}; last line: {}",
            self.id,
            self.name,
            self.cols,
            self.rows,
            rough(self.idle_ms),
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

impl fmt::Display for ExitWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(number)) => match name_of_signal(number) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {number}"),
            },
            (None, None) if self.cause.is_some() => {
                f.write_str("ended, as the process that held its terminal is gone")
            }
            (None, None) => f.write_str("ended, exit code unknown"),
        }
    }
}

impl GapWire {
    /// The gaps among these rows.
    pub fn among(gaps: &[Gap], rows: impl RangeBounds<u64>) -> Vec<Self> {
        let met = gaps.iter().filter(|gap| rows.contains(&gap.row.0));
        met.map(|gap| Self { row: gap.row.0, bytes: gap.bytes, since: gap.since.map(date) })
            .collect()
    }

    /// The gaps in the output of a command.
    pub fn in_output(session: &Session, record: &CommandRecord, frame: &Frame) -> Vec<Self> {
        let end = record.to.map_or(frame.end_row(), |end| end.row);
        Self::among(session.live().gaps().as_slice(), record.from.row.0..=end.0)
    }
}

fn date(moment: SystemTime) -> String {
    rfc3339(moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// What has a lease, as answers call it: the id of a session, or the name of a mount.
pub type LeaseNames = (Option<String>, Option<String>);

impl GrantWire {
    /// The lease as it stands now.
    pub fn of((session, surface): LeaseNames, grant: &Grant, clock: &Clock) -> Self {
        let left = clock.now().until(grant.expires_at);
        Self {
            lease_id: grant.lease.to_string(),
            session,
            surface,
            epoch: grant.epoch.0,
            ttl_ms: grant.ttl.as_millis() as u64,
            expires_in_ms: left.as_millis() as u64,
            expires_at: wall_time_after(clock, left),
            revived: grant.revived,
        }
    }
}

/// The wall clock's time after so long.
fn wall_time_after(clock: &Clock, left: Duration) -> String {
    let at = clock.wall_time() + left;
    rfc3339(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::core::ids::RowNumber;

    #[test]
    fn a_gap_is_told_to_whoever_reads_the_rows_around_it() {
        let gap = |row, bytes| Gap { row: RowNumber(row), bytes, since: None };
        let gaps = [gap(4, Some(1_000)), gap(9, None)];
        let told = GapWire::among(&gaps, 4..=8);
        assert_eq!(serde_json::to_value(&told).unwrap(), json!([{"row": 4, "bytes": 1_000}]));
        assert!(GapWire::summary(&told).contains("1000 bytes of output are lost"));
        let one = GapWire::among(&[gap(4, Some(1))], ..);
        assert!(GapWire::summary(&one).contains("1 byte of output is lost"));
        assert_eq!(GapWire::among(&gaps, 0..=3), []);
        assert_eq!(GapWire::among(&gaps, ..).len(), 2);
    }

    #[test]
    fn what_was_kept_last_says_of_when_it_is() {
        let since = Some(UNIX_EPOCH + Duration::from_secs(86_400));
        let told = GapWire::among(&[Gap { row: RowNumber(2), bytes: None, since }], 0..=5);
        let expected = json!([{"row": 2, "since": "1970-01-02T00:00:00Z"}]);
        assert_eq!(serde_json::to_value(&told).unwrap(), expected);
        assert!(GapWire::summary(&told).contains("1970-01-02T00:00:00Z"));
    }
}
