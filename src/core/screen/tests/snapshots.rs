//! A screen that was made anew goes on as one that was not, whatever came and wherever the break
//! was; and nothing that pretends to be a snapshot does harm.

use proptest::collection::vec;
use proptest::prelude::*;

use super::differential::{Step, bytes_of, steps};
use super::*;
use crate::core::frame::line::Line;
use crate::core::screen::checkpoint::Checkpoint;
use crate::core::screen::snapshot::SnapshotError;

/// A screen that can be broken off and made anew, with the blocks of rows that were kept for it.
struct Kept {
    terminal: Terminal,
    limits: ScreenLimits,
    blocks: Vec<Vec<u8>>,
    /// The end of the last block.
    end: RowNumber,
}

impl Kept {
    fn new(rows: u16, cols: u16) -> Self {
        Self::with(ScreenLimits::default(), rows, cols)
    }

    fn with(limits: ScreenLimits, rows: u16, cols: u16) -> Self {
        let terminal = Terminal::with(limits, Origin::default(), rows, cols);
        Self { terminal, limits, blocks: Vec::new(), end: RowNumber(0) }
    }

    fn checkpoint(&mut self) -> Checkpoint {
        let checkpoint = self.terminal.screen.checkpoint(self.end);
        self.blocks.push(checkpoint.rows.clone());
        self.end = checkpoint.end_row;
        checkpoint
    }

    /// Makes the screen anew of what is kept of it.
    fn break_off(&mut self) -> Checkpoint {
        let checkpoint = self.checkpoint();
        self.terminal.screen = self.restored(&checkpoint);
        checkpoint
    }

    fn restored(&self, checkpoint: &Checkpoint) -> Screen {
        Screen::restore(&checkpoint.snapshot, &self.blocks, self.limits).unwrap()
    }
}

/// All that a frame says, save for when it changed.
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
    history: Vec<(RowNumber, Line)>,
    history_bytes: usize,
    hold_until: Option<Moment>,
    answers: Vec<u8>,
    reports: Vec<Report>,
}

/// What the terminal shows and says now.
fn content(terminal: &mut Terminal) -> Content {
    let facts = Facts::default();
    let frame = terminal.screen.first_frame(terminal.now, &facts);
    terminal.frame = Arc::clone(&frame);
    let history = frame.history.range(frame.history.first(), frame.history.end());
    Content {
        base_row: frame.base_row,
        lines: frame.lines.iter().map(|line| Arc::clone(&line.value)).collect(),
        size: frame.size.value,
        cursor: frame.cursor.value,
        mode: frame.mode.value,
        title: Arc::clone(&frame.title.value),
        input_modes: frame.input_modes.value,
        bell: frame.bell.value,
        history: history.map(|(number, row)| (number, row.line())).collect(),
        history_bytes: frame.history.bytes(),
        hold_until: terminal.screen.hold_until(),
        answers: terminal.screen.take_answers(),
        reports: terminal.screen.take_reports().0,
    }
}

#[track_caller]
fn assert_same(whole: &mut Terminal, broken: &mut Terminal) {
    assert_eq!(content(whole), content(broken));
}

/// Output after which all that was set shows, a part at a time.
const REVEALING: [&str; 14] = [
    // The character set in use, modes of wrapping and inserting, and what a repetition repeats.
    "qx\x1b[3b\x0eq\x0fq",
    // Tab stops, and the style in force.
    "\r\tA\tB\tC\x1b[ZD",
    // The scrolling region, and the origin.
    "\x1b[99;1Ha\nb\nc\x1b[1;1Hd\x1bMe\x1bMf\x1b[S",
    // Modes.
    "\x1b[4$p\x1b[20$p\x1b[?1;6;7;12;25;1000$p\x1b[?1$p\x1b[?6$p\x1b[?7$p\x1b[?12$p\x1b[?1004$p\
     \x1b[?1002$p\x1b[?1003$p\x1b[?1005$p\x1b[?1006$p\x1b[?1007$p\x1b[?1042$p\x1b[?2026$p",
    // The cursor that was saved.
    "\x1b8\x1b[6nz\x1b7",
    "\x1b[?u\x1b[<u\x1b[?u\x1b[<9u\x1b[?u",
    "\x1b[23t",
    "\x1b[23t",
    // The other screen.
    "\x1b[?1049h\x1b[?u\x1b8\x1b[6ny\x1b[<u\x1b[?u",
    "\x1b[?1049l\x1b8\x1b[6nw",
    "\x1b[?1049h\x1b[?u\x1b8\x1b[6n",
    "\x1b[?1049l\n\n\n\n\n\n\n\n\n\nu\x1b[6n",
    "\x1b[2J\x1b[Hq\x1b[K\x1b#8\x1b[J",
    "\x1b[?6l\x1b[r\x1b[5;5Hend\x1bcnew",
];

