//! Commands that are sent as such: noted when they go out, ended when their terminal is ready again.
//!
//! Where a shell marks what it does, the screen knows by itself; here is what the kernel and the
//! look of the screen tell of all others.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::core::caller::Caller;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::unit::Piece;
use crate::core::keys::Key;
use crate::core::keys::encode::encode_keys;
use crate::core::shell::activity::{
    self, ActivityState, KernelView, ShellPhase, asks_for_more, is_question, prompts, reads_on,
};
use crate::core::shell::commands::record::{CommandId, Position};
use crate::core::shell::commands::{EndsBy, SentCommand, Submission, output};
use crate::session::actor::Actor;
use crate::session::command::CommandOrder;
use crate::session::error::SessionError;
use crate::session::pty::{Evidence, Pty};

/// What bash asks when there are many completions, and shows below a part of them.
const ASKED_BY_READLINE: [&str; 2] = ["possibilities? (y or n)", "--More--"];

/// A shell that searches in a thread, and shows what it found also when nobody searches any more: it is
/// given no key before ours that changes what is searched. Nothing there waits for a second key for long.
const SEARCHES_LATE: &str = "fish";

/// How many rows of text that stands on the line already are cleared.
const CLEARED_ROWS_MAX: u64 = 64;

/// How long an interpreter that shows another prompt than before has to be silent until it is
/// believed: much that is printed ends as prompts do.
const OTHER_PROMPT_QUIET: Duration = Duration::from_secs(1);

impl<P: Pty> Actor<P> {
    /// Refuses a command when what it is for is not ready for it any more.
    ///
    /// Whoever comes before the shell has read what was typed before finds that in the next frame, and
    /// in another when it has.
    pub(super) fn check_ready(&mut self, order: &CommandOrder) -> Result<(), SessionError> {
        if order.ends_by == EndsBy::Marks && self.looks.typed_ahead() {
            self.screen.set_typed_ahead(true);
            self.pace.dirty = true;
        }
        let ready = self.screen.commands().ready_for(order.ends_by);
        if ready { Ok(()) } else { Err(SessionError::CommandRunning) }
    }

    /// What clears the line that a command is typed on: of what somebody has left there, or a shell
    /// could not read and shows again, of a key that waits for its second and shows nothing, and of a mode
    /// in which the line editor takes no command.
    pub(super) fn clearing(&mut self, order: &CommandOrder) -> Vec<Piece> {
        if order.ends_by == EndsBy::Kernel {
            return self.taking_back();
        }
        let cursor = self.screen.cursor();
        let Some(at) =
            self.screen.commands().reading_at().filter(|_| order.ends_by == EndsBy::Marks)
        else {
            return Vec::new();
        };
        let between = self.looks.typed_between();
        if at == cursor && !between {
            return Vec::new();
        }
        let rows = cursor.row.0.saturating_sub(at.row.0).min(CLEARED_ROWS_MAX);
        // One for the text of each line, and one for what parts it from the line before.
        let kills = 2 * rows as usize + 1;
        let mut keys = if between { self.leaving_modes(at) } else { Vec::new() };
        keys.push(Key::LINE_END);
        keys.extend(iter::repeat_n(Key::KILL_LINE, kills));
        encode_keys(&keys, &self.screen.modes())
    }

    /// The keys that leave whatever mode the line editor is in: what is pending may take the first
    /// [`Key::EMPTY_LINE`], the next may only have text taken again, and the last empties the line.
    fn leaving_modes(&mut self, reading_at: Position) -> Vec<Key> {
        if !self.screen.commands().knows_key() {
            return vec![self.giving_up()];
        }
        let foreground = self.looks.seen().and_then(|seen| seen.foreground.as_ref());
        let program = foreground.and_then(|group| group.program.as_deref());
        if program == Some(SEARCHES_LATE) {
            return vec![Key::EMPTY_LINE; 2];
        }
        let mut keys = vec![self.giving_up()];
        if reading_at != self.screen.cursor() {
            // A search of vi knows no key of ours, and ends by this one once it is empty.
            keys.push(Key::BACKSPACE);
        }
        keys.extend([Key::EMPTY_LINE; 3]);
        keys
    }

    /// What takes back the line that the kernel collects for a shell without a line editor; twice, since
    /// a key may wait that takes the next character as it is.
    fn taking_back(&self) -> Vec<Piece> {
        let kill = || self.pty.evidence().ok()?.line_kill;
        let kill = self.looks.half_line().then(kill).flatten();
        kill.map_or_else(Vec::new, |kill| vec![Piece::Key(vec![kill]); 2])
    }

    /// The key that a key which waits for its second takes: what both do together, such as to undo, is
    /// undone by those that follow. It must begin no other keys itself, as C-g does for some people, save
    /// where the line editor asks something and reads no keys.
    fn giving_up(&mut self) -> Key {
        let before = self.screen.before_cursor();
        let asks = ASKED_BY_READLINE.iter().any(|question| before.trim_end().ends_with(question));
        if asks { Key::GIVE_UP } else { Key::KILL_LINE }
    }

    /// Notes that something is about to be typed that is no command. Needs the newest frame.
    pub(super) fn begin_typing(&mut self) {
        let frame = Arc::clone(&self.frames.borrow());
        let at_prompt = frame.activity.value.state == ActivityState::Prompt;
        if at_prompt && frame.commands.value.phase() == ShellPhase::Unmarked {
            self.looks.shell_prompt(&output::prompt(&frame));
        }
        self.looks.on_type_ahead();
    }

