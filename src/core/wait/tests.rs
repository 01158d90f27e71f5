//! Waits over frames made by hand.

use proptest::prelude::*;

use super::*;
use crate::core::frame::history::{History, HistoryLimits, HistoryRow};
use crate::core::frame::line::Line;
use crate::core::frame::{Cursor, ScreenMode, Size, Stamped};
use crate::core::shell::commands::mark::{Mark, MarkKind};
use crate::core::shell::commands::record::{Here, Position};
use crate::core::shell::commands::{Commands, Submission};
use crate::core::wait::look::{OTHERS_MAX, Progress};

const ROWS: usize = 4;
const COLS: u16 = 20;

fn seconds(seconds: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(seconds))
}

/// A terminal of four rows that only knows how to print, and counts its changes.
struct Terminal {
    frame: Frame,
    lines: Vec<Stamped<Arc<Line>>>,
}

impl Terminal {
    fn new() -> Self {
        let lines = vec![Stamped::default(); ROWS];
        let frame = Frame {
            watermark: Watermark(1),
            reset: Watermark(0),
            base_row: RowNumber(0),
            scrolled: Watermark(0),
            lines: Arc::from(lines.clone()),
            size: Stamped { value: Size { rows: ROWS as u16, cols: COLS }, changed: Watermark(0) },
            cursor: Stamped::default(),
            mode: Stamped::default(),
            title: Stamped { value: Arc::from(""), changed: Watermark(0) },
            input_modes: Stamped::default(),
            lease: Stamped::default(),
            bell: Stamped::default(),
            clipboard: Stamped::default(),
            exit: Stamped::default(),
            activity: Stamped::default(),
            shell: Arc::default(),
            commands: Stamped::default(),
            printed: Stamped::default(),
            history: Arc::new(History::new(HistoryLimits { rows_max: 300, bytes_max: 1 << 20 })),
            screen_changed_at: seconds(0),
        };
        Self { frame, lines }
    }

    fn tick(&mut self) -> Watermark {
        self.frame.watermark = self.frame.watermark.next();
        self.frame.watermark
    }

    /// Writes a row of the screen, counted from its top.
    fn set(&mut self, index: usize, text: &str, wrapped: bool) {
        let changed = self.tick();
        let line = Line { text: text.trim_end().into(), wrapped, ..Line::default() };
        self.lines[index] = Stamped { value: Arc::new(line), changed };
        self.move_cursor(index, text.chars().count() as u16);
    }

    fn move_cursor(&mut self, index: usize, col: u16) {
        let row = self.frame.base_row.plus(index);
        self.frame.cursor.update(Cursor { row, col, ..Cursor::default() }, self.frame.watermark);
    }

    fn cursor_index(&self) -> usize {
        (self.frame.cursor.value.row.0 - self.frame.base_row.0) as usize
    }

    /// Types at the cursor, without a line end.
    fn type_text(&mut self, text: &str) {
        let index = self.cursor_index();
        let line = format!("{}{text}", self.lines[index].value.text);
        self.set(index, &line, false);
    }

    fn end_line(&mut self) {
        self.tick();
        let next = self.cursor_index() + 1;
        if next == ROWS {
            let top = self.lines.remove(0);
            let row = HistoryRow::of(&top.value, top.changed);
            Arc::make_mut(&mut self.frame.history).push(row);
            self.lines.push(Stamped { changed: self.frame.watermark, ..Stamped::default() });
            self.frame.base_row = self.frame.base_row.plus(1);
        }
        self.move_cursor(next.min(ROWS - 1), 0);
    }

    fn print(&mut self, text: &str) {
        self.type_text(text);
        self.end_line();
    }

    /// Prints one line that takes several rows of the terminal.
    fn print_wrapped(&mut self, rows: &[&str]) {
        let (last, heads) = rows.split_last().unwrap();
        for head in heads {
            let index = self.cursor_index();
            self.set(index, head, true);
            self.end_line();
        }
        self.print(last);
    }

    fn resize(&mut self, cols: u16) {
        let mark = self.tick();
        let index = self.cursor_index();
        self.frame.reset = mark;
        self.frame.size.update(Size { rows: ROWS as u16, cols }, mark);
        self.move_cursor(index, 0);
    }

