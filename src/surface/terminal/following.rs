//! Following a command until it ends, asks for something, or the time is over.
//!
//! It watches the session's frames and changes nothing. What a command printed is read from the
//! rows it lies on.

use std::sync::Arc;
use std::time::Duration;

use crate::core::counted::counted;
use crate::core::frame::{Exit, Frame};
use crate::core::human_duration::measured;
use crate::core::ids::Epoch;
use crate::core::moment::Moment;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::session::clock::Clock;
use crate::session::drain::WaitingCall;
use crate::session::handle::Session;
use crate::session::pty::signal::name_of_signal;
use crate::surface::answer::budget::{cut, room_left};
use crate::surface::answer::command::output_uri;
use crate::surface::answer::excerpt::{Excerpt, ExcerptLines};
use crate::surface::argument::within;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::waited::{LeaseEnd, lease_end};
use crate::surface::turns::Share;
use crate::wire::activity::{ActivityWire, ActivityWord, EvidenceWord};
use crate::wire::command::{CommandStatus, Followed, RunStatus};
use crate::wire::session::GapWire;
use crate::wire::untrusted::Untrusted;
use crate::wire::word;

/// How many bytes are told of what a command asks.
const ASKS_BYTES_MAX: usize = 1_000;

/// A command to be followed.
#[derive(Debug)]
pub struct Following {
    pub session: Session,
    pub command: CommandId,
    /// The holding whose end ends the following.
    pub epoch: Option<Epoch>,
    pub until: Moment,
    pub started: Moment,
}

impl Following {
    /// Follows it to its end; much output is read in a turn of this share.
    pub async fn end(
        self,
        clock: &Clock,
        waiting: &WaitingCall,
        wanted: ResultLines,
        share: &Share,
    ) -> Followed {
        let mut frames = self.session.frames();
        let _attending = self.session.attend();
        let (frame, status) = loop {
            let frame = Arc::clone(&frames.borrow_and_update());
            if let Some(status) = self.judge(&frame) {
                break (frame, status);
            }
            if clock.now() >= self.until {
                break (frame, RunStatus::Timeout);
            }
            tokio::select! {
                changed = frames.changed() => if changed.is_err() {
                    break (frame, RunStatus::Exited);
                },
                () = clock.sleep_until(self.until) => {}
                () = waiting.told() => break (frame, RunStatus::DaemonLeft),
            }
        };
        let elapsed = clock.now().since(self.started);
        let record = frame.commands.value.get(self.command);
        let bytes = record.map_or(0, |record| frame.output(record).bytes());
        share.off_worker(bytes, move || self.followed(&frame, status, wanted, elapsed)).await
    }

    fn judge(&self, frame: &Frame) -> Option<RunStatus> {
        let Some(record) = frame.commands.value.get(self.command) else {
            return Some(RunStatus::Exited);
        };
        if record.finish.is_some() {
            return Some(ended(record));
        }
        if frame.shell.waits {
            return Some(RunStatus::NeedsInput);
        }
        self.epoch.and_then(|epoch| lease_end(frame, epoch)).map(|end| match end {
            LeaseEnd::Suspended => RunStatus::LeaseSuspended,
            LeaseEnd::Lost => RunStatus::LeaseLost,
        })
    }

    fn followed(
        &self,
        frame: &Frame,
        status: RunStatus,
        wanted: ResultLines,
        elapsed: Duration,
    ) -> Followed {
        let record = frame.commands.value.get(self.command);
        let activity = ActivityWire::from(&*frame.activity.value);
        let finish = record.and_then(|record| record.finish);
        let evidence = match finish {
            Some(finish) => finish.evidence.into(),
            None if status == RunStatus::Exited => EvidenceWord::Exit,
            None => activity.evidence,
        };
        let output = record.map(|record| frame.output(record)).unwrap_or_default();
        let asks = (status == RunStatus::NeedsInput).then(|| frame.before_cursor());
        let asks = asks.filter(|asks| !asks.trim().is_empty());
        let shows_screen =
            status == RunStatus::NeedsInput && activity.state == ActivityWord::FullScreen;
        let followed = Followed {
            untrusted: Untrusted,
            session: self.session.id().to_string(),
            command_id: self.command.0,
            status,
            exit_code: finish.and_then(|finish| finish.code),
            evidence,
            output: String::new(),
            lines_total: output.lines_total(),
            lines_left_out: 0,
            lines_trimmed: output.lines_trimmed(),
            rest: None,
            lost_output: record
                .map(|record| GapWire::in_output(&self.session, record, frame))
                .unwrap_or_default(),
            prompt: asks.map(|asks| cut(&asks, ASKS_BYTES_MAX)),
            signal: frame.exit.value.and_then(signal_of).filter(|_| status == RunStatus::Exited),
            screen: shows_screen.then(|| screen_of(frame)),
            full_screen: record.is_some_and(|record: &Arc<CommandRecord>| record.full_screen),
            activity,
            watermark: frame.watermark.0,
            elapsed_ms: elapsed.as_millis() as u64,
            warning: None,
        };
        let uri = output_uri(self.session.id(), self.command);
        followed.with_output(&output, wanted, &uri)
    }
}

/// How many of the first and of the last rows of a full screen are told, and how many bytes of each.
const SCREEN_ROWS: [usize; 2] = [6, 3];
const SCREEN_ROW_BYTES: usize = 120;

