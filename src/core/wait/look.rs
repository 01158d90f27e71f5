//! One look at one frame: compares its changed lines with the patterns.
//!
//! Patterns and lines come from outside and determine the time, so the work is done in slices of
//! counted steps.

use std::sync::Arc;

use crate::core::frame::Frame;
use crate::core::frame::history::History;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::wait::automaton::Steps;
use crate::core::wait::logical::{Hit, LogicalLine};
use crate::core::wait::pattern::{Pattern, PatternSearch};

/// Which pattern of a wait a line matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Text,
    Pattern,
    StopText,
    StopPattern,
}

impl Which {
    /// Whether a match shows that further waiting is useless.
    pub fn stops(self) -> bool {
        match self {
            Self::Text | Self::Pattern => false,
            Self::StopText | Self::StopPattern => true,
        }
    }
}

/// The most matching lines that are reported besides the one that ended a wait.
pub(super) const OTHERS_MAX: usize = 20;

/// Further matching lines of the last frame, below the line that ended the wait. A caller that
/// continues from that frame's watermark gets them nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// The first of these lines, from top to bottom.
    pub told: Vec<(Which, Hit)>,
    pub left_out: usize,
    /// The last of those that are left out.
    last: Option<(Which, Hit)>,
}

impl Others {
    fn add(&mut self, found: (Which, Hit)) {
        if self.told.len() < OTHERS_MAX {
            self.told.push(found);
        } else {
            self.left_out += 1;
            self.last = Some(found);
        }
    }
}

/// The progress of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// The next slice continues it.
    Unfinished,
    /// It exceeded [`Look::STEPS_MAX`].
    TooCostly,
}

/// A look in progress.
///
/// Call `run` until it is done, then return the look to its wait.
#[derive(Debug)]
pub struct Look {
    pub(super) frame: Arc<Frame>,
    /// When that frame was the newest.
    pub(super) at: Moment,
    /// The oldest row of history at that moment.
    pub(super) oldest: RowNumber,
    /// None when the wait has no pattern.
    pub(super) scan: Option<Scan>,
    taken: usize,
}

impl Look {
    /// The most steps of a look. One step moves one state of an automaton by a byte, which takes some
    /// nanoseconds.
    pub const STEPS_MAX: usize = 1 << 27;

    pub(super) fn new(frame: Arc<Frame>, at: Moment, scan: Option<Scan>) -> Self {
        let oldest = frame.history.first();
        Self { frame, at, oldest, scan, taken: 0 }
    }

    /// Continues for about this many steps, plus at most a few times the size of a pattern.
    pub fn run(&mut self, steps: usize) -> Progress {
        let Some(scan) = &mut self.scan else { return Progress::Done };
        let mut steps = Steps::new(steps);
        let done = scan.run(&self.frame, &mut steps);
        self.taken += steps.taken();
        match done {
            Some(()) => Progress::Done,
            None if self.taken >= Self::STEPS_MAX => Progress::TooCostly,
            None => Progress::Unfinished,
        }
    }

    /// The look as if it had already taken this many steps.
    #[cfg(test)]
    pub(super) fn having_taken(self, taken: usize) -> Self {
        Self { taken, ..self }
    }

    /// Drops rows that were trimmed from history since; they count as missed. Otherwise looks in
    /// progress would keep the histories of many moments in memory.
    pub fn renew(&mut self, history: &Arc<History>) {
        if !Arc::ptr_eq(&self.frame.history, history) {
            Arc::make_mut(&mut self.frame).history = Arc::clone(history);
        }
    }
}

/// The searches for a wait's patterns.
#[derive(Debug)]
pub(super) struct Searches(Vec<(Which, Find)>);

impl Searches {
    /// The searches for those of the patterns that are `chosen`; `None` without any.
    pub(super) fn of(
        patterns: &[(Which, Pattern)],
        chosen: impl Fn(Which) -> bool,
    ) -> Option<Self> {
        let chosen = patterns.iter().filter(|(which, _)| chosen(*which));
        let find = |pattern: &Pattern| Find { search: pattern.search(), shown: false };
        let searches: Vec<_> = chosen.map(|(which, pattern)| (*which, find(pattern))).collect();
        (!searches.is_empty()).then_some(Self(searches))
    }
}

/// The search for one pattern in lines.
#[derive(Debug)]
struct Find {
    search: PatternSearch,
    /// Whether this is the second search of the line, without the blanks before the cursor.
    shown: bool,
}

impl Find {
    /// The first match in the line, with or without the blanks before the cursor: `$ ` matches a prompt,
    /// and so does a pattern that ends in `$`.
    fn find(&mut self, line: &LogicalLine, steps: &mut Steps) -> Option<Option<Hit>> {
        let (whole, shown) = (line.text_to_cursor(), line.text());
        if !self.shown {
            let found = self.search.find(whole, steps)?;
            if found.is_some() || whole.len() == shown.len() {
                return Some(found.map(|found| line.hit(found)));
            }
            self.shown = true;
        }
        let found = self.search.find(shown, steps)?;
        self.shown = false;
        Some(found.map(|found| line.hit(found)))
    }
}