#[track_caller]
fn assert_same_for_ever(whole: &mut Terminal, broken: &mut Terminal) {
    assert_same(whole, broken);
    for output in REVEALING {
        whole.feed(output);
        broken.feed(output);
        assert_same(whole, broken);
    }
}

/// One step: the program's, the operator's, or of time.
#[derive(Clone, Debug)]
enum Event {
    Output(Vec<u8>),
    Resize(Size),
    ClearHistory,
    Later,
}

impl Event {
    fn apply(&self, terminal: &mut Terminal) {
        match self {
            Self::Output(bytes) => terminal.feed(bytes),
            Self::Resize(size) => terminal.screen.resize(*size),
            Self::ClearHistory => terminal.screen.clear_history(),
            Self::Later => terminal.now = terminal.now + Duration::from_millis(40),
        }
    }
}

/// Bytes that set what no line shows, and bytes that mean nothing.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        4 => "[a-zq-x ]{1,12}",
        2 => Just("\r\n".to_owned()),
        2 => "[\\x07\\x08\\x09\\x0b\\x0e\\x0f\\x7f\\x00]{1,4}",
        2 => "\\x1b[()*+][0B]",
        3 => "\\x1b(H|=|>|7|8|D|E|M|#8|\\[g|\\[3g|\\[\\?5W)",
        3 => "\\x1b\\[[<>=?]?[0-9;:]{0,6}[@-~]",
        3 => "\\x1b\\[\\?(1|3|6|7|12|25|1000|1002|1003|1004|1005|1006|1007|1042|1049|2004|2026)[hl]",
        1 => "\\x1b\\[(4|20)[hl]",
        2 => "\\x1b\\[[0-6] q",
        2 => "\\x1b\\[[<>=]?[0-9]{0,2};?[0-3]?u",
        2 => "\\x1b\\[2[23];?[0-2]?t",
        2 => "\\x1b\\][0-2];[a-z]{0,9}(\\x07|\\x1b\\\\|)",
        1 => "\\x1b[]P_X^][0-9;a-z?$+]{0,30}",
        1 => "\\x1b\\](4;1|10|11);\\?\\x07",
        1 => "[0-9;]{0,40}b",
        2 => "\\x1b\\[[0-9]{1,2};[0-9]{1,2}[Hr]",
        2 => "\\x1b\\[(0|1;3;4:3|7;9|38;5;9|38;2;1;2;3|48;2;9;8;7|48;5;3|21|4:4|4:5|2;8|31;42|95)m",
        2 => "[漢字e\u{301}\u{302}é\u{ad}🙂\u{200d}]{1,6}",
        1 => Just(format!("\x1b[{}", "1;".repeat(140))),
        1 => Just(format!("\x1b]2;{}", "y".repeat(5_000))),
    ];
    let broken = vec(
        prop_oneof![any::<u8>(), 0x80..=0xffu8, Just(0xe2), Just(0xc3), Just(0x1b), Just(b'[')],
        1..6,
    );
    prop_oneof![8 => text.prop_map(String::into_bytes), 1 => broken]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let side = || (2..12u16, 2..24u16).prop_map(|(rows, cols)| Size { rows, cols });
    let output = vec(soup(), 1..8).prop_map(|parts| Event::Output(parts.concat()));
    let event = prop_oneof![
        16 => output,
        3 => side().prop_map(Event::Resize),
        1 => Just(Event::ClearHistory),
        1 => Just(Event::Later),
    ];
    let orderly = steps().prop_map(|steps| steps.iter().map(orderly).collect());
    prop_oneof![2 => vec(event, 1..24), 1 => orderly]
}

