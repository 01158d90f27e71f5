//! The stored form of a recorder, for a command that runs on under another daemon.

use std::collections::VecDeque;

use alacritty_terminal::vte::ansi::StandardCharset;
use serde::{Deserialize, Serialize};

use crate::core::frame::Size;
use crate::core::screen::recorder::row::Row;
use crate::core::screen::recorder::{CursorPlace, Modes, Pen, Recorder};
use crate::core::shell::commands::output::Output;

/// A recorder without the lines that left its screen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredRecorder {
    size: (u16, u16),
    rows: Vec<Row>,
    cursor: StoredPen,
    saved: StoredPen,
    charset: u8,
    modes: Modes,
    region: (u16, u16),
    normal: Option<(Vec<Row>, StoredPen)>,
    echo_lines: u16,
    indent: u16,
    at_beginning: bool,
    jumps: u8,
    ended: bool,
}

/// A cursor, with the character sets that draw lines as bits, and whether it conceals.
type StoredPen = (CursorPlace, u8, bool);

impl StoredRecorder {
    pub(crate) fn of(recorder: &Recorder) -> Self {
        let normal = recorder.normal.as_ref();
        Self {
            size: (recorder.size.rows, recorder.size.cols),
            rows: recorder.rows.iter().cloned().collect(),
            cursor: stored(&recorder.cursor),
            saved: stored(&recorder.saved),
            charset: recorder.charset as u8,
            modes: recorder.modes,
            region: (recorder.region.start, recorder.region.end),
            normal: normal.map(|(rows, cursor)| (rows.iter().cloned().collect(), stored(cursor))),
            echo_lines: recorder.echo_lines,
            indent: recorder.indent,
            at_beginning: recorder.at_beginning,
            jumps: recorder.jumps,
            ended: recorder.ended,
        }
    }

    /// The recorder with these lines, on a screen of this size; none when it fits no such screen.
    pub(crate) fn recorder(self, size: Size, lines: Output, bytes_max: usize) -> Option<Recorder> {
        let (start, end) = self.region;
        let fits = self.size == (size.rows, size.cols)
            && self.charset < 4
            && start < end
            && end <= size.rows
            && self.rows_fit(size);
        let normal = match self.normal {
            Some((rows, cursor)) => Some((VecDeque::from(rows), restored(cursor, size)?)),
            None => None,
        };
        let (cursor, saved) = (restored(self.cursor, size)?, restored(self.saved, size)?);
        fits.then(|| Recorder {
            size,
            rows: self.rows.into(),
            cursor,
            saved,
            charset: self.charset.into(),
            modes: self.modes,
            region: start..end,
            normal,
            lines,
            echo_lines: self.echo_lines,
            echo_end: None,
            indent: self.indent,
            at_beginning: self.at_beginning,
            jumps: self.jumps,
            ended: self.ended,
            changed: true,
            bytes_max,
        })
    }

    fn rows_fit(&self, size: Size) -> bool {
        let normal = self.normal.as_ref().map(|(rows, _)| rows);
        [Some(&self.rows), normal].into_iter().flatten().all(|rows| {
            // A row that was written before the screen narrowed is wider.
            let measured =
                rows.iter().all(|row| row.is_measured() && row.columns() <= Size::SIDE_MAX);
            measured && rows.len() <= usize::from(size.rows)
        })
    }
}

fn stored(cursor: &Pen) -> StoredPen {
    let bit = |(at, set): (usize, &StandardCharset)| u8::from(*set != StandardCharset::Ascii) << at;
    let sets = cursor.charsets.iter().enumerate().map(bit).sum();
    (cursor.place, sets, cursor.conceals)
}

fn restored((place, bits, conceals): StoredPen, size: Size) -> Option<Pen> {
    let set = |at: u8| match bits >> at & 1_u8 {
        0 => StandardCharset::Ascii,
        _ => StandardCharset::SpecialCharacterAndLineDrawing,
    };
    (place == place.within(size)).then(|| Pen {
        place,
        charsets: [set(0), set(1), set(2), set(3)],
        conceals,
    })
}
