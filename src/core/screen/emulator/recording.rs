//! Records what each command that runs prints.

use std::sync::Arc;

use crate::core::frame::Printed;
use crate::core::screen::emulator::Emulator;
use crate::core::screen::recorder::{CursorPlace, Recorder};
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::{CommandId, CommandRecord, Position};

/// Where in the last line of an output something of a shell follows.
fn shells_part_in(line: &str) -> Option<usize> {
    our_trace_in(line).or_else(|| missing_line_end_in(line))
}

/// Where fish says that the line before has no end. It fills the row with blanks, and writes its prompt over them.
fn missing_line_end_in(line: &str) -> Option<usize> {
    let text = line.trim_end_matches(' ');
    text.strip_suffix('⏎').filter(|_| text.len() < line.len()).map(str::len)
}

/// Whether this begins as what our bash script has in `PROMPT_COMMAND`.
fn is_hook(text: &str) -> bool {
    ["__termgate_first${", "__termgate_again${"].iter().any(|name| text.starts_with(name))
}

/// Where in this line a shell that traces (`set -x`) or shows (`set -v`) what it runs tells of our scripts. It is not
/// the beginning where the output before has no line end.
fn our_trace_in(line: &str) -> Option<usize> {
    const SIGNS_MAX: usize = 2;
    let code = line.find(r"printf '\033]133;D;%s;nonce=");
    let at = line.find("__termgate_").or(code)?;
    let before = line[..at].trim_end_matches([' ', '"']);
    let signs = before.len() - before.trim_end_matches('+').len();
    match signs {
        0 if line[..at].ends_with('"') && is_hook(&line[at..]) => Some(at - 1),
        0 => code.filter(|at| !line[..*at].ends_with('=')),
        _ if signs == before.len() => Some(0),
        _ => Some(before.len() - signs.min(SIGNS_MAX)),
    }
}

/// The recorders of the commands that run: usually one, and more where a command runs inside another.
#[derive(Clone, Debug)]
pub(crate) struct Recordings {
    pub(crate) list: Vec<CommandRecording>,
    /// A command ended since the last frame.
    ended: bool,
    /// How many bytes of output are kept for all commands together.
    bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandRecording {
    pub(crate) id: CommandId,
    /// Where the output began; a shell may mark that later than it was assumed.
    pub(crate) from: Position,
    pub(crate) recorder: Recorder,
    /// What it had printed when a shell told that it ended. A shell that reads several lines tells so after each.
    pub(crate) ended: Option<Output>,
    /// What it had printed when a shell told that its sign for a missing line end follows.
    pub(crate) before_sign: Option<Output>,
}

impl Recordings {
    /// Which part of a history's bytes the output of commands may take besides.
    const PART_OF_HISTORY: usize = 4;