    fn frame_at(&mut self, at: Moment) -> Frame {
        self.frame.screen_changed_at = at;
        self.frame()
    }

    fn frame(&self) -> Frame {
        Frame { lines: Arc::from(self.lines.clone()), ..self.frame.clone() }
    }
}

fn pattern(text: &str) -> Conditions {
    let patterns = vec![(Which::Pattern, Pattern::literal(text).unwrap())];
    Conditions { patterns, ..Conditions::default() }
}

fn regex(expression: &str) -> Conditions {
    let patterns = vec![(Which::Pattern, Pattern::regex(expression).unwrap())];
    Conditions { patterns, ..Conditions::default() }
}

fn stopping(wanted: &str, stop: &str) -> Conditions {
    let mut conditions = pattern(wanted);
    conditions.patterns.push((Which::StopPattern, Pattern::literal(stop).unwrap()));
    conditions
}

fn idle(length: u64) -> Conditions {
    Conditions { idle: Some(Duration::from_secs(length)), ..Conditions::default() }
}

fn change() -> Conditions {
    Conditions { change: true, ..Conditions::default() }
}

/// Begins a wait now and gives it the frame it began with.
fn begin(
    conditions: Conditions,
    since: Option<Watermark>,
    terminal: &Terminal,
) -> (Wait, Option<Outcome>) {
    let frame = terminal.frame();
    let mut wait = Wait::new(conditions, since, &frame, seconds(10)).unwrap();
    let outcome = look(&mut wait, frame, seconds(10));
    (wait, outcome)
}

/// Begins a wait that has to go on.
fn begin_open(conditions: Conditions, since: Option<Watermark>, terminal: &Terminal) -> Wait {
    let (wait, outcome) = begin(conditions, since, terminal);
    assert_eq!(outcome, None);
    wait
}

fn next(wait: &mut Wait, terminal: &Terminal) -> Option<Outcome> {
    look(wait, terminal.frame(), seconds(11))
}

/// Looks at a frame, in slices as small as they can be.
fn look(wait: &mut Wait, frame: Frame, now: Moment) -> Option<Outcome> {
    let mut look = wait.look(Arc::new(frame), now);
    while look.run(1) == Progress::Unfinished {}
    wait.on_look(look)
}

fn matched(row: u64, text: &str, found: &str) -> Option<Outcome> {
    let hit = Hit { row: RowNumber(row), text: text.into(), found: found.into() };
    Some(Outcome::Found(Which::Pattern, hit))
}

fn stopped(row: u64, text: &str, found: &str) -> Option<Outcome> {
    let hit = Hit { row: RowNumber(row), text: text.into(), found: found.into() };
    Some(Outcome::Found(Which::StopPattern, hit))
}

#[test]
fn a_wait_without_a_condition_is_refused() {
    let frame = Terminal::new().frame();
    let refused = Wait::new(Conditions::default(), None, &frame, seconds(0));
    assert_eq!(refused.err(), Some(NoCondition));
}

#[test]
fn a_program_that_is_idle_since_the_call_ends_the_wait_and_one_that_was_before_does_not() {
    let mut terminal = Terminal::new();
    let idles = || Conditions { idle_program: true, ..Conditions::default() };
    let mut after = |moment: u64| {
        Arc::make_mut(&mut terminal.frame.shell).idle_after = Some(seconds(moment));
        begin(idles(), None, &terminal).1
    };
    assert_eq!(after(9), None);
    assert_eq!(after(10), Some(Outcome::Idle));
}

#[test]
fn what_stood_there_before_the_call_does_not_count() {
    let mut terminal = Terminal::new();
    terminal.print("ready");
    let mut wait = begin_open(pattern("ready"), None, &terminal);
    terminal.print("still busy");
    assert_eq!(next(&mut wait, &terminal), None);
    terminal.print("now ready");
    assert_eq!(next(&mut wait, &terminal), matched(2, "now ready", "ready"));
}