    /// Notes that a command goes out now, by a call with this stamp if it may be asked for again, and has
    /// it kept before it does.
    pub(super) fn begin_command(
        &mut self,
        order: &CommandOrder,
        by: &Caller,
        call: Option<WriteStamp>,
    ) -> CommandId {
        let CommandOrder { text, typed, ends_by, prompt, provision, .. } = order;
        let known = (*ends_by == EndsBy::Kernel).then(|| self.looks.shell_prompt(prompt));
        let prompt = known.as_deref().unwrap_or(prompt);
        self.looks.on_command();
        let by = Some(Arc::from(by.name().to_string()));
        // A line editor shows what is typed by itself.
        let hidden = |it: Evidence| it.canonical && !it.echo;
        let echoed = *ends_by != EndsBy::Kernel || !self.pty.evidence().is_ok_and(hidden);
        let submission = Submission { text, typed, by, ends_by: *ends_by, prompt, echoed };
        let id = self.screen.submit(self.clock.now(), submission);
        if let Some(provision) = provision {
            self.luggage.keep(id, provision.clone());
        }
        if let Some(call) = call {
            self.note_call(call, id);
        }
        self.keep_commands();
        id
    }

    /// Ends the command that was sent, once what it was sent to is ready again, and then the one of
    /// which it was a part. Called after each look at the kernel.
    pub(super) fn finish_if_ready(&mut self) {
        if self.is_prompted() {
            self.screen.on_prompted(self.clock.now());
        }
        if self.reads_without_prompt() {
            self.screen.on_reading(self.clock.now());
        }
        while let Some(evidence) = self.ready_again() {
            self.screen.finish_sent(self.clock.now(), evidence);
        }
    }

    /// Whether the shell that marks its commands waits for one though its prompt has no end, since it was
    /// interrupted while it made it, or no beginning either, since what marks it was taken away.
    fn reads_without_prompt(&mut self) -> bool {
        let commands = self.screen.commands();
        let prompts = match commands.phase() {
            ShellPhase::Prompting => self.looks.quiet(),
            // Nothing asks behind the end of the output, so that nobody is to take it for a question.
            ShellPhase::Running => self.looks.settled_since() && commands.output_has_ended(),
            ShellPhase::Reading | ShellPhase::Unmarked => false,
        };
        prompts && !is_question(&self.screen.before_cursor()) && self.shell_rests()
    }

    /// Whether the shell that marks its commands waits behind a prompt that no end came before.
    fn is_prompted(&self) -> bool {
        let edits = |seen: &KernelView| seen.shell_in_front && !seen.canonical;
        self.looks.settled_since()
            && self.screen.commands().prompted_at() == Some(self.screen.cursor())
            && self.looks.seen().is_some_and(edits)
    }

    /// Whether the shell shows that it waits for the rest of a command.
    pub(super) fn reads_on(&mut self, before_cursor: &str) -> bool {
        let (commands, cursor) = (self.screen.commands(), self.screen.cursor());
        match commands.phase() {
            ShellPhase::Reading => {
                let below = commands.reading_at().is_some_and(|at| cursor.row > at.row);
                below && reads_on(&self.screen.line_of_cursor())
            }
            // A line that shells prompt with first as well.
            ShellPhase::Unmarked => commands.sent().is_some_and(|sent| {
                let same = before_cursor.ends_with(&*sent.prompt);
                sent.ends_by == EndsBy::Kernel && !same && asks_for_more(before_cursor)
            }),
            ShellPhase::Prompting | ShellPhase::Running => false,
        }
    }

    /// How it is known that what a command was sent to is ready again.
    fn ready_again(&mut self) -> Option<activity::Evidence> {
        let (now, sent) = (self.clock.now(), self.screen.commands().sent().cloned()?);
        let started = self.screen.commands().get(sent.id);
        let started = started.and_then(|record| record.spans.first()).map(|span| span.from);
        if !self.looks.settled_since() || !self.moved_on(started, &sent) {
            return None;
        }
        match sent.ends_by {
            EndsBy::Marks => None,
            EndsBy::Kernel => {
                let activity = self.activity();
                // The kernel knows that a shell reads before its prompt has come here. Another prompt
                // than the one before is believed when nothing follows for long enough.
                let before = self.screen.before_cursor();
                let shown = before.ends_with(&*sent.prompt);
                let believed = shown || self.looks.quiet() && !asks_for_more(&before);
                (activity.state == ActivityState::Prompt && believed).then_some(activity.evidence)
            }
            EndsBy::Prompt => {
                let before = self.screen.before_cursor();
                let same = !sent.prompt.is_empty() && before.ends_with(&*sent.prompt);
                let other = prompts(&before) && self.looks.silent_for(OTHER_PROMPT_QUIET, now);
                // Whoever reads nothing prompts nobody.
                let waits = matches!(
                    self.activity().state,
                    ActivityState::NeedsInput | ActivityState::Prompt
                );
                (self.looks.quiet() && waits && (same || other))
                    .then_some(activity::Evidence::Pattern)
            }
        }
    }

    /// Whether more came since a command was sent than a prompt that stands still.
    fn moved_on(&mut self, started: Option<Position>, sent: &SentCommand) -> bool {
        let cursor = self.screen.cursor();
        match sent.ends_by {
            EndsBy::Marks => false,
            // Where its Enter ends no line, the shell has not read it.
            EndsBy::Kernel => {
                started.is_none_or(|at| at != cursor)
                    && !sent.is_typed_in(&self.screen.line_of_cursor())
            }
            EndsBy::Prompt => started.is_none_or(|at| at.row != cursor.row),
        }
    }
}
