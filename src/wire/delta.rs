//! Deltas, the same for tools, resources and observers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::frame::ClipboardWrite;
use crate::core::frame::delta::{Delta, Update};
use crate::wire::activity::ActivityWire;
use crate::wire::lease::LeaseWire;
use crate::wire::line::{Format, LineWire};
use crate::wire::screen::{CursorWire, InputModesWire, ScreenWord};
use crate::wire::session::ExitWire;

/// One part that changed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UpdateWire {
    Row(LineWire),
    Cursor(CursorWire),
    Size {
        cols: u16,
        rows: u16,
    },
    Title {
        title: String,
    },
    Mode {
        mode: ScreenWord,
    },
    InputModes(InputModesWire),
    Lease {
        lease: LeaseWire,
    },
    Exit {
        status: ExitWire,
    },
    Bell {
        count: u64,
    },
    // Only people's clients get it.
    #[schemars(skip)]
    Clipboard {
        count: u64,
        data: String,
    },
    Activity {
        activity: ActivityWire,
    },
    // What a newer daemon adds; this one never writes it.
    #[serde(other)]
    Other,
}

impl From<&Update> for UpdateWire {
    fn from(update: &Update) -> Self {
        match update {
            Update::Row { row, line } => Self::Row(LineWire::of(*row, line, Format::Styled)),
            Update::Cursor(cursor) => Self::Cursor((*cursor).into()),
            Update::Size(size) => Self::Size { cols: size.cols, rows: size.rows },
            Update::Title(title) => Self::Title { title: title.to_string() },
            Update::Mode(mode) => Self::Mode { mode: (*mode).into() },
            Update::InputModes(modes) => Self::InputModes((*modes).into()),
            Update::Lease(lease) => Self::Lease { lease: (&**lease).into() },
            Update::Exit(exit) => Self::Exit { status: (*exit).into() },
            Update::Bell(count) => Self::Bell { count: *count },
            Update::Clipboard(ClipboardWrite { count, data }) => {
                Self::Clipboard { count: *count, data: data.to_string() }
            }
            Update::Activity(activity) => Self::Activity { activity: (&**activity).into() },
        }
    }
}

impl UpdateWire {
    /// The row, when it is one that changed.
    pub fn row(&self) -> Option<&LineWire> {
        if let Self::Row(line) = self { Some(line) } else { None }
    }
}

/// What changed after `from`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeltaWire {
    pub from: u64,
    pub watermark: u64,
    pub base_row: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    pub updates: Vec<UpdateWire>,
    /// How many changed rows an answer leaves out for their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_left_out: Option<usize>,
    /// The `top` with which `read_screen`, since `from`, shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_top: Option<u64>,
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
            next_top: None,
        }
    }
}

/// The parameters of a `termgate/delta` notification, as its reader sees them.
///
/// The daemon writes these members itself, since observers share the bytes of the delta.
#[derive(Clone, Debug, Deserialize)]
pub struct ObservedDelta {
    pub session: String,
    #[serde(flatten)]
    pub delta: DeltaWire,
}
