//! Following a command until it ends, asks for something, or the time is over.
//!
//! It watches the session's frames and changes nothing. What a command printed is read from the
//! rows it lies on.

use std::sync::Arc;
use std::time::Duration;

use crate::core::frame::Frame;
use crate::core::ids::{Epoch, Watermark};
use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, ShellPhase, asks, asks_for_more, prompts};
use crate::core::shell::commands::output::{Output, before_cursor};
use crate::core::shell::commands::record::{CommandId, CommandRecord, Position};
use crate::core::shell::commands::{ENTER_SHOWN, EndsBy, SentCommand};
use crate::core::wait::logical::LogicalLine;
use crate::session::clock::Clock;
use crate::session::drain::Waiting;
use crate::session::handle::Session;
use crate::surface::answer::budget::{cut, room_left};
use crate::surface::answer::command::{Ends, Excerpt, output_uri};
use crate::surface::terminal::waited::{LeaseEnd, lease_end};
use crate::surface::turns::Share;
use crate::wire::activity::{ActivityWire, ActivityWord, EvidenceWord};
use crate::wire::command::{CommandStatus, Followed, RunStatus};
use crate::wire::session::GapWire;
use crate::wire::word;

/// How many bytes are told of what a command asks.
const ASKS_BYTES_MAX: usize = 1_000;

/// How long a full-screen program has to stand still until it is taken to wait for keys.
const FULL_SCREEN_QUIET: Duration = Duration::from_millis(200);

/// How long a shell that shows another prompt, and one that shows none, has to be silent until it is
/// taken to wait for the rest of a command.
const PROMPTED_QUIET: Duration = Duration::from_millis(200);
const UNPROMPTED_QUIET: Duration = Duration::from_secs(2);

/// A command to be followed.
#[derive(Debug)]
pub struct Following {
    pub session: Session,
    pub command: CommandId,
    /// The watermark before it was sent.
    pub since: Watermark,
    /// The holding whose end ends the following.
    pub epoch: Option<Epoch>,
    pub until: Moment,
    pub started: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished,
    NeedsInput,
    Lease(LeaseEnd),
    Timeout,
    Gone,
    DaemonLeft,
}

impl Following {
    /// Follows it to its end; much output is read in a turn of this share.
    pub async fn end(
        self,
        clock: &Clock,
        waiting: &Waiting,
        max_lines: usize,
        share: &Share,
    ) -> Followed {
        let mut frames = self.session.frames();
        let _attending = self.session.attend();
        // What the terminal is doing can be known before what was written comes.
        let mut seen = (Watermark(0), Moment::default());
        let (frame, end) = loop {
            let frame = Arc::clone(&frames.borrow_and_update());
            let now = clock.now();
            if seen.0 != frame.activity.changed {
                seen = (frame.activity.changed, now);
            }
            let quiet_since = frame.screen_changed_at.max(seen.1);
            if let Some(end) = self.judge(&frame, now.since(quiet_since)) {
                break (frame, end);
            }
            if now >= self.until {
                break (frame, End::Timeout);
            }
            let quiet = [PROMPTED_QUIET, FULL_SCREEN_QUIET, UNPROMPTED_QUIET];
            let quiet = quiet.map(|quiet| quiet_since + quiet).into_iter();
            let wake = quiet.filter(|at| *at > now).fold(self.until, Ord::min);
            tokio::select! {
                changed = frames.changed() => if changed.is_err() {
                    break (frame, End::Gone);
                },
                () = clock.sleep_until(wake) => {}
                () = waiting.told() => break (frame, End::DaemonLeft),
            }
        };
        let elapsed = clock.now().since(self.started);
        let record = frame.commands.value.get(self.command);
        let cells = record.map_or(0, |record| Output::cells(record, &frame));
        share.off_worker(cells, move || self.followed(&frame, end, max_lines, elapsed)).await
    }

    fn judge(&self, frame: &Frame, quiet: Duration) -> Option<End> {
        let Some(record) = frame.commands.value.get(self.command) else { return Some(End::Gone) };
        if record.finish.is_some() {
            return Some(End::Finished);
        }
        if self.wants_input(frame, quiet) {
            return Some(End::NeedsInput);
        }
        self.epoch.and_then(|epoch| lease_end(frame, epoch)).map(End::Lease)
    }

    /// Whether the command waits for somebody to type, and has not only yet to begin.
    fn wants_input(&self, frame: &Frame, quiet: Duration) -> bool {
        let new = frame.activity.changed > self.since;
        match frame.activity.value.state {
            ActivityState::SecretPrompt => new,
            // What comes while it still paints itself would be lost on it.
            ActivityState::FullScreen => new && quiet >= FULL_SCREEN_QUIET,
            ActivityState::NeedsInput => {
                new && frame.commands.value.sent().is_none_or(|sent| self.asks(frame, sent))
            }
            ActivityState::Prompt => {
                let asks = frame.commands.value.sent().is_some_and(|sent| match sent.ends_by {
                    EndsBy::Marks => unfinished(frame, quiet),
                    EndsBy::Kernel => {
                        new && asks_for_more(&before_cursor(frame)) || is_unended(frame, sent)
                    }
                    EndsBy::Prompt => false,
                });
                asks && quiet >= PROMPTED_QUIET
            }
            ActivityState::Running | ActivityState::Exited => false,
        }
    }

