//! Row numbers and stamps under scrolling, clearing, resets, resizing and the alternate screen.

use super::*;

#[test]
fn rows_keep_their_numbers_when_they_scroll_off() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb\r\nc\r\nd\r\ne");
    terminal.shows(2, &["c", "d", "e"]);
    terminal.kept(0, &["a", "b"]);
}

#[test]
fn a_row_that_only_scrolled_keeps_its_stamp() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb");
    terminal.show("\r\nc\r\nd\r\ne");
    assert_eq!(terminal.history_stamp(0), 2);
    assert_eq!(terminal.history_stamp(1), 2);
    assert_eq!(terminal.stamps(), [3, 3, 3]);
    assert_eq!(terminal.frame.scrolled, Watermark(3));
    terminal.show("\r\n");
    assert_eq!(terminal.stamps(), [3, 3, 4]);
    assert_eq!(terminal.history_stamp(2), 3);
}

#[test]
fn a_row_that_crossed_the_screen_between_two_frames_is_new() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb");
    terminal.show("\r\nc\r\nd\r\ne\r\nf");
    terminal.kept(0, &["a", "b", "c", "d"]);
    assert_eq!(terminal.history_stamp(1), 2);
    assert_eq!(terminal.history_stamp(2), 3);
    assert_eq!(terminal.history_stamp(3), 3);
}

#[test]
fn a_row_changed_before_it_scrolled_off_carries_the_new_watermark() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb");
    terminal.show("!\r\nc\r\nd");
    terminal.kept(0, &["a", "b!"]);
    assert_eq!(terminal.history_stamp(0), 2);
    assert_eq!(terminal.history_stamp(1), 3);
}

#[test]
fn scrolling_a_region_below_the_top_keeps_the_rows_out_of_history() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb\r\nc\x1b[2;3r\x1b[3;1H\nd");
    terminal.shows(0, &["a", "c", "d"]);
    terminal.kept(0, &[]);
}

#[test]
fn scrolling_a_region_at_the_top_moves_its_rows_into_history() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb\r\nstatus\x1b[1;2r\x1b[2;1H\nc");
    terminal.shows(1, &["b", "c", "status"]);
    terminal.kept(0, &["a"]);
}

#[test]
fn erasing_the_screen_moves_its_text_into_history() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb\x1b[2J");
    terminal.shows(2, &["", "", ""]);
    terminal.kept(0, &["a", "b"]);
}

#[test]
fn erasing_an_empty_screen_moves_nothing() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("\x1b[2J\x1b[2J\x1b[3J\x1b[44m\x1b[2Ja");
    terminal.shows(0, &["a", "", ""]);
    terminal.kept(0, &[]);
}

#[test]
fn erasing_the_saved_lines_leaves_history_readable() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc\x1b[3J\r\nd");
    terminal.shows(2, &["c", "d"]);
    terminal.kept(0, &["a", "b"]);
    assert_eq!(terminal.frame.reset, Watermark(1));
}

#[test]
fn a_reset_keeps_the_old_rows_and_gives_the_screen_new_numbers() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc");
    terminal.show("\x1bcx");
    terminal.shows(3, &["x", ""]);
    terminal.kept(0, &["a", "b", "c"]);
    assert_eq!(terminal.frame.reset, Watermark(3));
}

#[test]
fn other_columns_wrap_the_screen_anew_in_its_place() {
    let mut terminal = Terminal::new(3, 4);
    terminal.show("abcdef\r\nx");
    terminal.resize(3, 8);
    terminal.kept(0, &[]);
    terminal.shows(0, &["abcdef", "x", ""]);
    assert_eq!(terminal.stamps(), [2, 2, 3]);
    assert_eq!(terminal.frame.reset, Watermark(3));
    assert_eq!(terminal.frame.size.changed, Watermark(3));
}

#[test]
fn however_often_the_columns_change_no_row_is_twice() {
    let mut terminal = Terminal::new(5, 10);
    terminal.show("a\r\n\r\nb");
    for cols in [12, 9, 30] {
        terminal.resize(5, cols);
    }
    terminal.kept(0, &[]);
    terminal.shows(0, &["a", "", "b", "", ""]);
}

