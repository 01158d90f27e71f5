//! The client's copy of a session's screen, updated by the daemon's deltas.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::core::frame::line::{Attributes, Color, Line, Run, Style};
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use crate::session::pty::signal::name_of_signal;

/// The cursor, on an absolute row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Cursor {
    pub row: u64,
    pub col: u16,
    pub visible: bool,
    /// `block`, `underline` or `beam`.
    #[serde(default)]
    pub shape: String,
}

/// The principal that has the keyboard, or whose lease is suspended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Holder {
    #[serde(default)]
    pub by: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The lease of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Lease {
    #[serde(default)]
    pub held: bool,
    #[serde(flatten)]
    pub holder: Holder,
    #[serde(default)]
    pub waiters: u64,
    /// The principal whose lease is suspended while a person types.
    #[serde(default)]
    pub suspended: Option<Holder>,
}

/// The cause when the shim was killed, so that the exit code is unknown.
pub const SHIM_LOST: &str = "shim_lost";

/// How the program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ended {
    #[serde(default)]
    pub code: Option<i32>,
    #[serde(default)]
    pub signal: Option<i32>,
    /// Why there is neither code nor signal, if that is known.
    #[serde(default)]
    pub cause: Option<String>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "ended with code {code}"),
            (None, Some(signal)) => match name_of_signal(signal) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {signal}"),
            },
            (None, None) if self.cause.as_deref() == Some(SHIM_LOST) => {
                f.write_str("ended, as the process that held its terminal is gone")
            }
            (None, None) => f.write_str("ended, nobody knows how"),
        }
    }
}

/// The current state of a session.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub session: String,
    pub base_row: u64,
    pub cols: u16,
    pub rows: u16,
    pub cursor: Cursor,
    pub title: String,
    pub lease: Lease,
    pub exit: Option<Ended>,
    pub bells: u64,
    pub modes: InputModes,
    lines: BTreeMap<u64, Line>,
}

impl View {
    /// Applies a delta. Returns whether it was readable.
    pub fn apply(&mut self, delta: Value) -> bool {
        let Ok(news) = serde_json::from_value::<News>(delta) else { return false };
        if news.reset {
            *self = Self::default();
        }
        self.session = news.session;
        self.base_row = news.base_row;
        news.updates.into_iter().for_each(|update| self.take(update));
        let shown = self.base_row..self.base_row + u64::from(self.rows);
        self.lines.retain(|row, _| shown.contains(row));
        true
    }

    fn take(&mut self, update: Update) {
        match update {
            Update::Row { row, text, runs } => {
                self.lines.insert(row, line(text, &runs));
            }
            Update::Cursor(cursor) => self.cursor = cursor,
            Update::Size { cols, rows } => (self.cols, self.rows) = (cols, rows),
            Update::Title { title } => self.title = title,
            Update::InputModes(modes) => self.modes = modes.into(),
            Update::Lease { lease } => self.lease = lease,
            Update::Exit { status } => self.exit = Some(status),
            Update::Bell { count } => self.bells = count,
            Update::Other => {}
        }
    }

    /// The line of a row, counted from the top of the screen.
    pub fn line(&self, index: u64) -> Option<&Line> {
        self.lines.get(&(self.base_row + index))
    }
}