#[test]
fn a_line_that_stood_there_before_the_call_is_found_when_asked_for() {
    let mut terminal = Terminal::new();
    terminal.print("needle one");
    terminal.print("needle two");
    terminal.print("hay");
    let mut wait = begin_open(pattern("needle"), None, &terminal);
    terminal.print("more hay");
    assert_eq!(next(&mut wait, &terminal), None);
    let found = wait.shown_before(&terminal.frame(), 1 << 16);
    assert_eq!(
        found.map(|(which, hit)| Outcome::Found(which, hit)),
        matched(1, "needle two", "needle")
    );
    assert_eq!(wait.shown_before(&terminal.frame(), 0), None);
    drop(wait.look(Arc::new(terminal.frame()), seconds(12)));
    assert_eq!(wait.shown_before(&terminal.frame(), 1 << 16), None, "not all was compared");
    let wait = begin_open(pattern("straw"), None, &terminal);
    assert_eq!(wait.shown_before(&terminal.frame(), 1 << 16), None);
    let shown = |wanted, stop| {
        let wait = begin_open(stopping(wanted, stop), None, &terminal);
        wait.shown_before(&terminal.frame(), 1 << 16).map(|(which, hit)| Outcome::Found(which, hit))
    };
    assert_eq!(shown("straw", "two"), stopped(1, "needle two", "two"));
    assert_eq!(shown("two", "hay"), matched(1, "needle two", "two"));
}

#[test]
fn the_line_the_cursor_is_on_counts_from_the_start() {
    let mut terminal = Terminal::new();
    terminal.print("$ make");
    terminal.type_text("login:");
    let (_, outcome) = begin(pattern("login:"), None, &terminal);
    assert_eq!(outcome, matched(1, "login:", "login:"));
}

#[test]
fn the_blank_behind_a_prompt_counts_though_rows_do_not_keep_it() {
    let mut terminal = Terminal::new();
    terminal.type_text("host$ ");
    assert_eq!(begin(pattern("$ "), None, &terminal).1, matched(0, "host$", "$ "));
    assert_eq!(begin(regex(r"\$ $"), None, &terminal).1, matched(0, "host$", "$ "));
    assert_eq!(begin(regex(r"\$$"), None, &terminal).1, matched(0, "host$", "$"));
}

#[test]
fn a_cursor_that_moves_behind_a_prompt_is_enough_to_find_it() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("host$ "), None, &terminal);
    terminal.type_text("host$");
    assert_eq!(next(&mut wait, &terminal), None);
    terminal.tick();
    terminal.move_cursor(0, 6);
    assert_eq!(next(&mut wait, &terminal), matched(0, "host$", "host$ "));
}

#[test]
fn a_cursor_that_comes_back_to_an_old_line_does_not_make_it_count() {
    let mut terminal = Terminal::new();
    terminal.print("old prompt");
    let mut wait = begin_open(pattern("old"), None, &terminal);
    terminal.tick();
    terminal.move_cursor(0, 3);
    assert_eq!(next(&mut wait, &terminal), None);
}

#[test]
fn with_since_everything_after_it_counts_on_the_screen_and_in_history() {
    let mut terminal = Terminal::new();
    terminal.print("error one");
    let since = terminal.frame().watermark;
    terminal.print("error two");
    for _ in 0..50 {
        terminal.print("noise");
    }
    let (_, outcome) = begin(pattern("error"), Some(since), &terminal);
    assert_eq!(outcome, matched(1, "error two", "error"));
}

#[test]
fn with_since_the_cursor_does_not_make_an_old_line_count() {
    let mut terminal = Terminal::new();
    terminal.type_text("host$");
    let since = terminal.frame().watermark;
    let mut wait = begin_open(pattern("host$"), Some(since), &terminal);
    assert_eq!(next(&mut wait, &terminal), None);
}

#[test]
fn a_watermark_nobody_gave_out_lets_everything_count() {
    let mut terminal = Terminal::new();
    terminal.print("ready");
    let (_, outcome) = begin(pattern("ready"), Some(Watermark(1 << 40)), &terminal);
    assert_eq!(outcome, matched(0, "ready", "ready"));
}

#[test]
fn what_went_through_history_between_two_frames_is_found() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("needle"), None, &terminal);
    terminal.print("hay");
    terminal.print("a needle");
    for _ in 0..100 {
        terminal.print("hay");
    }
    assert_eq!(next(&mut wait, &terminal), matched(1, "a needle", "needle"));
    assert_eq!(wait.missed_rows(), 0);
}

