//! One look at one frame: the lines in it that changed, compared with what is waited for.
//!
//! How long it takes is up to those who chose the patterns and wrote the lines, so it is done in slices
//! of counted steps. It knows nothing of what else ends a wait.

use std::sync::Arc;

use crate::core::frame::history::History;
use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Stamped};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::wait::logical::LogicalLine;
use crate::core::wait::pattern::{Pattern, Search};
use crate::core::wait::reflow::Reflow;
use crate::core::wait::steps::Steps;

/// The line that ended a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The row on which the match begins.
    pub row: RowNumber,
    /// The logical line, or the part of it around what changed.
    pub text: String,
    /// The part of it that matched.
    pub found: String,
}

/// Which of the two patterns a line matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that is waited for.
    Pattern,
    /// The one that means that waiting on is useless.
    StopPattern,
}

/// How many lines are told besides the one that ended a wait.
pub(super) const OTHERS_MAX: usize = 20;

/// The lines of the last frame that match as well, below the one that ended the wait: whoever goes
/// on from that frame's watermark is told of them nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// The first of them, from top to bottom.
    pub told: Vec<(Which, Hit)>,
    /// How many there are below those.
    pub left_out: usize,
}

impl Others {
    fn add(&mut self, found: (Which, Hit)) {
        if self.told.len() < OTHERS_MAX {
            self.told.push(found);
        } else {
            self.left_out += 1;
        }
    }
}

/// How far a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All was looked at.
    Done,
    /// It goes on with the next slice.
    Unfinished,
    /// It took more steps than one look may.
    TooCostly,
}

/// A look that is under way.
///
/// `run` goes on with it until it says that it is done; then the wait that began it takes it back and
/// judges what it found.
#[derive(Debug)]
pub struct Look {
    pub(super) frame: Arc<Frame>,
    /// When that frame was the newest.
    pub(super) at: Moment,
    /// The oldest row that was kept then.
    pub(super) oldest: RowNumber,
    /// None where no line is waited for.
    pub(super) scan: Option<Scan>,
    taken: usize,
}

impl Look {
    /// How many steps a look may take at most. The step of a search is to move one state of an automaton
    /// by a byte, which takes some nanoseconds.
    pub const STEPS_MAX: usize = 1 << 27;

    pub(super) fn new(frame: Arc<Frame>, at: Moment, scan: Option<Scan>) -> Self {
        let oldest = frame.history.first();
        Self { frame, at, oldest, scan, taken: 0 }
    }

    /// Goes on for about so many steps; a few times the size of a pattern more at most.
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

    /// The look as if it had taken so many steps already.
    #[cfg(test)]
    pub(super) fn having_taken(self, taken: usize) -> Self {
        Self { taken, ..self }
    }

    /// Lets go of rows of history that were trimmed since, which then count as missed, lest the looks
    /// that are under way keep the history of as many moments in memory.
    pub fn renew(&mut self, history: &Arc<History>) {
        if !Arc::ptr_eq(&self.frame.history, history) {
            Arc::make_mut(&mut self.frame).history = Arc::clone(history);
        }
    }
}

/// The searches for the patterns of a wait.
#[derive(Debug)]
pub(super) struct Searches {
    wanted: Option<Find>,
    stop: Option<Find>,
}

impl Searches {
    /// None where there is no pattern.
    pub(super) fn of(wanted: Option<&Pattern>, stop: Option<&Pattern>) -> Option<Self> {
        let any = wanted.or(stop).is_some();
        let find = |pattern: &Pattern| Find { search: pattern.search(), shown: false };
        any.then(|| Self { wanted: wanted.map(find), stop: stop.map(find) })
    }
}

/// The search for one pattern in lines.
#[derive(Debug)]
struct Find {
    search: Search,
    /// The line is searched for the second time, as it is without the blanks before the cursor.
    shown: bool,
}