fn orderly(step: &Step) -> Event {
    if let Step::Resize(size) = step {
        return Event::Resize(*size);
    }
    Event::Output(bytes_of(step).into())
}

/// The events with output cut at a place in the middle of each.
fn cut(events: &[Event], places: &[usize]) -> Vec<Event> {
    let mut places = places.iter().cycle();
    let mut pieces = Vec::new();
    for event in events {
        let Event::Output(bytes) = event else {
            pieces.push(event.clone());
            continue;
        };
        let at = places.next().map_or(0, |place| place % (bytes.len() + 1));
        let (before, after) = bytes.split_at(at);
        pieces.extend([before, after].map(|piece| Event::Output(piece.to_vec())));
    }
    pieces
}

#[test]
fn an_empty_screen_is_kept_in_a_hundred_bytes_and_a_plain_one_in_little_more_than_its_text() {
    let mut kept = Kept::new(24, 80);
    assert!(kept.checkpoint().snapshot.len() < 100);
    let line = "the quick brown fox jumps over the lazy dog and then sleeps\r\n";
    kept.terminal.feed(line.repeat(23));
    let bytes = kept.checkpoint().snapshot.len();
    assert!(bytes < 23 * line.len() + 300, "{bytes}");
}

#[test]
fn watermarks_count_on_above_all_that_were_reserved_and_the_first_frame_is_no_delta() {
    let mut kept = Kept::new(2, 10);
    kept.terminal.show("a\r\nb\r\nc");
    let newest = kept.terminal.frame.watermark;
    let checkpoint = kept.break_off();
    assert_eq!(checkpoint.reserved.0, newest.0 + 1 + Checkpoint::WATERMARKS_RESERVED);
    kept.terminal.publish();
    assert_eq!(kept.terminal.frame.watermark, checkpoint.reserved.next());
    assert_eq!(kept.terminal.frame.reset, kept.terminal.frame.watermark);
    kept.terminal.shows(1, &["b", "c"]);
    kept.terminal.kept(0, &["a"]);
    assert_eq!(kept.terminal.history_stamp(0), 2);
}

#[test]
fn a_checkpoint_tells_only_the_rows_that_are_new() {
    let mut kept = Kept::new(2, 10);
    kept.terminal.feed("a\r\nb\r\nc\r\nd");
    let first = kept.checkpoint();
    assert_eq!((first.first_row, first.end_row), (RowNumber(0), RowNumber(2)));
    let second = kept.checkpoint();
    assert!(second.rows.is_empty());
    kept.terminal.feed("\r\ne");
    let third = kept.checkpoint();
    assert!(third.rows.len() < first.rows.len());
    assert_eq!(third.end_row, RowNumber(3));
    kept.break_off();
    kept.terminal.publish();
    kept.terminal.kept(0, &["a", "b", "c"]);
}

#[test]
fn blocks_are_read_alike_whether_one_by_one_or_as_one_segment() {
    let mut kept = Kept::new(2, 10);
    for _ in 0..5 {
        kept.terminal.feed("a\r\n\x1b[31mb\r\n");
        kept.checkpoint();
    }
    let checkpoint = kept.checkpoint();
    let segment = kept.blocks.concat();
    let screen = Screen::restore(&checkpoint.snapshot, [segment], kept.limits);
    let mut whole = kept.terminal;
    let mut broken = Terminal { screen: screen.unwrap(), ..Terminal::new(2, 10) };
    assert_same(&mut whole, &mut broken);
}

