//! Our screen beside the bare emulator, under random output cut anywhere.
//!
//! The bare one knows nothing of guards, harvests and numbers: a plain list of the rows that left
//! it says which number each row of ours must have.

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term, TermMode};
use alacritty_terminal::vte::ansi::{Color as CellColor, NamedColor};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::core::frame::line::Line;
use crate::core::screen::cells::RowReader;

/// One step of the program, the operator or the publisher.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Output(String),
    EraseScreen,
    EraseSaved,
    Reset,
    EnterAlternate,
    LeaveAlternate,
    Resize(Size),
    Publish,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => vec(output(), 1..12).prop_map(|parts| Step::Output(parts.concat())),
        3 => Just(Step::EraseScreen),
        1 => Just(Step::EraseSaved),
        1 => Just(Step::Reset),
        2 => Just(Step::EnterAlternate),
        2 => Just(Step::LeaveAlternate),
        3 => (2..9u16, 2..14u16).prop_map(|(rows, cols)| Step::Resize(Size { rows, cols })),
        8 => Just(Step::Publish),
    ];
    vec(step, 1..40)
}

pub(in crate::core::screen) fn output() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z0-9 ]{1,20}",
        6 => Just("\r\n".to_owned()),
        2 => "[\\n\\x0b\\x0c\\r\\t\\x08]{1,6}",
        2 => "[漢字e\u{301}é\u{85}🙂]{1,5}",
        2 => Just("one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n".to_owned()),
        4 => (0..10u8, 0..16u8).prop_map(|(row, col)| format!("\x1b[{row};{col}H")),
        6 => ("[@ABCDEFGIKLMPSTXZbdg]", 0..9u8).prop_map(|(end, n)| format!("\x1b[{n}{end}")),
        2 => "\\x1b\\[[01]J",
        4 => "(0|1|7|22|27|31|44|4;9|38;5;200|48;2;1;2;3|58;5;1)".prop_map(|n| format!("\x1b[{n}m")),
        2 => (0..3u8, 0..10u8).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r")),
        3 => "\\x1b[DEHM78]",
        2 => "\\x1b[()][0B]|[\\x0e\\x0f]",
        1 => Just("\x1b#8".to_owned()),
        2 => "\\x1b\\[(4|20)[hl]",
        3 => "\\x1b\\[\\?(6|7|25|3|2026|7;2026)[hl]",
        1 => "\\x1b\\][0-9]{1,3};[a-z;?\u{271c}]{0,9}(\\x07|\\x1b\\\\)",
        2 => "\\x1b\\]8;;(http://[a-c])?\\x07",
        1 => "\\x1b[P_X^][a-z;$+]{0,9}\\x1b(\\\\|\\[1m)",
        1 => "\\x1b[\\[ (#\\]P]?[0-9;?]{0,4}[\\x18\\x1a]",
    ]
}

/// The bare emulator, and all rows that ever left it.
struct Model {
    term: Term<VoidListener>,
    parser: Processor<Unbuffered>,
    kept: Vec<Vec<String>>,
}

impl Model {
    fn new(size: Size) -> Self {
        let config = Config { scrolling_history: 5_000, ..Config::default() };
        Self {
            term: Term::new(config, &cells(size), VoidListener),
            parser: Processor::new(),
            kept: Vec::new(),
        }
    }

    fn alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    fn row(&self, line: i32) -> Vec<String> {
        columns_of_cells(&self.term.grid()[GridLine(line)][..])
    }

    /// The rows on the screen down to the last one with anything in it.
    fn used(&self) -> Vec<Vec<String>> {
        let seen = Flags::INVERSE | Flags::ALL_UNDERLINES | Flags::STRIKEOUT;
        let blank = |(at, cell): (usize, &Cell), row: &[Cell]| {
            let nothing = matches!(cell.c, ' ' | '\t')
                && cell.zerowidth().is_none_or(<[char]>::is_empty)
                && !cell.flags.contains(Flags::WIDE_CHAR);
            (nothing || torn(row, at))
                && cell.bg == CellColor::Named(NamedColor::Background)
                && !cell.flags.intersects(seen)
        };
        // Elsewhere than in the last column the mark of wrapping is left over from other columns.
        let wraps = |row: &[Cell]| row.last().is_some_and(|c| c.flags.contains(Flags::WRAPLINE));
        let used = |line: &usize| {
            let row = &self.term.grid()[GridLine(*line as i32)][..];
            wraps(row) || !row.iter().enumerate().all(|cell| blank(cell, row))
        };
        let used = (0..self.term.screen_lines()).rev().find(used).map_or(0, |last| last + 1);
        self.screen().into_iter().take(used).collect()
    }

    fn screen(&self) -> Vec<Vec<String>> {
        (0..self.term.screen_lines() as i32).map(|line| self.row(line)).collect()
    }