#[derive(Debug, Deserialize)]
struct News {
    session: String,
    base_row: u64,
    #[serde(default)]
    reset: bool,
    updates: Vec<Update>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Update {
    Row {
        row: u64,
        text: String,
        #[serde(default)]
        runs: Vec<RunNews>,
    },
    Cursor(Cursor),
    Size {
        cols: u16,
        rows: u16,
    },
    Title {
        title: String,
    },
    InputModes(ModesNews),
    Lease {
        lease: Lease,
    },
    Exit {
        status: Ended,
    },
    Bell {
        count: u64,
    },
    /// An update that a newer daemon may send.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct RunNews {
    col: u16,
    len: u16,
    #[serde(flatten)]
    style: StyleNews,
}

#[derive(Debug, Default, Deserialize)]
struct StyleNews {
    fg: Option<String>,
    bg: Option<String>,
    #[serde(default)]
    attrs: Vec<String>,
}

impl StyleNews {
    fn style(&self) -> Style {
        let known = |word: &String| Attributes::NAMES.iter().find(|(_, name)| name == word);
        let attributes = self.attrs.iter().filter_map(known);
        Style {
            foreground: self.fg.as_deref().and_then(color).unwrap_or_default(),
            background: self.bg.as_deref().and_then(color).unwrap_or_default(),
            attributes: attributes.fold(Attributes::default(), |all, (bit, _)| all.with(*bit)),
        }
    }
}

/// Parses a colour of a delta: `#rrggbb` or a palette index.
fn color(word: &str) -> Option<Color> {
    let Some(hex) = word.strip_prefix('#') else {
        return word.parse().ok().map(Color::Indexed);
    };
    let part = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    Some(Color::Rgb(part(0)?, part(2)?, part(4)?))
}

fn line(text: String, runs: &[RunNews]) -> Line {
    let run = |run: &RunNews| Run { column: run.col, columns: run.len, style: run.style.style() };
    Line { text: text.into(), runs: runs.iter().map(run).collect(), wrapped: false }
}

#[derive(Debug, Deserialize)]
struct CellNews {
    ch: String,
    #[serde(default)]
    width: Option<u16>,
    #[serde(default)]
    style: StyleNews,
}

/// Parses a row of a `read_history` answer with cells.
pub fn history_line(row: &Value) -> Line {
    let cells: Vec<CellNews> = serde_json::from_value(row["cells"].clone()).unwrap_or_default();
    let (mut text, mut runs, mut column) = (String::new(), Vec::new(), 0);
    for cell in cells {
        let columns = cell.width.unwrap_or(1);
        let style = cell.style.style();
        if style != Style::default() {
            runs.push(Run { column, columns, style });
        }
        text.push_str(&cell.ch);
        column += columns;
    }
    Line { text: text.into(), runs: runs.into(), wrapped: false }
}

#[derive(Debug, Deserialize)]
struct ModesNews {
    application_cursor: bool,
    application_keypad: bool,
    bracketed_paste: bool,
    mouse: String,
    mouse_encoding: String,
    kitty_flags: u8,
}

impl From<ModesNews> for InputModes {
    fn from(news: ModesNews) -> Self {
        Self {
            application_cursor: news.application_cursor,
            application_keypad: news.application_keypad,
            bracketed_paste: news.bracketed_paste,
            line_feed_new_line: false,
            mouse: match news.mouse.as_str() {
                "clicks" => MouseReporting::Clicks,
                "drags" => MouseReporting::Drags,
                "motion" => MouseReporting::Motion,
                _ => MouseReporting::Off,
            },
            mouse_encoding: match news.mouse_encoding.as_str() {
                "sgr" => MouseEncoding::Sgr,
                "utf8" => MouseEncoding::Utf8,
                _ => MouseEncoding::Bytes,
            },
            kitty_flags: news.kitty_flags,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delta(base_row: u64, updates: Value) -> Value {
        json!({"session": "s", "from": 1, "watermark": 2, "base_row": base_row, "updates": updates})
    }

    #[test]
    fn rows_leave_the_view_when_they_scroll_off() {
        let mut view = View::default();
        let row = |row: u64, text: &str| json!({"type": "row", "row": row, "text": text});
        let size = json!({"type": "size", "cols": 10, "rows": 2});
        assert!(view.apply(delta(0, json!([size, row(0, "a"), row(1, "b")]))));
        assert!(view.apply(delta(1, json!([row(2, "c")]))));
        let shown: Vec<&str> = (0..2).map(|index| &*view.line(index).unwrap().text).collect();
        assert_eq!(shown, ["b", "c"]);
        assert_eq!(view.lines.len(), 2);
    }

    #[test]
    fn a_reset_forgets_what_was_known() {
        let mut view = View::default();
        let title = json!({"type": "title", "title": "old"});
        assert!(view.apply(delta(0, json!([title]))));
        let mut reset = delta(5, json!([]));
        reset["reset"] = json!(true);
        assert!(view.apply(reset));
        assert_eq!((view.title.as_str(), view.base_row), ("", 5));
    }

    #[test]
    fn runs_become_styles() {
        let mut view = View::default();
        let size = json!({"type": "size", "cols": 10, "rows": 2});
        let runs = json!([{"col": 1, "len": 2, "fg": "1", "bg": "#0a0b0c", "attrs": ["bold"]}]);
        let row = json!({"type": "row", "row": 0, "text": "abc", "runs": runs});
        assert!(view.apply(delta(0, json!([size, row]))));
        let style = Style {
            foreground: Color::Indexed(1),
            background: Color::Rgb(10, 11, 12),
            attributes: Attributes::BOLD,
        };
        assert_eq!(view.line(0).unwrap().style_at(2), style);
        assert_eq!(view.line(0).unwrap().style_at(0), Style::default());
    }

    #[test]
    fn what_a_newer_daemon_tells_besides_does_no_harm() {
        let mut view = View::default();
        assert!(view.apply(delta(3, json!([{"type": "weather", "sunny": true}]))));
        assert_eq!(view.base_row, 3);
        assert!(!view.apply(json!({"updates": 1})));
    }

    #[test]
    fn cells_of_history_become_a_line() {
        let row = json!({"row": 1, "text": "漢a", "cells": [
            {"ch": "漢", "width": 2, "style": {"fg": "2"}}, {"ch": "a"},
        ]});
        let line = history_line(&row);
        assert_eq!(&*line.text, "漢a");
        assert_eq!(line.runs.len(), 1);
        assert_eq!((line.runs[0].column, line.runs[0].columns), (0, 2));
    }
}
