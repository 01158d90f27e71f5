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
        rows.iter().rposition(|(_, text)| !text.is_empty()).map_or(0, |last| last + 1)
    } else {
        rows.len()
    };
    told(&rows[..end])
}

fn rows(members: &Value) -> Vec<(u64, &str)> {
    let members = members.as_array().map(Vec::as_slice).unwrap_or_default();
    members.iter().filter_map(|row| Some((row["row"].as_u64()?, row["text"].as_str()?))).collect()
}

fn told(rows: &[(u64, &str)]) -> String {
    let lines = rows.iter().map(|(row, text)| format!("{row}: {text}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
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
