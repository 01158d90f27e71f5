//! Pieces of the output of a command that a shell marks on a screen.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::core::frame::Size;
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::core::shell::commands::record::CommandId;

/// How many bytes one answer has.
const ROOM: usize = 20_000;

const NONCE: &str = "5ec2e7";

/// A shell that has begun its first command.
struct Shell {
    screen: Screen,
}

impl Shell {
    fn new(cols: u16) -> Self {
        let size = Size { rows: 4, cols };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        screen.set_nonce(Some(NONCE.into()));
        let mut shell = Self { screen };
        shell.mark("A").write("$ ").mark("B").write("x\r\n").mark("C");
        shell
    }

    fn write(&mut self, text: &str) -> &mut Self {
        self.screen.feed(Moment::default(), text.as_bytes());
        self
    }

    fn mark(&mut self, mark: &str) -> &mut Self {
        self.write(&format!("\x1b]133;{mark};nonce={NONCE}\x1b\\"))
    }

    fn look(&mut self) -> (Arc<CommandRecord>, Arc<Frame>) {
        self.screen.publish(Moment::default(), &Facts::default());
        let frame = self.screen.first_frame(Moment::default(), &Facts::default());
        (Arc::clone(self.screen.commands().get(CommandId(1)).unwrap()), frame)
    }

    fn beginning(&mut self) -> OutputPiece {
        let (record, frame) = self.look();
        OutputPiece::beginning(&record, &frame, ROOM)
    }

    /// What is new since the row, which moves on.
    fn new_since(&mut self, row: &mut u64) -> String {
        let (record, frame) = self.look();
        let piece = OutputPiece::following(&record, &frame, RowNumber(*row), ROOM);
        assert_eq!((piece.lines_left_out, piece.rows_trimmed), (0, 0));
        *row = piece.next_row.0;
        piece.text
    }
}

#[test]
fn who_follows_is_told_each_line_once_and_when_it_is_whole() {
    let mut shell = Shell::new(20);
    let mut row = 0;
    assert_eq!(shell.new_since(&mut row), "");
    shell.write("one\r\ntwo\r\nthr");
    assert_eq!(shell.new_since(&mut row), "one\ntwo\n");
    assert_eq!(shell.new_since(&mut row), "");
    shell.write("ee\r\n\r\n5\r\n6\r\n7");
    assert_eq!(shell.new_since(&mut row), "three\n\n5\n6\n");
    shell.mark("D;0").write("$ ");
    assert_eq!(shell.new_since(&mut row), "7\n");
    assert_eq!(shell.new_since(&mut row), "");
}

#[test]
fn progress_is_told_in_its_final_state() {
    let mut shell = Shell::new(20);
    let mut row = 0;
    shell.write(" 10%\r");
    assert_eq!(shell.new_since(&mut row), "");
    shell.write(" 50%\r100%\r\ndone");
    assert_eq!(shell.new_since(&mut row), "100%\n");
}

#[test]
fn a_line_over_several_rows_is_told_as_one() {
    let mut shell = Shell::new(5);
    let mut row = 0;
    shell.write("0123456789");
    assert_eq!(shell.new_since(&mut row), "");
    shell.write("ab\r\nc");
    assert_eq!(shell.new_since(&mut row), "0123456789ab\n");
    shell.mark("D;0");
    assert_eq!(shell.new_since(&mut row), "c\n");
}

#[test]
fn what_a_full_screen_program_shows_is_not_told() {
    let mut shell = Shell::new(20);
    let mut row = 0;
    shell.write("before\r\n");
    assert_eq!(shell.new_since(&mut row), "before\n");
    shell.write("\x1b[?1049h\x1b[2Jtext\r\n");
    assert_eq!(shell.new_since(&mut row), "");
    shell.write("\x1b[?1049lafter\r\n");
    assert_eq!(shell.new_since(&mut row), "after\n");
}

#[test]
fn the_beginning_has_the_line_that_is_about_to_be_written() {
    let mut shell = Shell::new(20);
    shell.write("one\r\ntwo");
    assert_eq!(shell.beginning().text, "one\ntwo\n");
    shell.write("\r\n").mark("D;0").write("$ ");
    assert_eq!(shell.beginning().text, "one\ntwo\n");
}

#[test]
fn what_one_answer_has_no_room_for_comes_in_pieces_without_gaps() {
    let mut shell = Shell::new(400);
    let lines: Vec<String> = (0..2_000).map(|n| format!("{n} {}", "\"".repeat(300))).collect();
    shell.write(&(lines.join("\r\n") + "\r\n")).mark("D;0");
    let (record, frame) = shell.look();
    let mut piece = OutputPiece::beginning(&record, &frame, ROOM);
    let mut text = String::new();
    loop {
        assert!(json!(piece.text).to_string().len() < ROOM + 1_000);
        text.push_str(&piece.text);
        if piece.lines_left_out == 0 {
            break;
        }
        assert_eq!(text.lines().count() + piece.lines_left_out, lines.len());
        piece = OutputPiece::following(&record, &frame, piece.next_row, ROOM);
    }
    assert!(text.lines().eq(&lines));
}

#[test]
fn rows_that_history_does_not_hold_any_more_are_counted() {
    let mut shell = Shell::new(20);
    let rows = ScreenLimits::default().history.rows_max + 100;
    shell.write(&"x\r\n".repeat(rows)).mark("D;0");
    let piece = shell.beginning();
    let told = piece.text.lines().count() as u64;
    assert!(piece.rows_trimmed > 0);
    assert_eq!(told + piece.lines_left_out as u64 + piece.rows_trimmed, rows as u64);
}

#[test]
fn a_line_longer_than_an_answer_says_what_it_left_out() {
    let mut shell = Shell::new(20);
    shell.write(&"x".repeat(2 * ROOM)).write("\r\nnext\r\n").mark("D;0");
    let (record, frame) = shell.look();
    let piece = OutputPiece::beginning(&record, &frame, ROOM);
    assert!(piece.text.ends_with(&format!("x[… {ROOM} more bytes of this line]\n")));
    assert_eq!(piece.lines_left_out, 1);
    assert_eq!(OutputPiece::following(&record, &frame, piece.next_row, ROOM).text, "next\n");
}