#[test]
fn a_row_that_changed_and_then_scrolled_off_is_found() {
    let mut terminal = Terminal::new();
    terminal.print("progress 10%");
    let mut wait = begin_open(pattern("100%"), None, &terminal);
    terminal.set(0, "progress 100%", false);
    terminal.move_cursor(1, 0);
    for _ in 0..10 {
        terminal.print("next");
    }
    assert_eq!(next(&mut wait, &terminal), matched(0, "progress 100%", "100%"));
}

#[test]
fn rows_trimmed_before_a_look_are_counted() {
    let mut terminal = Terminal::new();
    terminal.print("first");
    let mut wait = begin_open(pattern("needle"), None, &terminal);
    terminal.print("needle");
    for _ in 0..1_000 {
        terminal.print("hay");
    }
    let first_kept = terminal.frame().history.first().0;
    assert!(first_kept > 600);
    assert_eq!(next(&mut wait, &terminal), None);
    // Row 0 was seen, and row 1, on which the cursor stood, when nothing was on it yet.
    let missed = wait.missed_rows();
    assert!((first_kept - 2..first_kept).contains(&missed), "{missed} of {first_kept}");
    terminal.print("more hay");
    assert_eq!(next(&mut wait, &terminal), None);
    assert_eq!(wait.missed_rows(), missed);
}

#[test]
fn with_since_rows_trimmed_before_the_call_count_as_missed_only_if_they_may_matter() {
    let mut terminal = Terminal::new();
    let early = terminal.frame().watermark;
    for _ in 0..1_000 {
        terminal.print("hay");
    }
    let first_kept = terminal.frame().history.first().0;
    let late = terminal.frame().watermark;
    assert_eq!(begin_open(pattern("needle"), Some(early), &terminal).missed_rows(), first_kept);
    assert_eq!(begin_open(pattern("needle"), Some(late), &terminal).missed_rows(), 0);
    assert_eq!(begin_open(pattern("needle"), None, &terminal).missed_rows(), 0);
}

#[test]
fn a_pattern_matches_across_the_edge_of_the_terminal() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("password"), None, &terminal);
    terminal.print_wrapped(&["enter the secret pas", "sword"]);
    let text = "enter the secret password";
    assert_eq!(next(&mut wait, &terminal), matched(0, text, "password"));
}

#[test]
fn a_wrapped_line_in_history_is_joined_with_its_rest_on_the_screen() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("0123456789abcdefghijK"), None, &terminal);
    for _ in 0..ROWS - 1 {
        terminal.print("above");
    }
    terminal.print_wrapped(&["0123456789abcdefghij", "KLMNOPQRSTUVWXYZ....", "three", ""]);
    assert_eq!(terminal.frame().base_row, RowNumber(4));
    let outcome = next(&mut wait, &terminal);
    assert!(
        matches!(outcome, Some(Outcome::Found(Which::Pattern, Hit { row: RowNumber(3), .. }))),
        "{outcome:?}"
    );
}

#[test]
fn the_row_of_a_match_is_the_one_it_begins_on() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("two"), None, &terminal);
    terminal.print_wrapped(&["one.................", "two"]);
    assert_eq!(next(&mut wait, &terminal), matched(1, "one.................two", "two"));
}

#[test]
fn a_line_counts_when_any_of_its_rows_changed() {
    let mut terminal = Terminal::new();
    terminal.set(0, "compiling the first,", true);
    terminal.set(1, "the second", false);
    terminal.set(3, "", false);
    let mut wait = begin_open(pattern("first,the second: ok"), None, &terminal);
    terminal.set(1, "the second: ok", false);
    let text = "compiling the first,the second: ok";
    assert_eq!(next(&mut wait, &terminal), matched(0, text, "first,the second: ok"));
}

#[test]
fn blanks_at_the_edge_of_a_wrapped_row_are_part_of_the_line() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("disk  full"), None, &terminal);
    terminal.print_wrapped(&["there we are: disk  ", "full"]);
    let text = "there we are: disk  full";
    assert_eq!(next(&mut wait, &terminal), matched(0, text, "disk  full"));
}

#[test]
fn a_wide_character_that_did_not_fit_leaves_no_blank() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("x漢"), None, &terminal);
    terminal.print_wrapped(&["0123456789abcdefghx", "漢字"]);
    assert_eq!(next(&mut wait, &terminal), matched(0, "0123456789abcdefghx漢字", "x漢"));
}

