//! `read_history`: rows by absolute number, those that scrolled off and those still on the screen.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::frame::line::Line;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::shape::line::{Format, LineWire};
use crate::surface::tool::{Access, Answer, Tool};

/// How many rows one call answers at most.
pub const COUNT_MAX: u64 = 500;
/// How many bytes of rows one call answers; at least one row is always told.
pub const BYTES_MAX: usize = 30_000;

/// The tool.
#[derive(Debug)]
pub struct ReadHistory;

/// The parameters of `read_history`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    pub session: Option<String>,
    /// First row wanted
    pub start_row: Option<u64>,
    /// Or the last so many rows
    pub tail: Option<u64>,
    /// How many rows, up to 500 (default 100)
    pub count: Option<u64>,
    #[serde(default)]
    pub format: HistoryFormat,
}

/// How rows of history are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryFormat {
    #[default]
    Plain,
    Ansi,
    Cells,
}

impl From<HistoryFormat> for Format {
    fn from(format: HistoryFormat) -> Self {
        match format {
            HistoryFormat::Plain => Self::Plain,
            HistoryFormat::Ansi => Self::Ansi,
            HistoryFormat::Cells => Self::Cells,
        }
    }
}

/// The result of `read_history`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rows {
    pub session: String,
    /// The first row of this answer.
    pub first_row: u64,
    /// The row after the last one there is.
    pub end_row: u64,
    /// Where the next call goes on; equal to `end_row` when nothing is left.
    pub next_row: u64,
    /// How many rows were trimmed so far: the first readable row.
    pub dropped_rows: u64,
    pub watermark: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LineWire>>,
}

impl Tool for ReadHistory {
    const NAME: &'static str = "read_history";
    const TITLE: &'static str = "Read history";
    const DESCRIPTION: &'static str = "Rows by absolute number, scrolled off or on screen. Use \
        `tail` for the newest; go on from `next_row`.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = Rows;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<Rows>, SurfaceError> {
        let session = call.session(parameters.session.as_deref())?;
        let rows = rows_of(session.id().to_string(), &session.frame(), &parameters)?;
        let text = rows.text();
        Ok(Answer { result: rows, text })
    }
}

/// The rows that the parameters ask for.
///
/// # Errors
/// [`SurfaceError::Argument`] when a parameter is out of bounds.
pub fn rows_of(
    session: String,
    frame: &Frame,
    parameters: &Parameters,
) -> Result<Rows, SurfaceError> {
    let asked = parameters.count.or(parameters.tail).unwrap_or(100);
    let name = if parameters.count.is_some() { "count" } else { "tail" };
    let count = within(name, asked, 1..=COUNT_MAX)?;
    let first = frame.history.first();
    let end = readable_end(frame);
    let start = match (parameters.start_row, parameters.tail) {
        (Some(_), Some(_)) => {
            return Err(SurfaceError::argument("tail", "give either `tail` or `start_row`"));
        }
        (Some(start), None) => RowNumber(start),
        (None, tail) => RowNumber(end.0.saturating_sub(tail.unwrap_or(count))),
    };
    let start = start.clamp(first, end);
    let stop = RowNumber(start.0.saturating_add(count)).min(end);

    let mut lines = Vec::new();
    let mut bytes = 0;
    for (row, line) in rows_between(frame, start, stop) {
        let wire = LineWire::of(row, &line, parameters.format.into());
        bytes += wire.bytes(parameters.format.into());
        if bytes > BYTES_MAX && !lines.is_empty() {
            break;
        }
        lines.push(wire);
    }
    let next = start.plus(lines.len());
    let mut rows = Rows {
        session,
        first_row: start.0,
        end_row: end.0,
        next_row: next.0,
        dropped_rows: first.0,
        watermark: frame.watermark.0,
        text: None,
        lines: None,
    };
    match parameters.format {
        HistoryFormat::Cells => rows.lines = Some(lines),
        HistoryFormat::Plain | HistoryFormat::Ansi => {
            let texts: Vec<String> = lines.into_iter().map(|line| line.text).collect();
            rows.text = Some(texts.join("\n"));
        }
    }
    Ok(rows)
}

/// The row after the last readable one. Rows of the normal screen count up to the last that shows
/// anything; those of the alternate screen are no history.
fn readable_end(frame: &Frame) -> RowNumber {
    match frame.mode.value {
        ScreenMode::Normal => frame.end_of_text(),
        ScreenMode::Alternate => frame.base_row,
    }
}

fn rows_between(
    frame: &Frame,
    start: RowNumber,
    stop: RowNumber,
) -> impl Iterator<Item = (RowNumber, Arc<Line>)> {
    (start.0..stop.0).map(RowNumber).filter_map(|row| {
        let (line, _) = frame.any_line(row)?;
        Some((row, line))
    })
}

impl Rows {
    fn text(&self) -> String {
        let header = format!(
            "[rows {}..{} of {}..{}]",
            self.first_row, self.next_row, self.dropped_rows, self.end_row
        );
        let left = self.end_row - self.next_row;
        let rest = match left {
            0 => String::new(),
            left => format!("\n[{left} rows left; go on with start_row={}]", self.next_row),
        };
        let text = match (&self.text, &self.lines) {
            (Some(text), _) => text.clone(),
            (None, Some(lines)) => {
                let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
                texts.join("\n")
            }
            (None, None) => String::new(),
        };
        format!("{header}\n{text}{rest}")
    }
}
