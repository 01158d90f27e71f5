//! Waits: decides frame by frame whether a caller's condition is met.
//!
//! The caller handles timeouts and lost leases. A wait may skip frames, so it reads the rows that
//! scrolled off in between from history.

mod automaton;
pub mod line_matcher;
pub mod logical;
pub mod look;
pub mod pattern;

use std::sync::Arc;
use std::time::Duration;

use crate::core::frame::{Exit, Frame};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::record::CommandRecord;
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::core::wait::automaton::Steps;
use crate::core::wait::line_matcher::LineMatcher;
use crate::core::wait::logical::Hit;
use crate::core::wait::look::{Look, Others, Scan, ScanRange, Searches, Which};
use crate::core::wait::pattern::Pattern;

/// The conditions of a wait; the first one that is met ends it.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// A line matches one of these. In a line that matches several, the highest match counts, and on the same row
    /// the first of them.
    pub patterns: Vec<(Which, Pattern)>,
    /// Rows, cursor, size, mode or title change.
    pub change: bool,
    /// Rows, cursor, size and mode stay unchanged for this long.
    pub idle: Option<Duration>,
    /// The program in front has read what was typed since the wait began, and waits for more.
    pub idle_program: bool,
    /// A command ends: the shell marks its end, or the shell is at its prompt again.
    pub command_done: bool,
    pub needs_input: bool,
    /// The program exits. This ends every wait; set the flag when it is the only condition.
    pub exit: bool,
}

impl Conditions {
    fn is_empty(&self) -> bool {
        let done = self.command_done || self.needs_input || self.exit;
        let quiet = self.idle.is_some() || self.idle_program;
        !(!self.patterns.is_empty() || self.change || quiet || done)
    }
}

/// The error for a wait without a condition, which would never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a wait needs at least one condition")]
pub struct NoCondition;

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it is empty")]
    Empty,
    #[error("the pattern has {bytes} bytes, more than {}", Pattern::BYTES_MAX)]
    TooLong { bytes: usize },
    #[error("it has more than {} words", LineMatcher::WORDS_MAX)]
    ManyWords,
    #[error("the pattern spans lines; patterns are compared with one line at a time")]
    ManyLines,
    #[error(
        "the pattern costs too much to compile; repeat less in it, use fewer classes such as \\w and \\pL, \
         or leave out (?i)"
    )]
    TooCostly,
    #[error("the pattern does not compile: {message}")]
    Invalid {
        /// The compiler's message with the position, on several lines.
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Found(Which, Hit),
    Changed,
    Idle,
    /// A command ended; its record, if the shell marks commands.
    CommandDone(Option<Arc<CommandRecord>>),
    NeedsInput,
    /// The program exited, so no more output can follow.
    Exited(Exit),
}

/// One wait on one session.
///
/// Call `look` for each frame, the first one included, and `on_look` with the result. Without a new
/// frame, call `on_time` when `deadline` is reached. An outcome ends the wait.
///
/// Only changes after the base count. The base is `since`, or the first frame. Without `since` the
/// line of the cursor counts too, so that a visible prompt is found. The echo of a key press counts
/// like any output. To wait for the answer to a write, pass the watermark before the write as `since`
/// and a pattern that the echo does not contain.
#[derive(Debug)]
pub struct Wait {
    conditions: Conditions,
    /// None while a look has them, and when there is no pattern.
    searches: Option<Searches>,
    base: Watermark,
    started: Moment,
    /// The row of the cursor when a wait without `since` began.
    cursor_row: Option<RowNumber>,
    /// The watermark of the last judged frame; changes up to it need no second look.
    seen: Watermark,
    /// The top row of that frame; rows above it cannot have changed since.
    top: RowNumber,
    /// The first row that may have changed and was not compared.
    next: RowNumber,
    /// The row after the last one with text in that frame.
    text_end: RowNumber,
    quiet_since: Moment,
    missed_rows: u64,
    others: Others,
}

impl Wait {
    /// Starts a wait on the session that shows `first` now. Pass `first` to [`Self::look`] as well.
    ///
    /// Errors: there is no condition.
    pub fn new(
        conditions: Conditions,
        since: Option<Watermark>,
        first: &Frame,
        now: Moment,
    ) -> Result<Self, NoCondition> {
        if conditions.is_empty() {
            return Err(NoCondition);
        }
        // A watermark from the future is unknown, and then everything counts.
        let known = since.map(|mark| if mark > first.watermark { Watermark(0) } else { mark });
        let base = known.unwrap_or(first.watermark);
        let oldest = first.history.row(first.history.first());
        let trimmed = oldest.is_some_and(|row| row.changed > base);
        let searches = Searches::of(&conditions.patterns, |_| true);
        let rows = first.history.range(first.history.first(), first.history.end());
        let changed = rows.rev().take_while(|(_, row)| row.changed > base).count();
        Ok(Self {
            conditions,
            searches,
            base,
            started: now,
            cursor_row: since.is_none().then_some(first.cursor.value.row),
            seen: base,
            top: if since.is_some() { first.history.first() } else { first.base_row },
            next: RowNumber(first.history.end().0 - changed as u64),
            text_end: first.end_of_text(),
            quiet_since: quiet_since(first, base, now),
            missed_rows: if trimmed { first.history.first().0 } else { 0 },
            others: Others::default(),
        })
    }

    /// Starts to look at the newest frame.
    ///
    /// Only one look runs at a time. Dropping a look abandons the wait.
    pub fn look(&mut self, frame: Arc<Frame>, now: Moment) -> Look {
        let scan = self.searches.take().map(|searches| {
            let span = ScanRange {
                seen: self.seen,
                base: self.base,
                cursor_row: self.cursor_row,
                top: self.top,
            };
            Scan::new(searches, span, &frame)
        });
        Look::new(frame, now, scan)
    }

