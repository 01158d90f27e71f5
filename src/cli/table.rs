//! Tables and numbered rows for people, with columns as wide as their widest cell.
//!
//! Cells can contain untrusted text, so no control character of a cell reaches the terminal.

use crate::core::one_line::one_line;
use crate::wire::delta::{DeltaWire, UpdateWire};
use crate::wire::line::LineWire;

const GAP: &str = "  ";

/// Renders a head and rows, one per line, without trailing blanks.
pub fn render<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let head = head.map(str::to_owned);
    let lines =
        || std::iter::once(&head).chain(rows).map(|row| row.each_ref().map(|it| one_line(it)));
    let mut widths = [0; COLUMNS];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(&line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let lines = lines().map(|line| {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// These rows, one per line.
pub fn numbered<'a>(rows: impl IntoIterator<Item = &'a LineWire>) -> String {
    let line = |row: &LineWire| format!("{}: {}", row.row, row.told()).trim_end().to_owned();
    rows.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The rows of a delta, one per line. For a whole screen it omits the empty rows at the end.
pub fn of_delta(delta: &DeltaWire) -> String {
    let mut rows: Vec<_> = delta.updates.iter().filter_map(UpdateWire::row).collect();
    if delta.reset {
        let shown = rows.iter().rposition(|row| !row.text.is_empty());
        rows.truncate(shown.map_or(0, |last| last + 1));
    }
    numbered(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["1".to_owned(), "a".to_owned()], ["1000".to_owned(), String::new()]];
        assert_eq!(render(["ID", "NAME"], &rows), "ID    NAME\n1     a\n1000");
    }

    #[test]
    fn a_cell_cannot_command_the_terminal() {
        let table = render(["A"], &[["\x1b[2J\nb".to_owned()]]);
        assert_eq!(table, "A\n\\u{1b}[2J\\nb");
    }

    fn delta(reset: bool) -> DeltaWire {
        let updates = json!([
            {"type": "row", "row": 7, "text": ""},
            {"type": "cursor", "row": 8, "col": 0, "visible": true},
            {"type": "row", "row": 8, "text": "make", "columns_left_out": 3},
            {"type": "row", "row": 9, "text": ""},
        ]);
        let base = json!({
            "from": 0, "watermark": 1, "base_row": 7, "reset": reset, "updates": updates,
        });
        serde_json::from_value(base).unwrap()
    }

    #[test]
    fn only_rows_are_printed_and_a_cut_one_says_so() {
        assert_eq!(of_delta(&delta(false)), "7:\n8: make[… 3 more columns of this row]\n9:");
    }

    #[test]
    fn empty_rows_at_the_end_of_a_whole_screen_are_left_out() {
        assert_eq!(of_delta(&delta(true)), "7:\n8: make[… 3 more columns of this row]");
    }
}
