//! Decides which part of a session fits on a person's terminal, above the status line.
//!
//! A session larger than the terminal is cropped around its cursor; a smaller one is at the top left.

use crate::cli::attach::bar::Bar;
use crate::cli::attach::renderer::{PaintedCursor, Picture, TerminalSize};
use crate::cli::attach::view::SessionView;
use crate::core::frame::line::Line;
use crate::core::keys::modes::InputModes;

/// Terminals with fewer rows get no status line.
const STATUS_FROM_ROWS: u16 = 4;
pub fn room_for_session(room: TerminalSize) -> TerminalSize {
    let status = u16::from(has_status(room));
    TerminalSize { rows: room.rows - status, cols: room.cols }
}

/// Whether a terminal has a status line.
pub fn has_status(room: TerminalSize) -> bool {
    room.rows >= STATUS_FROM_ROWS
}

/// The visible part of a session that is larger than the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisiblePart {
    top: u16,
    left: u16,
    /// The size of the session's part in the last picture.
    shown: TerminalSize,
}

impl VisiblePart {
    /// Moves as little as possible to keep the cursor visible.
    fn follow(&mut self, view: &SessionView, room: TerminalSize) {
        let row = view.cursor.row.saturating_sub(view.base_row).min(u64::from(u16::MAX)) as u16;
        self.top = moved(self.top, row, view.rows, room.rows);
        self.left = moved(self.left, view.cursor.col, view.cols, room.cols);
    }

    /// The picture of the session's current screen.
    pub fn picture(&mut self, view: &SessionView, room: TerminalSize, status: &Bar) -> Picture {
        let inner = room_for_session(room);
        self.follow(view, inner);
        let rows = inner.rows.min(view.rows.saturating_sub(self.top));
        let line = |index: u16| view.line(u64::from(self.top + index));
        let cut = |line: &Line| line.cut(self.left, inner.cols);
        let lines = (0..rows).map(|index| line(index).map(cut).unwrap_or_default()).collect();
        let cols = inner.cols.min(view.cols.saturating_sub(self.left));
        self.shown = TerminalSize { rows, cols };
        let pointer = self.pointer(view, inner);
        let picture = Picture { lines, pointer, modes: view.modes, ..Picture::default() };
        finished(picture, view, room, status)
    }

    /// The session's cell (row, column) at a place of the terminal in the last picture; none outside the
    /// session.
    pub fn cell_at(&self, (row, col): (u16, u16)) -> Option<(u16, u16)> {
        let inside = row < self.shown.rows && col < self.shown.cols;
        inside.then(|| self.nearest_cell((row, col)))
    }

    /// The session's cell nearest to a place of the terminal in the last picture.
    pub fn nearest_cell(&self, (row, col): (u16, u16)) -> (u16, u16) {
        let row = row.min(self.shown.rows.saturating_sub(1));
        let col = col.min(self.shown.cols.saturating_sub(1));
        (self.top + row, self.left + col)
    }

    /// How many rows of the session lie above the last picture.
    pub fn top(&self) -> u16 {
        self.top
    }

    fn pointer(&self, view: &SessionView, inner: TerminalSize) -> Option<PaintedCursor> {
        let cursor = &view.cursor;
        let row = u16::try_from(cursor.row.checked_sub(view.base_row)?).ok()?;
        let (row, col) = (row.checked_sub(self.top)?, cursor.col.checked_sub(self.left)?);
        let seen = cursor.visible && row < inner.rows && col < inner.cols;
        seen.then_some(PaintedCursor { row, col, style: cursor.style })
    }
}

/// The start of a window of `room` cells over `size` cells that contains `wanted`, near `start`.
fn moved(start: u16, wanted: u16, size: u16, room: u16) -> u16 {
    let last = size.saturating_sub(room);
    let lowest = (wanted + 1).saturating_sub(room);
    start.clamp(lowest.min(wanted), wanted.max(lowest)).min(last.max(lowest))
}

/// The picture of these history rows, without keyboard and mouse modes.
pub fn history(rows: &[Line], view: &SessionView, room: TerminalSize, status: &Bar) -> Picture {
    let inner = room_for_session(room);
    let shown = rows.iter().take(usize::from(inner.rows));
    let lines = shown.map(|line| line.cut(0, inner.cols)).collect();
    let modes = InputModes::default();
    finished(Picture { lines, modes, ..Picture::default() }, view, room, status)
}

/// Covers the last rows of the session's part with text, as many rows as fit.
pub fn cover(picture: &mut Picture, rows: &[String], room: TerminalSize) {
    let inner = room_for_session(room);
    let rows = &rows[..rows.len().min(usize::from(inner.rows))];
    let first = usize::from(inner.rows) - rows.len();
    if picture.lines.len() < usize::from(inner.rows) {
        picture.lines.resize(usize::from(inner.rows), Line::default());
    }
    for (line, text) in picture.lines[first..].iter_mut().zip(rows) {
        *line = Bar::plain(text).line(room.cols);
    }
    picture.pointer.take_if(|pointer| usize::from(pointer.row) >= first);
}

