//! How a wait ended, as programs and models are told.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::frame::Frame;
use crate::core::ids::Epoch;
use crate::core::lease::view::HoldingView;
use crate::core::one_line::one_line;
use crate::core::wait::look::{Hit, Others, Which};
use crate::core::wait::{Outcome, Wait};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::shape::ExitShape;
use crate::surface::shape::activity::ActivityShape;
use crate::surface::shape::budget::{cut, escaped_bytes, fitting, json_bytes, room_left};
use crate::surface::shape::command::{CommandWire, IN_LIST};
use crate::surface::shape::is_zero;

/// How many of the last rows a wait answers with.
const LAST_ROWS: usize = 10;
/// How many bytes of each of those, and of the line that matched, it tells.
const ROW_BYTES_MAX: usize = 1_000;

/// The word for a pattern that takes more steps than a look may.
const PATTERN_TOO_COSTLY: &str = "pattern_too_costly";

/// The word for a daemon that left its sessions to the next one.
pub const DAEMON_LEFT: &str = "daemon_left";

/// How a wait ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Waited {
    /// `matched`, `stopped`, `changed`, `idle`, `command_done`, `needs_input`, `exited`, `timeout`,
    /// `lease_lost`, `lease_suspended` while a person types, `pattern_too_costly`, or `daemon_left`: ask
    /// the next one.
    pub outcome: &'static str,
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    // The list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_matches: Vec<MatchWire>,
    /// Matches below those, for which there was no room.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_zero")]
    pub matches_left_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitShape>,
    /// The command that ended, where the shell told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWire>,
    pub activity: ActivityShape,
    pub last_rows: Vec<String>,
    pub watermark: u64,
    /// Rows that were trimmed before the wait could look at them.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed_rows: u64,
    pub elapsed_ms: u64,
}

/// Another line that matched by the `watermark` of the answer.
#[derive(Clone, Debug, Serialize)]
pub struct MatchWire {
    pub pattern: &'static str,
    pub row: u64,
    pub text: String,
}

impl MatchWire {
    fn of(which: Which, hit: &Hit) -> Self {
        Self { pattern: name(which), row: hit.row.0, text: cut(&hit.text, ROW_BYTES_MAX) }
    }

    fn summary(&self) -> String {
        format!("\nalso {} at row {}: {}", self.pattern, self.row, one_line(&self.text))
    }
}

/// The name of the parameter.
fn name(which: Which) -> &'static str {
    match which {
        Which::Pattern => "pattern",
        Which::StopPattern => "stop_pattern",
    }
}

/// What ended a wait.
#[derive(Debug)]
pub(super) enum End {
    Met(Outcome),
    TooCostly,
    Timeout,
    Lease(LeaseEnd),
    Gone,
    DaemonLeft,
}

/// What ended a holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// A person types; it comes back.
    Suspended,
    Lost,
}

impl LeaseEnd {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "lease_suspended",
            Self::Lost => "lease_lost",
        }
    }
}

/// How a holding has ended, as far as the frame tells.
pub fn lease_end(frame: &Frame, epoch: Epoch) -> Option<LeaseEnd> {
    let is_it = |holding: &HoldingView| holding.epoch == epoch;
    let lease = &frame.lease.value;
    if lease.holding.as_ref().is_some_and(is_it) {
        return None;
    }
    let suspended = lease.suspended.as_ref().is_some_and(is_it);
    Some(if suspended { LeaseEnd::Suspended } else { LeaseEnd::Lost })
}