#[test]
fn rows_that_are_missing_take_the_older_ones_along_and_no_number_comes_twice() {
    let mut kept = Kept::new(2, 10);
    for text in ["a\r\nb\r\nc\r\n", "d\r\n", "e\r\n"] {
        kept.terminal.feed(text);
        kept.checkpoint();
    }
    let checkpoint = kept.checkpoint();
    kept.blocks[1].clear();
    kept.terminal.screen = kept.restored(&checkpoint);
    kept.terminal.publish();
    kept.terminal.kept(3, &["d"]);
    kept.terminal.shows(4, &["e", ""]);
    kept.blocks.clear();
    kept.terminal.screen = kept.restored(&checkpoint);
    kept.terminal.publish();
    kept.terminal.kept(4, &[]);
    kept.terminal.shows(4, &["e", ""]);
}

#[test]
fn an_older_snapshot_is_numbered_behind_the_rows_that_are_kept() {
    let mut kept = Kept::new(2, 10);
    kept.terminal.feed("a\r\nb\r\nc");
    let older = kept.checkpoint();
    kept.terminal.feed("\r\nd\r\ne");
    kept.checkpoint();
    kept.terminal.screen = kept.restored(&older);
    kept.terminal.publish();
    kept.terminal.kept(0, &["a", "b", "c"]);
    kept.terminal.shows(3, &["b", "c"]);
}

#[test]
fn rows_that_were_trimmed_or_cleared_do_not_come_back() {
    let history = HistoryLimits { rows_max: 300, bytes_max: usize::MAX };
    let mut kept = Kept::with(ScreenLimits { history, ..ScreenLimits::default() }, 2, 10);
    for row in 0..1_000 {
        kept.terminal.feed(format!("{row}\r\n"));
        if row % 90 == 0 {
            kept.checkpoint();
        }
    }
    let first = kept.checkpoint().first_row;
    assert!(first > RowNumber(600));
    kept.break_off();
    kept.terminal.publish();
    assert_eq!(kept.terminal.frame.history.first(), first);
    assert_eq!(kept.terminal.frame.history.end(), RowNumber(999));
    kept.terminal.screen.clear_history();
    kept.break_off();
    kept.terminal.publish();
    kept.terminal.kept(999, &[]);
}

#[test]
fn limits_of_now_hold_for_what_was_kept() {
    let mut kept = Kept::new(2, 10);
    kept.terminal.feed("\x1b]2;first\x07\x1b[22t\x1b]2;second\x07\x1b[22t\x1b]2;third\x07");
    kept.terminal.feed(format!("\x1b]2;{}", "x".repeat(100)));
    kept.limits = ScreenLimits {
        title_characters_max: 3,
        titles_max: 1,
        command_bytes_max: 50,
        ..ScreenLimits::default()
    };
    kept.break_off();
    kept.terminal.publish();
    assert_eq!(&*kept.terminal.frame.title.value, "thi");
    kept.terminal.show("\x07\x1b[23t\x1b[23t");
    assert_eq!(&*kept.terminal.frame.title.value, "sec");
}

#[test]
fn a_string_that_never_ends_stays_small_and_is_skipped_all_the_same() {
    for opening in ["\x1b]2;", "\x1bP", "\x1b_", "\x1b[", "\x1b(", "\x1b#"] {
        let mut kept = Kept::new(2, 10);
        kept.terminal.feed(opening);
        for _ in 0..1_000 {
            kept.terminal.feed(" ".repeat(1_000));
        }
        let checkpoint = kept.break_off();
        assert!(checkpoint.snapshot.len() < 1_000, "{opening:?}");
        kept.terminal.show("\x1b\\a");
        kept.terminal.shows(0, &["a", ""]);
    }
}

#[test]
fn what_resizing_did_behind_the_alternate_screen_is_kept() {
    let mut kept = Kept::new(6, 8);
    let mut whole = Terminal::new(6, 8);
    let sizes = [(3, 8), (4, 3), (9, 20), (2, 2), (6, 8)];
    for terminal in [&mut kept.terminal, &mut whole] {
        terminal.feed("abcdefghij\r\n\x1b[31mk漢字lm\r\nno\r\np\x1b7\x1b[?1049hALT\x1b7");
    }
    for (rows, cols) in sizes {
        kept.break_off();
        for terminal in [&mut kept.terminal, &mut whole] {
            terminal.screen.resize(Size { rows, cols });
            terminal.feed("\x1b[Hx\r\ny");
        }
        kept.break_off();
        assert_same(&mut whole, &mut kept.terminal);
    }
    assert_same_for_ever(&mut whole, &mut kept.terminal);
}