#[test]
fn history_does_not_run_on_into_the_alternate_screen() {
    let mut terminal = Terminal::new();
    for _ in 0..ROWS - 1 {
        terminal.print("above");
    }
    let index = terminal.cursor_index();
    terminal.set(index, "a line that goes on.", true);
    for _ in 0..ROWS {
        terminal.end_line();
    }
    let mut wait = begin_open(pattern("on.editor"), None, &terminal);
    let mark = terminal.tick();
    terminal.frame.mode.update(ScreenMode::Alternate, mark);
    terminal.set(0, "editor", false);
    assert_eq!(next(&mut wait, &terminal), None);
}

#[test]
fn a_line_longer_than_the_bound_is_looked_at_in_parts() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("needle"), None, &terminal);
    let mut rows = vec!["...................."; 250];
    rows[125] = "................need";
    rows[126] = "le..................";
    terminal.print_wrapped(&rows);
    let Some(Outcome::Found(_, hit)) = next(&mut wait, &terminal) else { panic!("no match") };
    assert_eq!(hit.row, RowNumber(125));
    assert!(hit.text.len() <= 20 * (2 * logical::JOINED_ROWS_MAX as usize + 1));
}

#[test]
fn the_earliest_row_decides_between_pattern_and_stop_pattern() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(stopping("done", "error"), None, &terminal);
    terminal.print("error: no space");
    terminal.print("done");
    assert_eq!(next(&mut wait, &terminal), stopped(0, "error: no space", "error"));

    let mut terminal = Terminal::new();
    let mut wait = begin_open(stopping("done", "error"), None, &terminal);
    terminal.print("done");
    terminal.print("error: no space");
    assert_eq!(next(&mut wait, &terminal), matched(0, "done", "done"));
}

#[test]
fn the_earliest_row_decides_within_a_wrapped_line_too() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(stopping("done", "error"), None, &terminal);
    terminal.print_wrapped(&["....error...........", "done"]);
    assert_eq!(next(&mut wait, &terminal), stopped(0, "....error...........done", "error"));
}

#[test]
fn the_pattern_wins_on_the_same_row() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(stopping("done", "error"), None, &terminal);
    terminal.print("error, but done");
    assert_eq!(next(&mut wait, &terminal), matched(0, "error, but done", "done"));
}

#[test]
fn a_stop_pattern_alone_is_a_condition() {
    let mut terminal = Terminal::new();
    let patterns = vec![(Which::StopPattern, Pattern::literal("panic").unwrap())];
    let stop = Conditions { patterns, ..Conditions::default() };
    let mut wait = begin_open(stop, None, &terminal);
    terminal.print("panic!");
    assert_eq!(next(&mut wait, &terminal), stopped(0, "panic!", "panic"));
}

#[test]
fn the_echo_of_what_was_typed_counts_like_any_output() {
    let mut terminal = Terminal::new();
    terminal.type_text("$ ");
    let before_the_write = terminal.frame().watermark;
    terminal.type_text(" echo ok");
    let (_, outcome) = begin(pattern("ok"), Some(before_the_write), &terminal);
    assert_eq!(outcome, matched(0, "$ echo ok", "ok"));
}

#[test]
fn old_text_that_a_resize_wrote_anew_does_not_count() {
    let mut terminal = Terminal::new();
    terminal.print("ready");
    terminal.print("busy");
    let mut wait = begin_open(pattern("ready"), None, &terminal);
    terminal.resize(30);
    assert_eq!(next(&mut wait, &terminal), None);
    terminal.print("ready");
    let row = terminal.frame().cursor.value.row.0 - 1;
    assert_eq!(next(&mut wait, &terminal), matched(row, "ready", "ready"));
}

#[test]
fn an_old_text_that_is_printed_again_after_a_resize_counts() {
    let mut terminal = Terminal::new();
    terminal.print("ready");
    terminal.print("busy");
    let mut wait = begin_open(pattern("ready"), None, &terminal);
    terminal.resize(30);
    terminal.print("ready");
    let row = terminal.frame().cursor.value.row.0 - 1;
    assert_eq!(next(&mut wait, &terminal), matched(row, "ready", "ready"));
}

