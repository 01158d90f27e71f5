//! Deltas on the wire, the same for tools, resources and what observers are pushed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::frame::delta::{Delta, Update};
use crate::surface::shape::activity::ActivityShape;
use crate::surface::shape::line::{Format, LineWire, RunWire};
use crate::surface::shape::modes::InputModesWire;
use crate::surface::shape::{CursorWire, ExitShape, LeaseShape, mode_word};

/// One part that changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UpdateWire {
    Row {
        row: u64,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        runs: Option<Vec<RunWire>>,
    },
    Cursor(CursorWire),
    Size {
        cols: u16,
        rows: u16,
    },
    Title {
        title: String,
    },
    Mode {
        mode: &'static str,
    },
    InputModes(InputModesWire),
    Lease {
        lease: LeaseShape,
    },
    Exit {
        status: ExitShape,
    },
    Bell {
        count: u64,
    },
    Activity {
        activity: ActivityShape,
    },
}

impl From<&Update> for UpdateWire {
    fn from(update: &Update) -> Self {
        match update {
            Update::Row { row, line } => {
                let line = LineWire::of(*row, line, Format::Styled);
                Self::Row { row: line.row, text: line.text, runs: line.runs }
            }
            Update::Cursor(cursor) => Self::Cursor((*cursor).into()),
            Update::Size(size) => Self::Size { cols: size.cols, rows: size.rows },
            Update::Title(title) => Self::Title { title: title.to_string() },
            Update::Mode(mode) => Self::Mode { mode: mode_word(*mode) },
            Update::InputModes(modes) => Self::InputModes((*modes).into()),
            Update::Lease(lease) => Self::Lease { lease: LeaseShape::of(lease) },
            Update::Exit(exit) => Self::Exit { status: (*exit).into() },
            Update::Bell(count) => Self::Bell { count: *count },
            Update::Activity(activity) => Self::Activity { activity: (&**activity).into() },
        }
    }
}

impl UpdateWire {
    /// About how many bytes a row takes on the wire; nothing for what is never large.
    fn bytes(&self) -> usize {
        const RUN_BYTES: usize = 60;
        match self {
            Self::Row { text, runs, .. } => {
                text.len() + runs.as_ref().map_or(0, Vec::len) * RUN_BYTES
            }
            Self::Cursor(_)
            | Self::Size { .. }
            | Self::Title { .. }
            | Self::Mode { .. }
            | Self::InputModes(_)
            | Self::Lease { .. }
            | Self::Exit { .. }
            | Self::Bell { .. }
            | Self::Activity { .. } => 0,
        }
    }

    /// The number and the text, when it is a row that changed.
    pub fn row(&self) -> Option<(u64, &str)> {
        match self {
            Self::Row { row, text, .. } => Some((*row, text)),
            Self::Cursor(_)
            | Self::Size { .. }
            | Self::Title { .. }
            | Self::Mode { .. }
            | Self::InputModes(_)
            | Self::Lease { .. }
            | Self::Exit { .. }
            | Self::Bell { .. }
            | Self::Activity { .. } => None,
        }
    }
}

/// What changed after `from`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeltaWire {
    pub from: u64,
    pub watermark: u64,
    pub base_row: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    pub updates: Vec<UpdateWire>,
    /// How many changed rows an answer leaves out for their size; `read_screen` shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_left_out: Option<usize>,
}

impl From<&Delta> for DeltaWire {
    fn from(delta: &Delta) -> Self {
        Self {
            from: delta.from.0,
            watermark: delta.watermark.0,
            base_row: delta.base_row.0,
            reset: delta.reset,
            updates: delta.updates.iter().map(UpdateWire::from).collect(),
            rows_left_out: None,
        }
    }
}

impl DeltaWire {
    /// The delta as part of an answer: of its rows no more than fit into `bytes_max`.
    pub fn within(delta: &Delta, bytes_max: usize) -> Self {
        let (mut bytes, mut left_out) = (0, 0);
        let mut wire = Self::from(delta);
        wire.updates.retain(|update| {
            bytes += update.bytes();
            let fits = bytes <= bytes_max || update.row().is_none();
            left_out += usize::from(!fits);
            fits
        });
        wire.rows_left_out = (left_out > 0).then_some(left_out);
        wire
    }

    /// The updates that are no rows.
    pub fn without_rows(self) -> Vec<UpdateWire> {
        self.updates.into_iter().filter(|update| update.row().is_none()).collect()
    }
}
