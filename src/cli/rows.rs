//! Rows that changed, as people read them: each with its number, since they need not be neighbours.
//!
//! It takes them from any answer that has rows, whichever tool gave it.

use serde_json::Value;

/// The rows among `lines`, one a line.
pub fn numbered(lines: &Value) -> String {
    told(&rows(lines))
}

/// The rows among the updates of a delta, one a line; of a whole screen, not the empty ones at its
/// end.
pub fn of_delta(delta: &Value) -> String {
    let rows = rows(&delta["updates"]);
    let end = if delta["reset"] == true {
        rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |last| last + 1)
    } else {
        rows.len()
    };
    told(&rows[..end])
}

struct Row<'a> {
    number: u64,
    text: &'a str,
    columns_left_out: Option<u64>,
}

impl<'a> Row<'a> {
    fn of(member: &'a Value) -> Option<Self> {
        Some(Self {
            number: member["row"].as_u64()?,
            text: member["text"].as_str()?,
            columns_left_out: member["columns_left_out"].as_u64(),
        })
    }
}

fn rows(members: &Value) -> Vec<Row<'_>> {
    let members = members.as_array().map(Vec::as_slice).unwrap_or_default();
    members.iter().filter_map(Row::of).collect()
}

fn told(rows: &[Row<'_>]) -> String {
    let line = |row: &Row<'_>| {
        let left = row.columns_left_out.map(|left| format!("[… {left} more columns of this row]"));
        format!("{}: {}{}", row.number, row.text, left.unwrap_or_default()).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_a_row_is_told() {
        let updates = json!([
            {"type": "row", "row": 7, "text": "make: done"},
            {"type": "cursor", "row": 8, "col": 0, "visible": true},
            {"type": "row", "row": 9, "text": ""},
        ]);
        assert_eq!(numbered(&updates), "7: make: done\n9:");
        assert_eq!(numbered(&Value::Null), "");
    }

    #[test]
    fn a_row_that_is_told_in_part_says_so() {
        let row = json!([{"row": 7, "text": "make", "columns_left_out": 3}]);
        assert_eq!(numbered(&row), "7: make[… 3 more columns of this row]");
    }

    #[test]
    fn empty_rows_at_the_end_of_a_whole_screen_are_not_told() {
        let rows = json!([
            {"type": "row", "row": 0, "text": ""},
            {"type": "row", "row": 1, "text": "Password:"},
            {"type": "row", "row": 2, "text": ""},
        ]);
        assert_eq!(of_delta(&json!({"reset": true, "updates": rows})), "0:\n1: Password:");
        assert_eq!(of_delta(&json!({"updates": rows})), "0:\n1: Password:\n2:");
    }
}