    /// Whether what a command was sent to asks for more than the next command: whoever takes those by
    /// a prompt waits for input before and after each.
    fn asks(&self, frame: &Frame, sent: &SentCommand) -> bool {
        let record = frame.commands.value.get(self.command);
        let from = record.and_then(|record| record.spans.first()).map(|span| span.from.row);
        let before = before_cursor(frame);
        let ready = before.ends_with(&*sent.prompt) && !sent.prompt.is_empty() || prompts(&before);
        sent.ends_by != EndsBy::Prompt || from != Some(frame.cursor.value.row) && !ready
    }

    fn followed(&self, frame: &Frame, end: End, max_lines: usize, elapsed: Duration) -> Followed {
        let record = frame.commands.value.get(self.command);
        let activity = ActivityWire::from(&*frame.activity.value);
        let finish = record.and_then(|record| record.finish);
        let (status, evidence) = match (end, finish) {
            (End::Finished, Some(finish)) => (
                record.map_or(RunStatus::Completed, |record| ended(record)),
                finish.evidence.into(),
            ),
            (End::Finished | End::Gone, _) => (RunStatus::Exited, EvidenceWord::Exit),
            (End::NeedsInput, _) => (RunStatus::NeedsInput, activity.evidence),
            (End::Lease(LeaseEnd::Suspended), _) => (RunStatus::LeaseSuspended, activity.evidence),
            (End::Lease(LeaseEnd::Lost), _) => (RunStatus::LeaseLost, activity.evidence),
            (End::Timeout, _) => (RunStatus::Timeout, activity.evidence),
            (End::DaemonLeft, _) => (RunStatus::DaemonLeft, activity.evidence),
        };
        let output = record.map(|record| Output::of(record, frame)).unwrap_or_default();
        let asks = (end == End::NeedsInput).then(|| before_cursor(frame));
        let asks = asks.filter(|asks| !asks.trim().is_empty());
        let followed = Followed {
            session: self.session.id().to_string(),
            command_id: self.command.0,
            status,
            exit_code: finish.and_then(|finish| finish.code),
            evidence,
            output: String::new(),
            lines_total: output.lines.len(),
            lines_left_out: 0,
            rows_trimmed: output.rows_trimmed,
            rest: None,
            lost_output: record
                .map(|record| GapWire::in_output(&self.session, record, frame))
                .unwrap_or_default(),
            prompt: asks.map(|asks| cut(&asks, ASKS_BYTES_MAX)),
            full_screen: record.is_some_and(|record: &Arc<CommandRecord>| record.full_screen),
            activity,
            watermark: frame.watermark.0,
            elapsed_ms: elapsed.as_millis() as u64,
            warning: None,
        };
        let uri = output_uri(self.session.id(), self.command);
        followed.with_output(&output.lines, max_lines, &uri)
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

/// What is said of rows that went by.
pub fn trimmed(rows: u64) -> String {
    format!("[the first {rows} rows of its output are no longer kept]")
}

/// Whether a shell that marks its commands reads on below the line that it was given, which is not
/// all of a command.
fn unfinished(frame: &Frame, quiet: Duration) -> bool {
    let commands = &frame.commands.value;
    if commands.phase() != ShellPhase::Reading || frame.activity.value.canonical {
        return false;
    }
    let cursor = Position { row: frame.cursor.value.row, col: frame.cursor.value.col };
    let before = before_cursor(frame);
    // It gave the line back, to be looked at before it runs.
    let given_back = commands.prompted_at().is_some_and(|at| at != cursor);
    let below = commands.reading_at().is_some_and(|at| cursor.row > at.row);
    // fish shows no prompt, and writes the end of a line well before the command begins.
    let unprompted = before.trim().is_empty() && quiet >= UNPROMPTED_QUIET;
    given_back || below && (unprompted || prompts(&before) || asks(&before))
}

/// Whether the line of a command stands there with an Enter that did not end it.
fn is_unended(frame: &Frame, sent: &SentCommand) -> bool {
    let line = LogicalLine::around(frame, frame.cursor.value.row);
    line.is_some_and(|line| sent.is_unended_in(line.text()))
}

impl Followed {
    /// Fills in as much of the output as there is room for, which is told to programs and to models.
    fn with_output(self, lines: &[String], max_lines: usize, uri: &str) -> Self {
        let wanted = Ends { head: max_lines.div_ceil(2), tail: max_lines / 2 };
        let room = room_left(&self, &self.summary()) / 2;
        let excerpt = Excerpt::of(lines, wanted, room, uri);
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
        let head = format!(
            "[{}{code}{unknown}, by {}, {} ms, command {}, {} lines, watermark {}]",
            word(&self.status),
            word(&self.evidence),
            self.elapsed_ms,
            self.command_id,
            self.lines_total,
            self.watermark
        );
        let mut text = head;
        let trimmed = (self.rows_trimmed > 0).then(|| trimmed(self.rows_trimmed));
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
            (RunStatus::NeedsInput, ActivityWord::FullScreen) => Some(
                "A full-screen program has the terminal: read_screen and send_keys.".to_owned(),
            ),
            (RunStatus::NeedsInput, ActivityWord::Prompt) if asks.ends_with(ENTER_SHOWN) => Some(
                "Enter ends no line in this terminal (`stty raw` or `-icrnl`), so the shell has not \
                 read it: send_keys C-j ends it; `stty sane` as send_text without enter, then C-j, \
                 mends the terminal."
                    .to_owned(),
            ),
            (RunStatus::NeedsInput, _) => Some(format!(
                "It waits for input ({asks}): answer with send_text, or send_keys C-c."
            )),
            (RunStatus::Timeout, _) => Some(
                "It still runs: wait_for command_done, read_commands, or send_keys C-c.".to_owned(),
            ),
            (RunStatus::DaemonLeft, _) => Some(
                "It goes on, and the next daemon knows of it: wait_for command_done with this \
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
