//! Rows of a session by their absolute numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::line::LineWire;
use crate::wire::session::GapWire;

/// The result of `read_history`, and the resource of the same rows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRows {
    pub session: String,
    /// The first row of this answer.
    pub first_row: u64,
    /// The row after the last one there is.
    pub end_row: u64,
    /// The first row of the next answer; equal to `end_row` when nothing is left.
    pub next_row: u64,
    /// How many rows were trimmed so far: the first readable row.
    pub dropped_rows: u64,
    // Rare, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    pub watermark: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LineWire>>,
}
