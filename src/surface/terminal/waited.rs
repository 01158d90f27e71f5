//! How a wait ended, as programs and models are told.

use std::time::Duration;

use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::human_duration::measured;
use crate::core::ids::Epoch;
use crate::core::lease::view::HoldingView;
use crate::core::one_line::one_line;
use crate::core::wait::logical::Hit;
use crate::core::wait::look::{Others, Which};
use crate::core::wait::{Outcome, Wait};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::answer::budget::{IN_LIST, cut, escaped_bytes, fitting, json_bytes, room_left};
use crate::wire::command::CommandWire;
use crate::wire::session::ExitWire;
use crate::wire::untrusted::Untrusted;
use crate::wire::wait::{MatchWire, WaitOutcome, Waited};
use crate::wire::word;

/// How many of the last rows a wait answers with.
const LAST_ROWS: usize = 10;
/// How many bytes of each of those, and of the line that matched, it tells.
const ROW_BYTES_MAX: usize = 1_000;
/// How long a wait that timed out searches what was on the screen before it: as long as others may wait behind it.
const SHOWN_BEFORE_STEPS_MAX: usize = 1 << 14;

impl MatchWire {
    fn of(which: Which, hit: &Hit) -> Self {
        Self { pattern: which.into(), row: hit.row.0, text: cut(&hit.text, ROW_BYTES_MAX) }
    }

    fn summary(&self) -> String {
        format!("\nalso {} at row {}: {}", word(&self.pattern), self.row, one_line(&self.text))
    }
}

/// What ended a holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// A person types; it comes back.
    Suspended,
    Lost,
}

impl From<LeaseEnd> for WaitOutcome {
    fn from(end: LeaseEnd) -> Self {
        match end {
            LeaseEnd::Suspended => Self::LeaseSuspended,
            LeaseEnd::Lost => Self::LeaseLost,
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
        end: Result<Outcome, WaitOutcome>,
        wait: &Wait,
        (elapsed, clock): (Duration, &Clock),
    ) -> Self {
        let mut waited = Self {
            untrusted: Untrusted,
            outcome: WaitOutcome::Timeout,
            session: Some(session.id().to_string()),
            pattern: None,
            row: None,
            text: None,
            more_matches: Vec::new(),
            matches_left_out: 0,
            shown_before: None,
            exit: frame.exit.value.map(ExitWire::from),
            command: None,
            activity: Some((&*frame.activity.value).into()),
            last_rows: last_rows(frame),
            watermark: Some(wait.seen().0),
            missed_rows: wait.missed_rows(),
            elapsed_ms: elapsed.as_millis() as u64,
        };
        match end {
            Ok(Outcome::Found(which, hit)) => waited.found(which, &hit),
            Ok(Outcome::Changed) => waited.outcome = WaitOutcome::Changed,
            Ok(Outcome::Idle) => waited.outcome = WaitOutcome::Idle,
            Ok(Outcome::NeedsInput) => waited.outcome = WaitOutcome::NeedsInput,
            Ok(Outcome::CommandDone(record)) => {
                waited.outcome = WaitOutcome::CommandDone;
                waited.command =
                    record.map(|record| CommandWire::of(&record, clock).within(IN_LIST));
            }
            Ok(Outcome::Exited(_)) => waited.outcome = WaitOutcome::Exited,
            Err(outcome) => waited.outcome = outcome,
        }
        if waited.outcome == WaitOutcome::Timeout {
            let shown = wait.shown_before(frame, SHOWN_BEFORE_STEPS_MAX);
            waited.shown_before = shown.map(|(which, hit)| MatchWire::of(which, &hit));
        }
        waited.add(wait.others());
        waited
    }

    /// The answer of a wait on several sessions. When none of them ended it, it tells nothing of the one that
    /// happened to be asked first.
    pub(super) fn of_several(self) -> Self {
        if !matches!(self.outcome, WaitOutcome::Timeout | WaitOutcome::DaemonLeft) {
            return self;
        }
        Self {
            session: None,
            shown_before: None,
            exit: None,
            command: None,
            activity: None,
            last_rows: Vec::new(),
            watermark: None,
            missed_rows: 0,
            ..self
        }
    }

    fn found(&mut self, which: Which, hit: &Hit) {
        self.outcome = if which.stops() { WaitOutcome::Stopped } else { WaitOutcome::Matched };
        self.pattern = Some(which.into());
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
            (Some(text), Some(row)) => format!(" at row {row}: {},", one_line(text)),
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

    /// Where the text is that was on the screen before the wait.
    fn before(&self) -> String {
        self.shown_before.as_ref().map_or_else(String::new, |shown| {
            let (kind, text) = (word(&shown.pattern), one_line(&shown.text));
            format!(
                "\nthe {kind} was on the screen before the wait (row {}): {text}; give a `since` from \
                 before it to match it",
                shown.row
            )
        })
    }

    /// How a wait ended, for a model that is told besides what changed.
    pub fn headline(&self) -> String {
        format!(
            "{}{}{} after {}{}{}",
            word(&self.outcome),
            self.place(),
            self.command_told(),
            measured(self.elapsed_ms),
            self.before(),
            self.more()
        )
    }

    /// The command that ended, if one did.
    fn command_told(&self) -> String {
        let command = self.command.as_ref();
        command.map_or_else(String::new, |command| format!(": {}", command.summary()))
    }

    /// The outcome for a model: what ended the wait, then the last rows.
    pub fn summary(&self) -> String {
        let (at, command) = (self.place(), self.command_told());
        let state = match &self.activity {
            Some(activity) if self.outcome == WaitOutcome::NeedsInput => {
                format!(": {}", activity.summary())
            }
            Some(_) | None => String::new(),
        };
        let left = if self.outcome == WaitOutcome::DaemonLeft {
            "; ask the next daemon with this watermark as since"
        } else if self.outcome == WaitOutcome::PatternTooCostly {
            "; not all of the screen was compared: repeat less in the pattern"
        } else {
            ""
        };
        let exit = self.exit.map_or_else(String::new, |exit| match exit.code {
            Some(code) if self.outcome == WaitOutcome::Exited => format!(" with code {code}"),
            Some(_) | None => format!(" ({exit})"),
        });
        let missed = match self.missed_rows {
            0 => String::new(),
            count => format!(" (up to {} went by unseen)", counted(count, "row")),
        };
        let Some(watermark) = self.watermark else {
            let (outcome, elapsed) = (word(&self.outcome), measured(self.elapsed_ms));
            return format!("{outcome} in every session after {elapsed}");
        };
        format!(
            "{}{at}{command}{state}{exit}{missed} after {}, watermark {watermark}{left}{}{}\n{}",
            word(&self.outcome),
            measured(self.elapsed_ms),
            self.before(),
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
