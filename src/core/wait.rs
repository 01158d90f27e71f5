//! Waiting: whether what a caller waits for has come, judged frame by frame.
//!
//! It knows neither clock, task nor who waits; timeouts and lost leases belong to whoever drives
//! it. A frame may skip any number of others, so what scrolled off between two is read from history.

mod automaton;
pub mod logical;
pub mod look;
pub mod pattern;
pub mod reflow;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use crate::core::frame::line::Line;
use crate::core::frame::{Exit, Frame, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, ShellPhase};
use crate::core::shell::commands::EndsBy;
use crate::core::shell::commands::record::CommandRecord;
use crate::core::wait::look::{Hit, Look, Others, Scan, Searches, Span, Which};
use crate::core::wait::pattern::Pattern;

/// What a caller waits for; the first to come true ends the wait.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// A line that matches.
    pub pattern: Option<Pattern>,
    /// A line that matches and means that waiting on is useless.
    pub stop_pattern: Option<Pattern>,
    /// Any change of rows, cursor, size, mode or title.
    pub change: bool,
    /// Rows, cursor, size and mode have stayed as they are for this long.
    pub idle: Option<Duration>,
    /// A command ended: one that the shell marks, or the shell is at its prompt again.
    pub command_done: bool,
    /// A program waits for somebody to type.
    pub needs_input: bool,
    /// The program ended. It ends every wait; the flag is for those who wait for nothing else.
    pub exit: bool,
}

impl Conditions {
    fn is_empty(&self) -> bool {
        let patterns = self.pattern.is_some() || self.stop_pattern.is_some();
        let done = self.command_done || self.needs_input || self.exit;
        !(patterns || self.change || self.idle.is_some() || done)
    }
}

/// Says that a wait without any condition would never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a wait needs at least one condition")]
pub struct NoCondition;

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pattern matched.
    Matched(Hit),
    /// The stop pattern matched.
    Stopped(Hit),
    /// Something changed.
    Changed,
    /// Nothing changed for long enough.
    Idle,
    /// A command ended; which one, where a shell told.
    CommandDone(Option<Arc<CommandRecord>>),
    /// A program waits for somebody to type.
    NeedsInput,
    /// The program ended, so that nothing more can come.
    Exited(Exit),
}

/// One wait on one session.
///
/// `look` begins with a frame, also with the one that the wait began with, and `on_look` judges what came
/// of it; `on_time` is told what time it is when no frame came, and `deadline` says when to call it. An
/// outcome is the end of the wait.
///
/// What counts is what changed after the base: with `since` that watermark, without it the frame
/// the wait began with, and then also the line the cursor was on, so that a prompt that already
/// stands there is found. A line that a key press echoes counts like any other output; whoever
/// waits for the answer to a write passes the watermark before the write as `since` and chooses a
/// pattern that the echo does not contain.
#[derive(Debug)]
pub struct Wait {
    conditions: Conditions,
    /// None while a look has them, and where there is no pattern.
    searches: Option<Searches>,
    base: Watermark,
    started: Moment,
    /// The row of the cursor when a wait without `since` began.
    cursor_row: Option<RowNumber>,
    /// The watermark of the last frame looked at; what changed up to it needs no second look.
    seen: Watermark,
    /// The top row of that frame; the rows above it cannot have changed since.
    top: RowNumber,
    /// The row after the last one that frame had text in.
    text_end: RowNumber,
    /// The rows of that frame; none before the first look.
    lines: Arc<[Stamped<Arc<Line>>]>,
    quiet_since: Moment,
    /// That frame was of a full-screen program.
    full_screen: bool,
    missed_rows: u64,
    others: Others,
}

impl Wait {
    /// Begins a wait on the session that shows `first` now; it is to be given to
    /// [`Self::look`] as well.
    ///
    /// Errors: no condition at all.
    pub fn new(
        conditions: Conditions,
        since: Option<Watermark>,
        first: &Frame,
        now: Moment,
    ) -> Result<Self, NoCondition> {
        if conditions.is_empty() {
            return Err(NoCondition);
        }
        // A watermark from the future is an unknown one, and then everything counts.
        let known = since.map(|mark| if mark > first.watermark { Watermark(0) } else { mark });
        let base = known.unwrap_or(first.watermark);
        let oldest = first.history.row(first.history.first());
        let trimmed = oldest.is_some_and(|row| row.changed > base);
        let searches = Searches::of(conditions.pattern.as_ref(), conditions.stop_pattern.as_ref());
        Ok(Self {
            conditions,
            searches,
            base,
            started: now,
            cursor_row: since.is_none().then_some(first.cursor.value.row),
            seen: base,
            top: if since.is_some() { first.history.first() } else { first.base_row },
            text_end: first.end_of_text(),
            lines: Arc::from([]),
            quiet_since: quiet_since(first, base, now),
            full_screen: false,
            missed_rows: if trimmed { first.history.first().0 } else { 0 },
            others: Others::default(),
        })
    }

