//! `read_screen`: what is on the screen now, or what changed since a watermark.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::frame::delta::View;
use crate::core::frame::line::Line;
use crate::core::ids::{RowNumber, Watermark};
use crate::session::handle::Session;
use crate::surface::answer::budget::room_left;
use crate::surface::answer::page::{Form, Larger, Page, PageRoom, are_empty_neighbours, numbered};
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::line::{Format, LineWire};
use crate::wire::screen::{ScreenWire, ScreenWord};
use crate::wire::session::{ExitWire, GapWire};
use crate::wire::untrusted::Untrusted;

/// How many bytes the rows of an answer take, as JSON, when it was asked to be large.
pub const LARGE_BYTES_MAX: usize = 480 * 1024;

/// The text of most reads that ask for changes is shorter.
const TEXT_BYTES: usize = 512;

/// The bytes of a line end.
const LINE_END: usize = 1;

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ReadScreen {
    /// Id, prefix or name
    pub session: Option<String>,
    #[serde(default)]
    pub format: Format,
    /// Only changes after this watermark
    pub since: Option<u64>,
    /// First screen row, from 0
    pub top: Option<u64>,
    /// How many rows (default: 30 KB of them)
    pub count: Option<u64>,
}

impl Tool for ReadScreen {
    const NAME: &'static str = "read_screen";
    const TITLE: &'static str = "Read the screen";
    const DESCRIPTION: &'static str = "The screen as text (or styled lines, ansi, cells), with \
        cursor and watermark. Pass the watermark back as `since` to get only the rows that changed.";
    const ACCESS: ToolAccess = ToolAccess::Read;
    const NEEDS_SESSION: bool = true;

    type Result = ScreenWire;

    async fn call(self, call: Call) -> Result<Answer<ScreenWire>, SurfaceError> {
        let session = call.session(self.session.as_deref())?;
        let view = self.view()?;
        let size = session.frame().size.value;
        let cells =
            usize::from(view.rows.unwrap_or(size.rows).min(size.rows)) * usize::from(size.cols);
        call.share().off_worker(cells, move || Ok(ScreenWire::of(&session, &self, &view))).await
    }
}

impl ReadScreen {
    /// The part of the screen that is wanted.
    pub fn view(&self) -> Result<View, SurfaceError> {
        let top = within("top", self.top.unwrap_or(0), 0..=999)? as u16;
        let rows = self.count.map(|count| within("count", count, 1..=1000)).transpose()?;
        Ok(View { top, rows: rows.map(|rows| rows as u16), ..View::default() })
    }
}

impl ScreenWire {
    /// What is asked for of the screen.
    fn of(session: &Session, parameters: &ReadScreen, view: &View) -> Answer<Self> {
        let frame = session.frame();
        let mut screen = ScreenWire::empty(Arc::clone(&session.about().id_text), &frame);
        screen.invisible_left_out = session.live().invisible();
        let gaps = session.live().gaps();
        screen.lost_output = GapWire::among(gaps.as_slice(), frame.base_row.0..=frame.end_row().0);
        let delta =
            parameters.since.map(|since| frame.delta_since(Some(Watermark(since)), view, None));
        screen.reset = delta.as_ref().is_some_and(|delta| delta.reset);
        let mut text = screen.header();
        let lines = match &delta {
            Some(delta) => screen.fit(delta.rows(), parameters, &text),
            None => screen.fit(whole(&frame, view), parameters, &text),
        };
        let rest = screen.rest(&lines, delta.is_some());
        text.push('\n');
        match delta {
            Some(_) => {
                tell_changes(&lines, &mut text);
                screen.lines = Some(lines);
            }
            None => screen.fill_whole(lines, parameters.format, &mut text),
        }
        text.push_str(&rest);
        Answer { result: screen, text }
    }

    fn empty(session: Arc<str>, frame: &Frame) -> Self {
        Self {
            untrusted: Untrusted,
            invisible_left_out: 0,
            session,
            watermark: frame.watermark.0,
            reset: false,
            cols: frame.size.value.cols,
            rows: frame.size.value.rows,
            base_row: frame.base_row.0,
            cursor: frame.cursor.value.into(),
            mode: frame.mode.value.into(),
            title: frame.title.value.to_string(),
            activity: (&*frame.activity.value).into(),
            exit: frame.exit.value.map(ExitWire::from),
            lost_output: Vec::new(),
            text: None,
            lines: None,
            rows_left_out: None,
            next_top: None,
        }
    }

