//! Prints changed rows for people, each with its number, since there may be gaps.

use crate::wire::delta::{DeltaWire, UpdateWire};
use crate::wire::line::LineWire;

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
