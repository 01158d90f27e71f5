//! The stored form of the shell's state and commands, which follows the screen.
//!
//! It accepts any number that it reads, so positions may lie outside the screen.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::core::frame::kept::NUMBER_MAX;
use crate::core::ids::Watermark;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::emulator::recording::Recordings;
use crate::core::screen::emulator::shell::MarkedShell;
use crate::core::screen::snapshot::cells::Damage;
use crate::core::screen::snapshot::numbers::{
    KeptPosition, kept_position, moment, nanos, position,
};
use crate::core::screen::snapshot::outputs::KeptOutputs;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::{CommandId, CommandRecord, Finish};
use crate::core::shell::commands::{Commands, EndsBy, SentCommand, ShellPhase};

/// The shell on a screen, as stored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct KeptShell<'a> {
    #[serde(borrow)]
    commands: Vec<KeptCommand<'a>>,
    #[serde(borrow)]
    state: KeptState<'a>,
    #[serde(borrow)]
    outputs: KeptOutputs<'a>,
}

/// The shell's state without its commands.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptState<'a> {
    last: u64,
    /// 0 unmarked, 1 prompting, 2 reading, 3 running.
    phase: u8,
    reading_at: Option<KeptPosition>,
    #[serde(borrow)]
    sent: Option<KeptSent<'a>>,
    #[serde(borrow)]
    outer: Option<KeptSent<'a>>,
    #[serde(borrow)]
    directory: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptCommand<'a> {
    id: u64,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    directory: Option<Cow<'a, str>>,
    #[serde(borrow)]
    by: Option<Cow<'a, str>>,
    /// In nanoseconds since boot.
    started: u64,
    finish: Option<KeptFinish>,
    from: KeptPosition,
    to: Option<KeptPosition>,
    echo_lines: u16,
    full_screen: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptFinish {
    code: Option<i32>,
    /// 0 osc133, 1 kernel, 2 pattern, 3 idle, 4 exit.
    evidence: u8,
    ran: bool,
    at: u64,
    mark: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptSent<'a> {
    id: u64,
    /// 0 marks, 1 kernel, 2 prompt.
    ends_by: u8,
    #[serde(borrow)]
    prompt: Cow<'a, str>,
    rows_moved: bool,
}

const PHASES: [ShellPhase; 4] =
    [ShellPhase::Unmarked, ShellPhase::Prompting, ShellPhase::Reading, ShellPhase::Running];
const EVIDENCE: [Evidence; 5] =
    [Evidence::Osc133, Evidence::Kernel, Evidence::Pattern, Evidence::Idle, Evidence::Exit];
const WAYS: [EndsBy; 3] = [EndsBy::Marks, EndsBy::Kernel, EndsBy::Prompt];

const UNKNOWN: Damage = "a command is in a state that there is not";

fn index_of<T: PartialEq>(table: &[T], value: &T) -> u8 {
    table.iter().position(|one| one == value).unwrap_or_default() as u8
}

fn entry_of<T: Copy>(table: &[T], index: u8) -> Result<T, Damage> {
    table.get(usize::from(index)).copied().ok_or(UNKNOWN)
}

/// The commands in their last encoded form. Nearly all are unchanged each time, and encoding all of
/// them takes longer than the rest of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct WrittenCommands(VecDeque<(Arc<CommandRecord>, Box<[u8]>)>);

impl WrittenCommands {
    /// Appends the shell to a snapshot, as [`KeptShell`] reads it.
    pub(crate) fn write(
        &mut self,
        shell: &MarkedShell,
        recordings: &Recordings,
        bytes: Vec<u8>,
    ) -> postcard::Result<Vec<u8>> {
        self.update(&shell.commands)?;
        let mut bytes = postcard::to_extend(&self.0.len(), bytes)?;
        for (_, written) in &self.0 {
            bytes.extend_from_slice(written);
        }
        let bytes = postcard::to_extend(&KeptState::of(shell), bytes)?;
        KeptOutputs::write(&shell.commands, recordings, bytes)
    }