/// Which parts of a frame to compare.
#[derive(Debug)]
pub(super) struct ScanRange {
    /// Rows that changed after this.
    pub(super) seen: Watermark,
    /// The cursor's row, if the cursor changed after this.
    pub(super) base: Watermark,
    /// The cursor's row, if it is this one.
    pub(super) cursor_row: Option<RowNumber>,
    /// No row above this one.
    pub(super) top: RowNumber,
}

/// The scan of a look over its rows.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) searches: Searches,
    span: ScanRange,
    row: RowNumber,
    /// The row after the last compared line.
    done: RowNumber,
    line: Option<Judging>,
    pub(super) first: Option<(Which, Hit)>,
    pub(super) others: Others,
    /// How many rows were trimmed before the scan reached them.
    pub(super) missed: u64,
}

/// A line that is being compared with the patterns.
#[derive(Debug)]
struct Judging {
    line: LogicalLine,
    /// How many of the comparisons are done, and the highest match of those.
    done: usize,
    best: Option<(Which, Hit)>,
}

impl Judging {
    fn judge(&mut self, by: &mut Searches, steps: &mut Steps) -> Option<Option<(Which, Hit)>> {
        while let Some((which, find)) = by.0.get_mut(self.done) {
            let found = find.find(&self.line, steps)?;
            self.done += 1;
            let is_higher =
                |hit: &Hit| self.best.as_ref().is_none_or(|(_, best)| hit.row < best.row);
            if let Some(hit) = found.filter(is_higher) {
                self.best = Some((*which, hit));
            }
        }
        Some(self.best.take())
    }
}

impl Scan {
    pub(super) fn new(searches: Searches, span: ScanRange, frame: &Frame) -> Self {
        Self {
            searches,
            row: span.top.max(frame.history.first()),
            span,
            done: RowNumber(0),
            line: None,
            first: None,
            others: Others::default(),
            missed: 0,
        }
    }

    /// The last line that matched.
    pub(super) fn last(self) -> Option<(Which, Hit)> {
        let Others { mut told, last, .. } = self.others;
        last.or_else(|| told.pop()).or(self.first)
    }

    /// Continues until all rows are compared or the steps are spent.
    pub(super) fn run(&mut self, frame: &Frame, steps: &mut Steps) -> Option<()> {
        loop {
            if let Some(judging) = &mut self.line {
                let found = judging.judge(&mut self.searches, steps)?;
                self.line = None;
                match found {
                    Some(found) if self.first.is_some() => self.others.add(found),
                    Some(found) => self.first = Some(found),
                    None => {}
                }
            }
            let Some(row) = self.next_row(frame, steps)? else { return Some(()) };
            self.line = self.line_of(frame, row, steps);
        }
    }

    /// The next row in order that changed since the last look, or the cursor's row. A blank after a
    /// prompt moves the cursor and leaves the row's text unchanged.
    fn next_row(&mut self, frame: &Frame, steps: &mut Steps) -> Option<Option<RowNumber>> {
        while self.row < frame.end_row() {
            if steps.are_spent() {
                return None;
            }
            steps.spend(1);
            self.pass_trimmed(frame);
            let row = self.row;
            self.row = row.plus(1);
            if row >= self.done && self.is_due(frame, row) {
                return Some(Some(row));
            }
        }
        Some(None)
    }

    /// Skips rows that are neither in history nor on the screen.
    fn pass_trimmed(&mut self, frame: &Frame) {
        let history = &frame.history;
        if self.row < history.first().min(frame.base_row) {
            let kept = history.first().min(frame.base_row);
            self.missed += kept.0 - self.row.0;
            self.row = kept;
        }
        if self.row >= history.end() {
            self.row = self.row.max(frame.base_row);
        }
    }

    fn is_due(&self, frame: &Frame, row: RowNumber) -> bool {
        let cursor = frame.cursor.value.row;
        let ScanRange { seen, base, cursor_row, .. } = self.span;
        match frame.line(row) {
            Some(line) => {
                let live = row == cursor && (line.changed > base || cursor_row == Some(cursor));
                live || line.changed > seen
            }
            None => frame.history.row(row).is_some_and(|kept| kept.changed > seen),
        }
    }

    fn line_of(&mut self, frame: &Frame, row: RowNumber, steps: &mut Steps) -> Option<Judging> {
        /// The steps to join one more row.
        const ROW: usize = 16;
        let line = LogicalLine::around(frame, row)?;
        self.done = line.end();
        steps.spend(ROW * line.rows() + line.text_to_cursor().len() / 8);
        Some(Judging { line, done: 0, best: None })
    }
}
