//! `read_history`: rows by absolute number, those that scrolled off and those still on the screen.

use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::core::counted::counted;
use crate::core::frame::line::Line;
use crate::core::frame::{Frame, ScreenMode};
use crate::core::ids::RowNumber;
use crate::core::policy::Door;
use crate::core::wait::line_matcher::{BudgetSpent, LineMatcher};
use crate::core::wait::logical::LogicalLine;
use crate::core::wait::pattern::Pattern;
use crate::session::handle::Session;
use crate::surface::answer::budget::room_left;
use crate::surface::answer::page::{Form, Larger, Page, PageRoom};
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::surface::turns::Share;
use crate::wire::line::{Format, LineWire};
use crate::wire::rows::HistoryRows;
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;

/// How many rows one call answers at most.
pub const COUNT_MAX: u64 = 500;
/// And when nobody says.
const COUNT_DEFAULT: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ReadHistory {
    /// Id, prefix or name
    pub session: Option<String>,
    /// First row wanted
    pub start_row: Option<u64>,
    /// Or the last so many rows
    pub tail: Option<u64>,
    /// How many rows, up to 500 (default 100)
    pub count: Option<u64>,
    /// Pattern
    pub grep: Option<String>,
    #[serde(default)]
    pub format: HistoryFormat,
}

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

impl Tool for ReadHistory {
    const NAME: &'static str = "read_history";
    const TITLE: &'static str = "Read history";
    const DESCRIPTION: &'static str = "Rows by absolute number, scrolled off or on screen. Use \
        `tail` for the newest; continue from `next_row`.";
    const ACCESS: ToolAccess = ToolAccess::Read;
    const NEEDS_SESSION: bool = true;

    type Result = HistoryRows;

    async fn call(self, call: Call) -> Result<Answer<HistoryRows>, SurfaceError> {
        let session = call.session(self.session.as_deref())?;
        rows_of(&session, self, HistoryReader::Result, call.standing.door, &call.share()).await
    }
}

/// Where rows of history are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryReader {
    /// In a resource, to programs.
    Resource,
    /// In the result of a call, to programs and models.
    Result,
}

/// The rows that the parameters ask for, as many as there is room for, told at this door; many of them
/// are read in a turn of this share.
pub async fn rows_of(
    session: &Session,
    parameters: ReadHistory,
    place: HistoryReader,
    door: Door,
    share: &Share,
) -> Result<Answer<HistoryRows>, SurfaceError> {
    let frame = session.frame();
    let asked = match parameters.grep {
        Some(_) => frame.history.len() + frame.lines.len(),
        None => {
            let asked = parameters.count.or(parameters.tail).unwrap_or(COUNT_DEFAULT);
            asked.min(COUNT_MAX) as usize
        }
    };
    let cells = asked * usize::from(frame.size.value.cols);
    let (session, own) = (session.clone(), share.clone());
    let work = move || match &parameters.grep {
        None => read(&session, &parameters, None, place, door),
        Some(grep) => {
            let pattern = Pattern::regex(grep);
            let pattern = pattern.map_err(|error| SurfaceError::pattern("grep", &error))?;
            let _reserved = own.reserve(pattern.bytes(1))?;
            let matcher = LineMatcher::pattern(&pattern);
            read(&session, &parameters, Some(matcher), place, door)
        }
    };
    share.off_worker(cells, work).await
}

fn read(
    session: &Session,
    parameters: &ReadHistory,
    matcher: Option<LineMatcher>,
    place: HistoryReader,
    door: Door,
) -> Result<Answer<HistoryRows>, SurfaceError> {
    let (frame, gaps) = (&*session.frame(), session.live().gaps());
    let asked = parameters.count.or(parameters.tail).unwrap_or(COUNT_DEFAULT);
    let name = if parameters.count.is_some() { "count" } else { "tail" };
    let count = within(name, asked, 1..=COUNT_MAX)?;
    let first = frame.history.first();
    let end = readable_end(frame);
    let start = match (parameters.start_row, parameters.tail) {
        (Some(_), Some(_)) => {
            return Err(SurfaceError::argument("tail", "give either `tail` or `start_row`"));
        }
        (Some(start), None) => RowNumber(start),
        (None, None) if matcher.is_some() => first,
        (None, tail) => RowNumber(end.0.saturating_sub(tail.unwrap_or(count))),
    };
    let start = start.clamp(first, end);
    let counts_matches = matcher.is_some();
    let (wanted, stop) = match matcher {
        Some(matcher) => rows_that_match(frame, matcher, start..end, count as usize),
        None => {
            let stop = RowNumber(start.0.saturating_add(count)).min(end);
            (rows_between(frame, start, stop), stop)
        }
    };

    let mut rows = HistoryRows {
        untrusted: Untrusted,
        session: session.id().to_string(),
        first_row: start.0,
        end_row: end.0,
        next_row: stop.0,
        dropped_rows: first.0,
        lost_output: GapWire::among(gaps.as_slice(), start.0..=stop.0),
        watermark: frame.watermark.0,
        text: None,
        lines: None,
    };
    // A row that is asked for alone is told whole, and people are shown all there is.
    let whole = parameters.count == Some(1) || door == Door::Operator;
    let larger = if whole { Larger::Whole } else { Larger::Beginning };
    let room = rows.room(parameters.format, counts_matches, place);
    let wanted = wanted.iter().map(|(row, line)| (*row, &**line));
    let page = Page::of(wanted, parameters.format.into(), PageRoom { larger, ..room });
    rows.next_row = page.next.map_or(stop.0, |next| next.0);
    rows.lost_output.retain(|gap| gap.row <= rows.next_row);
    let shown = if counts_matches { numbered(&page.lines) } else { joined(&page.lines) };
    let text = format!("{}\n{shown}{}", rows.header(), rows.rest(&page));
    match parameters.format {
        HistoryFormat::Plain | HistoryFormat::Ansi if !counts_matches => rows.text = Some(shown),
        HistoryFormat::Plain | HistoryFormat::Ansi | HistoryFormat::Cells => {
            rows.lines = Some(page.lines);
        }
    }
    Ok(Answer { result: rows, text })
}

