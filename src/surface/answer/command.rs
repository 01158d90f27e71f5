//! A command that ran, as answers tell of it.

use std::sync::Arc;
use std::time::SystemTime;

use crate::core::human_duration::measured;
use crate::core::ids::SessionId;
use crate::core::invisible::with_invisible_shown;
use crate::core::one_line::one_line;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::session::clock::Clock;
use crate::surface::answer::budget::{IN_LIST, TextBounds, abridged, fitting, room_left};
use crate::wire::command::{CommandStatus, CommandWire};
use crate::wire::word;

/// What a command has that is told alone: its text whole, and a directory as long as they get.
pub const ALONE: TextBounds =
    TextBounds { title: 0, command: 6 * CommandRecord::TEXT_MAX, cwd: 4_096 };

/// Where the whole output of a command is.
pub fn output_uri(session: SessionId, id: CommandId) -> String {
    format!("termgate://session/{session}/command/{}/output", id.0)
}

impl CommandWire {
    /// The command as it is now.
    pub fn of(record: &CommandRecord, clock: &Clock) -> Self {
        let (now, wall) = clock.now_by_wall();
        let wall = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let finish = record.finish;
        let ended = finish.map_or(now, |finish| finish.at);
        let ago = u64::try_from(now.since(record.started).as_millis()).unwrap_or(u64::MAX);
        Self {
            command_id: record.id.0,
            command: with_invisible_shown(&record.text).into_owned(),
            cwd: record.directory.as_deref().map(|cwd| one_line(cwd).into_owned()),
            by: record.by.as_deref().map(str::to_owned),
            started: unix_ms.saturating_sub(ago),
            duration_ms: ended.since(record.started).as_millis() as u64,
            status: record.into(),
            exit_code: finish.and_then(|finish| finish.code),
            evidence: finish.map(|finish| finish.evidence.into()),
            full_screen: record.full_screen,
            cut: false,
        }
    }

    /// The same with so much of its text and of its directory.
    #[must_use]
    pub fn within(self, most: TextBounds) -> Self {
        let command = abridged(&self.command, most.command);
        let cwd = self.cwd.as_deref().map(|cwd| abridged(cwd, most.cwd));
        let cut = self.cut || command != self.command || cwd != self.cwd;
        Self { command, cwd, cut, ..self }
    }

    /// The command on one line.
    pub fn summary(&self) -> String {
        let code = match (self.status, self.exit_code) {
            (CommandStatus::Running, _) => "running".to_owned(),
            (_, Some(code)) => format!("exit {code}"),
            (status, None) => format!("{}, code unknown", word(&status)),
        };
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let cwd = self.cwd.as_ref().map_or_else(String::new, |cwd| {
            format!(" in {}", abridged(&one_line(cwd), IN_LIST.cwd))
        });
        let command = abridged(&one_line(&self.command), IN_LIST.command);
        format!("#{} {command} ({code}, {}{by}{cwd})", self.command_id, measured(self.duration_ms))
    }
}

/// The newest of these commands whose sizes fit into one result, at most so many, oldest first.
pub fn newest_that_fit<'a>(
    records: impl DoubleEndedIterator<Item = &'a Arc<CommandRecord>>,
    limit: usize,
    clock: &Clock,
    bytes: impl Fn(&CommandWire) -> usize,
) -> Vec<CommandWire> {
    let newest = records.rev().take(limit);
    let mut commands: Vec<_> =
        newest.map(|record| CommandWire::of(record, clock).within(IN_LIST)).collect();
    let room = room_left(&"", "");
    commands.truncate(fitting(commands.iter().map(bytes), room).count);
    commands.reverse();
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_and_its_directory_stand_on_one_line() {
        let told = CommandWire {
            command_id: 1,
            command: "true\nfalse".to_owned(),
            cwd: Some("/a\u{2028}b".to_owned()),
            by: None,
            started: 0,
            duration_ms: 5,
            status: CommandStatus::Exited,
            exit_code: Some(0),
            evidence: None,
            full_screen: false,
            cut: false,
        };
        assert_eq!(told.summary(), r"#1 true\nfalse (exit 0, 5ms in /a\u{2028}b)");
    }
}