#[test]
fn the_saved_cursor_follows_the_cursor_behind_the_alternate_screen() {
    let mut terminal = Terminal::new(4, 10);
    terminal.show("a\r\nb\r\nc\r\nd\x1b[?1049h");
    terminal.resize(2, 10);
    terminal.show("\x1b[?1049l\x1b[H\x1b8!");
    terminal.shows(2, &["c", "d!"]);
}

#[test]
fn a_snapshot_of_another_format_says_so() {
    let refused = |bytes: &[u8]| Screen::restore(bytes, [[]], ScreenLimits::default()).unwrap_err();
    assert_eq!(refused(b""), SnapshotError::Format { found: Vec::new() });
    let newer = b"TGSC\x06and more";
    assert_eq!(refused(newer), SnapshotError::Format { found: b"TGSC\x06".to_vec() });
    assert!(matches!(refused(b"TGSC\x05"), SnapshotError::Damaged { .. }));
    let mut kept = Kept::new(2, 10);
    kept.terminal.feed("a\r\nb\r\nc");
    let Checkpoint { snapshot, rows, .. } = kept.checkpoint();
    let torn = &rows[..rows.len() - 1];
    let refused = Screen::restore(&snapshot, [torn], kept.limits).unwrap_err();
    assert!(matches!(refused, SnapshotError::Rows { .. }));
}

/// Screens as the format has them: the output before, the bytes then, and the rows of history.
const SCREENS: [(&str, &[u8], &[u8]); 2] = [
    (
        "a\r\n\x1b[1;31mb\x1b[m\r\n\x1b[48;2;1;2;3;38;5;200m\u{6f22}e\u{301}\x1b[0;4:3;7m wrapped here\x1b[m\r\n\
         \x1b[3g\x1b[4G\x1bH\x1b[2;3r\x1b(0\x0e\x1b7\x1b[3;5H\x1b[?1;7;2004;1002;1006h\x1b=\x1b[6 q\
         \x1b[>5u\x1b]2;first\x07\x1b[22t\x1b]2;second\x07\x07\x1b[?2026hx\x1b[38;5",
        include_bytes!("formats/normal.snapshot"),
        include_bytes!("formats/normal.rows"),
    ),
    (
        "one\r\ntwo\r\nthree\r\nfour\r\nfive\x1b[?1049h\x1b[44m\x1b[2Jfull\x1b]2;unfin",
        include_bytes!("formats/alternate.snapshot"),
        include_bytes!("formats/alternate.rows"),
    ),
];

#[test]
fn a_screen_is_stored_as_it_always_was() {
    for (output, screen, rows) in SCREENS {
        let mut kept = Kept::new(4, 12);
        kept.terminal.now = Moment::from_boot(Duration::from_secs(1));
        kept.terminal.feed(output);
        kept.terminal.screen.resize(Size { rows: 3, cols: 12 });
        let checkpoint = kept.checkpoint();
        // Behind the version and the screen stand a shell of which nothing is known and no output.
        let snapshot = [&b"TGSC\x05"[..], &screen[5..], &[0; 9]].concat();
        assert_eq!(checkpoint.snapshot, snapshot);
        assert_eq!(checkpoint.rows, rows);
        let screen = Screen::restore(&snapshot, [rows], kept.limits).unwrap();
        let mut restored = Terminal { screen, now: kept.terminal.now, ..Terminal::new(2, 2) };
        assert_same_for_ever(&mut kept.terminal, &mut restored);
    }
}

#[test]
fn a_failed_emulator_leaves_all_rows_of_the_last_frame_readable() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc");
    let before = Arc::clone(&terminal.frame);
    terminal.screen = Screen::after_failure(&before, ScreenLimits::default());
    terminal.show("new");
    terminal.kept(0, &["a", "b", "c"]);
    terminal.shows(3, &["new", ""]);
    assert_eq!(terminal.frame.watermark, before.watermark.next());
    assert_eq!(terminal.frame.reset, terminal.frame.watermark);
    assert_eq!(terminal.history_stamp(2), before.lines[1].changed.0);
}