/// The row after the last readable one. Rows of the normal screen count up to the last that shows
/// anything; those of the alternate screen are no history.
fn readable_end(frame: &Frame) -> RowNumber {
    match frame.mode.value {
        ScreenMode::Normal => frame.end_of_text(),
        ScreenMode::Alternate => frame.base_row,
    }
}

fn rows_between(frame: &Frame, start: RowNumber, stop: RowNumber) -> Vec<(RowNumber, Arc<Line>)> {
    let rows = (start.0..stop.0).map(RowNumber);
    rows.filter_map(|row| frame.any_line(row).map(|(line, _)| (row, line))).collect()
}

/// The rows of the first lines that match, and the row after the last that was searched: so many rows were found, or
/// the budget is spent.
fn rows_that_match(
    frame: &Frame,
    mut matcher: LineMatcher,
    span: Range<RowNumber>,
    count: usize,
) -> (Vec<(RowNumber, Arc<Line>)>, RowNumber) {
    let (mut rows, mut row) = (Vec::new(), span.start);
    while row < span.end && rows.len() < count {
        let Some(line) = LogicalLine::around(frame, row) else {
            // Numbers between history and a screen that was wrapped anew name nothing.
            row = row.plus(1);
            continue;
        };
        let next = line.end().min(span.end);
        match matcher.find(line.text()) {
            Err(BudgetSpent) if row > span.start => break,
            Err(BudgetSpent) | Ok(None) => {}
            Ok(Some(_)) => rows.extend(rows_between(frame, row, next)),
        }
        row = next;
    }
    (rows, row)
}

impl HistoryRows {
    /// The room for rows beside what is told of them.
    fn room(&self, format: HistoryFormat, by_number: bool, place: HistoryReader) -> PageRoom {
        let objects = by_number || format == HistoryFormat::Cells;
        let (bytes, form) = match place {
            // It is JSON in a text of JSON.
            HistoryReader::Resource => (
                room_left(&"", &json!(self).to_string()),
                if objects { Form::NestedObject } else { Form::NestedText },
            ),
            HistoryReader::Result => (
                room_left(self, &self.header()),
                if objects { Form::ObjectAndText } else { Form::TextTwice },
            ),
        };
        PageRoom { bytes, form, larger: Larger::Beginning }
    }

    fn header(&self) -> String {
        let among = |first: u64, end: u64| match end.checked_sub(1).filter(|last| *last >= first) {
            Some(last) if last == first => format!("row {first}"),
            Some(last) => format!("rows {first} to {last}"),
            None => "no rows".to_owned(),
        };
        let (shown, all) =
            (among(self.first_row, self.next_row), among(self.dropped_rows, self.end_row));
        format!("[{shown} of {all}]{}", GapWire::summary(&self.lost_output))
    }

    /// Says what was left out and how to get it.
    fn rest(&self, page: &Page) -> String {
        let mut rest = String::new();
        if let Some(line) = page.lines.iter().find(|line| line.columns_left_out.is_some()) {
            let row = line.row;
            rest.push_str(&format!("\n[row {row} is complete with start_row={row} count=1]"));
        }
        let left = self.end_row - self.next_row;
        if left > 0 {
            let next = self.next_row;
            rest.push_str(&format!(
                "\n[{} left; continue with start_row={next}]",
                counted(left, "row")
            ));
        }
        rest
    }
}

fn numbered(lines: &[LineWire]) -> String {
    let lines = lines.iter().map(|line| format!("{}: {}", line.row, line.told()));
    lines.collect::<Vec<_>>().join("\n")
}

fn joined(lines: &[LineWire]) -> String {
    lines.iter().map(LineWire::told).collect::<Vec<_>>().join("\n")
}
