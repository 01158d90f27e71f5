//! Deltas: what changed between a watermark that a reader saw and the newest frame.
//!
//! A delta needs no queue and no state per reader. Applied to the frame at `from`, it gives the frame at
//! `watermark`, regardless of the frames in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::frame::line::Line;
use crate::core::frame::{ClipboardWrite, Cursor, Exit, Frame, ScreenMode, Size};
use crate::core::ids::{RowNumber, Watermark};
use crate::core::keys::modes::InputModes;
use crate::core::lease::view::LeaseView;
use crate::core::shell::activity::Activity;

/// How far above the screen a reader wants rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Only the screen, or the requested rows of it.
    #[default]
    Foreground,
    /// Also the last [`Lane::RECENT_SCREENS`] screens of history.
    Recent,
    /// Also all readable history.
    History,
}

impl Lane {
    /// How many screens of history the lane `recent` includes.
    pub const RECENT_SCREENS: usize = 4;
}

/// Which rows a reader watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    pub lane: Lane,
    /// The first wanted row, counted from the top of the screen.
    pub top: u16,
    /// How many rows are wanted from there; none for all.
    pub rows: Option<u16>,
    /// Whether the reader gets the keyboard and mouse modes and the clipboard, which only a person's client
    /// needs.
    pub input_modes: bool,
}

/// One part that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    Row { row: RowNumber, line: Arc<Line> },
    Cursor(Cursor),
    Size(Size),
    Title(Arc<str>),
    Mode(ScreenMode),
    InputModes(InputModes),
    Lease(Arc<LeaseView>),
    Exit(Exit),
    Bell(u64),
    Clipboard(ClipboardWrite),
    Activity(Arc<Activity>),
}

/// What changed after `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub from: Watermark,
    pub watermark: Watermark,
    pub base_row: RowNumber,
    /// The updates are the whole frame and replace the reader's screen. Rows above the top row of its
    /// last frame stay valid.
    pub reset: bool,
    pub updates: Vec<Update>,
}

impl Delta {
    pub fn rows(&self) -> impl Iterator<Item = (RowNumber, &Line)> + Clone {
        self.updates.iter().filter_map(|update| match update {
            Update::Row { row, line } => Some((*row, &**line)),
            Update::Cursor(_)
            | Update::Size(_)
            | Update::Title(_)
            | Update::Mode(_)
            | Update::InputModes(_)
            | Update::Lease(_)
            | Update::Exit(_)
            | Update::Bell(_)
            | Update::Clipboard(_)
            | Update::Activity(_) => None,
        })
    }
}

impl Frame {
    /// Returns what changed after `since` for a reader of `view`. Without `since`, or when it is too
    /// old or unknown, returns the whole frame.
    ///
    /// `told` is the row after the last history row that the reader got; history starts there. A reader
    /// of the foreground passes none.
    pub fn delta_since(
        &self,
        since: Option<Watermark>,
        view: &View,
        told: Option<RowNumber>,
    ) -> Delta {
        let known = since.filter(|since| self.reset <= *since && *since <= self.watermark);
        let reset = known.is_none();
        let floor = known.unwrap_or_default();
        let new = |changed: Watermark| reset || changed > floor;

        let mut updates = Vec::new();
        if new(self.size.changed) {
            updates.push(Update::Size(self.size.value));
        }
        if new(self.mode.changed) {
            updates.push(Update::Mode(self.mode.value));
        }
        if view.input_modes && new(self.input_modes.changed) {
            updates.push(Update::InputModes(self.input_modes.value));
        }
        if new(self.title.changed) {
            updates.push(Update::Title(Arc::clone(&self.title.value)));
        }
        self.push_history(&mut updates, known, view, told);
        let top = usize::from(view.top).min(self.lines.len());
        let wanted = view.rows.map_or(self.lines.len(), usize::from);
        // Scrolling moves rows into a partial view that changed long ago and that the reader never got.
        let partial = view.top > 0 || view.rows.is_some();
        let moved = partial && (new(self.scrolled) || new(self.size.changed));
        for (index, line) in self.lines.iter().enumerate().skip(top).take(wanted) {
            if moved || new(line.changed) {
                let row = self.base_row.plus(index);
                updates.push(Update::Row { row, line: Arc::clone(&line.value) });
            }
        }
        if new(self.cursor.changed) {
            updates.push(Update::Cursor(self.cursor.value));
        }
        if new(self.lease.changed) {
            updates.push(Update::Lease(Arc::clone(&self.lease.value)));
        }
        if new(self.bell.changed) {
            updates.push(Update::Bell(self.bell.value));
        }
        if view.input_modes && new(self.clipboard.changed) {
            updates.push(Update::Clipboard(self.clipboard.value.clone()));
        }
        if let Some(exit) = self.exit.value.filter(|_| new(self.exit.changed)) {
            updates.push(Update::Exit(exit));
        }
        if new(self.activity.changed) {
            updates.push(Update::Activity(Arc::clone(&self.activity.value)));
        }
        let from = since.unwrap_or_default();
        Delta { from, watermark: self.watermark, base_row: self.base_row, reset, updates }
    }

