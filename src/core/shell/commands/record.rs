//! One command: its text, who sent it, how it ended, and what it printed.

use std::sync::Arc;

use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::output::Output;

/// The number of a command in its session, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A place between two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub row: RowNumber,
    pub col: u16,
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
    /// Where on the screen its output began.
    pub from: Position,
    /// Where on the screen its output ended; none while it goes on.
    pub to: Option<Position>,
    /// How many lines that show what was typed come first.
    pub echo_lines: u16,
    /// What it printed; empty until it has ended, while frames have it.
    pub output: Arc<Output>,
    /// It showed something on the alternate screen.
    pub full_screen: bool,
}

impl CommandRecord {
    pub const TEXT_MAX: usize = 1_024;

    pub(crate) fn open(id: CommandId, text: &str, started: Moment, from: Position) -> Self {
        let end = text.floor_char_boundary(Self::TEXT_MAX);
        Self {
            id,
            text: text[..end].into(),
            directory: None,
            by: None,
            started,
            finish: None,
            from,
            to: None,
            echo_lines: 0,
            output: Arc::default(),
            full_screen: false,
        }
    }

    pub(crate) fn close(&mut self, here: &Here, finish: Finish) {
        // What it printed may have gone to a higher row than it began on.
        self.to.get_or_insert(here.position);
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
