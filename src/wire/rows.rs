//! Rows of a session by their numbers: the grid, and history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::delta::UpdateWire;
use crate::wire::line::LineWire;
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;

/// The resource of a session's grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grid {
    pub cols: u16,
    pub rows: u16,
    pub base_row: u64,
    pub viewport: Viewport,
    pub lines: Vec<LineWire>,
    pub cursor: CursorPlace,
    pub watermark: u64,
    /// The `top` of the next reading, where rows were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_top: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    /// Only after a watermark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
    /// Only after a watermark: what changed besides rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<Vec<UpdateWire>>,
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// The cursor as resources show it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CursorPlace {
    pub row: u64,
    pub col: u16,
    /// The watermark of its last change.
    pub seq: u64,
    pub visible: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Viewport {
    pub top: u64,
    pub height: u16,
}

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
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}
