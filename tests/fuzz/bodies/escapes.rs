//! The output of a program on its way through guard and emulator.
//!
//! The oracle is a second screen that gets each output in one piece. A third one is kept and made anew along the way, as
//! after a restart of the daemon.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use regex::bytes::Regex;
use termgate::core::frame::history::HistoryLimits;
use termgate::core::frame::line::Line;
use termgate::core::frame::{Cursor, Frame, ScreenMode, Size};
use termgate::core::ids::RowNumber;
use termgate::core::keys::modes::InputModes;
use termgate::core::moment::Moment;
use termgate::core::screen::sequence::Report;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};

use super::choices::Choices;
use super::steps::{SIZE, Step, steps};

/// How often a screen is made anew for one input.
const BREAKS_MAX: usize = 6;

/// Low enough that inputs reach them.
const LIMITS: ScreenLimits = ScreenLimits {
    history: HistoryLimits { rows_max: 200, bytes_max: 16 * 1024 },
    slice_bytes_max: 64 * 1024,
    command_bytes_max: 300,
    title_characters_max: 20,
    titles_max: 3,
    marks_max: 2,
    answers_per_second_max: 1_000,
    sync_time_max: Duration::from_millis(150),
    // Counted by calls of `feed`, so no input reaches it.
    sync_bytes_max: 2 * 1024 * 1024,
};

/// The most bytes of answers that wait.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// Every answer that a terminal may give. Numbers are modes, positions, sizes and colours; no text of a program is in
/// one.
static ANSWERS: LazyLock<Regex> = LazyLock::new(|| {
    let answers = [
        // Attributes of the terminal: DA1, DA2, DA3, XTVERSION.
        r"\x1b\[\?6c",
        r"\x1b\[>0;\d{1,6};1c",
        r"\x1bP!\|00000000\x1b\\",
        r"\x1bP>\|termgate\x1b\\",
        // DSR, CPR, DECXCPR.
        r"\x1b\[0n",
        r"\x1b\[\??\d{1,4};\d{1,4}R",
        // DECRQM, and the flags of the keyboard.
        r"\x1b\[\??\d{1,5};[0-4]\$y",
        r"\x1b\[\?\d{1,2}u",
        // Sizes in pixels and in cells.
        r"\x1b\[[48];\d{1,5};\d{1,5}t",
        // Refusals of DECRQSS and XTGETTCAP.
        r"\x1bP0[$+]r\x1b\\",
        // Colours.
        r"\x1b\](?:4;\d{1,3}|1[0-2]);rgb:[0-9a-f]{4}/[0-9a-f]{4}/[0-9a-f]{4}(?:\x07|\x1b\\)",
    ];
    Regex::new(&format!(r"(?-u)\A(?:{})*\z", answers.join("|"))).expect("the pattern is valid")
});

/// All that a screen shows and says, without the watermarks of changes.
#[derive(Debug, PartialEq)]
struct Content {
    base_row: RowNumber,
    lines: Vec<Arc<Line>>,
    size: Size,
    cursor: Cursor,
    mode: ScreenMode,
    title: Arc<str>,
    input_modes: InputModes,
    bell: u64,
    clipboard: u64,
    hold_until: Option<Moment>,
    answers: Vec<u8>,
    reports: (Vec<Report>, u64),
    history: Vec<(RowNumber, Line)>,
}

struct Terminal {
    screen: Screen,
    now: Moment,
    /// What was kept of history when the screen was made anew.
    blocks: Vec<Vec<u8>>,
    kept: RowNumber,
    breaks: usize,
    /// How often the clipboard was written before. A checkpoint has nothing of the clipboard.
    clipboard_before: u64,
}

