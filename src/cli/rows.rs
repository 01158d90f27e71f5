//! Rows that changed, as people read them: each with its number, since they need not be neighbours.
//!
//! It takes them from any answer that has rows, whichever tool gave it.

use serde_json::Value;

/// The rows among `lines` or the updates of a delta, one a line.
pub fn numbered(rows: &Value) -> String {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = rows.iter().filter_map(|row| {
        let (number, text) = (row["row"].as_u64()?, row["text"].as_str()?);
        Some(format!("{number}: {text}").trim_end().to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The rows of a delta, one a line; of a whole screen, not the empty rows at its end.
pub fn of_delta(delta: &Value) -> String {
    let rows = numbered(&delta["updates"]);
    if delta["reset"] != true {
        return rows;
    }
    let shown = rows.lines().collect::<Vec<_>>();
    let end = shown.iter().rposition(|row| !row.ends_with(':')).map_or(0, |last| last + 1);
    shown[..end].join("\n")
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
}