    fn feed(&mut self, bytes: &str) {
        self.parser.advance(&mut self.term, bytes.as_bytes());
        let scrolled = self.term.history_size() as i32;
        self.kept.extend((-scrolled..0).map(|line| self.row(line)).collect::<Vec<_>>());
        self.term.grid_mut().clear_history();
    }

    /// Works around the emulator's way of clearing rows, which goes wrong for those that were
    /// painted and then got other columns.
    fn settle(&mut self) {
        let rows = -(self.term.history_size() as i32)..self.term.screen_lines() as i32;
        for line in rows {
            let _written = &mut self.term.grid_mut()[GridLine(line)][..];
        }
        self.feed("");
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Output(text) => self.feed(text),
            Step::EraseScreen => {
                let rows = 0..self.term.screen_lines() as i32;
                let mut rows = rows.map(|line| &self.term.grid()[GridLine(line)]);
                let empty = rows.all(|row| row.is_clear());
                self.parser.advance(&mut self.term, b"\x1b[2J");
                if empty {
                    self.term.grid_mut().clear_history();
                }
                self.feed("");
            }
            Step::EraseSaved => self.feed("\x1b[3J"),
            Step::Reset => {
                self.apply(&Step::LeaveAlternate);
                self.kept.extend(self.used());
                self.feed("\x1bc");
            }
            Step::EnterAlternate if !self.alternate() => {
                self.feed("\x1b[?1049h");
                // It is cleared then, also where it was painted before it got other columns.
                self.settle();
                self.feed("\x1b[2J");
            }
            Step::LeaveAlternate if self.alternate() => {
                self.parser.advance(&mut self.term, b"\x1b[?1049l");
                // Behind the alternate screen the saved cursor goes where the cursor goes.
                self.term.grid_mut().saved_cursor = self.term.grid().cursor.clone();
                self.settle();
            }
            Step::Resize(size) => {
                self.term.resize(cells(*size));
                self.settle();
            }
            Step::EnterAlternate | Step::LeaveAlternate | Step::Publish => {}
        }
    }
}

fn cells(size: Size) -> TermSize {
    TermSize::new(size.cols.into(), size.rows.into())
}

pub(super) fn bytes_of(step: &Step) -> &str {
    match step {
        Step::Output(text) => text,
        Step::EraseScreen => "\x1b[2J",
        Step::EraseSaved => "\x1b[3J",
        Step::Reset => "\x1bc",
        Step::EnterAlternate => "\x1b[?1049h",
        Step::LeaveAlternate => "\x1b[?1049l",
        Step::Resize(_) | Step::Publish => "",
    }
}

/// Whether a cell is half of a wide character that lost its other half.
fn torn(cells: &[Cell], at: usize) -> bool {
    let is = |at: usize, flag| cells.get(at).is_some_and(|cell| cell.flags.contains(flag));
    let first = is(at, Flags::WIDE_CHAR) && !is(at + 1, Flags::WIDE_CHAR_SPACER);
    let second = is(at, Flags::WIDE_CHAR_SPACER) && !(at > 0 && is(at - 1, Flags::WIDE_CHAR));
    first || second
}

/// What stands in each column; the second half of a wide character is empty, one that lost its
/// other half is blank.
fn columns_of_cells(cells: &[Cell]) -> Vec<String> {
    let is = |at: usize, flag| cells.get(at).is_some_and(|cell| cell.flags.contains(flag));
    let column = |(at, cell): (usize, &Cell)| {
        if at > 0 && is(at, Flags::WIDE_CHAR_SPACER) && is(at - 1, Flags::WIDE_CHAR) {
            return String::new();
        }
        let torn = torn(cells, at);
        let character = if torn || cell.c == '\t' { ' ' } else { cell.c };
        let marks = if torn { &[] } else { cell.zerowidth().unwrap_or_default() };
        std::iter::once(character).chain(marks.iter().copied().take(8)).collect()
    };
    let mut columns: Vec<String> = cells.iter().enumerate().map(column).collect();
    columns.truncate(columns.iter().rposition(|column| column != " ").map_or(0, |at| at + 1));
    columns
}

fn columns_of_line(line: &Line) -> Vec<String> {
    let mut columns = Vec::new();
    for glyph in line.glyphs() {
        columns.push(glyph.text.to_owned());
        columns.resize(columns.len() + usize::from(glyph.columns) - 1, String::new());
    }
    columns
}

