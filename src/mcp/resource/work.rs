//! Resources about the work in a session: commands, their output, the directory and its git state.
//!
//! All come from the newest frame, except the git state, which is read from files.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::ids::Watermark;
use crate::core::one_line::one_line;
use crate::core::shell::commands::record::CommandId;
use crate::mcp::resource::output::OutputPiece;
use crate::mcp::resource::query;
use crate::mcp::resource::{ResourceContent, git, log};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::answer::budget::escaped_bytes;
use crate::surface::answer::command::{newest_that_fit, output_uri};
use crate::surface::answer::session::cwd_of;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::following::trimmed;
use crate::surface::terminal::read_commands::find;
use crate::surface::turns::Share;
use crate::wire::command::{CommandWire, KnownCommands};
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Commands,
    Output { id: CommandId, from_line: Option<u64> },
    Directory,
    Git,
    Log { before: Option<u64> },
}

/// The value that a subscription compares.
pub type State = (Watermark, Option<Arc<str>>);

impl Work {
    /// Parses the rest of a session URI. `None` if it names no resource.
    pub fn parse(parts: &[&str], query: &str) -> Result<Option<Self>, SurfaceError> {
        let work = match parts {
            ["command", id, "output"] => {
                let Ok(id) = id.parse() else { return Ok(None) };
                let from_line = query::only_number(query, "from_line")?;
                return Ok(Some(Self::Output { id: CommandId(id), from_line }));
            }
            ["commands"] => Self::Commands,
            ["cwd"] => Self::Directory,
            ["git"] => Self::Git,
            ["log"] => {
                return Ok(Some(Self::Log { before: query::only_number(query, "before")? }));
            }
            _ => return Ok(None),
        };
        query::none(query)?;
        Ok(Some(work))
    }

    /// The resource's content. An output or a log is limited to `room` bytes of JSON, and a large one is read in a
    /// turn of `share`.
    pub async fn read(
        self,
        session: &Session,
        clock: &Clock,
        room: usize,
        share: &Share,
    ) -> Result<ResourceContent, SurfaceError> {
        let frame = session.frame();
        let (session, clock) = (session.clone(), clock.clone());
        Ok(match self {
            Self::Commands => ResourceContent::Facts(commands(&session, &frame, &clock)),
            Self::Output { id, from_line } => {
                let bytes = frame.output(find(&frame, id)?).bytes();
                let read = move || output(&session, &frame, (id, from_line), room);
                share.off_worker(bytes, read).await?
            }
            Self::Directory => ResourceContent::Facts(json!({"cwd": one_line(&cwd_of(&session))})),
            Self::Git => {
                let cwd = cwd_of(&session);
                let state = git::state_of(&cwd, share).await;
                ResourceContent::Facts(json!({"cwd": cwd, "git": state}))
            }
            Self::Log { before } => {
                let rows = frame.history.len() + frame.lines.len();
                let cells = rows * usize::from(frame.size.value.cols);
                let read = move || log::of(&session, &frame, &clock, (before, room));
                ResourceContent::Markdown(share.off_worker(cells, read).await)
            }
        })
    }

    /// The value that changes whenever the resource does.
    pub fn state(self, session: &Session, frame: &Frame) -> State {
        let commands = frame.commands.changed;
        match self {
            Self::Commands | Self::Log { .. } => (commands, None),
            Self::Output { id, .. } => (printed(id, frame), None),
            Self::Directory => (Watermark::default(), session.live().directory()),
            // Any command may have changed it.
            Self::Git => (commands, session.live().directory()),
        }
    }
}

/// The watermark of a command's last output.
fn printed(id: CommandId, frame: &Frame) -> Watermark {
    let record = frame.commands.value.get(id);
    match record.map(|record| record.finish) {
        Some(None) => frame.printed.changed,
        Some(Some(finish)) => finish.mark,
        None => Watermark::default(),
    }
}

fn commands(session: &Session, frame: &Frame, clock: &Clock) -> Value {
    let known = &frame.commands.value;
    // The entry is JSON inside a JSON string.
    let bytes = |it: &CommandWire| escaped_bytes(&json!(it).to_string()) + 1;
    let commands = newest_that_fit(known.iter(), usize::MAX, clock, bytes);
    json!(KnownCommands {
        untrusted: Untrusted,
        session: session.id().to_string(),
        older: known.iter().count() - commands.len(),
        commands,
        watermark: frame.commands.changed.0,
    })
}

fn output(
    session: &Session,
    frame: &Frame,
    (id, from_line): (CommandId, Option<u64>),
    room: usize,
) -> Result<ResourceContent, SurfaceError> {
    let record = find(frame, id)?;
    let printed = frame.output(record);
    // A line at the cursor may go on, unless nobody follows it.
    let goes_on = from_line.is_some() && record.finish.is_none();
    let end = if goes_on { printed.lines_ended() } else { printed.lines_total() };
    let piece = OutputPiece::between(&printed, (from_line.unwrap_or_default(), end), room);
    // Which lines they lie between is not known, so they are told with each once all lines are there.
    let lost = if record.finish.is_some() && from_line.is_none_or(|from| from <= end) {
        GapWire::in_output(session, record, frame)
    } else {
        Vec::new()
    };
    let facts = json!(piece.facts(record, lost.clone()));
    let text = match from_line {
        Some(_) => piece.text,
        None => remarked(piece, &lost, &output_uri(session.id(), id)),
    };
    Ok(ResourceContent::Output { text, facts })
}

/// The text of a piece with remarks about missing output.
fn remarked(piece: OutputPiece, lost: &[GapWire], uri: &str) -> String {
    let mut text = String::new();
    if piece.lines_trimmed > 0 {
        text.push_str(&format!("{}\n", trimmed(piece.lines_trimmed)));
    }
    text.push_str(&piece.text);
    for gap in lost {
        text.push_str(&format!("{}\n", gap.remark()));
    }
    if piece.lines_left_out > 0 {
        let (count, line) = (piece.lines_left_out, piece.next_line);
        text.push_str(&format!("[… {}: {uri}?from_line={line}]\n", counted(count, "more line")));
    }
    text
}
