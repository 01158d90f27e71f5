//! `read_screen`: what is on the screen now, or what changed since a watermark.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::frame::line::Line;
use crate::core::ids::{RowNumber, Watermark};
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::shape::line::{Format, LineWire};
use crate::surface::shape::{CursorWire, ExitShape, mode_word};
use crate::surface::tool::{Access, Answer, Tool};

/// The tool.
#[derive(Debug)]
pub struct ReadScreen;

/// The parameters of `read_screen`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, unique prefix or name
    pub session: Option<String>,
    #[serde(default)]
    pub format: Format,
    /// Only what changed after this watermark
    pub since: Option<u64>,
    /// First screen row, from 0
    pub top: Option<u64>,
    /// How many rows
    pub count: Option<u64>,
}

/// The result of `read_screen`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Screen {
    pub session: String,
    pub watermark: u64,
    /// Whether the answer replaces all that was read before.
    pub reset: bool,
    pub cols: u16,
    pub rows: u16,
    pub base_row: u64,
    pub cursor: CursorWire,
    pub mode: &'static str,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LineWire>>,
}

impl Tool for ReadScreen {
    const NAME: &'static str = "read_screen";
    const TITLE: &'static str = "Read the screen";
    const DESCRIPTION: &'static str = "The screen as text (or styled lines, ansi, cells), with \
        cursor and watermark. Pass the watermark back as `since` to get only the rows that changed.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = Screen;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<Screen>, SurfaceError> {
        let session = call.session(parameters.session.as_deref())?;
        let frame = session.frame();
        let view = parameters.view()?;
        let mut screen = Screen::empty(session.id().to_string(), &frame);
        let text = match parameters.since {
            Some(since) => screen.fill_changes(&frame, Watermark(since), &view, parameters.format),
            None => screen.fill_whole(&frame, &view, parameters.format),
        };
        let text = format!("{}\n{text}", screen.header());
        Ok(Answer { result: screen, text })
    }
}

impl Parameters {
    /// The part of the screen that is wanted.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] when `top` or `count` are out of bounds.
    pub fn view(&self) -> Result<View, SurfaceError> {
        let top = within("top", self.top.unwrap_or(0), 0..=999)? as u16;
        let rows = self.count.map(|count| within("count", count, 1..=1000)).transpose()?;
        Ok(View { top, rows: rows.map(|rows| rows as u16), ..View::default() })
    }
}

impl Screen {
    fn empty(session: String, frame: &Frame) -> Self {
        Self {
            session,
            watermark: frame.watermark.0,
            reset: false,
            cols: frame.size.value.cols,
            rows: frame.size.value.rows,
            base_row: frame.base_row.0,
            cursor: frame.cursor.value.into(),
            mode: mode_word(frame.mode.value),
            title: frame.title.value.to_string(),
            exit: frame.exit.value.map(ExitShape::from),
            text: None,
            lines: None,
        }
    }

    fn fill_whole(&mut self, frame: &Frame, view: &View, format: Format) -> String {
        let top = usize::from(view.top).min(frame.lines.len());
        let rows = view.rows.map_or(frame.lines.len(), usize::from);
        let lines = frame.lines.iter().enumerate().skip(top).take(rows);
        let lines = lines.map(|(index, line)| (frame.base_row.plus(index), &*line.value));
        self.fill(lines.collect(), format)
    }

    fn fill(&mut self, lines: Vec<(RowNumber, &Line)>, format: Format) -> String {
        let wire: Vec<LineWire> =
            lines.into_iter().map(|(row, line)| LineWire::of(row, line, format)).collect();
        let shown = wire.iter().rposition(|line| !line.text.is_empty()).map_or(0, |last| last + 1);
        let texts: Vec<&str> = wire[..shown].iter().map(|line| line.text.as_str()).collect();
        let text = texts.join("\n");
        match format {
            Format::Plain | Format::Ansi => self.text = Some(text.clone()),
            Format::Styled | Format::Cells => self.lines = Some(wire),
        }
        text
    }

    fn fill_changes(
        &mut self,
        frame: &Frame,
        since: Watermark,
        view: &View,
        format: Format,
    ) -> String {
        let delta = frame.delta_since(Some(since), view, None);
        self.reset = delta.reset;
        let wire = |(row, line): (_, &Arc<Line>)| LineWire::of(row, line, format);
        let lines: Vec<LineWire> = delta.rows().map(wire).collect();
        let text = changed_text(&lines);
        self.lines = Some(lines);
        text
    }

    fn header(&self) -> String {
        let exit = self.exit.map_or_else(String::new, |exit| format!(", {exit}"));
        let alternate = if self.mode == "alt" { ", full-screen program" } else { "" };
        let reset = if self.reset { ", whole screen" } else { "" };
        format!(
            "[watermark {}, {}x{}, base_row {}, cursor row {} col {}{alternate}{reset}{exit}]",
            self.watermark, self.cols, self.rows, self.base_row, self.cursor.row, self.cursor.col
        )
    }
}

/// Changed rows for a model: each with its number, since they need not be neighbours.
pub fn changed_text(lines: &[LineWire]) -> String {
    if lines.is_empty() {
        return "no rows changed".to_owned();
    }
    let rows: Vec<String> =
        lines.iter().map(|line| format!("{}: {}", line.row, line.text)).collect();
    rows.join("\n")
}
