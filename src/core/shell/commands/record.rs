//! One command: its text, who sent it, how it ended, and where its output lies.

use std::sync::Arc;

use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::shell::activity::Evidence;

/// The number of a command in its session, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A place between two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub row: RowNumber,
    pub col: u16,
}

/// A stretch of rows: from a place up to another, or up to the cursor while it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Position,
    pub to: Option<Position>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The code it returned; none where nobody said.
    pub code: Option<i32>,
    pub evidence: Evidence,
    /// Whether it ran at all: a line that a shell cannot read never does.
    pub ran: bool,
    pub at: Moment,
    /// The first frame that shows the end has this watermark.
    pub mark: Watermark,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    pub id: CommandId,
    /// What was sent, or what the shell said it read, at most [`CommandRecord::TEXT_MAX`] bytes;
    /// empty when nobody told.
    pub text: Arc<str>,
    /// The directory it ran in, as the shell said.
    pub directory: Option<Arc<str>>,
    /// Who sent it, or typed last before it began.
    pub by: Option<Arc<str>>,
    /// When it was sent; of one that was typed, when it began.
    pub started: Moment,
    pub finish: Option<Finish>,
    /// Where its output lies; renumbering cuts it into several.
    pub spans: Vec<Span>,
    /// How many lines of its beginning are what was typed.
    pub echo_lines: u16,
    /// It showed something on the alternate screen.
    pub full_screen: bool,
}

impl CommandRecord {
    pub const TEXT_MAX: usize = 1_024;
    /// How many stretches of rows its output may be cut into; more are told as one.
    pub const SPANS_MAX: usize = 16;

    pub(crate) fn open(id: CommandId, text: &str, started: Moment, from: Position) -> Self {
        let end = text.floor_char_boundary(Self::TEXT_MAX);
        Self {
            id,
            text: text[..end].into(),
            directory: None,
            by: None,
            started,
            finish: None,
            spans: vec![Span { from, to: None }],
            echo_lines: 0,
            full_screen: false,
        }
    }

    pub(crate) fn close(&mut self, here: &Here, finish: Finish) {
        if let Some(span) = self.spans.last_mut() {
            span.to = Some(here.position.max(span.from));
        }
        self.finish = Some(finish);
    }
}

/// Where the terminal is at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// Of the cursor.
    pub position: Position,
    /// The top row of the screen.
    pub top: RowNumber,
    pub now: Moment,
    /// The watermark of the next frame.
    pub mark: Watermark,
}
