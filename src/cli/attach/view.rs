//! The client's copy of a session's screen, updated by the daemon's deltas.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::core::frame::ClipboardWrite;
use crate::core::frame::line::Line;
use crate::core::keys::modes::InputModes;
use crate::wire::delta::{ObservedDelta, UpdateWire};
use crate::wire::lease::LeaseWire;
use crate::wire::screen::CursorWire;
use crate::wire::session::ExitWire;
#[derive(Clone, Debug, Default)]
pub struct SessionView {
    pub session: String,
    pub base_row: u64,
    pub cols: u16,
    pub rows: u16,
    pub cursor: CursorWire,
    pub title: String,
    pub lease: LeaseWire,
    pub exit: Option<ExitWire>,
    pub bells: u64,
    pub clipboard: ClipboardWrite,
    pub modes: InputModes,
    lines: BTreeMap<u64, Line>,
}

impl SessionView {
    /// Applies a delta. Returns whether it was readable.
    pub fn apply(&mut self, delta: Value) -> bool {
        let Ok(ObservedDelta { session, delta }) = serde_json::from_value(delta) else {
            return false;
        };
        if delta.reset {
            *self = Self::default();
        }
        self.session = session;
        self.base_row = delta.base_row;
        delta.updates.into_iter().for_each(|update| self.take(update));
        let shown = self.base_row..self.base_row + u64::from(self.rows);
        self.lines.retain(|row, _| shown.contains(row));
        true
    }

    fn take(&mut self, update: UpdateWire) {
        match update {
            UpdateWire::Row(line) => {
                self.lines.insert(line.row, (&line).into());
            }
            UpdateWire::Cursor(cursor) => self.cursor = cursor,
            UpdateWire::Size { cols, rows } => (self.cols, self.rows) = (cols, rows),
            UpdateWire::Title { title } => self.title = title,
            UpdateWire::InputModes(modes) => self.modes = modes.into(),
            UpdateWire::Lease { lease } => self.lease = lease,
            UpdateWire::Exit { status } => self.exit = Some(status),
            UpdateWire::Bell { count } => self.bells = count,
            UpdateWire::Clipboard { count, data } => {
                self.clipboard = ClipboardWrite { count, data: data.into() };
            }
            UpdateWire::Mode { .. } | UpdateWire::Activity { .. } | UpdateWire::Other => {}
        }
    }

    /// Whether this principal holds the lease.
    pub fn is_held_by(&self, name: &str) -> bool {
        self.lease.by.as_deref() == Some(name)
    }

    /// The line of a row, counted from the top of the screen.
    pub fn line(&self, index: u64) -> Option<&Line> {
        self.lines.get(&(self.base_row + index))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::frame::line::{Attributes, Color, Style};

    fn delta(base_row: u64, updates: Value) -> Value {
        json!({"session": "s", "from": 1, "watermark": 2, "base_row": base_row, "updates": updates})
    }

    #[test]
    fn rows_leave_the_view_when_they_scroll_off() {
        let mut view = SessionView::default();
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
        let mut view = SessionView::default();
        let title = json!({"type": "title", "title": "old"});
        assert!(view.apply(delta(0, json!([title]))));
        let mut reset = delta(5, json!([]));
        reset["reset"] = json!(true);
        assert!(view.apply(reset));
        assert_eq!((view.title.as_str(), view.base_row), ("", 5));
    }

    #[test]
    fn runs_become_styles() {
        let mut view = SessionView::default();
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
        let mut view = SessionView::default();
        assert!(view.apply(delta(3, json!([{"type": "weather", "sunny": true}]))));
        assert_eq!(view.base_row, 3);
        assert!(!view.apply(json!({"updates": 1})));
    }
}
