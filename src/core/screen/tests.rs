//! What a screen promises, a sentence each; the models that try random output stand beside.

pub(in crate::core::screen) mod differential;
mod limits;
mod numbering;
mod replicas;
mod snapshots;

use super::*;
use crate::core::frame::history::HistoryLimits;
use crate::core::frame::line::{Attributes, Color, Run, Style};
use crate::core::frame::{Cursor, CursorShape, ScreenMode};
use crate::core::keys::modes::{MouseEncoding, MouseReporting};
use crate::core::screen::sequence::TaskProgress;

/// A screen with the frame that was published last.
struct Terminal {
    screen: Screen,
    frame: Arc<Frame>,
    now: Moment,
}

impl Terminal {
    fn new(rows: u16, cols: u16) -> Self {
        Self::starting_at(Origin::default(), rows, cols)
    }

    fn starting_at(origin: Origin, rows: u16, cols: u16) -> Self {
        Self::with(ScreenLimits::default(), origin, rows, cols)
    }

    fn with(limits: ScreenLimits, origin: Origin, rows: u16, cols: u16) -> Self {
        let now = Moment::default();
        let mut screen = Screen::new(Size { rows, cols }, limits, origin);
        let frame = screen.first_frame(now, &Facts::default());
        Self { screen, frame, now }
    }

    fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        self.screen.feed(self.now, bytes.as_ref());
    }

    /// Publishes; says whether there was a frame.
    fn publish(&mut self) -> bool {
        let published = self.screen.publish(self.now, &Facts::default());
        let changed = published.is_some();
        self.frame = published.unwrap_or_else(|| Arc::clone(&self.frame));
        changed
    }

    fn show(&mut self, bytes: impl AsRef<[u8]>) {
        self.feed(bytes);
        self.publish();
    }

    fn resize(&mut self, rows: u16, cols: u16) {
        self.screen.resize(Size { rows, cols });
        self.publish();
    }

    fn answers(&mut self, query: &str) -> String {
        self.feed(query);
        String::from_utf8(self.screen.take_answers()).unwrap()
    }

    #[track_caller]
    fn shows(&self, base_row: u64, expected: &[&str]) {
        assert_eq!(self.frame.base_row, RowNumber(base_row));
        let texts: Vec<&str> = self.frame.lines.iter().map(|line| &*line.value.text).collect();
        assert_eq!(texts, expected);
    }

    /// The history rows, oldest first, and the number of the first one.
    #[track_caller]
    fn kept(&self, first: u64, expected: &[&str]) {
        let history = &self.frame.history;
        assert_eq!(history.first(), RowNumber(first));
        let rows = history.range(history.first(), history.end());
        let texts: Vec<&str> = rows.map(|(_, row)| row.text).collect();
        assert_eq!(texts, expected);
    }

    fn stamps(&self) -> Vec<u64> {
        self.frame.lines.iter().map(|line| line.changed.0).collect()
    }

    fn history_stamp(&self, row: u64) -> u64 {
        self.frame.history.row(RowNumber(row)).unwrap().changed.0
    }
}

#[test]
fn the_first_frame_tells_everything_and_cannot_be_a_delta() {
    let terminal = Terminal::new(2, 10);
    assert_eq!(terminal.frame.watermark, Watermark(1));
    assert_eq!(terminal.frame.reset, Watermark(1));
    assert_eq!(terminal.stamps(), [1, 1]);
    terminal.shows(0, &["", ""]);
}

#[test]
fn a_screen_counts_on_from_its_origin() {
    let origin = Origin { watermark: Watermark(41), row: RowNumber(1_000_000) };
    let mut terminal = Terminal::starting_at(origin, 2, 10);
    assert_eq!(terminal.frame.watermark, Watermark(42));
    assert_eq!(terminal.frame.reset, Watermark(42));
    terminal.show("a\r\nb\r\nc");
    terminal.shows(1_000_001, &["b", "c"]);
    terminal.kept(1_000_000, &["a"]);
}

#[test]
fn no_frame_is_made_when_nothing_changed() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a");
    terminal.feed("\ra");
    assert!(!terminal.publish());
    terminal.feed("\x1b[31m");
    assert!(!terminal.publish());
}

#[test]
fn all_that_changed_carries_the_watermark_of_the_publish() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\x07\x1b]2;t\x1b\\");
    assert_eq!(terminal.frame.watermark, Watermark(2));
    assert_eq!(terminal.stamps(), [2, 2]);
    assert_eq!(terminal.frame.cursor.changed, Watermark(2));
    assert_eq!(terminal.frame.bell, Stamped { value: 1, changed: Watermark(2) });
    assert_eq!(terminal.frame.title.changed, Watermark(2));
    assert_eq!(terminal.frame.mode.changed, Watermark(1));
    terminal.show("c");
    assert_eq!(terminal.stamps(), [2, 3]);
    assert_eq!(terminal.frame.title.changed, Watermark(2));
}

