//! `read_commands`: what ran in a session, who sent it, how it ended, and what it printed.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::counted::counted;
use crate::core::frame::Frame;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::surface::answer::budget::{escaped_bytes, json_bytes, room_left};
use crate::surface::answer::command::{ALONE, newest_that_fit, output_uri};
use crate::surface::answer::excerpt::{Excerpt, ExcerptLines};
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::following::trimmed;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::command::{CommandList, CommandWire};
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;

/// How many commands one answer tells at most.
const LIMIT_MAX: u64 = 100;
/// How many lines of output one answer holds at most, of head and of tail.
const LINES_MAX: u64 = 2_000;
/// How many bytes a list has between two commands, for programs and for models.
const BETWEEN_BYTES: usize = 3;
/// How many lines of head and tail are told when nobody says.
const LINES_DEFAULT: u64 = 100;

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ReadCommands {
    /// Id, prefix or name
    pub session: Option<String>,
    /// One command, with its output
    pub id: Option<u64>,
    /// How many of the newest (default 20)
    pub limit: Option<u64>,
    /// Only older ones than this
    pub before: Option<u64>,
    /// With id: first lines (default 100)
    pub head: Option<u64>,
    /// With id: last lines (default 100)
    pub tail: Option<u64>,
}

impl Tool for ReadCommands {
    const NAME: &'static str = "read_commands";
    const TITLE: &'static str = "Read what ran";
    const DESCRIPTION: &'static str = "What ran in a session: by whom, when, how it ended. With `id` \
        its output, also after it scrolled away.";
    const ACCESS: ToolAccess = ToolAccess::Read;
    const NEEDS_SESSION: bool = true;

    type Result = CommandList;

    async fn call(self, call: Call) -> Result<Answer<CommandList>, SurfaceError> {
        let session = call.session(self.session.as_deref())?;
        let clock = call.daemon.sessions.clock();
        let list = match self.id {
            Some(id) => {
                let frame = session.frame();
                let bytes = frame.output(find(&frame, CommandId(id))?).bytes();
                let clock = clock.clone();
                let read = move || one(&session, CommandId(id), &self, &clock);
                call.share().off_worker(bytes, read).await?
            }
            None => newest(&session, &self, clock)?,
        };
        Ok(Answer { text: list.summary(), result: list })
    }
}

fn newest(
    session: &Session,
    parameters: &ReadCommands,
    clock: &Clock,
) -> Result<CommandList, SurfaceError> {
    if parameters.head.is_some() || parameters.tail.is_some() {
        return Err(SurfaceError::argument(
            "head",
            "only with `id`, for the output of one command",
        ));
    }
    let limit = within("limit", parameters.limit.unwrap_or(20), 1..=LIMIT_MAX)? as usize;
    let frame = session.frame();
    let before = parameters.before.unwrap_or(u64::MAX);
    // As one piece that can be read from both ends.
    let known: Vec<_> = frame.commands.value.iter().filter(|it| it.id.0 < before).collect();
    let bytes = |it: &CommandWire| json_bytes(it) + escaped_bytes(&it.summary()) + BETWEEN_BYTES;
    let mut list = CommandList::empty(session, &frame);
    list.commands = newest_that_fit(known.iter().copied(), limit, clock, bytes);
    list.older = Some(known.len() - list.commands.len()).filter(|older| *older > 0);
    Ok(list)
}

fn one(
    session: &Session,
    id: CommandId,
    parameters: &ReadCommands,
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
    let output = frame.output(record);
    let mut list = CommandList::empty(session, &frame);
    list.commands = vec![CommandWire::of(record, clock).within(ALONE)];
    list.lost_output = GapWire::in_output(session, record, &frame);
    list.lines_trimmed = Some(output.lines_trimmed()).filter(|lines| *lines > 0);
    // The output is told to programs and to models.
    let room = room_left(&list, &list.summary()) / 2;
    let uri = output_uri(session.id(), id);
    let excerpt = Excerpt::of(
        &output,
        ExcerptLines { head, tail, trouble: 0, equal_once: false },
        room,
        &uri,
    );
    list.output = Some(excerpt.text);
    list.lines_total = Some(output.lines_total());
    list.lines_left_out = Some(excerpt.lines_left_out);
    list.rest = excerpt.rest;
    Ok(list)
}

/// The command of this number.
pub fn find(frame: &Frame, id: CommandId) -> Result<&CommandRecord, SurfaceError> {
    let commands = &frame.commands.value;
    commands.get(id).map(|record| &**record).ok_or_else(|| {
        let problem = match commands.iter().next() {
            Some(first) => {
                let (first, last) = (first.id.0, commands.last().0);
                format!("no command {}; {first} to {last} are known", id.0)
            }
            None => format!("no command {}: this session has no commands yet", id.0),
        };
        SurfaceError::argument("id", problem)
    })
}

impl CommandList {
    fn empty(session: &Session, frame: &Frame) -> Self {
        Self {
            untrusted: Untrusted,
            session: session.id().to_string(),
            commands: Vec::new(),
            older: None,
            output: None,
            lines_total: None,
            lines_left_out: None,
            lines_trimmed: None,
            rest: None,
            lost_output: Vec::new(),
            watermark: frame.watermark.0,
        }
    }

    fn summary(&self) -> String {
        let mut lines: Vec<String> = self.commands.iter().map(CommandWire::summary).collect();
        if lines.is_empty() {
            lines.push("no command is known to have run here".to_owned());
        }
        if let (Some(older), Some(first)) = (self.older, self.commands.first()) {
            let older = counted(older, "older command");
            lines.insert(0, format!("[{older}: before={}]", first.command_id));
        }
        lines.extend(self.lines_trimmed.map(trimmed));
        lines.extend(self.lost_output.iter().map(GapWire::remark));
        lines.extend(self.output.clone());
        lines.join("\n")
    }
}
