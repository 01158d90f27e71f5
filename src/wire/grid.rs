//! The rows of a session as its resource shows them, whole or since a watermark.

use serde::{Deserialize, Serialize};

use crate::wire::delta::UpdateWire;
use crate::wire::line::LineWire;
use crate::wire::session::GapWire;

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
