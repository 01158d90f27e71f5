//! Shows history to the person, a screen at a time.
//!
//! It tracks the position in history and the keys that move it. The client requests the rows.

use crate::cli::attach::search::{HistorySearch, Searched, Towards};
use crate::cli::attach::typed_text::TypedText;
use crate::core::frame::line::{Attributes, Line, Run, Style};
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
    /// A text to search for follows.
    Ask,
    /// To the next row that has the text.
    Next(Towards),
    Leave,
}

/// The move of a key, if it has one.
fn move_of(key: &[u8]) -> Option<Move> {
    const KEYS: [(&[u8], Move); 25] = [
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
        (b"/", Move::Ask),
        (b"n", Move::Next(Towards::Older)),
        (b"N", Move::Next(Towards::Newer)),
        (b"q", Move::Leave),
        (b"\x03", Move::Leave),
        (b"\x1b", Move::Leave),
    ];
    KEYS.iter().find(|known| known.0 == key).map(|(_, step)| *step)
}

/// What the status line says of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryPlace {
    Rows(String),
    Asks(String),
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
    /// The text to search for, as far as it is typed.
    typed: Option<TypedText>,
    /// What was searched for last.
    text: String,
    search: Option<HistorySearch>,
    search_awaited: bool,
    /// The row that was found, which stands out.
    found: Option<u64>,
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

    /// Obeys typed bytes; keys without a meaning are ignored. Returns whether the person still looks at history.
    pub fn on_typed(&mut self, typed: &[u8]) -> bool {
        keys_of(typed).into_iter().all(|key| match self.typed.take() {
            Some(text) => {
                self.on_text(text, &key);
                true
            }
            None => move_of(&key).is_none_or(|step| self.go(step)),
        })
    }

    /// Takes a key while a text to search for is typed.
    fn on_text(&mut self, mut text: TypedText, key: &[u8]) {
        match key {
            b"\r" | b"\n" => {
                if !text.is_empty() {
                    self.text = text.text().into_owned();
                    self.found = None;
                }
                self.search(Towards::Older);
                return;
            }
            b"\x1b" | b"\x03" => return,
            b"\x7f" | b"\x08" => {
                if !text.erase() {
                    return;
                }
            }
            key => {
                text.add(key);
            }
        }
        self.typed = Some(text);
    }

    /// Searches from the row that was found last, or else from the bottom of what is shown.
    fn search(&mut self, towards: Towards) {
        if self.text.is_empty() {
            return;
        }
        let rows = match (towards, self.found) {
            (Towards::Older, Some(found)) => self.first..found,
            (Towards::Older, None) => self.first..(self.top + self.height).min(self.end),
            (Towards::Newer, Some(found)) => found + 1..self.end,
            (Towards::Newer, None) => self.top..self.end,
        };
        self.search = Some(HistorySearch::new(&self.text, towards, rows));
    }

    /// The rows to read for a search: the first one and the count. None while an answer is pending, and
    /// without a search.
    pub fn searched_next(&mut self) -> Option<(u64, u64)> {
        let wanted = self.search.as_mut().filter(|_| !self.search_awaited)?.wanted();
        self.search_awaited = wanted.is_some();
        wanted
    }

    /// Ends a search of no rows. Returns what to tell of it.
    pub fn take_vain(&mut self) -> Option<String> {
        let is_vain = |search: &mut HistorySearch| search.wanted().is_none();
        let vain = self.search.take_if(|search| !self.search_awaited && is_vain(search));
        vain.map(|search| search.missed())
    }

    /// Takes an answer of `read_history` to a search. Returns what to tell of one that found nothing.
    pub fn take_searched(&mut self, answer: &HistoryRows) -> Option<String> {
        self.search_awaited = false;
        (self.first, self.end) = (answer.dropped_rows, answer.end_row);
        match self.search.as_mut()?.take(answer) {
            Searched::GoesOn => None,
            Searched::Found(row) => {
                self.found = Some(row);
                self.top = row.saturating_sub(self.height / 2);
                self.top = self.top.clamp(self.first, self.last_top());
                self.search = None;
                None
            }
            Searched::Nowhere => self.search.take().map(|search| search.missed()),
        }
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
            Move::Ask => {
                self.typed = Some(TypedText::default());
                return true;
            }
            Move::Next(towards) => {
                self.search(towards);
                return true;
            }
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
        (self.search, self.search_awaited) = (None, false);
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
        let found = self.found.and_then(|row| usize::try_from(row.checked_sub(self.top)?).ok());
        if let Some(line) = found.and_then(|index| self.lines.get_mut(index)) {
            let style = Style { attributes: Attributes::INVERSE, ..Style::default() };
            let run = Run { column: 0, columns: line.painted_columns(), style };
            line.runs = Box::new([run]);
        }
        self.asked = u64::MAX;
        false
    }

    /// The rows to show.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The position for the status line, or the text to search for, as far as it is typed.
    pub fn place(&self) -> HistoryPlace {
        if let Some(typed) = &self.typed {
            return HistoryPlace::Asks(format!("/{}_", typed.text()));
        }
        let last = (self.top + self.height).min(self.end);
        let Self { top, first, end, .. } = self;
        HistoryPlace::Rows(format!("history {top}-{last} of {first}-{end}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_pagers_move() {
        let top = |typed: &[u8]| {
            let mut back = Scrollback::above(100, 10);
            back.take(&answer(90..100));
            back.on_typed(typed).then_some(back.top)
        };
        assert_eq!(top(b"\x1b[5~kj"), Some(81));
        assert_eq!(top(b"\x1b[A"), Some(89));
        assert_eq!(top(b"\x1b[Aq"), None);
        assert_eq!(top(b"\x1b"), None);
        assert_eq!(top(b"x\x1b[1;5Cg\x1b[<64;1;1M"), Some(30));
    }

    #[test]
    fn what_is_typed_after_a_slash_is_searched_for_and_found_rows_stand_out() {
        let mut back = Scrollback::above(110, 10);
        assert!(!back.take(&answer(100..110)) || back.wanted().is_some());
        assert!(back.on_typed(b"/qq\x7f\x7f4x\x7f"));
        assert_eq!(back.place(), HistoryPlace::Asks("/4_".to_owned()));
        assert!(back.on_typed(b"\r"));
        assert_eq!(back.searched_next(), Some((30, 80)));
        assert_eq!(back.searched_next(), None, "one request at a time");
        let plain = |rows: std::ops::Range<u64>| {
            let texts: Vec<_> = rows.clone().map(|row| row.to_string()).collect();
            HistoryRows { text: Some(texts.join("\n")), lines: None, ..answer(rows) }
        };
        assert_eq!(back.take_searched(&plain(30..110)), None);
        assert_eq!((back.found, back.top), (Some(104), 99));
        back.on_no_answer();
        assert_eq!(back.wanted(), Some((99, 10)));
        assert!(!back.take(&answer(99..109)));
        let inverse = |line: &Line| line.style_at(0).attributes == Attributes::INVERSE;
        let marked: Vec<_> = back.lines().iter().filter(|line| inverse(line)).collect();
        assert_eq!(marked.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["104"]);
        // The next one, and back.
        assert!(back.on_typed(b"n"));
        assert_eq!(back.searched_next(), Some((30, 74)));
        assert_eq!(back.take_searched(&plain(30..104)), None);
        assert_eq!(back.found, Some(94));
        assert!(back.on_typed(b"N"));
        assert_eq!(back.searched_next(), Some((95, 25)));
        assert_eq!(back.take_searched(&plain(95..120)), None);
        assert_eq!(back.found, Some(104));
        assert_eq!(back.take_vain(), None, "no search goes on");
        // Above the first row and below the last there is nothing to ask for.
        for (found, key, told) in
            [(30, b"n", "not found above: 4"), (119, b"N", "not found below: 4")]
        {
            let mut back = Scrollback { found: Some(found), ..back.clone() };
            assert!(back.on_typed(key));
            assert_eq!(back.take_vain().as_deref(), Some(told));
            assert_eq!(back.take_vain(), None);
            assert_eq!(back.searched_next(), None);
        }
        // What is nowhere is said, and leaving the line of text leaves nothing else.
        assert!(back.on_typed(b"/none\r"));
        assert_eq!(back.searched_next(), Some((30, 79)));
        let told = back.take_searched(&plain(30..109));
        assert_eq!(told.as_deref(), Some("not found above: none"));
        assert!(back.on_typed(b"/x\x1b"));
        assert_eq!(back.place(), HistoryPlace::Rows("history 99-109 of 30-120".to_owned()));
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
        assert_eq!(back.place(), HistoryPlace::Rows("history 90-100 of 30-120".to_owned()));
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
