//! Output that becomes a screen, and what is published and kept of it.

use std::sync::Arc;

use termgate::core::frame::Size;
use termgate::core::ids::RowNumber;
use termgate::core::moment::Moment;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};

use crate::instructions::counting::check;

const SIZE: Size = Size { rows: 24, cols: 80 };

fn screen() -> Screen {
    Screen::new(SIZE, ScreenLimits::default(), Origin::default())
}

/// A screen with more rows than it shows, published.
fn with_rows() -> Screen {
    let mut screen = screen();
    screen.feed(Moment::default(), plain(500).as_bytes());
    drop(screen.first_frame(Moment::default(), &Facts::default()));
    screen
}

fn plain(lines: u32) -> String {
    let line =
        |at| format!("{at:>6} a log line as builds print it, with words of several lengths\r\n");
    (0..lines).map(line).collect()
}

fn coloured(lines: u32) -> String {
    let word = |at| format!("\x1b[1;{}mword{at}\x1b[0m ", 31 + at % 7);
    let line = |at| (0..8).map(|word_at| word(at + word_at)).collect::<String>() + "\r\n";
    (0..lines).map(line).collect()
}

/// An editor that scrolls: it paints the bottom row of a region, and its status line.
fn editor(steps: u32) -> String {
    let step =
        |at| format!("\x1b[1;23r\x1b[23;1H\n\x1b[K    let row = {at};\x1b[r\x1b[24;60H{at}\x1b[K");
    (0..steps).map(step).collect()
}

fn check_feed(path: &str, output: String) {
    check(path, || {
        let mut screen = screen();
        move || screen.feed(Moment::default(), output.as_bytes())
    });
}

#[test]
fn feed_plain() {
    check_feed("feed_plain", plain(200));
}

#[test]
fn feed_coloured() {
    check_feed("feed_coloured", coloured(200));
}

#[test]
fn feed_editor() {
    check_feed("feed_editor", editor(200));
}

/// A row changes and is published, as for each key that is typed.
#[test]
fn publish_row() {
    check("publish_row", || {
        let mut screen = with_rows();
        move || {
            for _ in 0..50 {
                screen.feed(Moment::default(), b"k");
                assert!(screen.publish(Moment::default(), &Facts::default()).is_some());
            }
        }
    });
}

#[test]
fn checkpoint_screen() {
    check("checkpoint_screen", || {
        let mut screen = with_rows();
        let mut end_row = screen.checkpoint(RowNumber(0)).end_row;
        move || {
            for _ in 0..20 {
                screen.feed(Moment::default(), b"one more row\r\n");
                end_row = screen.checkpoint(end_row).end_row;
            }
        }
    });
}

#[test]
fn restore_screen() {
    check("restore_screen", || {
        let mut screen = with_rows();
        let stored = screen.checkpoint(RowNumber(0));
        let rows = Arc::new(stored.rows);
        move || {
            let blocks = [rows.as_slice()];
            Screen::restore(&stored.snapshot, blocks, ScreenLimits::default()).unwrap();
        }
    });
}