#[test]
fn rows_that_no_longer_fit_when_wrapped_anew_are_history() {
    let mut terminal = Terminal::new(2, 8);
    terminal.show("abcdefgh\r\nij");
    terminal.resize(2, 4);
    terminal.kept(0, &["abcd"]);
    terminal.shows(1, &["efgh", "ij"]);
    assert_eq!((terminal.history_stamp(0), terminal.stamps()), (2, vec![2, 2]));
}

#[test]
fn fewer_rows_move_the_top_ones_into_history() {
    let mut terminal = Terminal::new(4, 10);
    terminal.show("a\r\nb\r\nc\r\nd");
    terminal.resize(2, 10);
    terminal.kept(0, &["a", "b"]);
    terminal.shows(2, &["c", "d"]);
    assert_eq!(terminal.stamps(), [2, 2]);
    assert_eq!(terminal.frame.reset, Watermark(1));
}

#[test]
fn more_rows_are_added_below() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc");
    terminal.resize(4, 10);
    terminal.kept(0, &["a"]);
    terminal.shows(1, &["b", "c", "", ""]);
    assert_eq!(terminal.stamps(), [2, 2, 3, 3]);
    terminal.show("\r\nd\r\ne\r\nf");
    terminal.kept(0, &["a", "b"]);
    terminal.shows(2, &["c", "d", "e", "f"]);
}

#[test]
fn the_alternate_screen_shows_in_the_place_of_the_normal_one() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc");
    terminal.show("\x1b[?1049h\x1b[Hx\r\ny\r\nz");
    terminal.shows(1, &["y", "z"]);
    terminal.kept(0, &["a"]);
    assert_eq!(terminal.frame.mode.value, ScreenMode::Alternate);
    assert_eq!(terminal.frame.reset, Watermark(3));
    terminal.show("\x1b[?1049l");
    terminal.shows(1, &["b", "c"]);
    assert_eq!(terminal.stamps(), [2, 2], "it was there before");
    terminal.kept(0, &["a"]);
    assert_eq!(terminal.frame.mode.value, ScreenMode::Normal);
    assert_eq!(terminal.frame.reset, Watermark(4));
}

#[test]
fn rows_pushed_out_behind_the_alternate_screen_are_history_when_it_goes() {
    let mut terminal = Terminal::new(3, 10);
    terminal.show("a\r\nb\r\nc\x1b[?1049h");
    terminal.resize(2, 10);
    terminal.kept(0, &[]);
    terminal.show("\x1b[?1049l");
    terminal.kept(0, &["a"]);
    terminal.shows(1, &["b", "c"]);
}

#[test]
fn rows_are_wrapped_anew_behind_the_alternate_screen() {
    let mut terminal = Terminal::new(3, 4);
    terminal.show("abcdef\r\nx\x1b[?1049h");
    terminal.resize(3, 8);
    terminal.kept(0, &[]);
    assert_eq!(terminal.frame.base_row, RowNumber(0));
    terminal.show("\x1b[?1049l");
    terminal.kept(0, &[]);
    terminal.shows(0, &["abcdef", "x", ""]);
}

#[test]
fn a_reset_on_the_alternate_screen_keeps_the_rows_of_the_normal_one() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\x1b[?1049hx");
    terminal.show("\x1bcy");
    terminal.kept(0, &["a", "b"]);
    terminal.shows(2, &["y", ""]);
    assert_eq!(terminal.frame.mode.value, ScreenMode::Normal);
}

#[test]
fn a_column_mode_switch_clears_the_screen_in_place() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\r\nb\r\nc\x1b[?3hx");
    terminal.kept(0, &["a"]);
    terminal.shows(1, &["x", ""]);
    assert_eq!(terminal.frame.size.value, Size { rows: 2, cols: 10 });
}

#[test]
fn what_no_delta_shows_does_not_count_as_a_change() {
    let mut terminal = Terminal::new(3, 20);
    let waits = ShellView { waits: true, ..ShellView::default() };
    let facts = Facts { shell: Arc::new(waits), ..Facts::default() };
    let told = terminal.screen.publish(terminal.now, &facts).unwrap();
    assert!(told.shell.waits);
    assert_eq!(told.watermark, terminal.frame.watermark);
    assert!(terminal.screen.publish(terminal.now, &facts).is_none());
    terminal.feed("x");
    let changed = terminal.screen.publish(terminal.now, &facts).unwrap();
    assert_eq!(changed.watermark, told.watermark.next());
}