    fn push_history(
        &self,
        updates: &mut Vec<Update>,
        known: Option<Watermark>,
        view: &View,
        told: Option<RowNumber>,
    ) {
        let lane_start = match view.lane {
            Lane::Foreground => return,
            Lane::Recent => {
                let span = Lane::RECENT_SCREENS * self.lines.len();
                RowNumber(self.base_row.0.saturating_sub(span as u64))
            }
            Lane::History => self.history.first(),
        };
        // A row that the reader got from the screen may have changed before it scrolled off. So rows from
        // the reader's last screen on are compared by their own watermark. Rows above it never change.
        let start = told.map_or(lane_start, |told| lane_start.max(told));
        let floor = known.unwrap_or_default();
        for (row, kept) in self.history.range(start, self.base_row) {
            if known.is_none() || kept.changed > floor {
                updates.push(Update::Row { row, line: Arc::new(kept.line()) });
            }
        }
    }
}

/// The state of a reader that applied every delta from the start.
///
/// Two readers at the same watermark have the same state, regardless of the frames they skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    pub watermark: Watermark,
    pub base_row: RowNumber,
    pub rows: BTreeMap<RowNumber, Arc<Line>>,
    pub cursor: Option<Cursor>,
    pub size: Option<Size>,
    pub title: Arc<str>,
    pub mode: ScreenMode,
    pub input_modes: InputModes,
    pub lease: Arc<LeaseView>,
    pub bell: u64,
    pub clipboard: ClipboardWrite,
    pub exit: Option<Exit>,
    pub activity: Arc<Activity>,
}

impl Replica {
    /// Applies one delta and drops the rows that left the screen.
    pub fn apply(&mut self, delta: &Delta) {
        if delta.reset {
            *self = Self::default();
        }
        self.watermark = delta.watermark;
        self.base_row = delta.base_row;
        for update in &delta.updates {
            match update {
                Update::Row { row, line } => {
                    self.rows.insert(*row, Arc::clone(line));
                }
                Update::Cursor(cursor) => self.cursor = Some(*cursor),
                Update::Size(size) => self.size = Some(*size),
                Update::Title(title) => self.title = Arc::clone(title),
                Update::Mode(mode) => self.mode = *mode,
                Update::InputModes(modes) => self.input_modes = *modes,
                Update::Lease(lease) => self.lease = Arc::clone(lease),
                Update::Bell(count) => self.bell = *count,
                Update::Clipboard(clipboard) => self.clipboard = clipboard.clone(),
                Update::Exit(exit) => self.exit = Some(*exit),
                Update::Activity(activity) => self.activity = Arc::clone(activity),
            }
        }
        let rows = self.size.map_or(0, |size| usize::from(size.rows));
        let end = self.base_row.plus(rows);
        self.rows.retain(|row, _| (self.base_row..end).contains(row));
    }
}