#[test]
fn rows_older_than_a_resize_are_joined_at_the_width_they_had() {
    let mut terminal = Terminal::new();
    let since = terminal.frame().watermark;
    terminal.print_wrapped(&["enter the secret pas", "sword"]);
    terminal.resize(30);
    let (_, outcome) = begin(pattern("password"), Some(since), &terminal);
    assert_eq!(outcome, matched(0, "enter the secret password", "password"));
}

#[test]
fn output_that_comes_in_the_same_frame_as_a_resize_counts() {
    let mut terminal = Terminal::new();
    terminal.print("busy");
    let mut wait = begin_open(pattern("ready"), None, &terminal);
    terminal.print("ready");
    terminal.resize(30);
    let outcome = next(&mut wait, &terminal);
    assert!(matches!(outcome, Some(Outcome::Found(Which::Pattern, _))), "{outcome:?}");
}

#[test]
fn any_change_of_the_screen_or_the_title_is_a_change() {
    let changes: [fn(&mut Terminal); 5] = [
        |terminal| terminal.type_text("x"),
        |terminal| {
            terminal.tick();
            terminal.move_cursor(2, 3);
        },
        |terminal| terminal.resize(30),
        |terminal| {
            let mark = terminal.tick();
            terminal.frame.mode.update(ScreenMode::Alternate, mark);
        },
        |terminal| {
            let mark = terminal.tick();
            terminal.frame.title.update(Arc::from("vim"), mark);
        },
    ];
    for make in changes {
        let mut terminal = Terminal::new();
        terminal.print("before");
        let mut wait = begin_open(change(), None, &terminal);
        assert_eq!(next(&mut wait, &terminal), None);
        make(&mut terminal);
        assert_eq!(next(&mut wait, &terminal), Some(Outcome::Changed));
    }
}

#[test]
fn neither_lease_nor_bell_is_a_change() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(change(), None, &terminal);
    let mark = terminal.tick();
    terminal.frame.bell.update(1, mark);
    terminal.frame.lease.changed = mark;
    assert_eq!(next(&mut wait, &terminal), None);
}

#[test]
fn a_change_after_since_is_there_at_once() {
    let mut terminal = Terminal::new();
    let since = terminal.frame().watermark;
    terminal.type_text("x");
    assert_eq!(begin(change(), Some(since), &terminal).1, Some(Outcome::Changed));
    let since = terminal.frame().watermark;
    assert_eq!(begin(change(), Some(since), &terminal).1, None);
}

#[test]
fn idle_counts_from_the_start_of_the_wait_on_a_quiet_screen() {
    let mut terminal = Terminal::new();
    terminal.frame_at(seconds(1));
    let mut wait = begin_open(idle(3), None, &terminal);
    assert_eq!(wait.deadline(), Some(seconds(13)));
    assert_eq!(wait.on_time(seconds(12)), None);
    assert_eq!(wait.on_time(seconds(13)), Some(Outcome::Idle));
}

#[test]
fn every_change_begins_the_idle_time_anew() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(idle(3), None, &terminal);
    terminal.type_text("x");
    let frame = terminal.frame_at(seconds(12));
    assert_eq!(look(&mut wait, frame.clone(), seconds(12)), None);
    assert_eq!(wait.deadline(), Some(seconds(15)));
    assert_eq!(look(&mut wait, frame, seconds(15)), Some(Outcome::Idle));
}

#[test]
fn after_since_idle_may_be_met_at_once() {
    let mut terminal = Terminal::new();
    let since = terminal.frame().watermark;
    terminal.print("all there was");
    terminal.frame_at(seconds(6));
    assert_eq!(begin(idle(3), Some(since), &terminal).1, Some(Outcome::Idle));
    assert_eq!(begin(idle(5), Some(since), &terminal).1, None);
}

#[test]
fn a_screen_that_has_not_answered_yet_is_not_idle() {
    let mut terminal = Terminal::new();
    terminal.frame_at(seconds(1));
    let before_the_write = terminal.frame().watermark;
    let wait = begin_open(idle(3), Some(before_the_write), &terminal);
    assert_eq!(wait.deadline(), Some(seconds(13)));
}

#[test]
fn a_wait_without_idle_has_no_deadline() {
    let mut wait = begin_open(change(), None, &Terminal::new());
    assert_eq!(wait.deadline(), None);
    assert_eq!(wait.on_time(seconds(1_000_000)), None);
}

