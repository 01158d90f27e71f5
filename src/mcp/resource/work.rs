//! What is done in a session, as resources: the commands that ran, their output, and where they ran.
//!
//! It must not know who may see the session. All is read from the newest frame, save the state of a
//! repository, which is read from its files.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::frame::Frame;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::CommandId;
use crate::mcp::resource::output::{Piece, first_row};
use crate::mcp::resource::query::{self, LogQuery, OutputQuery};
use crate::mcp::resource::{Content, git, log};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::answer::budget::escaped_bytes;
use crate::surface::answer::command::{newest_that_fit, output_uri};
use crate::surface::answer::session::cwd_of;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::read_commands::find;
use crate::surface::turns::Share;
use crate::wire::command::{CommandWire, KnownCommands};
use crate::wire::session::GapWire;

/// A resource about what is done in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Commands,
    Output { id: CommandId, query: OutputQuery },
    Directory,
    Git,
    Log(LogQuery),
}

/// What a subscription to it compares.
pub type State = (Watermark, Option<Arc<str>>);

impl Work {
    /// The resource that the rest of a URI names, if there is one.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] when there is, but its query is wrong.
    pub fn parse(parts: &[&str], query: &str) -> Result<Option<Self>, SurfaceError> {
        let work = match parts {
            ["command", id, "output"] => {
                let Ok(id) = id.parse() else { return Ok(None) };
                let query = OutputQuery::parse(query)?;
                return Ok(Some(Self::Output { id: CommandId(id), query }));
            }
            ["commands"] => Self::Commands,
            ["cwd"] => Self::Directory,
            ["git"] => Self::Git,
            ["log"] => return Ok(Some(Self::Log(LogQuery::parse(query)?))),
            _ => return Ok(None),
        };
        query::none(query)?;
        Ok(Some(work))
    }

    /// The resource's content; an output or a log in so many bytes of JSON, a large one read in a turn of
    /// this share.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] when no command of this number is known.
    pub async fn read(
        self,
        session: &Session,
        clock: &Clock,
        room: usize,
        share: &Share,
    ) -> Result<Content, SurfaceError> {
        let frame = session.frame();
        let (session, clock) = (session.clone(), clock.clone());
        Ok(match self {
            Self::Commands => Content::Facts(commands(&session, &frame, &clock)),
            Self::Output { id, query } => {
                let cells = Output::cells(find(&frame, id)?, &frame);
                let read = move || output(&session, &frame, (id, query), room);
                share.off_worker(cells, read).await?
            }
            Self::Directory => Content::Facts(json!({"cwd": cwd_of(&session)})),
            Self::Git => {
                let cwd = cwd_of(&session);
                let state = git::state_of(&cwd, share).await;
                Content::Facts(json!({"cwd": cwd, "git": state}))
            }
            Self::Log(query) => {
                let rows = frame.history.len() + frame.lines.len();
                let cells = rows * usize::from(frame.size.value.cols);
                let read = move || log::of(&session, &frame, &clock, (query, room));
                Content::Markdown(share.off_worker(cells, read).await)
            }
        })
    }

    /// What changes when the resource does.
    pub fn state(self, session: &Session, frame: &Frame) -> State {
        let commands = frame.commands.changed;
        match self {
            Self::Commands | Self::Log(_) => (commands, None),
            Self::Output { id, .. } => (printed(id, frame), None),
            Self::Directory => (Watermark::default(), session.live().directory()),
            // Whatever ran may have changed it.
            Self::Git => (commands, session.live().directory()),
        }
    }
}

/// When a command last printed something.
fn printed(id: CommandId, frame: &Frame) -> Watermark {
    let record = frame.commands.value.get(id);
    match record.map(|record| record.finish) {
        Some(None) => frame.screen_watermark(),
        Some(Some(finish)) => finish.mark,
        None => Watermark::default(),
    }
}

fn commands(session: &Session, frame: &Frame, clock: &Clock) -> Value {
    let known = &frame.commands.value;
    // It is JSON in a text of JSON.
    let bytes = |it: &CommandWire| escaped_bytes(&json!(it).to_string()) + 1;
    let commands = newest_that_fit(known.iter(), usize::MAX, clock, bytes);
    json!(KnownCommands {
        session: session.id().to_string(),
        older: known.iter().count() - commands.len(),
        commands,
        watermark: frame.commands.changed.0,
    })
}

fn output(
    session: &Session,
    frame: &Frame,
    (id, query): (CommandId, OutputQuery),
    room: usize,
) -> Result<Content, SurfaceError> {
    let record = find(frame, id)?;
    let piece = match query.from_row {
        Some(from) => Piece::following(record, frame, RowNumber(from), room),
        None => Piece::beginning(record, frame, room),
    };
    let gaps = session.live().gaps();
    let from = query.from_row.unwrap_or_default().max(first_row(record).0);
    let lost = GapWire::among(gaps.as_slice(), from..piece.next_row.0);
    let facts = json!(piece.facts(record, lost.clone()));
    let text = match query.from_row {
        Some(_) => piece.text,
        None => remarked(piece, &lost, &output_uri(session.id(), id)),
    };
    Ok(Content::Output { text, facts })
}

/// The text of a piece with what is missing of the output.
fn remarked(piece: Piece, lost: &[GapWire], uri: &str) -> String {
    let mut text = String::new();
    if piece.rows_trimmed > 0 {
        text.push_str(&format!("[… {} rows are gone from history]\n", piece.rows_trimmed));
    }
    for gap in lost {
        text.push_str(&format!("{}\n", gap.remark()));
    }
    text.push_str(&piece.text);
    if piece.lines_left_out > 0 {
        let (count, row) = (piece.lines_left_out, piece.next_row.0);
        text.push_str(&format!("[… {count} more lines: {uri}?from_row={row}]\n"));
    }
    text
}