fn check(frame: &Frame, model: &Model) {
    let base = model.kept.len() as u64;
    assert_eq!(frame.base_row, RowNumber(base));
    let screen: Vec<_> = frame.lines.iter().map(|line| columns_of_line(&line.value)).collect();
    assert_eq!(screen, model.screen());
    let mut reader = RowReader::default();
    for (line, shown) in frame.lines.iter().enumerate() {
        reader.read(&model.term.grid()[GridLine(line as i32)]);
        assert_eq!(shown.value.runs, reader.line().runs, "{}", shown.value.text);
    }
    let history = frame.history.range(frame.history.first(), frame.history.end());
    let history: Vec<_> = history.map(|(_, row)| columns_of_line(&row.line())).collect();
    assert_eq!(history, model.kept);
    let point = model.term.grid().cursor.point;
    let cursor = (frame.cursor.value.row.0, usize::from(frame.cursor.value.col));
    assert_eq!(cursor, (base + point.line.0 as u64, point.column.0));
    assert_eq!(frame.mode.value == ScreenMode::Alternate, model.alternate());
}

/// Lets both go through the same steps, ours cut in pieces of this many bytes.
fn agree(steps: &[Step], piece: usize, size: Size) {
    let mut terminal = Terminal::new(size.rows, size.cols);
    let mut model = Model::new(size);
    for step in steps.iter().chain(&[Step::Publish]) {
        model.apply(step);
        match step {
            Step::Resize(size) => terminal.screen.resize(*size),
            Step::Publish => {
                terminal.publish();
                check(&terminal.frame, &model);
            }
            Step::Output(_)
            | Step::EraseScreen
            | Step::EraseSaved
            | Step::Reset
            | Step::EnterAlternate
            | Step::LeaveAlternate => {
                bytes_of(step).as_bytes().chunks(piece).for_each(|piece| terminal.feed(piece));
            }
        }
    }
}

#[test]
fn an_alternate_screen_that_was_painted_and_widened_while_hidden_is_empty_when_it_appears() {
    let steps = [
        Step::EnterAlternate,
        Step::Output("\x1b[44m\n\n".to_owned()),
        Step::LeaveAlternate,
        Step::Resize(Size { rows: 2, cols: 3 }),
        Step::EnterAlternate,
    ];
    agree(&steps, 1, Size { rows: 2, cols: 2 });
}

#[test]
fn a_row_with_nothing_but_half_of_a_wide_character_was_never_used() {
    let steps = [
        Step::Output("\x1b[?7l\x1b[0;10H漢\x1b[2P".to_owned()),
        Step::Resize(Size { rows: 2, cols: 2 }),
    ];
    agree(&steps, 1, Size { rows: 2, cols: 12 });
}

#[test]
fn a_row_with_nothing_but_the_trace_of_an_older_wrap_was_never_used() {
    let steps = [
        Step::Output("a0a0   ".to_owned()),
        Step::EraseScreen,
        Step::Resize(Size { rows: 6, cols: 5 }),
        Step::Output("aaa  000aaaa  00  0a a  a\x1b[0;2r".to_owned()),
        Step::Resize(Size { rows: 5, cols: 2 }),
        Step::Publish,
        Step::Resize(Size { rows: 2, cols: 3 }),
    ];
    agree(&steps, 1, Size { rows: 2, cols: 2 });
}

#[test]
fn half_a_wide_character_on_a_screen_that_narrows_is_numbered_like_the_rest() {
    let cols = |cols| Step::Resize(Size { rows: 2, cols });
    let text = "\x1b[1m字a a0 \x1b[0A\x1b[0J".to_owned();
    agree(&[cols(6), Step::Output(text), cols(2)], 1, Size { rows: 2, cols: 2 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_screen_shows_what_the_bare_emulator_shows_and_numbers_never_shift(
        steps in steps(),
        piece in 1..40usize,
        rows in 2..7u16,
        cols in 2..14u16,
    ) {
        agree(&steps, piece, Size { rows, cols });
    }

    #[test]
    fn bytes_of_any_kind_do_not_fail_and_do_not_depend_on_their_pieces(
        bytes in vec(prop_oneof![any::<u8>(), b'a'..=b'z', Just(0x1b), Just(b'['), Just(0xc2), Just(b';')], 0..600),
        piece in 1..9usize,
        rows in 2..5u16,
        cols in 2..30u16,
    ) {
        let mut whole = Terminal::new(rows, cols);
        whole.show(&bytes);
        let mut cut = Terminal::new(rows, cols);
        bytes.chunks(piece).for_each(|piece| cut.feed(piece));
        cut.publish();
        prop_assert_eq!(&whole.frame.lines, &cut.frame.lines);
        prop_assert_eq!(whole.frame.base_row, cut.frame.base_row);
        prop_assert_eq!(whole.frame.cursor, cut.frame.cursor);
        prop_assert_eq!(whole.screen.take_answers(), cut.screen.take_answers());
        prop_assert_eq!(whole.screen.take_reports(), cut.screen.take_reports());
    }
}