impl Waited {
    pub(super) fn of(
        session: &Session,
        frame: &Frame,
        end: End,
        wait: &Wait,
        (elapsed, clock): (Duration, &Clock),
    ) -> Self {
        let mut waited = Self {
            outcome: "timeout",
            session: session.id().to_string(),
            pattern: None,
            row: None,
            text: None,
            more_matches: Vec::new(),
            matches_left_out: 0,
            exit: frame.exit.value.map(ExitShape::from),
            command: None,
            activity: (&*frame.activity.value).into(),
            last_rows: last_rows(frame),
            watermark: wait.seen().0,
            missed_rows: wait.missed_rows(),
            elapsed_ms: elapsed.as_millis() as u64,
        };
        match end {
            End::Met(Outcome::Matched(hit)) => waited.found("matched", Which::Pattern, &hit),
            End::Met(Outcome::Stopped(hit)) => waited.found("stopped", Which::StopPattern, &hit),
            End::Met(Outcome::Changed) => waited.outcome = "changed",
            End::Met(Outcome::Idle) => waited.outcome = "idle",
            End::Met(Outcome::NeedsInput) => waited.outcome = "needs_input",
            End::Met(Outcome::CommandDone(record)) => {
                waited.outcome = "command_done";
                waited.command =
                    record.map(|record| CommandWire::of(&record, clock).within(IN_LIST));
            }
            End::Met(Outcome::Exited(_)) | End::Gone => waited.outcome = "exited",
            End::Lease(end) => waited.outcome = end.as_str(),
            End::DaemonLeft => waited.outcome = DAEMON_LEFT,
            End::TooCostly => waited.outcome = PATTERN_TOO_COSTLY,
            End::Timeout => {}
        }
        waited.add(wait.others());
        waited
    }

    fn found(&mut self, outcome: &'static str, which: Which, hit: &Hit) {
        self.outcome = outcome;
        self.pattern = Some(name(which));
        self.row = Some(hit.row.0);
        self.text = Some(cut(&hit.text, ROW_BYTES_MAX));
    }

    /// Tells as many of the other matches as there is room for, and counts the rest.
    fn add(&mut self, others: &Others) {
        if others.told.is_empty() {
            return;
        }
        let all = others.told.iter().map(|(which, hit)| MatchWire::of(*which, hit));
        let mut all: Vec<_> = all.collect();
        let cost = |it: &MatchWire| json_bytes(it) + escaped_bytes(&it.summary()) + 1;
        let room = room_left(self, &self.summary());
        let untold = all.split_off(fitting(all.iter().map(cost), room).count);
        self.more_matches = all;
        self.matches_left_out = (untold.len() + others.left_out) as u64;
    }

    /// Where the line is that matched.
    fn place(&self) -> String {
        match (&self.text, self.row) {
            (Some(text), Some(row)) => format!(" at row {row}: {}", one_line(text)),
            (_, _) => String::new(),
        }
    }

    /// What else matched, each on a line of its own.
    fn more(&self) -> String {
        let told: String = self.more_matches.iter().map(MatchWire::summary).collect();
        let last = self.more_matches.last().map(|last| last.row).or(self.row);
        match (self.matches_left_out, last) {
            (1.., Some(row)) => {
                let left = self.matches_left_out;
                format!("{told}\nand {left} more below row {row}: see read_history")
            }
            (_, _) => told,
        }
    }

    /// How a wait ended, for a model that is told besides what changed.
    pub fn headline(&self) -> String {
        format!("{}{} after {} ms{}", self.outcome, self.place(), self.elapsed_ms, self.more())
    }

    /// The outcome for a model: what ended the wait, then the last rows.
    pub fn summary(&self) -> String {
        let at = self.place();
        let command = self
            .command
            .as_ref()
            .map_or_else(String::new, |command| format!(": {}", command.summary()));
        let state = match self.outcome {
            "needs_input" => format!(": {}", self.activity.summary()),
            _ => String::new(),
        };
        let left = match self.outcome {
            DAEMON_LEFT => "; ask the next daemon with this watermark as since",
            PATTERN_TOO_COSTLY => {
                "; not all of the screen was compared: repeat less in the pattern"
            }
            _ => "",
        };
        let exit = self.exit.map_or_else(String::new, |exit| format!(" ({exit})"));
        let missed = match self.missed_rows {
            0 => String::new(),
            count => format!(" ({count} rows went by unseen)"),
        };
        format!(
            "{}{at}{command}{state}{exit}{missed} after {} ms, watermark {}{left}{}\n{}",
            self.outcome,
            self.elapsed_ms,
            self.watermark,
            self.more(),
            self.last_rows.join("\n")
        )
    }
}

/// The last rows that show anything, oldest first.
fn last_rows(frame: &Frame) -> Vec<String> {
    let end = frame.lines.iter().rposition(|line| !line.value.text.is_empty());
    let end = end.map_or(0, |index| index + 1);
    let start = end.saturating_sub(LAST_ROWS);
    frame.lines[start..end].iter().map(|line| cut(&line.value.text, ROW_BYTES_MAX)).collect()
}
