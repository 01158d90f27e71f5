//! `read_commands`: what ran in a session, who sent it, how it ended, and what it printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::commands::output::Output;
use crate::core::commands::record::{CommandId, CommandRecord};
use crate::core::frame::Frame;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::shape::command::{CommandWire, Excerpt, output_uri};
use crate::surface::tool::{Access, Answer, Tool};

/// How many commands one answer tells at most.
const LIMIT_MAX: u64 = 100;
/// How many lines of output one answer holds at most, of head and of tail.
const LINES_MAX: u64 = 2_000;
/// How many lines of head and tail are told when nobody says.
const LINES_DEFAULT: u64 = 100;

/// The tool.
#[derive(Debug)]
pub struct ReadCommands;

/// The parameters of `read_commands`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    pub session: Option<String>,
    /// One command, with its output
    pub id: Option<u64>,
    /// How many of the newest (default 20)
    pub limit: Option<u64>,
    /// With id: first lines of output (default 100)
    pub head: Option<u64>,
    /// With id: last lines of output (default 100)
    pub tail: Option<u64>,
}

/// The result of `read_commands`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandList {
    pub session: String,
    /// Oldest first.
    pub commands: Vec<CommandWire>,
    /// How many older ones are known besides those told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_left_out: Option<usize>,
    /// Rows of the output that history does not hold any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_trimmed: Option<u64>,
    /// The resource with all of the output, when some was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    pub watermark: u64,
}

impl Tool for ReadCommands {
    const NAME: &'static str = "read_commands";
    const TITLE: &'static str = "Read what ran";
    const DESCRIPTION: &'static str = "The commands that ran in a session: who sent them, when, how \
        they ended. With `id` the output of one, also after it scrolled away.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = CommandList;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<CommandList>, SurfaceError> {
        let session = call.session(parameters.session.as_deref())?;
        let clock = call.daemon.sessions.clock();
        let list = match parameters.id {
            Some(id) => one(&session, CommandId(id), &parameters, clock)?,
            None => newest(&session, &parameters, clock)?,
        };
        Ok(Answer { text: list.summary(), result: list })
    }
}

fn newest(
    session: &Session,
    parameters: &Parameters,
    clock: &Clock,
) -> Result<CommandList, SurfaceError> {
    if parameters.head.is_some() || parameters.tail.is_some() {
        return Err(SurfaceError::argument("head", "output is told of one command; give its id"));
    }
    let limit = within("limit", parameters.limit.unwrap_or(20), 1..=LIMIT_MAX)? as usize;
    let frame = session.frame();
    let known = frame.commands.value.iter().count();
    let told = frame.commands.value.iter().skip(known.saturating_sub(limit));
    let mut list = CommandList::empty(session, &frame);
    list.commands = told.map(|record| CommandWire::of(record, clock)).collect();
    list.older = Some(known - list.commands.len()).filter(|older| *older > 0);
    Ok(list)
}

fn one(
    session: &Session,
    id: CommandId,
    parameters: &Parameters,
    clock: &Clock,
) -> Result<CommandList, SurfaceError> {
    let lines = |name: &str, given: Option<u64>, other: Option<u64>| {
        let default = if other.is_some() { 0 } else { LINES_DEFAULT };
        within(name, given.unwrap_or(default), 0..=LINES_MAX).map(|lines| lines as usize)
    };
    let head = lines("head", parameters.head, parameters.tail)?;
    let tail = lines("tail", parameters.tail, parameters.head)?;
    let frame = session.frame();
    let record = find(&frame, id)?;
    let output = Output::of(record, &frame);
    let uri = output_uri(session.id(), id);
    let excerpt = Excerpt::of(&output.lines, head, tail, |count| {
        format!("[… {count} lines left out: {uri}]")
    });
    let mut list = CommandList::empty(session, &frame);
    list.commands = vec![CommandWire::of(record, clock)];
    list.output = Some(excerpt.text);
    list.lines_total = Some(excerpt.lines_total);
    list.lines_left_out = Some(excerpt.lines_left_out);
    list.rows_trimmed = Some(output.rows_trimmed).filter(|rows| *rows > 0);
    list.rest = (excerpt.lines_left_out > 0).then_some(uri);
    Ok(list)
}

/// The command of this number.
///
/// # Errors
/// [`SurfaceError::Argument`] when there is none, or none any more.
pub fn find(frame: &Frame, id: CommandId) -> Result<&CommandRecord, SurfaceError> {
    let commands = &frame.commands.value;
    commands.get(id).map(|record| &**record).ok_or_else(|| {
        let first = commands.iter().next().map_or(1, |record| record.id.0);
        let problem = format!("no command {}; {first} to {} are known", id.0, commands.last().0);
        SurfaceError::argument("id", problem)
    })
}

impl CommandList {
    fn empty(session: &Session, frame: &Frame) -> Self {
        Self {
            session: session.id().to_string(),
            commands: Vec::new(),
            older: None,
            output: None,
            lines_total: None,
            lines_left_out: None,
            rows_trimmed: None,
            rest: None,
            watermark: frame.watermark.0,
        }
    }

    fn summary(&self) -> String {
        let mut lines: Vec<String> = self.commands.iter().map(CommandWire::summary).collect();
        if lines.is_empty() {
            lines.push("no command is known to have run here".to_owned());
        }
        if let Some(older) = self.older {
            lines.insert(0, format!("[{older} older ones: raise limit]"));
        }
        lines.extend(self.output.clone());
        lines.join("\n")
    }
}
