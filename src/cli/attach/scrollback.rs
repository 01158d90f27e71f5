//! Shows history to the person, a screen at a time.
//!
//! It tracks the position in history and the keys that move it. The client requests the rows.

use crate::core::frame::line::Line;
use crate::core::keys::tokens::keys_of;
use crate::wire::rows::HistoryRows;

/// The effect of a key on the position in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// This many rows down, or up when negative.
    Rows(i64),
    /// This many screens down, or up when negative, with one row of overlap.
    Screens(i64),
    Oldest,
    Newest,
    Leave,
}

/// The moves for typed bytes. Keys without a move are ignored.
pub fn moves(typed: &[u8]) -> Vec<Move> {
    const KEYS: [(&[u8], Move); 22] = [
        (b"\x1b[5~", Move::Screens(-1)),
        (b"\x1b[6~", Move::Screens(1)),
        (b"\x1b[A", Move::Rows(-1)),
        (b"\x1b[B", Move::Rows(1)),
        (b"\x1bOA", Move::Rows(-1)),
        (b"\x1bOB", Move::Rows(1)),
        (b"\x1b[H", Move::Oldest),
        (b"\x1b[F", Move::Newest),
        (b"\x1bOH", Move::Oldest),
        (b"\x1bOF", Move::Newest),
        (b"k", Move::Rows(-1)),
        (b"j", Move::Rows(1)),
        (b"\r", Move::Rows(1)),
        (b"b", Move::Screens(-1)),
        (b" ", Move::Screens(1)),
        (b"\x02", Move::Screens(-1)),
        (b"\x06", Move::Screens(1)),
        (b"g", Move::Oldest),
        (b"G", Move::Newest),
        (b"q", Move::Leave),
        (b"\x03", Move::Leave),
        (b"\x1b", Move::Leave),
    ];
    let known = |key: Vec<u8>| Some(KEYS.iter().find(|known| known.0 == key)?.1);
    keys_of(typed).into_iter().filter_map(known).collect()
}

/// A position in a session's history.
#[derive(Clone, Debug, Default)]
pub struct Scrollback {
    top: u64,
    /// The readable rows, as of the last answer.
    first: u64,
    end: u64,
    lines: Vec<Line>,
    height: u64,
    /// The start of the next rows to show, and the rows received so far.
    asked: u64,
    coming: Vec<Line>,
    awaited: bool,
}

impl Scrollback {
    /// Starts at the screen above a row.
    pub fn above(row: u64, height: u16) -> Self {
        let height = u64::from(height.max(1));
        Self {
            top: row.saturating_sub(height),
            end: row,
            height,
            asked: u64::MAX,
            ..Self::default()
        }
    }

    /// Starts with this row at the top, if the answer shows that a whole screen follows.
    pub fn from_row(top: u64, height: u16) -> Self {
        let height = u64::from(height.max(1));
        Self { top, end: top + height, height, asked: u64::MAX, ..Self::default() }
    }

    /// Whether the newest rows are shown.
    pub fn is_at_end(&self) -> bool {
        self.top >= self.last_top()
    }

    pub fn resize(&mut self, height: u16) {
        self.height = u64::from(height.max(1));
        self.top = self.top.clamp(self.first, self.last_top());
    }

    /// Moves. Returns whether the person still looks at history.
    pub fn go(&mut self, step: Move) -> bool {
        let by = |rows: i64| self.top.saturating_add_signed(rows);
        let screen = (self.height as i64 - 1).max(1);
        self.top = match step {
            Move::Rows(rows) => by(rows),
            Move::Screens(screens) => by(screens * screen),
            Move::Oldest => self.first,
            Move::Newest => self.end,
            Move::Leave => return false,
        };
        self.top = self.top.clamp(self.first, self.last_top());
        true
    }

    fn last_top(&self) -> u64 {
        self.end.saturating_sub(self.height).max(self.first)
    }

    /// The rows to request: the first one and the count. None while an answer is pending.
    pub fn wanted(&mut self) -> Option<(u64, u64)> {
        if std::mem::replace(&mut self.awaited, true) {
            return None;
        }
        if self.asked != self.top {
            (self.asked, self.coming) = (self.top, Vec::new());
        }
        let got = self.coming.len() as u64;
        Some((self.asked + got, self.height - got))
    }

    /// Notes that the pending request will not be answered.
    pub fn on_no_answer(&mut self) {
        (self.awaited, self.asked) = (false, u64::MAX);
    }

    /// Takes an answer of `read_history`. Returns whether to request more.
    pub fn take(&mut self, answer: &HistoryRows) -> bool {
        self.awaited = false;
        (self.first, self.end) = (answer.dropped_rows, answer.end_row);
        let (start, next) = (answer.first_row, answer.next_row);
        self.top = self.top.min(self.last_top());
        if self.asked != self.top {
            return true;
        }
        if start > self.asked + self.coming.len() as u64 {
            // The requested rows were trimmed from history.
            self.top = start;
            return true;
        }
        let rows = answer.lines.as_deref().unwrap_or_default();
        self.coming.extend(rows.iter().map(Line::from));
        let missing = (self.coming.len() as u64) < self.height && next < self.end;
        if !rows.is_empty() && missing {
            return true;
        }
        self.lines = std::mem::take(&mut self.coming);
        self.asked = u64::MAX;
        false
    }