impl Find {
    /// The first match in the line. The blanks before the cursor may be part of it and need not be: a
    /// prompt `$ ` is found as well as one that ends in `$`.
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

/// What of a frame has to be looked at.
#[derive(Debug)]
pub(super) struct Span {
    /// What changed after this.
    pub(super) seen: Watermark,
    /// The cursor's row, if it changed after this.
    pub(super) base: Watermark,
    /// The cursor's row, if it is this one.
    pub(super) cursor_row: Option<RowNumber>,
    /// No row above this one.
    pub(super) top: RowNumber,
    /// The rows that were shown at `seen`, where the size changed since.
    pub(super) before: Option<Arc<[Stamped<Arc<Line>>]>>,
}

/// The rows of a look, one after the other.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) searches: Searches,
    span: Span,
    /// What has to be paid before what was shown before is known.
    owed: usize,
    reflow: Option<Reflow>,
    /// The next row.
    row: RowNumber,
    /// The row after the last line that was looked at.
    done: RowNumber,
    line: Option<Judging>,
    pub(super) first: Option<(Which, Hit)>,
    pub(super) others: Others,
    /// How many rows were trimmed before it was their turn.
    pub(super) missed: u64,
}

/// A line that is compared with both patterns.
#[derive(Debug)]
struct Judging {
    line: LogicalLine,
    /// What came of the first comparison, once it is over.
    wanted: Option<Option<Hit>>,
}

impl Judging {
    fn judge(&mut self, by: &mut Searches, steps: &mut Steps) -> Option<Option<(Which, Hit)>> {
        let find = |by: &mut Option<Find>, steps: &mut Steps| match by {
            Some(find) => find.find(&self.line, steps),
            None => Some(None),
        };
        if self.wanted.is_none() {
            self.wanted = Some(find(&mut by.wanted, steps)?);
        }
        let stop = find(&mut by.stop, steps)?;
        Some(match (self.wanted.take().flatten(), stop) {
            (Some(wanted), Some(stop)) if stop.row < wanted.row => Some((Which::StopPattern, stop)),
            (Some(wanted), _) => Some((Which::Pattern, wanted)),
            (None, stop) => stop.map(|stop| (Which::StopPattern, stop)),
        })
    }
}

impl Scan {
    pub(super) fn new(searches: Searches, span: Span, frame: &Frame) -> Self {
        /// What knowing a row of before costs.
        const ROW: usize = 32;
        let owed = span.before.as_ref().map_or(0, |before| ROW * Reflow::span(before, frame));
        Self {
            searches,
            owed,
            reflow: None,
            row: span.top.max(frame.history.first()),
            span,
            done: RowNumber(0),
            line: None,
            first: None,
            others: Others::default(),
            missed: 0,
        }
    }

    /// Goes on until all was looked at, or the steps are spent.
    fn run(&mut self, frame: &Frame, steps: &mut Steps) -> Option<()> {
        self.owed -= steps.pay(self.owed);
        if self.owed > 0 {
            return None;
        }
        let before = self.span.before.take();
        if let Some(before) = before {
            self.reflow = Some(Reflow::new(&before, frame, self.span.seen));
        }
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

    /// The next row that changed since the last look, in order, or the row of the cursor: a blank
    /// behind a prompt moves the cursor and leaves the row's text as it was.
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

    /// Passes rows that are neither in history nor on the screen.
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
        let Span { seen, base, cursor_row, .. } = self.span;
        match frame.line(row) {
            Some(line) => {
                let live = row == cursor && (line.changed > base || cursor_row == Some(cursor));
                live || line.changed > seen
            }
            None => frame.history.row(row).is_some_and(|kept| kept.changed > seen),
        }
    }

    /// The line of a row, unless it is an old one that a change of size wrote anew.
    fn line_of(&mut self, frame: &Frame, row: RowNumber, steps: &mut Steps) -> Option<Judging> {
        /// What joining another row costs.
        const ROW: usize = 16;
        let line = LogicalLine::around(frame, row)?;
        self.done = line.end();
        steps.spend(ROW * line.rows() + line.text_to_cursor().len() / 8);
        if let Some(reflow) = &self.reflow {
            steps.spend(reflow.lines() + ROW * line.rows() + line.text().len());
            if reflow.had(&line, frame) && !line.has(frame.cursor.value.row) {
                return None;
            }
        }
        Some(Judging { line, wanted: None })
    }
}