    /// Judges a finished look: first the lines, then whether the program exited, then the rest.
    pub fn on_look(&mut self, look: Look) -> Option<Outcome> {
        let Look { frame, at, oldest, scan, .. } = look;
        let found = scan.and_then(|scan| {
            self.missed_rows += scan.missed;
            self.others = scan.others;
            self.searches = Some(scan.searches);
            scan.first
        });
        self.remember(&frame, oldest);
        if let Some((which, hit)) = found {
            return Some(Outcome::Found(which, hit));
        }
        if let Some(exit) = frame.exit.value {
            return Some(Outcome::Exited(exit));
        }
        if let Some(outcome) = self.judge_activity(&frame) {
            return Some(outcome);
        }
        let newest = frame.screen_watermark().max(frame.title.changed);
        if self.conditions.change && newest > self.base {
            return Some(Outcome::Changed);
        }
        let idles = frame.shell.idle_after.is_some_and(|after| after >= self.started);
        if self.conditions.idle_program && idles {
            return Some(Outcome::Idle);
        }
        self.on_time(at)
    }

    fn judge_activity(&self, frame: &Frame) -> Option<Outcome> {
        if self.conditions.command_done {
            if let Some(record) = frame.commands.value.ended_after(self.base) {
                return Some(Outcome::CommandDone(Some(Arc::clone(record))));
            }
            if frame.commands.value.idled_after(self.base) {
                return Some(Outcome::CommandDone(None));
            }
            // A shell without marks is done when it is at its prompt again.
            let activity = &frame.activity;
            let unmarked = frame.commands.value.phase() == ShellPhase::Unmarked;
            let back =
                activity.value.state == ActivityState::Prompt && activity.changed > self.base;
            if unmarked && back && frame.commands.value.sent().is_none() {
                return Some(Outcome::CommandDone(None));
            }
        }
        (self.conditions.needs_input && frame.shell.waits).then_some(Outcome::NeedsInput)
    }

    /// Whether only the kernel can reveal that a condition is met, so that the caller must poll it.
    /// All other conditions show in a frame.
    pub fn asks_kernel(&self, frame: &Frame) -> bool {
        let commands = &frame.commands.value;
        let unmarked = commands.sent().is_some_and(|sent| sent.ends_by != EndsBy::Marks);
        let ends_unseen = match commands.phase() {
            ShellPhase::Unmarked => true,
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Running => unmarked,
        };
        // No program asks for input while the shell reads a line.
        let asks_unseen = unmarked || commands.phase() != ShellPhase::Reading;
        self.conditions.command_done && ends_unseen || self.conditions.needs_input && asks_unseen
    }

    pub fn on_time(&mut self, now: Moment) -> Option<Outcome> {
        self.deadline().is_some_and(|at| now >= at).then_some(Outcome::Idle)
    }

    /// When to call `on_time`, if no frame arrives before.
    pub fn deadline(&self) -> Option<Moment> {
        self.conditions.idle.map(|idle| self.quiet_since + idle)
    }

    /// The most rows that may have been trimmed from history before a look reached them.
    pub fn missed_rows(&self) -> u64 {
        self.missed_rows
    }

    /// The first row that was not compared, if there are patterns to compare rows with.
    pub fn next_row(&self) -> Option<RowNumber> {
        (!self.conditions.patterns.is_empty()).then_some(self.next)
    }

    /// The watermark up to which everything was judged.
    pub fn seen(&self) -> Watermark {
        self.seen
    }

    pub fn others(&self) -> &Others {
        &self.others
    }

    /// The last line that was waited for, or else that was to end the wait, and has been on the screen since
    /// before the wait, which therefore did not count. Each of the two searches takes about `steps` at most, and
    /// finds none beyond.
    pub fn shown_before(&self, frame: &Frame, steps: usize) -> Option<(Which, Hit)> {
        // A look that was given up has them: then not all that came since has been compared.
        self.searches.as_ref()?;
        self.last_shown(frame, steps, |which| !which.stops())
            .or_else(|| self.last_shown(frame, steps, Which::stops))
    }

    fn last_shown(
        &self,
        frame: &Frame,
        steps: usize,
        among: impl Fn(Which) -> bool,
    ) -> Option<(Which, Hit)> {
        let searches = Searches::of(&self.conditions.patterns, among)?;
        let (from_the_start, top) = (Watermark(0), frame.base_row);
        let span = ScanRange { seen: from_the_start, base: from_the_start, cursor_row: None, top };
        let mut scan = Scan::new(searches, span, frame);
        scan.run(frame, &mut Steps::new(steps));
        scan.last()
    }

    fn remember(&mut self, frame: &Frame, oldest: RowNumber) {
        self.missed_rows += oldest.0.saturating_sub(self.text_end.0);
        self.seen = self.seen.max(frame.watermark);
        self.top = frame.base_row;
        self.next = frame.base_row;
        self.text_end = frame.end_of_text();
        self.quiet_since = quiet_since(frame, self.base, self.started);
    }
}

/// The moment since which the screen is quiet. Before any output it is at least the start of the wait,
/// so that an unchanged screen does not count as an answer.
fn quiet_since(frame: &Frame, base: Watermark, started: Moment) -> Moment {
    if frame.screen_watermark() > base {
        return frame.screen_changed_at;
    }
    frame.screen_changed_at.max(started)
}

#[cfg(test)]
mod tests;
