//! Output that was lost, for people at a command line.
//!
//! It knows no command; which rows are meant, the daemon has settled.

use serde_json::Value;

use crate::wire::session::GapWire;

/// What is missing of what the daemon has told, a line for each place.
pub fn lost(told: &Value) -> Vec<String> {
    // A later daemon may tell of it in another way.
    let gaps: Vec<GapWire> =
        serde_json::from_value(told["lost_output"].clone()).unwrap_or_default();
    gaps.iter().map(GapWire::remark).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_is_told_in_a_line_and_nothing_where_nothing_is_missing() {
        let told = lost(&json!({"lost_output": [{"row": 4, "bytes": 1_000}, {"row": 9}]}));
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("1000 bytes of output are lost"), "{told:?}");
        assert_eq!(lost(&json!({"text": "a"})), [""; 0]);
    }
}