#[test]
fn the_end_of_the_program_ends_every_wait() {
    let all = [pattern("needle"), change(), idle(100)];
    let exit = Conditions { exit: true, ..Conditions::default() };
    for conditions in all.into_iter().chain([exit]) {
        let mut terminal = Terminal::new();
        let mut wait = begin_open(conditions, None, &terminal);
        terminal.print("bye");
        let mark = terminal.tick();
        terminal.frame.exit.update(Some(Exit::Code(3)), mark);
        assert_eq!(next(&mut wait, &terminal), Some(Outcome::Exited(Exit::Code(3))));
    }
}

#[test]
fn a_last_line_that_matches_comes_before_the_end_of_the_program() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("passed"), None, &terminal);
    terminal.print("12 passed");
    let mark = terminal.tick();
    terminal.frame.exit.update(Some(Exit::Code(0)), mark);
    assert_eq!(next(&mut wait, &terminal), matched(0, "12 passed", "passed"));
}

#[test]
fn a_program_that_ended_long_ago_ends_the_wait_at_once() {
    let mut terminal = Terminal::new();
    let mark = terminal.tick();
    terminal.frame.exit.update(Some(Exit::Signal(9)), mark);
    let (_, outcome) = begin(idle(100), None, &terminal);
    assert_eq!(outcome, Some(Outcome::Exited(Exit::Signal(9))));
}

#[test]
fn whoever_goes_on_from_the_watermark_of_the_end_is_told_every_line_that_matched() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(stopping("failed", "done"), None, &terminal);
    terminal.print("E1 failed");
    terminal.print_wrapped(&["E2 failed and failed", " again"]);
    for _ in 0..10 {
        terminal.print("noise");
    }
    terminal.print("done");
    terminal.type_text("E3 failed");
    assert_eq!(next(&mut wait, &terminal), matched(0, "E1 failed", "failed"));
    let told: Vec<_> =
        wait.others().told.iter().map(|(which, hit)| (*which, hit.row.0, &*hit.text)).collect();
    let expected = [
        (Which::Pattern, 1, "E2 failed and failed again"),
        (Which::StopPattern, 13, "done"),
        (Which::Pattern, 14, "E3 failed"),
    ];
    assert_eq!((&*told, wait.others().left_out), (&expected[..], 0));
    begin_open(stopping("failed", "done"), Some(terminal.frame().watermark), &terminal);
}

#[test]
fn of_more_lines_than_are_told_the_others_are_counted() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("failed"), None, &terminal);
    for number in 0..=OTHERS_MAX + 3 {
        terminal.print(&format!("{number} failed"));
    }
    assert_eq!(next(&mut wait, &terminal), matched(0, "0 failed", "failed"));
    let rows: Vec<_> = wait.others().told.iter().map(|(_, hit)| hit.row.0).collect();
    assert_eq!(rows, (1..=OTHERS_MAX as u64).collect::<Vec<_>>());
    assert_eq!(wait.others().left_out, 3);
}

#[test]
fn a_look_says_when_its_pattern_takes_more_steps_than_it_may() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(regex("1[01]{2000}[^01]"), None, &terminal);
    terminal.print_wrapped(&["11111111111111111111"; 100]);
    let mut look = wait.look(Arc::new(terminal.frame()), seconds(11));
    let mut taken = 0;
    while look.run(10_000) == Progress::Unfinished {
        taken += 10_000;
    }
    assert!(taken > 2_000 * 2_000 / 2, "{taken}");
    let mut other = begin_open(regex("1[01]{2000}[^01]"), Some(Watermark(0)), &Terminal::new());
    let look = other.look(Arc::new(terminal.frame()), seconds(11));
    let mut look = look.having_taken(Look::STEPS_MAX - taken / 2);
    while look.run(10_000) == Progress::Unfinished {}
    assert_eq!(look.run(10_000), Progress::TooCostly);
}