    fn update(&mut self, commands: &Commands) -> postcard::Result<()> {
        let oldest = commands.iter().next().map(|record| record.id);
        while self.0.front().is_some_and(|(record, _)| Some(record.id) < oldest) {
            self.0.pop_front();
        }
        let mut count = 0;
        for (index, record) in commands.iter().enumerate() {
            count = index + 1;
            if self.0.get(index).is_some_and(|(written, _)| Arc::ptr_eq(written, record)) {
                continue;
            }
            self.0.truncate(index);
            let bytes = postcard::to_allocvec(&KeptCommand::of(record))?;
            self.0.push_back((Arc::clone(record), bytes.into()));
        }
        self.0.truncate(count);
        Ok(())
    }
}

impl<'a> KeptState<'a> {
    fn of(shell: &'a MarkedShell) -> Self {
        let commands = &shell.commands;
        Self {
            last: commands.last().0,
            phase: index_of(&PHASES, &commands.phase()),
            reading_at: commands.reading_at().map(kept_position),
            sent: commands.sent().map(KeptSent::of),
            outer: commands.outer().map(KeptSent::of),
            directory: shell.directory.as_deref().map(Cow::Borrowed),
        }
    }
}

impl KeptShell<'_> {
    /// Puts it into an emulator that has its size.
    pub(crate) fn put(self, emulator: &mut Emulator) -> Result<(), Damage> {
        let surplus = self.commands.len().saturating_sub(Commands::KEPT_MAX);
        let records = self.commands.iter().skip(surplus).map(|kept| kept.record().map(Arc::new));
        let list: VecDeque<_> = records.collect::<Result<_, _>>()?;
        let ids = list.iter().map(|record| record.id);
        let ordered = ids.clone().zip(ids.skip(1)).all(|(one, next)| one < next);
        let state = &self.state;
        let last = CommandId(state.last);
        if !ordered || state.last > NUMBER_MAX || list.back().is_some_and(|it| it.id > last) {
            return Err("the commands are in no order");
        }
        let sent = state.sent.as_ref().map(|sent| sent.sent(&list)).transpose()?;
        let outer = state.outer.as_ref().map(|outer| outer.sent(&list)).transpose()?;
        let phase = entry_of(&PHASES, state.phase)?;
        let reading_at = state.reading_at.map(position).transpose()?;
        let mut commands = Commands::restored(list, last, phase, reading_at, (sent, outer));
        self.outputs.put(&mut commands, emulator)?;
        emulator.shell.directory = state.directory.as_deref().map(Arc::from);
        emulator.shell.commands = Arc::new(commands);
        Ok(())
    }
}

impl<'a> KeptSent<'a> {
    fn of(sent: &'a SentCommand) -> Self {
        let prompt = Cow::Borrowed(&*sent.prompt);
        let (ends_by, rows_moved) = (index_of(&WAYS, &sent.ends_by), sent.rows_moved);
        Self { id: sent.id.0, ends_by, prompt, rows_moved }
    }

    fn sent(&self, list: &VecDeque<Arc<CommandRecord>>) -> Result<SentCommand, Damage> {
        let (id, prompt) = (CommandId(self.id), self.prompt.as_ref().into());
        let record = list.iter().find(|record| record.id == id);
        let typed = record.map(|record| Arc::clone(&record.text)).unwrap_or_default();
        let (ends_by, rows_moved) = (entry_of(&WAYS, self.ends_by)?, self.rows_moved);
        Ok(SentCommand { id, ends_by, prompt, typed, rows_moved })
    }
}

impl<'a> KeptCommand<'a> {
    fn of(record: &'a CommandRecord) -> Self {
        Self {
            id: record.id.0,
            text: Cow::Borrowed(&record.text),
            directory: record.directory.as_deref().map(Cow::Borrowed),
            by: record.by.as_deref().map(Cow::Borrowed),
            started: nanos(record.started),
            finish: record.finish.map(|finish| KeptFinish {
                code: finish.code,
                evidence: index_of(&EVIDENCE, &finish.evidence),
                ran: finish.ran,
                at: nanos(finish.at),
                mark: finish.mark.0,
            }),
            from: kept_position(record.from),
            to: record.to.map(kept_position),
            echo_lines: record.echo_lines,
            full_screen: record.full_screen,
        }
    }

