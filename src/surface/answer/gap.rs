//! Lost output: which rows a gap belongs to.

use std::ops::RangeBounds;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::frame::Frame;
use crate::core::shell::commands::record::CommandRecord;
use crate::session::handle::Session;
use crate::session::records::Gap;
use crate::wire::date::rfc3339;
use crate::wire::session::GapWire;

impl GapWire {
    /// The gaps among these rows.
    pub fn among(gaps: &[Gap], rows: impl RangeBounds<u64>) -> Vec<Self> {
        let met = gaps.iter().filter(|gap| rows.contains(&gap.row.0));
        met.map(|gap| Self { row: gap.row.0, bytes: gap.bytes, since: gap.since.map(date) })
            .collect()
    }

    /// The gaps in the output of a command.
    pub fn in_output(session: &Session, record: &CommandRecord, frame: &Frame) -> Vec<Self> {
        let Some(first) = record.spans.first() else { return Vec::new() };
        let end = record.spans.last().and_then(|span| span.to);
        let end = end.map_or(frame.end_row(), |end| end.row);
        Self::among(session.live().gaps().as_slice(), first.from.row.0..=end.0)
    }
}

fn date(moment: SystemTime) -> String {
    rfc3339(moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::core::ids::RowNumber;

    #[test]
    fn a_gap_is_told_to_whoever_reads_the_rows_around_it() {
        let gap = |row, bytes| Gap { row: RowNumber(row), bytes, since: None };
        let gaps = [gap(4, Some(1_000)), gap(9, None)];
        let told = GapWire::among(&gaps, 4..=8);
        assert_eq!(serde_json::to_value(&told).unwrap(), json!([{"row": 4, "bytes": 1_000}]));
        assert!(GapWire::summary(&told).contains("1000 bytes of output are lost"));
        assert_eq!(GapWire::among(&gaps, 0..=3), []);
        assert_eq!(GapWire::among(&gaps, ..).len(), 2);
    }

    #[test]
    fn what_was_kept_last_says_of_when_it_is() {
        let since = Some(UNIX_EPOCH + Duration::from_secs(86_400));
        let told = GapWire::among(&[Gap { row: RowNumber(2), bytes: None, since }], 0..=5);
        let expected = json!([{"row": 2, "since": "1970-01-02T00:00:00Z"}]);
        assert_eq!(serde_json::to_value(&told).unwrap(), expected);
        assert!(GapWire::summary(&told).contains("1970-01-02T00:00:00Z"));
    }
}