fn finished(mut picture: Picture, view: &SessionView, room: TerminalSize, status: &Bar) -> Picture {
    picture.title.clone_from(&view.title);
    picture.bells = view.bells;
    picture.clipboard.clone_from(&view.clipboard);
    if has_status(room) {
        picture.lines.resize(usize::from(room.rows - 1), Line::default());
        picture.lines.push(status.line(room.cols));
    }
    picture
}

/// The status line alone, if the terminal has one.
pub fn status_bar(status: &Bar, room: TerminalSize) -> Option<Line> {
    has_status(room).then(|| status.line(room.cols))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(rows: u16, cols: u16, cursor: (u64, u16)) -> SessionView {
        let mut view = SessionView::default();
        let mut updates = vec![
            json!({"type": "size", "cols": cols, "rows": rows}),
            json!({"type": "cursor", "row": cursor.0, "col": cursor.1, "visible": true}),
        ];
        let row = |row| json!({"type": "row", "row": row, "text": format!("{row:0>3}456789")});
        updates.extend((0..rows).map(row));
        let delta = json!({
            "session": "s", "from": 0, "watermark": 1, "base_row": 0, "updates": updates,
        });
        assert!(view.apply(delta));
        view
    }

    fn texts(picture: &Picture) -> Vec<&str> {
        picture.lines.iter().map(|line| &*line.text).collect()
    }

    #[test]
    fn a_smaller_session_stands_in_the_corner_and_the_status_at_the_bottom() {
        let picture = VisiblePart::default().picture(
            &view(2, 9, (1, 3)),
            TerminalSize { rows: 5, cols: 20 },
            &Bar::plain("status"),
        );
        assert_eq!(texts(&picture), ["000456789", "001456789", "", "", "status"]);
        assert_eq!(picture.pointer.map(|at| (at.row, at.col)), Some((1, 3)));
    }

    #[test]
    fn a_larger_session_is_cropped_around_its_cursor() {
        let mut window = VisiblePart::default();
        let room = TerminalSize { rows: 4, cols: 4 };
        let picture = window.picture(&view(10, 9, (7, 8)), room, &Bar::plain("status"));
        assert_eq!(texts(&picture), ["6789", "6789", "6789", "stat"]);
        assert_eq!(picture.pointer.map(|at| (at.row, at.col)), Some((2, 3)));
        // The window stays where it is as long as the cursor is in it.
        let picture = window.picture(&view(10, 9, (6, 6)), room, &Bar::plain("status"));
        assert_eq!(picture.pointer.map(|at| (at.row, at.col)), Some((1, 1)));
        let picture = window.picture(&view(10, 9, (0, 0)), room, &Bar::plain("status"));
        assert_eq!(texts(&picture), ["0004", "0014", "0024", "stat"]);
    }

    #[test]
    fn the_cursor_is_in_the_room_wherever_it_goes() {
        for size in 1..12 {
            for room in 1..12 {
                for start in 0..12 {
                    for wanted in 0..size {
                        let top = moved(start, wanted, size, room);
                        assert!((top..top + room).contains(&wanted), "{start} {wanted} {size}");
                        assert!(top == 0 || top + room <= size, "{start} {wanted} {size} {room}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_are_laid_over_it_leave_the_rest_of_a_session_and_the_status() {
        let rows = ["first".to_owned(), "second".to_owned()];
        let mut window = VisiblePart::default();
        let room = TerminalSize { rows: 5, cols: 9 };
        let mut picture = window.picture(&view(9, 9, (1, 3)), room, &Bar::plain("status"));
        cover(&mut picture, &rows, room);
        assert_eq!(texts(&picture), ["000456789", "001456789", "first", "second", "status"]);
        assert!(picture.pointer.is_some());
        let mut picture = window.picture(&view(9, 9, (3, 3)), room, &Bar::plain("status"));
        cover(&mut picture, &rows, room);
        assert!(picture.pointer.is_none(), "it would be among them");
        let room = TerminalSize { rows: 1, cols: 3 };
        let mut picture = window.picture(&view(1, 9, (0, 0)), room, &Bar::plain("status"));
        cover(&mut picture, &rows, room);
        assert_eq!(texts(&picture), ["fir"]);
    }

    #[test]
    fn a_terminal_of_a_few_rows_has_no_status_line() {
        let room = TerminalSize { rows: 3, cols: 20 };
        assert_eq!(room_for_session(room), room);
        let picture =
            VisiblePart::default().picture(&view(2, 9, (0, 0)), room, &Bar::plain("status"));
        assert_eq!(texts(&picture), ["000456789", "001456789"]);
    }
}