#[test]
fn rows_that_were_trimmed_while_a_look_went_on_are_told_as_missed() {
    let mut terminal = Terminal::new();
    let mut wait = begin_open(pattern("needle"), None, &terminal);
    for row in 0..200 {
        terminal.print(&format!("row {row}"));
    }
    let mut look = wait.look(Arc::new(terminal.frame()), seconds(11));
    assert_eq!(look.run(100), Progress::Unfinished);
    for _ in 0..400 {
        terminal.print("more");
    }
    let newest = terminal.frame();
    assert!(newest.history.first() > RowNumber(200), "{:?}", newest.history.first());
    look.renew(&newest.history);
    assert_eq!(look.run(usize::MAX), Progress::Done);
    assert_eq!(wait.on_look(look), None);
    let missed = wait.missed_rows();
    assert!((100..200).contains(&missed), "{missed}");
    assert_eq!(wait.seen(), Watermark(newest.watermark.0 - 800));
}

proptest! {
    #[test]
    fn a_line_is_found_in_the_first_frame_after_it_whichever_frames_were_skipped(
        steps in prop::collection::vec((0..30usize, any::<bool>()), 1..10),
        with_since in any::<bool>(),
    ) {
        let mut terminal = Terminal::new();
        terminal.print("needle of old");
        let since = with_since.then_some(terminal.frame().watermark);
        let mut wait = begin_open(pattern("needle"), since, &terminal);
        for (lines, needle) in steps {
            for _ in 0..lines {
                terminal.print("hay");
            }
            let row = terminal.frame().cursor.value.row.0;
            if needle {
                terminal.print("needle");
            }
            for _ in 0..lines {
                terminal.print("hay");
            }
            let expected = if needle { matched(row, "needle", "needle") } else { None };
            prop_assert_eq!(next(&mut wait, &terminal), expected);
        }
    }
}

/// A shell that has written these marks.
fn marked(marks: &[MarkKind]) -> Commands {
    let mut commands = Commands::default();
    for kind in marks {
        let here = here();
        commands.on_mark(
            Mark { kind: *kind, text: None, untold: false, bound: false },
            &here,
            None,
            None,
            |_| String::new(),
        );
    }
    commands
}

fn here() -> Here {
    Here { position: Position::default(), top: RowNumber(0), now: seconds(0), mark: Watermark(0) }
}

fn sent(mut commands: Commands, ends_by: EndsBy) -> Commands {
    let submission =
        Submission { text: "true", typed: "true", by: None, ends_by, prompt: "> ", echoed: true };
    commands.submit(submission, &here());
    commands
}

/// Whether the kernel is asked for the end of a command, and for a program that asks.
fn asked(commands: Commands) -> (bool, bool) {
    let mut terminal = Terminal::new();
    terminal.frame.commands.value = Arc::new(commands);
    let asks = |conditions| {
        let wait = Wait::new(conditions, None, &terminal.frame, seconds(0)).unwrap();
        wait.asks_kernel(&terminal.frame)
    };
    let done = Conditions { command_done: true, ..Conditions::default() };
    let needs = Conditions { needs_input: true, ..Conditions::default() };
    (asks(done), asks(needs))
}

#[test]
fn the_kernel_is_not_asked_for_ends_that_a_shell_marks_nor_for_questions_while_it_reads() {
    let prompt = [MarkKind::PromptStart, MarkKind::PromptEnd];
    let running = [MarkKind::PromptStart, MarkKind::PromptEnd, MarkKind::Started];
    assert_eq!(asked(marked(&prompt)), (false, false));
    assert_eq!(asked(sent(marked(&prompt), EndsBy::Marks)), (false, false));
    assert_eq!(asked(marked(&running)), (false, true));
    assert_eq!(asked(marked(&[MarkKind::PromptStart])), (false, true));
}

#[test]
fn the_kernel_is_asked_where_nothing_is_marked_and_for_what_runs_in_a_program() {
    assert_eq!(asked(Commands::default()), (true, true));
    assert_eq!(asked(sent(Commands::default(), EndsBy::Kernel)), (true, true));
    let running = marked(&[MarkKind::PromptStart, MarkKind::PromptEnd, MarkKind::Started]);
    assert_eq!(asked(sent(running, EndsBy::Prompt)), (true, true));
}

#[test]
fn the_kernel_is_asked_for_nothing_else() {
    let terminal = Terminal::new();
    let conditions = Conditions { change: true, exit: true, ..Conditions::default() };
    let wait = Wait::new(conditions, None, &terminal.frame, seconds(0)).unwrap();
    assert!(!wait.asks_kernel(&terminal.frame));
}