    fn record(&self) -> Result<CommandRecord, Damage> {
        let finish = match &self.finish {
            Some(kept) => Some(Finish {
                code: kept.code,
                evidence: entry_of(&EVIDENCE, kept.evidence)?,
                ran: kept.ran,
                at: moment(kept.at),
                mark: Watermark(kept.mark.min(NUMBER_MAX)),
            }),
            None => None,
        };
        let end = self.text.floor_char_boundary(CommandRecord::TEXT_MAX);
        Ok(CommandRecord {
            id: CommandId(self.id),
            text: self.text[..end].into(),
            directory: self.directory.as_deref().map(Arc::from),
            by: self.by.as_deref().map(Arc::from),
            started: moment(self.started),
            finish,
            from: position(self.from)?,
            to: self.to.map(position).transpose()?,
            echo_lines: self.echo_lines,
            output: Arc::default(),
            full_screen: self.full_screen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::shell::commands::Submission;
    use std::time::Duration;

    use crate::core::ids::RowNumber;
    use crate::core::moment::Moment;
    use crate::core::shell::commands::record::{Here, Position};

    const HERE: Here = Here {
        position: Position { row: RowNumber(7), col: 2 },
        top: RowNumber(0),
        now: Moment::from_boot(Duration::from_secs(1)),
        mark: Watermark(9),
    };

    /// A shell that was given commands.
    struct Given {
        shell: MarkedShell,
        written: WrittenCommands,
    }

    impl Given {
        fn submit(&mut self, text: &str, ends_by: EndsBy) {
            let submission =
                Submission { text, typed: text, by: None, ends_by, prompt: "$ ", echoed: true };
            let commands = Arc::make_mut(&mut self.shell.commands);
            commands.submit(submission, &HERE);
        }

        fn finish(&mut self) {
            let commands = Arc::make_mut(&mut self.shell.commands);
            commands.finish_sent(&HERE, Evidence::Kernel, true);
        }

        /// Writes what changed, which is to be the same as all that there is.
        fn check(&mut self) {
            let none = Recordings::new(0);
            let changed = self.written.write(&self.shell, &none, Vec::new()).unwrap();
            let all = WrittenCommands::default().write(&self.shell, &none, Vec::new()).unwrap();
            assert_eq!(changed, all);
        }
    }

    fn given() -> Given {
        Given { shell: MarkedShell::default(), written: WrittenCommands::default() }
    }

    #[test]
    fn what_changed_is_written_as_if_all_were_written_anew() {
        let mut given = given();
        given.check();
        for number in 0..2 * Commands::KEPT_MAX {
            given.submit(&format!("echo {number}"), EndsBy::Kernel);
            if number % 3 != 0 {
                given.check();
            }
            given.finish();
            if number % 5 != 0 {
                given.check();
            }
        }
        given.shell.commands = Arc::default();
        given.check();
    }

    #[test]
    fn a_command_that_goes_on_below_others_that_end_is_written_as_well() {
        let mut given = given();
        given.submit("before", EndsBy::Kernel);
        given.finish();
        given.submit("outer", EndsBy::Kernel);
        given.check();
        for number in 0..2 * Commands::KEPT_MAX {
            given.submit(&format!("inner {number}"), EndsBy::Prompt);
            if number % 3 != 0 {
                given.check();
            }
            given.finish();
            if number % 5 != 0 {
                given.check();
            }
        }
        let oldest = given.shell.commands.iter().next().unwrap();
        assert_eq!((&*oldest.text, oldest.finish), ("outer", None));
        // The one that they were a part of ends last.
        given.finish();
        given.check();
        assert!(given.shell.commands.running().is_none());
        given.submit("after", EndsBy::Kernel);
        given.check();
    }
}
