//! Deltas as part of an answer.

use crate::core::frame::delta::{Delta, Update};
use crate::surface::answer::budget::json_bytes;
use crate::surface::answer::page::{Form, Larger, Page, PageRoom};
use crate::wire::delta::{DeltaWire, UpdateWire};
use crate::wire::line::Format;

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
            from: delta.from.0,
            watermark: delta.watermark.0,
            base_row: delta.base_row.0,
            reset: delta.reset,
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
}