#[test]
fn the_screen_changes_with_rows_cursor_size_and_mode_alone() {
    let mut terminal = Terminal::new(2, 10);
    terminal.now = Moment::from_boot(Duration::from_secs(5));
    terminal.show("\x07\x1b]2;t\x1b\\");
    assert_eq!(terminal.frame.screen_changed_at, Moment::default());
    assert_eq!(terminal.frame.screen_watermark(), Watermark(1));
    terminal.show("a");
    assert_eq!(terminal.frame.screen_changed_at, terminal.now);
}

#[test]
fn lease_and_exit_are_stamped_when_they_change() {
    let mut terminal = Terminal::new(2, 10);
    let facts = Facts { exit: Some(Exit::Code(3)), ..Facts::default() };
    let frame = terminal.screen.publish(terminal.now, &facts).unwrap();
    assert_eq!(frame.exit, Stamped { value: Some(Exit::Code(3)), changed: Watermark(2) });
    assert_eq!(frame.lease.changed, Watermark(1));
    assert!(terminal.screen.publish(terminal.now, &facts).is_none());
}

#[test]
fn the_cursor_has_an_absolute_row() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\ncd\x1b[4 q");
    let shape = CursorShape::Underline;
    let expected = Cursor { row: RowNumber(2), col: 2, visible: true, shape, style: 4 };
    assert_eq!(terminal.frame.cursor.value, expected);
    terminal.show("\x1b[?25l\x1b[6 q");
    let hidden = Cursor { visible: false, shape: CursorShape::Beam, style: 6, ..expected };
    assert_eq!(terminal.frame.cursor.value, hidden);
}

#[test]
fn a_cursor_blinks_as_the_program_asks_and_has_the_terminals_own_look_before() {
    let mut terminal = Terminal::new(2, 10);
    for (printed, style) in [
        ("a", 0),
        ("\x1b[1 q", 1),
        ("\x1b[2 q", 2),
        ("\x1b[3 q", 3),
        ("\x1b[5 q", 5),
        ("\x1b[?12l", 6),
        ("\x1b[ q", 0),
        ("\x1b[?12h", 1),
        ("\x1bc", 0),
    ] {
        terminal.show(printed);
        assert_eq!(terminal.frame.cursor.value.style, style, "{printed:?}");
    }
}