    /// The rows to show.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The position for the status line.
    pub fn place(&self) -> String {
        let last = (self.top + self.height).min(self.end);
        format!("history {}-{} of {}-{}, q leaves", self.top, last, self.first, self.end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_pagers_move() {
        assert_eq!(moves(b"\x1b[5~kj"), [Move::Screens(-1), Move::Rows(-1), Move::Rows(1)]);
        assert_eq!(moves(b"\x1b[Aq"), [Move::Rows(-1), Move::Leave]);
        assert_eq!(moves(b"\x1b"), [Move::Leave]);
        assert_eq!(moves(b"x\x1b[1;5Cg\x1b[<64;1;1M"), [Move::Oldest]);
    }

    /// An answer with these rows, of a history from row 30 to row 120.
    fn answer(rows: std::ops::Range<u64>) -> HistoryRows {
        let line = |row: u64| {
            let text = row.to_string();
            let cells: Vec<_> = text.chars().map(|ch| json!({"ch": ch})).collect();
            json!({"row": row, "text": text, "cells": cells})
        };
        let answer = json!({
            "session": "s",
            "watermark": 1,
            "first_row": rows.start,
            "next_row": rows.end,
            "end_row": 120,
            "dropped_rows": 30,
            "lines": rows.map(line).collect::<Vec<_>>(),
        });
        serde_json::from_value(answer).unwrap()
    }

    fn texts(back: &Scrollback) -> Vec<&str> {
        back.lines().iter().map(|line| &*line.text).collect()
    }

    #[test]
    fn the_place_stays_within_what_can_be_read() {
        let mut back = Scrollback::above(100, 10);
        assert_eq!(back.wanted(), Some((90, 10)));
        assert!(!back.take(&answer(90..100)));
        assert_eq!(back.place(), "history 90-100 of 30-120, q leaves");
        for (step, top) in [
            (Move::Screens(-1), 81),
            (Move::Screens(-100), 30),
            (Move::Rows(1), 31),
            (Move::Newest, 110),
            (Move::Rows(1), 110),
            (Move::Oldest, 30),
        ] {
            assert!(back.go(step));
            assert_eq!(back.wanted(), Some((top, 10)), "{step:?}");
            assert!(!back.take(&answer(top..top + 10)));
        }
        assert!(!back.go(Move::Leave));
    }

    #[test]
    fn rows_that_come_in_several_answers_are_shown_together() {
        let mut back = Scrollback::above(94, 4);
        assert_eq!(back.wanted(), Some((90, 4)));
        assert!(back.take(&answer(90..93)));
        assert!(back.lines().is_empty());
        assert_eq!(back.wanted(), Some((93, 1)));
        assert!(!back.take(&answer(93..94)));
        assert_eq!(texts(&back), ["90", "91", "92", "93"]);
    }

    #[test]
    fn who_moves_on_while_waiting_is_shown_the_new_place() {
        let mut back = Scrollback::above(94, 4);
        assert_eq!(back.wanted(), Some((90, 4)));
        assert!(back.go(Move::Rows(-2)));
        assert_eq!(back.wanted(), None, "one request at a time");
        assert!(back.take(&answer(90..94)));
        assert_eq!(back.wanted(), Some((88, 4)));
        assert!(!back.take(&answer(88..92)));
        assert_eq!(texts(&back), ["88", "89", "90", "91"]);
    }

    #[test]
    fn a_window_that_grows_is_filled() {
        let mut back = Scrollback::above(94, 4);
        assert_eq!(back.wanted(), Some((90, 4)));
        assert!(!back.take(&answer(90..94)));
        back.resize(40);
        assert_eq!(back.wanted(), Some((80, 40)), "the end stays at the bottom");
        back.resize(2);
        assert!(!back.take(&answer(80..120)));
        assert_eq!(back.wanted(), Some((80, 2)));
    }

    #[test]
    fn a_place_near_the_end_is_shown_with_a_whole_screen() {
        let mut back = Scrollback::from_row(118, 4);
        assert_eq!(back.wanted(), Some((118, 4)));
        assert!(back.take(&answer(118..120)));
        assert_eq!(back.wanted(), Some((116, 4)));
        assert!(!back.take(&answer(116..120)));
        assert!(back.is_at_end());
        back.go(Move::Rows(-3));
        assert!(!back.is_at_end());
    }

    #[test]
    fn rows_that_are_gone_meanwhile_are_skipped() {
        let mut back = Scrollback::above(24, 4);
        assert_eq!(back.wanted(), Some((20, 4)));
        assert!(back.take(&answer(30..34)));
        assert_eq!(back.wanted(), Some((30, 4)));
        assert!(!back.take(&answer(30..34)));
        assert_eq!(texts(&back), ["30", "31", "32", "33"]);
    }
}