    pub(crate) fn new(history_bytes: usize) -> Self {
        let bytes_max = history_bytes / Self::PART_OF_HISTORY;
        Self { list: Vec::new(), ended: false, bytes_max }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// How many bytes are kept of one command.
    pub(crate) fn command_bytes_max(&self) -> usize {
        self.bytes_max / 2
    }

    /// Gives an operation of the parser to all recorders.
    #[inline]
    pub(super) fn each(&mut self, operation: impl Fn(&mut Recorder)) {
        for recording in &mut self.list {
            recording.recorder.on(&operation);
        }
    }

    /// Whether what [`Self::printed`] tells changed since this was asked last.
    pub(crate) fn take_change(&mut self) -> bool {
        let mut changed = std::mem::take(&mut self.ended);
        for recording in &mut self.list {
            changed |= recording.recorder.take_change();
        }
        changed
    }

    /// Notes that all that a command has printed may have come.
    pub(crate) fn note_end(&mut self, id: CommandId) {
        for recording in self.list.iter_mut().filter(|it| it.id == id) {
            recording.ended = Some(recording.recorder.whole_output());
        }
    }

    /// Notes that a shell may be about to write its sign for a missing line end.
    pub(crate) fn note_sign(&mut self) {
        for recording in &mut self.list {
            recording.before_sign = Some(recording.recorder.whole_output());
        }
    }

    /// Whether a command writes to places all over the screen.
    pub(crate) fn painted(&self) -> bool {
        self.list.iter().any(|recording| recording.recorder.painted())
    }

    pub(crate) fn printed(&self) -> Arc<Printed> {
        let list = self.list.iter();
        Arc::new(list.map(|it| (it.id, Arc::new(it.recorder.output()))).collect())
    }

    /// Whether it already records this command from where it began.
    fn knows(&self, record: &CommandRecord) -> bool {
        self.list.iter().any(|it| (it.id, it.from) == (record.id, record.from))
    }
}

impl CommandRecording {
    /// All that the command printed.
    fn output(self) -> Output {
        let mut whole = self.recorder.whole_output();
        // Shells that trace what they run trace our commands as well.
        whole.drop_end(shells_part_in);
        // What follows the sign on other lines is no sign's.
        let before_sign = self.before_sign.filter(|it| it.lines_ended() == whole.lines_ended());
        self.ended.or(before_sign).unwrap_or(whole)
    }
}

impl Emulator {
    /// Records the commands that run now, and no others.
    pub(crate) fn follow_commands(&mut self) {
        let cursor = self.position();
        let mut commands = Arc::clone(&self.shell.commands);
        for mut recording in std::mem::take(&mut self.recordings.list) {
            let Some(record) = commands.get(recording.id).cloned() else { continue };
            let Some(end) = record.to else {
                if record.from == recording.from {
                    self.recordings.list.push(recording);
                }
                continue;
            };
            let is_prompt = end.row == cursor.row && end.col < cursor.col;
            recording.recorder.end(if is_prompt { cursor.col - end.col } else { 0 });
            if record.finish.is_none() {
                self.recordings.list.push(recording);
                continue;
            }
            let mut output = recording.output();
            output.drop_end(shells_part_in);
            let commands: &mut Commands = Arc::make_mut(&mut commands);
            commands.keep_output(record.id, output, self.recordings.bytes_max);
            self.recordings.ended = true;
        }
        let bytes_max = self.recordings.command_bytes_max();
        let (size, place) = (self.size(), self.place());
        for record in commands.iter().filter(|record| record.finish.is_none()) {
            if !self.recordings.knows(record) {
                let (id, from) = (record.id, record.from);
                let sent = commands.sent().filter(|sent| sent.id == id && record.echo_lines > 0);
                let line = sent.and_then(|sent| sent.typed.lines().last()).unwrap_or_default();
                let recorder = Recorder::begin(size, place, record.echo_lines, bytes_max)
                    .with_last_line_typed(line);
                self.recordings.list.push(CommandRecording {
                    id,
                    from,
                    recorder,
                    ended: None,
                    before_sign: None,
                });
            }
        }
        self.shell.commands = commands;
    }

    /// Records on, behind what was printed before the emulator failed.
    pub(crate) fn resume_recordings(&mut self, printed: &Printed) {
        self.follow_commands();
        for recording in &mut self.recordings.list {
            if let Some((_, output)) = printed.iter().find(|(id, _)| *id == recording.id) {
                recording.recorder.put_before(Output::clone(output));
            }
        }
    }

    pub(super) fn resize_recordings(&mut self) {
        let (size, place) = (self.size(), self.place());
        for recording in &mut self.recordings.list {
            recording.recorder.resize(size, place);
        }
    }

    fn place(&self) -> CursorPlace {
        let cursor = &self.term.grid().cursor;
        let (row, col) = (cursor.point.line.0 as u16, cursor.point.column.0 as u16);
        CursorPlace { row, col, wraps: cursor.input_needs_wrap }
    }
}

#[cfg(test)]
mod tests {
    use super::shells_part_in;

    #[track_caller]
    fn check(line: &str, output: Option<&str>) {
        assert_eq!(shells_part_in(line).map(|at| &line[..at]), output, "{line:?}");
    }

    #[test]
    fn what_a_shell_traces_of_our_scripts_is_no_output() {
        check("++ __termgate_firstx last", Some(""));
        check("abc++ __termgate_firstx last", Some("abc"));
        check("C++++ __termgate_firstx last", Some("C++"));
        check("+__termgate_first:1> local '__termgate_status=0'", Some(""));
        check("abc\"__termgate_first${-//[!x]}\" \"$_\"", Some("abc"));
        check(r#"abcprintf '\033]133;D;%s;nonce=00ff\007' "$?" >&2"#, Some("abc"));
        check(r"+ printf '\033]133;D;%s;nonce=00ff\007' 0", Some(""));
        check("a word such as __termgate_first is output", None);
        check("C++", None);
    }

    #[test]
    fn what_fish_writes_where_a_line_has_no_end_is_no_output() {
        check("abc⏎       ", Some("abc"));
        check("abc ⏎", None);
        check("abc", None);
    }
}