#[test]
fn blinking_text_and_the_clipboard_are_told() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\x1b[5mb\x1b[6;1mc\x1b[25md\x1b[5me\x1b[0mf");
    let line = &terminal.frame.lines[0].value;
    let blinks = (0..6).map(|column| line.style_at(column).attributes.contains(Attributes::BLINK));
    assert_eq!(blinks.collect::<Vec<_>>(), [false, true, true, false, true, false]);
    terminal.show("\x1b]52;c;aGk=\x07\x1b]52;c;?\x07");
    let clipboard = &terminal.frame.clipboard.value;
    assert_eq!((clipboard.count, &*clipboard.data), (1, "aGk="));
    assert!(terminal.screen.take_answers().is_empty());
}

#[test]
fn wide_characters_marks_and_tabs_keep_their_columns() {
    let mut terminal = Terminal::new(2, 20);
    terminal.show("漢e\u{301}\tz");
    terminal.shows(0, &["漢e\u{301}     z", ""]);
    let line = Arc::clone(&terminal.frame.lines[0].value);
    assert_eq!(line.glyphs().last().unwrap().column, 8);
}

#[test]
fn half_of_a_wide_character_is_blank() {
    let mut terminal = Terminal::new(2, 20);
    terminal.show("漢字z\x1b[1;2Hx");
    terminal.shows(0, &[" x字z", ""]);
}

#[test]
fn runs_join_equal_neighbours_and_leave_plain_text_out() {
    let mut terminal = Terminal::new(2, 20);
    terminal.show("a\x1b[1;31mbc\x1b[1;31md\x1b[m e\x1b[48;2;1;2;3mf\x1b[m");
    let bold =
        Style { foreground: Color::Indexed(1), attributes: Attributes::BOLD, ..Style::default() };
    let painted = Style { background: Color::Rgb(1, 2, 3), ..Style::default() };
    let runs =
        [Run { column: 1, columns: 3, style: bold }, Run { column: 6, columns: 1, style: painted }];
    assert_eq!(*terminal.frame.lines[0].value.runs, runs);
    terminal.shows(0, &["abcd ef", ""]);
}

#[test]
fn colour_behind_the_text_is_a_run_and_no_text() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("ab\x1b[44m\x1b[K\x1b[m");
    terminal.shows(0, &["ab", ""]);
    let blue = Style { background: Color::Indexed(4), ..Style::default() };
    let runs = [Run { column: 2, columns: 8, style: blue }];
    assert_eq!(*terminal.frame.lines[0].value.runs, runs);
}

#[test]
fn what_cannot_be_seen_of_blanks_behind_the_text_is_left_out() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("ab\x1b[1;32m   \x1b[m");
    assert_eq!(*terminal.frame.lines[0].value.runs, []);
}

#[test]
fn a_row_says_whether_its_text_goes_on_in_the_next() {
    let mut terminal = Terminal::new(3, 4);
    terminal.show("abcdef\r\nx");
    terminal.shows(0, &["abcd", "ef", "x"]);
    let wrapped: Vec<bool> = terminal.frame.lines.iter().map(|line| line.value.wrapped).collect();
    assert_eq!(wrapped, [true, false, false]);
}

#[test]
fn the_modes_of_keyboard_and_mouse_are_told() {
    let mut terminal = Terminal::new(2, 10);
    assert_eq!(terminal.screen.modes(), InputModes::default());
    terminal.feed("\x1b[?1;2004;1002;1006h\x1b=\x1b[20h\x1b[>5u");
    let expected = InputModes {
        application_cursor: true,
        application_keypad: true,
        bracketed_paste: true,
        line_feed_new_line: true,
        mouse: MouseReporting::Drags,
        mouse_encoding: MouseEncoding::Sgr,
        kitty_flags: 5,
    };
    assert_eq!(terminal.screen.modes(), expected);
    terminal.feed("\x1bc");
    assert_eq!(terminal.screen.modes(), InputModes::default());
}

#[test]
fn queries_get_fixed_answers_in_their_order() {
    let mut terminal = Terminal::new(24, 80);
    assert_eq!(terminal.answers("\x1b[c\x1b[5n"), "\x1b[?6c\x1b[0n");
    assert_eq!(terminal.answers("\x1b[=c"), "\x1bP!|00000000\x1b\\");
    assert_eq!(terminal.answers("\x1b[>q"), "\x1bP>|termgate\x1b\\");
    assert_eq!(terminal.answers("\x1b[3;4H\x1b[?6n\x1b[6n"), "\x1b[?3;4R\x1b[3;4R");
    assert_eq!(terminal.answers("\x1b[18t\x1b[14t"), "\x1b[8;24;80t\x1b[4;384;640t");
    assert_eq!(terminal.answers("\x1bP$qm\x1b\\\x1bP+q544e\x1b\\"), "\x1bP0$r\x1b\\\x1bP0+r\x1b\\");
    assert_eq!(terminal.answers("\x1b]11;?\x07"), "\x1b]11;rgb:0000/0000/0000\x07");
    assert_eq!(terminal.answers("\x1b[>3u\x1b[?u\x1b[<u\x1b[?u"), "\x1b[?3u\x1b[?0u");
    assert_eq!(terminal.answers("\x1b[?2004$p\x1b[?9999$p"), "\x1b[?2004;2$y\x1b[?9999;0$y");
}

#[test]
fn title_and_clipboard_are_never_given_back() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b]2;secret\x1b\\\x1b]52;c;c2VjcmV0\x1b\\");
    assert_eq!(terminal.answers("\x1b[21t\x1b[20t\x1b]52;c;?\x1b\\\x1b]2;?\x1b\\"), "");
}

#[test]
fn a_query_is_answered_once_however_it_is_cut() {
    let mut terminal = Terminal::new(2, 10);
    for byte in b"\x1b[>0q\x1b[?6n\x1bP$qm\x1b\\\x1b]10;?\x1b\\" {
        terminal.feed([*byte]);
    }
    let answers = String::from_utf8(terminal.screen.take_answers()).unwrap();
    let expected = "\x1bP>|termgate\x1b\\\x1b[?1;1R\x1bP0$r\x1b\\\x1b]10;rgb:d8d8/d8d8/d8d8\x1b\\";
    assert_eq!(answers, expected);
}

#[test]
fn a_title_put_aside_comes_back() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("\x1b]0;first\x07\x1b[22t\x1b]2;second\x07");
    assert_eq!(&*terminal.frame.title.value, "second");
    terminal.show("\x1b[23t");
    assert_eq!(&*terminal.frame.title.value, "first");
}