    /// The rows on the wire, as many as fit; a caller that says how many rows it wants gets more,
    /// and each of them whole.
    fn fit<'a>(
        &mut self,
        rows: impl Iterator<Item = (RowNumber, &'a Line)> + Clone,
        parameters: &ReadScreen,
        header: &str,
    ) -> Vec<LineWire> {
        let (bytes, larger) = match parameters.count {
            Some(_) => (LARGE_BYTES_MAX, Larger::Whole),
            None => (room_left(self, header), Larger::Beginning),
        };
        let form = match (parameters.since, parameters.format) {
            (None, Format::Plain | Format::Ansi) => Form::TextTwice,
            (_, _) => Form::ObjectAndText,
        };
        let page = Page::of(rows, parameters.format, PageRoom { bytes, form, larger });
        self.next_top = page.next.map(|row| row.0 - self.base_row);
        self.rows_left_out = (page.left_out > 0).then_some(page.left_out);
        page.lines
    }

    /// Says what was left out and how to get it.
    fn rest(&self, lines: &[LineWire], changes: bool) -> String {
        let mut rest = String::new();
        if let Some(line) = lines.iter().find(|line| line.columns_left_out.is_some()) {
            let top = line.row - self.base_row;
            let row = line.row;
            rest.push_str(&format!("\n[row {row} is complete with top={top} count=1]"));
        }
        if let (Some(left), Some(top)) = (self.rows_left_out, self.next_top) {
            let (rows, since) =
                if changes { ("changed rows", " and the same since") } else { ("rows", "") };
            rest.push_str(&format!(
                "\n[{left} {rows} are left out; continue with top={top}{since}]"
            ));
        }
        rest
    }

    /// Takes the rows of a whole screen, and adds them for a model.
    fn fill_whole(&mut self, wire: Vec<LineWire>, format: Format, text: &mut String) {
        let shown = wire.iter().rposition(|line| !line.text.is_empty()).map_or(0, |last| last + 1);
        text.reserve(wire[..shown].iter().map(|line| line.text.len() + LINE_END).sum());
        let start = text.len();
        for (index, line) in wire[..shown].iter().enumerate() {
            text.push_str(if index > 0 { "\n" } else { "" });
            text.push_str(&line.told());
        }
        match format {
            Format::Plain | Format::Ansi => self.text = Some(text[start..].to_owned()),
            Format::Styled | Format::Cells => self.lines = Some(wire),
        }
    }

    fn header(&self) -> String {
        let exit = self.exit.map_or_else(String::new, |exit| format!(", {exit}"));
        let alternate = if self.mode == ScreenWord::Alt { ", full-screen program" } else { "" };
        let activity = self.activity.summary();
        let reset = if self.reset { ", whole screen" } else { "" };
        let lost = GapWire::summary(&self.lost_output);
        let invisible = match self.invisible_left_out {
            0 => String::new(),
            count => format!(", {} left out", counted(count as usize, "invisible character")),
        };
        let mut header = String::with_capacity(TEXT_BYTES);
        // A string takes all that is written to it.
        let _ = write!(
            header,
            "[watermark {}, {}x{}, base_row {}, cursor row {} col {}{alternate}{reset}, {activity}{exit}{invisible}]{lost}",
            self.watermark, self.cols, self.rows, self.base_row, self.cursor.row, self.cursor.col
        );
        header
    }
}

/// The rows of the view.
fn whole<'a>(frame: &'a Frame, view: &View) -> impl Iterator<Item = (RowNumber, &'a Line)> + Clone {
    let rows = view.rows.map_or(frame.lines.len(), usize::from);
    let lines = frame.lines.iter().enumerate().skip(usize::from(view.top)).take(rows);
    lines.map(|(index, line)| (frame.base_row.plus(index), &*line.value))
}

/// Adds changed rows for a model.
fn tell_changes(lines: &[LineWire], text: &mut String) {
    if lines.is_empty() {
        text.push_str("no rows changed");
    }
    for (index, lines) in lines.chunk_by(are_empty_neighbours).enumerate() {
        let end = if index > 0 { "\n" } else { "" };
        let _ = write!(text, "{end}{}", numbered(lines));
    }
}