    /// Begins to look at the frame that is the newest now.
    ///
    /// There is one look at a time: whoever drops one is not going on with the wait.
    pub fn look(&mut self, frame: Arc<Frame>, now: Moment) -> Look {
        let scan = self.searches.take().map(|searches| {
            let resized = frame.size.changed > self.seen;
            let span = Span {
                seen: self.seen,
                base: self.base,
                cursor_row: self.cursor_row,
                top: self.top,
                before: resized.then(|| Arc::clone(&self.lines)),
            };
            Scan::new(searches, span, &frame)
        });
        Look::new(frame, now, scan)
    }

    /// Judges a frame that was looked at: its lines first, then whether the program ended, then the rest.
    pub fn on_look(&mut self, look: Look) -> Option<Outcome> {
        let Look { frame, at, oldest, scan, .. } = look;
        let found = scan.and_then(|scan| {
            self.missed_rows += scan.missed;
            self.others = scan.others;
            self.searches = Some(scan.searches);
            scan.first
        });
        self.remember(&frame, oldest);
        match found {
            Some((Which::Pattern, hit)) => return Some(Outcome::Matched(hit)),
            Some((Which::StopPattern, hit)) => return Some(Outcome::Stopped(hit)),
            None => {}
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
            // A shell that marks nothing is known to be done by being at its prompt again.
            let activity = &frame.activity;
            let unmarked = frame.commands.value.phase() == ShellPhase::Unmarked;
            let back =
                activity.value.state == ActivityState::Prompt && activity.changed > self.base;
            if unmarked && back && frame.commands.value.sent().is_none() {
                return Some(Outcome::CommandDone(None));
            }
        }
        let wants = frame.activity.value.state.wants_input() && !self.full_screen;
        (self.conditions.needs_input && wants).then_some(Outcome::NeedsInput)
    }

    /// Whether only the kernel knows what is waited for, so that it has to be asked now and then:
    /// whatever else ends the wait is written, and a frame tells it.
    pub fn asks_kernel(&self, frame: &Frame) -> bool {
        let commands = &frame.commands.value;
        let unmarked = commands.sent().is_some_and(|sent| sent.ends_by != EndsBy::Marks);
        let ends_unseen = match commands.phase() {
            ShellPhase::Unmarked => true,
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Running => unmarked,
        };
        // Nothing asks before the line that is read was typed, and something runs.
        let asks_unseen = unmarked || commands.phase() != ShellPhase::Reading;
        self.conditions.command_done && ends_unseen || self.conditions.needs_input && asks_unseen
    }

    /// Judges the time that passed without a frame.
    pub fn on_time(&mut self, now: Moment) -> Option<Outcome> {
        let is_over = |at: Option<Moment>| at.is_some_and(|at| now >= at);
        if is_over(self.painted_at()) {
            return Some(Outcome::NeedsInput);
        }
        is_over(self.idle_at()).then_some(Outcome::Idle)
    }

    /// When to judge again, if no frame comes before.
    pub fn deadline(&self) -> Option<Moment> {
        [self.painted_at(), self.idle_at()].into_iter().flatten().min()
    }

    /// When the screen will have been idle for long enough.
    fn idle_at(&self) -> Option<Moment> {
        self.conditions.idle.map(|idle| self.quiet_since + idle)
    }

    /// When a full-screen program will have taken the last key and painted what it made of it: it reads
    /// on and on, so that only its silence tells.
    fn painted_at(&self) -> Option<Moment> {
        const PAINTS: Duration = Duration::from_millis(200);
        (self.conditions.needs_input && self.full_screen).then(|| self.quiet_since + PAINTS)
    }

    /// How many rows may at most have come and been trimmed from history before they could be
    /// looked at.
    pub fn missed_rows(&self) -> u64 {
        self.missed_rows
    }

    /// Up to where everything was looked at.
    pub fn seen(&self) -> Watermark {
        self.seen
    }

    /// What else matched when the wait ended.
    pub fn others(&self) -> &Others {
        &self.others
    }

    fn remember(&mut self, frame: &Frame, oldest: RowNumber) {
        self.missed_rows += oldest.0.saturating_sub(self.text_end.0);
        self.seen = self.seen.max(frame.watermark);
        self.top = frame.base_row;
        self.text_end = frame.end_of_text();
        self.lines = Arc::clone(&frame.lines);
        self.quiet_since = quiet_since(frame, self.base, self.started);
        self.full_screen = frame.activity.value.state == ActivityState::FullScreen;
    }
}

/// From when on the screen has been quiet. Before anything came the start of the wait counts, lest
/// a screen that was quiet all along passes for one that has answered.
fn quiet_since(frame: &Frame, base: Watermark, started: Moment) -> Moment {
    if frame.screen_watermark() > base {
        return frame.screen_changed_at;
    }
    frame.screen_changed_at.max(started)
}

#[cfg(test)]
mod tests;