#[test]
fn reports_come_in_their_order() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b]7;file:///tmp\x07\x1b]9;4;1;50\x07");
    let expected =
        [Report::Directory("/tmp".to_owned()), Report::Progress(TaskProgress::Running(50))];
    assert_eq!(terminal.screen.take_reports(), (expected.to_vec(), 0));
    assert_eq!(terminal.screen.take_reports(), (vec![], 0));
}

#[test]
fn a_synchronized_update_withholds_frames_for_150_ms_at_most() {
    let mut terminal = Terminal::new(2, 10);
    let at = |ms| Moment::from_boot(Duration::from_millis(ms));
    terminal.now = at(1_000);
    terminal.feed("\x1b[?2026h");
    assert_eq!(terminal.screen.hold_until(), Some(at(1_150)));
    terminal.now = at(1_100);
    assert_eq!(terminal.answers("a\x1b[?2026h\x1b[?2026$p"), "\x1b[?2026;1$y");
    assert_eq!(terminal.screen.hold_until(), Some(at(1_150)));
    assert_eq!(terminal.answers("\x1b[?25;2026l\x1b[?2026$p"), "\x1b[?2026;2$y");
    assert_eq!(terminal.screen.hold_until(), None);
    terminal.publish();
    terminal.shows(0, &["a", ""]);
    assert!(!terminal.frame.cursor.value.visible);
}

#[test]
fn an_update_that_never_ended_gives_way_to_the_next() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b[?2026h");
    terminal.now = Moment::from_boot(Duration::from_millis(150));
    terminal.feed("\x1b[?2026h");
    let until = Moment::from_boot(Duration::from_millis(300));
    assert_eq!(terminal.screen.hold_until(), Some(until));
}

#[test]
fn a_clear_of_history_keeps_the_numbers() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc\r\nd");
    terminal.screen.clear_history();
    assert!(terminal.publish());
    terminal.kept(2, &[]);
    terminal.show("\r\ne");
    terminal.kept(2, &["c"]);
    terminal.shows(3, &["d", "e"]);
}

#[test]
fn history_is_bounded_by_its_limits() {
    let history = HistoryLimits { rows_max: 200, bytes_max: usize::MAX };
    let size = Size { rows: 2, cols: 10 };
    let mut screen =
        Screen::new(size, ScreenLimits { history, ..ScreenLimits::default() }, Origin::default());
    for row in 0..1_000 {
        screen.feed(Moment::default(), format!("{row}\r\n").as_bytes());
    }
    let frame = screen.first_frame(Moment::default(), &Facts::default());
    assert_eq!(frame.base_row, RowNumber(999));
    assert!(frame.history.len() <= 200);
    for (number, row) in frame.history.range(RowNumber(0), frame.base_row) {
        assert_eq!(row.text, number.to_string());
    }
}

#[test]
fn what_is_concealed_is_in_no_line_and_a_run_says_where_it_stands() {
    let mut terminal = Terminal::new(3, 40);
    terminal.show(
        "user \x1b[8ms\u{301}ecret 漢\x1b[m end\r\n\x1b[8monly this\x1b[m\r\n\x1b[4;8mab\x1b[m",
    );
    let line = &terminal.frame.lines[0].value;
    assert_eq!(&*line.text, "user           end");
    assert_eq!((line.runs[0].column, line.runs[0].columns), (5, 9));
    assert!(line.runs[0].style.attributes.contains(Attributes::CONCEALED));
    let line = &terminal.frame.lines[1].value;
    assert_eq!((&*line.text, line.runs[0].columns), ("", 9));
    assert!(line.runs[0].style.attributes.contains(Attributes::CONCEALED));
    assert_eq!(&*terminal.frame.lines[2].value.text, "");
}

#[test]
fn what_is_concealed_is_in_no_row_of_history() {
    let mut terminal = Terminal::new(2, 20);
    terminal.show("a \x1b[8msecret\x1b[m z\r\n\r\n\r\n");
    let row = terminal.frame.history.row(RowNumber(0)).unwrap();
    assert_eq!(row.text, "a        z");
}

#[test]
fn characters_that_nobody_sees_are_left_out_and_counted() {
    let mut terminal = Terminal::new(3, 20);
    let hidden = "\u{e0069}\u{e0067}\u{200b}\u{202e}\u{feff}";
    terminal.feed(format!("a{hidden}b❤\u{fe0f}e\u{301}"));
    terminal.show(format!("\r\n\x1b]2;ti{hidden}tle\x07"));
    assert_eq!(&*terminal.frame.lines[0].value.text, "ab❤\u{fe0f}e\u{301}");
    assert_eq!(&*terminal.frame.title.value, "title");
    assert_eq!(terminal.screen.invisible(), 5);
}