impl Terminal {
    fn new() -> Self {
        Self {
            screen: Screen::new(SIZE, LIMITS, Origin::default()),
            now: Moment::default(),
            blocks: Vec::new(),
            kept: RowNumber(0),
            breaks: 0,
            clipboard_before: 0,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.screen.feed(self.now, bytes);
    }

    fn apply(&mut self, step: Step<'_>) {
        match step {
            Step::Output(bytes) => self.feed(bytes),
            Step::Resize(size) => self.screen.resize(size),
            Step::Wait(time) => self.now = self.now + time,
            Step::ClearHistory => self.screen.clear_history(),
            Step::Publish => {}
        }
    }

    /// Makes the screen anew from its checkpoint. Answers and reports must have been taken.
    fn break_off(&mut self) {
        if self.breaks == BREAKS_MAX {
            return;
        }
        self.breaks += 1;
        self.clipboard_before += self.frame().clipboard.value.count;
        let checkpoint = self.screen.checkpoint(self.kept);
        self.kept = checkpoint.end_row;
        self.blocks.push(checkpoint.rows);
        self.screen = Screen::restore(&checkpoint.snapshot, &self.blocks, LIMITS)
            .expect("a checkpoint can be restored");
    }

    fn frame(&mut self) -> Arc<Frame> {
        self.screen.first_frame(self.now, &Facts::default())
    }

    /// What there is now. Takes answers and reports. Only `with_history` has the rows above.
    fn content(&mut self, with_history: bool) -> Content {
        let frame = self.frame();
        let history = frame.history.range(frame.history.first(), frame.history.end());
        let history = history.take(if with_history { usize::MAX } else { 0 });
        Content {
            base_row: frame.base_row,
            lines: frame.lines.iter().map(|line| Arc::clone(&line.value)).collect(),
            size: frame.size.value,
            cursor: frame.cursor.value,
            mode: frame.mode.value,
            title: Arc::clone(&frame.title.value),
            input_modes: frame.input_modes.value,
            bell: frame.bell.value,
            clipboard: self.clipboard_before + frame.clipboard.value.count,
            hold_until: self.screen.hold_until(),
            answers: self.screen.take_answers(),
            reports: self.screen.take_reports(),
            history: history.map(|(number, row)| (number, row.line())).collect(),
        }
    }
}

impl Content {
    /// Checks what holds whatever a program writes.
    fn check_bounds(&self, frame: &Frame) {
        let Size { rows, cols } = self.size;
        assert_eq!(self.lines.len(), usize::from(rows));
        assert!(self.cursor.col <= cols && self.cursor.row < frame.end_row());
        for line in &self.lines {
            assert!(line.columns() <= cols && line.painted_columns() <= cols, "{line:?}");
            let marks = line.text.chars().count();
            assert!(marks <= usize::from(cols) * (1 + LIMITS.marks_max), "{marks} characters");
            assert!(!line.text.contains(char::is_control), "{:?}", line.text);
        }
        assert!(self.title.chars().count() <= LIMITS.title_characters_max);
        assert!(!self.title.contains(char::is_control), "{:?}", self.title);
        assert!(self.reports.0.len() <= Report::QUEUED_MAX);
        assert!(self.answers.len() <= ANSWER_BYTES_MAX);
        let shown = self.answers.escape_ascii();
        assert!(ANSWERS.is_match(&self.answers), "an answer that is not in the table: {shown}");
        let history = &frame.history;
        assert!(history.len() <= LIMITS.history.rows_max, "{} rows of history", history.len());
        assert!(history.end() <= self.base_row);
    }
}

pub fn check(data: &[u8]) {
    let mut choices = Choices::of(data);
    let (mut whole, mut cut, mut broken) = (Terminal::new(), Terminal::new(), Terminal::new());
    let all = steps(data);
    for (at, step) in all.iter().enumerate() {
        whole.apply(*step);
        match step {
            Step::Output(bytes) => {
                choices.pieces(bytes).iter().for_each(|piece| cut.feed(piece));
                let (start, end) = bytes.split_at(choices.below(bytes.len()));
                broken.feed(start);
                let taken = (broken.screen.take_answers(), broken.screen.take_reports());
                broken.break_off();
                broken.feed(end);
                compare(&mut whole, &mut cut, (&mut broken, taken), at + 1 == all.len());
                continue;
            }
            Step::Resize(_) | Step::Publish | Step::Wait(_) | Step::ClearHistory => {
                cut.apply(*step);
                broken.apply(*step);
            }
        }
        let nothing = (Vec::new(), (Vec::new(), 0));
        compare(&mut whole, &mut cut, (&mut broken, nothing), at + 1 == all.len());
    }
}

/// What was taken from a screen before it was made anew.
type Taken = (Vec<u8>, (Vec<Report>, u64));

fn compare(
    whole: &mut Terminal,
    cut: &mut Terminal,
    (broken, taken): (&mut Terminal, Taken),
    is_last: bool,
) {
    let expected = whole.content(is_last);
    expected.check_bounds(&whole.frame());
    assert_eq!(cut.content(is_last), expected, "cut, and whole");
    assert_eq!(cut.frame().lines, whole.frame().lines, "the changes of rows, cut and whole");
    let mut found = broken.content(is_last);
    let (answers, (reports, lost)) = taken;
    // Each half may queue as much as the whole, so a full queue says nothing.
    let is_full = |content: &Content| content.reports.0.len() == Report::QUEUED_MAX;
    if is_full(&expected) || is_full(&found) || reports.len() == Report::QUEUED_MAX {
        found.reports = expected.reports.clone();
    } else {
        found.reports = ([reports, found.reports.0].concat(), lost + found.reports.1);
    }
    found.answers = [answers, found.answers].concat();
    // The rate of answers is counted anew after a restart.
    if expected.answers.len() > 1_000 || found.answers.len() > 1_000 {
        found.answers = expected.answers.clone();
    }
    assert_eq!(found, expected, "made anew, and whole");
}