/// The first rows with text of a full screen, and the last.
fn screen_of(frame: &Frame) -> String {
    let rows = frame.lines.iter().map(|line| line.value.text.trim_end());
    let rows: Vec<&str> = rows.filter(|row| !row.is_empty()).collect();
    let [first, last] = SCREEN_ROWS;
    let (first, rest) = rows.split_at(rows.len().min(first));
    let shown = first.iter().chain(&rest[rest.len().saturating_sub(last)..]);
    shown.map(|row| cut(row, SCREEN_ROW_BYTES)).collect::<Vec<_>>().join("\n")
}

/// The name of the signal that ended the session's program.
fn signal_of(exit: Exit) -> Option<String> {
    match exit {
        Exit::Signal(number) => {
            let name = name_of_signal(number).map(str::to_owned);
            Some(name.unwrap_or_else(|| format!("signal {number}")))
        }
        Exit::Code(_) | Exit::Unknown | Exit::Lost => None,
    }
}

/// The status of a command that has ended.
fn ended(record: &CommandRecord) -> RunStatus {
    match CommandStatus::from(record) {
        CommandStatus::Running | CommandStatus::Completed => RunStatus::Completed,
        CommandStatus::NotRun => RunStatus::NotRun,
        CommandStatus::Exited => RunStatus::Exited,
    }
}

/// What is said of lines that went by.
pub fn trimmed(lines: u64) -> String {
    match lines {
        1 => "[the first line of its output is no longer kept]".to_owned(),
        lines => format!("[the first {lines} lines of its output are no longer kept]"),
    }
}

/// How much of an output a result tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLines {
    lines: usize,
    bytes: usize,
}

impl ResultLines {
    /// How many lines are told when nobody says, and their bytes as JSON: about 3 KB with what stands around them.
    const DEFAULT: Self = Self { lines: 40, bytes: 2_600 };
    /// How many lines one result holds at most.
    const LINES_MAX: u64 = 2_000;

    /// As many lines as a caller wants, or the default.
    pub fn wanted(max_lines: Option<u64>) -> Result<Self, SurfaceError> {
        let Some(lines) = max_lines else { return Ok(Self::DEFAULT) };
        let lines = within("max_lines", lines, 1..=Self::LINES_MAX)? as usize;
        Ok(Self { lines, bytes: usize::MAX })
    }
}

impl Followed {
    /// Fills in as much of the output as there is room for, which is told to programs and to models.
    fn with_output(self, output: &Output, wanted: ResultLines, uri: &str) -> Self {
        let room = (room_left(&self, &self.summary()) / 2).min(wanted.bytes);
        let lines = ExcerptLines::of_result(wanted.lines);
        // Whoever says how many lines are wanted gets them as they are.
        let lines = ExcerptLines { equal_once: wanted == ResultLines::DEFAULT, ..lines };
        let excerpt = Excerpt::of(output, lines, room, uri);
        Self {
            output: excerpt.text,
            lines_left_out: excerpt.lines_left_out,
            rest: excerpt.rest,
            ..self
        }
    }

    /// The outcome for a model: how it ended, what it printed, and what to do next.
    pub fn summary(&self) -> String {
        let code = self.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
        let unknown = if self.status == RunStatus::Completed && self.exit_code.is_none() {
            ", exit code unknown"
        } else {
            ""
        };
        let signal = self.signal.as_ref().map_or_else(String::new, |name| format!(", by {name}"));
        let head = format!(
            "[{}{code}{unknown}{signal}, known by {}, {}, command {}, {}, watermark {}]",
            word(&self.status),
            self.evidence.plain(),
            measured(self.elapsed_ms),
            self.command_id,
            counted(self.lines_total, "line"),
            self.watermark
        );
        let mut text = head;
        let trimmed = (self.lines_trimmed > 0).then(|| trimmed(self.lines_trimmed));
        let warning = self.warning.as_ref().map(|warning| format!("warning: {warning}"));
        for part in [self.advice(), warning, trimmed].into_iter().flatten() {
            text.push('\n');
            text.push_str(&part);
        }
        text.push_str(&GapWire::summary(&self.lost_output));
        if !self.output.is_empty() {
            text.push('\n');
            text.push_str(&self.output);
        }
        text
    }

    fn advice(&self) -> Option<String> {
        let asks = self.prompt.as_deref().unwrap_or_default().trim();
        match (self.status, self.activity.state) {
            (RunStatus::NeedsInput, ActivityWord::SecretPrompt) => Some(format!(
                "It asks for a secret ({asks}): let the person type it with `termgate attach`."
            )),
            (RunStatus::NeedsInput, ActivityWord::FullScreen) => Some(format!(
                "A full-screen program has the terminal: read_screen and send_keys. It shows:\n{}",
                self.screen.as_deref().unwrap_or_default()
            )),
            (RunStatus::NeedsInput, _) => {
                let asks = if asks.is_empty() { String::new() } else { format!(" ({asks})") };
                Some(format!("It waits for input{asks}: answer with send_text, or send_keys C-c."))
            }
            (RunStatus::Timeout, _) => Some(
                "It still runs: wait_for command_done, read_commands, or send_keys C-c.".to_owned(),
            ),
            (RunStatus::DaemonLeft, _) => Some(
                "It keeps running under the next daemon: wait_for command_done with this \
                 watermark as since, then read_commands."
                    .to_owned(),
            ),
            (RunStatus::NotRun, _) => Some("The shell could not read it as a command.".to_owned()),
            (RunStatus::LeaseLost, _) => Some(
                "Your lease ended; the command may still run: look with read_commands.".to_owned(),
            ),
            (RunStatus::LeaseSuspended, _) => Some(
                "A person types and your lease waits: it comes back by itself. The command may still \
                 run: wait_for command_done."
                    .to_owned(),
            ),
            (RunStatus::Completed | RunStatus::Exited, _) => None,
        }
    }
}
