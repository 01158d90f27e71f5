//! Deltas on the wire, the same for tools, resources and what observers are pushed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::frame::delta::{Delta, Update};
use crate::surface::shape::activity::ActivityShape;
use crate::surface::shape::budget::json_bytes;
use crate::surface::shape::line::{Format, LineWire};
use crate::surface::shape::modes::InputModesWire;
use crate::surface::shape::page::{Form, Larger, Page, PageRoom};
use crate::surface::shape::{CursorWire, ExitShape, LeaseShape, mode_word};

/// One part that changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UpdateWire {
    Row(LineWire),
    Cursor(CursorWire),
    Size { cols: u16, rows: u16 },
    Title { title: String },
    Mode { mode: &'static str },
    InputModes(InputModesWire),
    Lease { lease: LeaseShape },
    Exit { status: ExitShape },
    Bell { count: u64 },
    Activity { activity: ActivityShape },
}

impl From<&Update> for UpdateWire {
    fn from(update: &Update) -> Self {
        match update {
            Update::Row { row, line } => Self::Row(LineWire::of(*row, line, Format::Styled)),
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
    /// The row, when it is one that changed.
    pub fn row(&self) -> Option<&LineWire> {
        match self {
            Self::Row(line) => Some(line),
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
            updates: delta.updates.iter().map(UpdateWire::from).collect(),
            ..Self::without_updates(delta)
        }
    }
}

impl DeltaWire {
    /// The delta of a screen as part of an answer: of its rows no more than fit into `bytes_max`,
    /// as they stand in this form, next to the other updates.
    pub fn within(delta: &Delta, bytes_max: usize, form: Form) -> Self {
        let others = Self::others(delta);
        let room = PageRoom {
            bytes: bytes_max.saturating_sub(json_bytes(&others)),
            form,
            larger: Larger::Beginning,
        };
        let rows: Vec<_> = delta.rows().map(|(row, line)| (row, &**line)).collect();
        let page = Page::of(&rows, Format::Styled, room);
        let told = page.lines.into_iter().map(UpdateWire::Row);
        Self {
            updates: told.chain(others).collect(),
            rows_left_out: (page.left_out > 0).then_some(page.left_out),
            next_top: page.next.map(|row| row.0.saturating_sub(delta.base_row.0)),
            ..Self::without_updates(delta)
        }
    }

    /// The updates that are no rows.
    pub fn others(delta: &Delta) -> Vec<UpdateWire> {
        let other = |update: &&Update| !matches!(update, Update::Row { .. });
        delta.updates.iter().filter(other).map(UpdateWire::from).collect()
    }

    /// The rows for a model, each on a line, and how to get those that are left out.
    pub fn rows_told(&self) -> String {
        let mut text = String::new();
        for line in self.updates.iter().filter_map(UpdateWire::row) {
            text.push_str(&format!("\n{}: {}", line.row, line.told()));
            if line.columns_left_out.is_some() {
                let top = line.row - self.base_row;
                text.push_str(&format!("\n[read_screen top={top} count=1 tells it whole]"));
            }
        }
        if let (Some(left), Some(top)) = (self.rows_left_out, self.next_top) {
            let from = self.from;
            text.push_str(&format!(
                "\n[{left} changed rows are left out; go on with read_screen since={from} top={top}]"
            ));
        }
        text
    }

    fn without_updates(delta: &Delta) -> Self {
        Self {
            from: delta.from.0,
            watermark: delta.watermark.0,
            base_row: delta.base_row.0,
            reset: delta.reset,
            updates: Vec::new(),
            rows_left_out: None,
            next_top: None,
        }
    }
}