#[test]
fn a_failure_on_the_alternate_screen_leaves_it_out_of_history() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc\x1b[?1049hx");
    terminal.screen = Screen::after_failure(&terminal.frame, ScreenLimits::default());
    terminal.show("new");
    terminal.kept(0, &["a"]);
    terminal.shows(1, &["new", ""]);
    assert_eq!(terminal.frame.mode.value, ScreenMode::Normal);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_screen_made_anew_goes_on_as_one_that_was_not(
        events in events(),
        places in vec(any::<usize>(), 1..30),
        breaks in vec(0..5u8, 1..30),
        rows in 2..7u16,
        cols in 2..14u16,
    ) {
        let mut whole = Terminal::new(rows, cols);
        let mut broken = Kept::new(rows, cols);
        let mut breaks = breaks.iter().cycle();
        for event in cut(&events, &places) {
            event.apply(&mut whole);
            event.apply(&mut broken.terminal);
            // What was said already is not part of a snapshot.
            assert_eq!(whole.screen.take_answers(), broken.terminal.screen.take_answers());
            assert_eq!(whole.screen.take_reports(), broken.terminal.screen.take_reports());
            match breaks.next() {
                Some(0) => drop(broken.break_off()),
                // Nor does it matter to a screen that it was kept.
                Some(1) => drop(broken.checkpoint()),
                Some(_) | None => {}
            }
        }
        if places[0] % 2 == 0 {
            broken.break_off();
        }
        assert_same_for_ever(&mut whole, &mut broken.terminal);
    }

    #[test]
    fn a_snapshot_of_a_screen_made_anew_is_the_same(events in events(), rows in 2..7u16) {
        let mut kept = Kept::new(rows, 9);
        events.iter().for_each(|event| event.apply(&mut kept.terminal));
        kept.terminal.screen.take_answers();
        let first = kept.break_off();
        let second = kept.checkpoint();
        let reserved = Checkpoint::WATERMARKS_RESERVED + 1;
        prop_assert_eq!(second.reserved.0, first.reserved.0 + reserved);
        let third = kept.restored(&second).checkpoint(RowNumber(0));
        let first_of_all = Screen::restore(&third.snapshot, [&third.rows], kept.limits).unwrap();
        prop_assert_eq!(first_of_all.history_end(), first.end_row);
    }

    #[test]
    fn no_bytes_do_harm_as_a_snapshot(bytes in vec(any::<u8>(), 0..400), known in any::<bool>()) {
        let head: &[u8] = if known { b"TGSC\x05" } else { b"" };
        let bytes = [head, &bytes].concat();
        use_if_restored(&bytes, &bytes);
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_does_no_harm(
        events in events(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
        at_the_rows in any::<bool>(),
    ) {
        let mut kept = Kept::new(4, 9);
        events.iter().for_each(|event| event.apply(&mut kept.terminal));
        let Checkpoint { mut snapshot, mut rows, .. } = kept.checkpoint();
        let bytes = if at_the_rows { &mut rows } else { &mut snapshot };
        for (at, byte, kind) in damage {
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] ^= byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        use_if_restored(&snapshot, &rows);
    }
}

/// Uses the screen, if there is one, in all the ways that there are.
fn use_if_restored(snapshot: &[u8], rows: &[u8]) {
    let Ok(screen) = Screen::restore(snapshot, [rows], ScreenLimits::default()) else { return };
    let mut terminal = Terminal::new(2, 2);
    terminal.screen = screen;
    for output in REVEALING {
        terminal.feed(output);
        for line in content(&mut terminal).lines {
            assert!(line.glyphs().count() <= line.text.chars().count());
        }
        terminal.screen.resize(Size { rows: 7, cols: 5 });
        terminal.feed("字é\x1b[?1049h\r\n漢");
        terminal.screen.resize(Size { rows: 3, cols: 40 });
        terminal.screen.checkpoint(RowNumber(0));
    }
}
