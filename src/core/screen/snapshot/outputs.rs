//! The stored form of what commands printed: the newest of it, and the recorders of those that run.

use serde::{Deserialize, Serialize};

use crate::core::frame::kept::NUMBER_MAX;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::emulator::recording::{CommandRecording, Recordings};
use crate::core::screen::recorder::StoredRecorder;
use crate::core::screen::snapshot::cells::Damage;
use crate::core::screen::snapshot::numbers::{KeptPosition, kept_position, position};
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::CommandId;

/// How many bytes of output a snapshot holds. Each one is written whole, so older output is left out.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// The output of all commands.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptOutputs<'a> {
    #[serde(borrow)]
    ended: Vec<KeptOutput<'a>>,
    #[serde(borrow)]
    running: Vec<KeptRecording<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptOutput<'a> {
    id: u64,
    /// How many lines were trimmed before the text.
    trimmed: u64,
    #[serde(borrow)]
    text: Vec<&'a str>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptRecording<'a> {
    from: KeptPosition,
    #[serde(borrow)]
    lines: KeptOutput<'a>,
    recorder: StoredRecorder,
}

impl<'a> KeptOutputs<'a> {
    pub(super) fn write(
        commands: &Commands,
        recordings: &Recordings,
        bytes: Vec<u8>,
    ) -> postcard::Result<Vec<u8>> {
        let mut room = OUTPUT_BYTES_MAX;
        let mut within = |output: &Output| {
            let mut output = output.clone();
            output.trim(room);
            room -= output.bytes();
            output
        };
        let lines: Vec<_> = recordings.list.iter().map(|it| within(it.recorder.lines())).collect();
        let ended = commands.iter().rev().filter(|record| record.output.lines_total() > 0);
        let ended: Vec<_> = ended.map(|record| (record.id, within(&record.output))).collect();
        let running = recordings.list.iter().zip(&lines).map(|(recording, lines)| KeptRecording {
            from: kept_position(recording.from),
            lines: KeptOutput::of(recording.id, lines),
            recorder: StoredRecorder::of(&recording.recorder),
        });
        let kept = KeptOutputs {
            ended: ended.iter().map(|(id, output)| KeptOutput::of(*id, output)).collect(),
            running: running.collect(),
        };
        postcard::to_extend(&kept, bytes)
    }

    pub(super) fn put(
        self,
        commands: &mut Commands,
        emulator: &mut Emulator,
    ) -> Result<(), Damage> {
        let size = emulator.size();
        let recordings = &mut emulator.recordings;
        for kept in &self.ended {
            commands.keep_output(kept.id(), kept.output(), recordings.bytes_max());
        }
        for KeptRecording { from, lines, recorder } in self.running {
            let (id, from) = (lines.id(), position(from)?);
            let recorder = recorder.recorder(size, lines.output(), recordings.command_bytes_max());
            let recorder = recorder.ok_or("a command prints on no such screen")?;
            if commands.is_open(id) {
                recordings.list.push(CommandRecording {
                    id,
                    from,
                    recorder,
                    ended: None,
                    before_sign: None,
                });
            }
        }
        Ok(())
    }
}

impl<'a> KeptOutput<'a> {
    fn of(id: CommandId, output: &'a Output) -> Self {
        let text = output.pieces().collect();
        Self { id: id.0, trimmed: output.lines_trimmed(), text }
    }

    fn id(&self) -> CommandId {
        CommandId(self.id)
    }

    fn output(&self) -> Output {
        Output::restored(self.trimmed.min(NUMBER_MAX), self.text.iter().copied())
    }
}
