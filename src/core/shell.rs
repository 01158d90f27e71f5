//! What the shell or program in a terminal is doing, whether it takes a command, and how commands ended.
//!
//! Marks of the shell decide where there are any, then the kernel's view of the terminal, then the prompt
//! that came back. Where these do not suffice, the answer is unknown, or a guess whose evidence is
//! `pattern`.

pub mod activity;
pub mod commands;
pub mod readiness;
pub mod unmarked_ends;

mod current_activity;
mod kernel_polling;
pub mod line_so_far;
pub mod prompt_text;
mod typed_so_far;

use std::sync::Arc;
use std::time::Duration;

use crate::core::keys::Unit;
use crate::core::moment::Moment;
use crate::core::shell::activity::{ActivityState, Idleness, KernelView, LeaderRest};
use crate::core::shell::commands::record::Position;
use crate::core::shell::commands::{Commands, EndsBy, ShellPhase};
use crate::core::shell::kernel_polling::{
    FULL_SCREEN_PATIENCE, KernelPolling, PAUSE_MAX, READ_AHEAD_MAX,
};
use crate::core::shell::line_so_far::{KeysTaken, LineSoFar, ShellProgress};
use crate::core::shell::prompt_text::ends_with_prompt;
use crate::core::shell::readiness::Readiness;
use crate::core::shell::typed_so_far::TypedSoFar;

/// What a terminal shows, as far as the shell in it is judged by it.
#[derive(Clone, Copy, Debug)]
pub struct ScreenFacts<'a> {
    pub commands: &'a Commands,
    pub cursor: Position,
    pub alternate: bool,
    /// A full-screen program, or a menu, may hide the cursor.
    pub cursor_visible: bool,
    /// Programs that use the whole screen turn the keypad's own codes on.
    pub keypad: bool,
    /// What runs has written to places all over the screen.
    pub painted: bool,
    /// A row above the cursor ends like a question; false unless [`Shell::settled`] and [`Shell::reads_keys`].
    pub asked_above: bool,
    /// The program that the session was started with has ended.
    pub exited: bool,
    /// What stands on the row of the cursor before it and is no output of a command that ended; empty
    /// unless [`Shell::settled`].
    pub before_cursor: &'a str,
}

/// What callers who send commands are told of a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellView {
    pub readiness: Readiness,
    /// The session's own shell is at its prompt, and nothing was typed there.
    pub at_empty_line: bool,
    /// What waits for input asks for the rest of a line that was begun before, as far as its prompt says so.
    pub goes_on: bool,
    /// A program waits for input, and a full screen stands still.
    pub waits: bool,
    /// The program in front has read all input and waits for more, since then. None while no caller waits for that.
    pub idle_after: Option<Moment>,
}

/// The shell or program of one session.
///
/// `on_*` is what the world did; [`Self::judge`] and [`Self::next_ending`] say what follows; the actor asks
/// the kernel when [`Self::look_due`] says so.
#[derive(Debug)]
pub struct Shell {
    /// The shell was asked to mark its prompts.
    marks_expected: bool,
    polling: KernelPolling,
    typed: TypedSoFar,
    line: LineSoFar,
    /// Where the shell is by its marks, and since when.
    place: (ShellPhase, Option<Position>),
    marked_at: Moment,
    /// The shell has read all that was typed, and waits for more.
    rests: bool,
    /// It was ready for a command at least once.
    prompted: bool,
    /// When it last was ready, or something was typed, or the shell came to the front.
    active_at: Moment,
    asked_secret: bool,
    /// Since when a program has had the whole screen, while it has.
    full_screen_since: Option<Moment>,
}

impl Shell {
    /// Begins with a terminal that was just made, or was `found`: then it is unknown what was typed there
    /// before and has not been read.
    pub fn begin(now: Moment, marks_expected: bool, found: bool) -> Self {
        Self {
            marks_expected,
            polling: KernelPolling::begin(now),
            typed: TypedSoFar::begin(now, found),
            line: LineSoFar::begin(found),
            place: (ShellPhase::default(), None),
            marked_at: now,
            rests: false,
            prompted: found,
            active_at: now,
            asked_secret: false,
            full_screen_since: None,
        }
    }

    /// The same where so much was typed before: no state of the line is taken for one from before.
    #[must_use]
    pub fn after_turns(mut self, turns: u64) -> Self {
        self.line.go_on_after(turns);
        self
    }

    pub fn seen(&self) -> Option<&KernelView> {
        self.polling.seen.as_ref()
    }

    /// Counts what output and input came, so that what was seen before can be told from what is seen after.
    pub fn stirs(&self) -> u64 {
        self.polling.stirs
    }

    /// Whether the kernel was asked long enough after the last output or input that a program has done all
    /// that it does at once.
    pub fn settled(&self) -> bool {
        self.polling.settled()
    }

    /// Whether the next look is such a one.
    pub fn settles(&self) -> bool {
        self.polling.settles()
    }

    /// Whether a program was seen to wait for a key.
    pub fn reads_keys(&self) -> bool {
        let reads = |seen: &KernelView| !seen.canonical && seen.reading == Some(true);
        self.seen().is_some_and(reads)
    }

    /// Whether half a line may stand where a shell without a line editor reads, be it an answer of the
    /// terminal's own.
    pub fn half_line(&self) -> bool {
        self.typed.half_line || self.typed.between
    }

    /// Whether a command can be sent that will end in this way, as far as that can have changed since
    /// [`Self::judge`] said so.
    pub fn accepts(&self, ends_by: EndsBy, commands: &Commands) -> bool {
        let sent = commands.sent().map(|sent| sent.ends_by);
        match ends_by {
            EndsBy::Marks => {
                sent.is_none() && commands.phase() == ShellPhase::Reading && !self.typed.ahead
            }
            EndsBy::Kernel => sent.is_none() && commands.phase() == ShellPhase::Unmarked,
            // It is for what the command before has started, or goes on with that.
            EndsBy::Prompt => sent != Some(EndsBy::Prompt) || self.typed.goes_on,
        }
    }

    pub fn on_output(&mut self, now: Moment) {
        self.stir(now);
    }

    pub fn on_typed(&mut self, now: Moment, bytes: &[u8]) {
        self.typed.note(now, bytes);
        self.stir(now);
        self.polling.stir_by_input(now, bytes);
        self.active_at = now;
    }

    pub fn on_signal(&mut self, now: Moment) {
        self.stir(now);
        self.active_at = now;
    }

    /// Notes that something is about to be typed that is no command, behind this text where a shell
    /// without marks is at its prompt.
    pub fn on_type_ahead(&mut self, prompt: Option<&str>) {
        if let Some(prompt) = prompt {
            self.typed.at_prompt(prompt);
        }
        self.typed.ahead = true;
        self.typed.between = true;
    }

    /// The line that is being typed, with all that was queued for it.
    pub fn line(&self) -> &LineSoFar {
        &self.line
    }

    /// The same once these keys are queued as well.
    pub fn line_with(&self, unit: &Unit, commands: &Commands) -> LineSoFar {
        let is_own = matches!(commands.phase(), ShellPhase::Prompting | ShellPhase::Reading);
        let taken = match self.seen() {
            Some(seen) if seen.canonical && !seen.echo => KeysTaken::Unshown,
            Some(seen) if !is_own && !seen.canonical && !seen.has_shell_in_front() => {
                KeysTaken::AsKeys
            }
            Some(_) | None => KeysTaken::AsLine,
        };
        let mut line = self.line.clone();
        let progress = ShellProgress { command: commands.last(), prompts: commands.prompts() };
        line.on_keys(&unit.pieces, taken, progress);
        line
    }

    /// Notes that keys were queued.
    pub fn on_queued(&mut self, line: LineSoFar) {
        self.line = line;
    }

    /// Notes that some of what was queued is not typed.
    pub fn on_discarded(&mut self) {
        self.line.on_discarded();
    }

    /// Notes that the terminal answered a query. A program that has ended may have left the answer unread, and whatever
    /// reads next takes it for something typed.
    pub fn on_answer(&mut self, commands: &Commands) {
        let asked_by_shell =
            matches!(commands.phase(), ShellPhase::Prompting | ShellPhase::Reading);
        if !asked_by_shell {
            (self.typed.ahead, self.typed.between) = (true, true);
        }
    }

    /// Notes that a command is sent behind this text, and says what its prompt is.
    pub fn on_command(&mut self, now: Moment, ends_by: EndsBy, before_cursor: &str) -> Arc<str> {
        self.typed.between = false;
        self.line.on_command();
        self.stir(now);
        match ends_by {
            EndsBy::Kernel => self.typed.at_prompt(before_cursor),
            EndsBy::Marks | EndsBy::Prompt => before_cursor.into(),
        }
    }

    /// When the kernel is to be asked: at most once per `interval`, and again and again only while a
    /// caller attends.
    pub fn look_due(
        &self,
        commands: &Commands,
        interval: Duration,
        attended: bool,
    ) -> Option<Moment> {
        if self.is_at_another_prompt(commands) {
            return Some(self.polling.stirred_at);
        }
        self.polling.due(interval, attended)
    }

    /// Whether the shell has marked a prompt since the kernel was last asked: it may be in front again, and
    /// may read in another way.
    pub fn is_at_another_prompt(&self, commands: &Commands) -> bool {
        let prompts = matches!(commands.phase(), ShellPhase::Prompting | ShellPhase::Reading);
        prompts && self.place != place_of(commands)
    }

    /// When to look whether the program in front is idle, while a caller waits for that.
    pub fn idle_due(&self) -> Option<Moment> {
        self.polling.idle_due()
    }

    /// Whether output came that was not followed by such a look.
    pub fn is_output_just_in(&self) -> bool {
        self.polling.is_output_just_in()
    }

    pub fn on_idle_look(&mut self, now: Moment, idleness: Idleness) {
        self.polling.note_idle(idleness, now);
    }

    /// Whether something follows from a look that saw this, so that all output has to be here first.
    pub fn decides(&self, seen: Option<&KernelView>) -> bool {
        self.polling.decides(seen)
    }

    /// Notes a look that saw what belongs to output that has not come.
    pub fn on_early_look(&mut self, now: Moment, commands: &Commands) {
        self.polling.postpone(now);
        self.note_place(now, commands);
    }

    pub fn on_look(&mut self, now: Moment, seen: Option<KernelView>, commands: &Commands) {
        let in_front =
            |seen: &Option<KernelView>| seen.as_ref().is_some_and(|it| it.shell_in_front);
        if in_front(&seen) && !in_front(&self.polling.seen) {
            self.active_at = now;
        }
        self.polling.note(seen, now);
        // From here on it is known whether a program waits.
        self.typed.answered &= !self.polling.settled();
        self.note_place(now, commands);
    }

    fn note_place(&mut self, now: Moment, commands: &Commands) {
        let place = place_of(commands);
        if self.place != place {
            (self.place, self.marked_at) = (place, now);
            // What was typed before this prompt came is read behind it.
            let may_be_read = self.typed.ahead && place.0 != ShellPhase::Running;
            self.typed.entered_at = self.typed.entered_at.filter(|_| may_be_read);
        }
    }

    /// Whether it matters what the shell does about what was typed, so that the kernel has to be asked
    /// that as well.
    pub fn asks_rest(&self, commands: &Commands) -> bool {
        let in_front = self.seen().is_some_and(|seen| seen.shell_in_front);
        match commands.phase() {
            ShellPhase::Reading if self.typed.ahead => true,
            ShellPhase::Reading => {
                let entered = self.typed.entered_at.is_some() || commands.prompted_at().is_some();
                self.settled() && in_front && entered
            }
            ShellPhase::Prompting => self.polling.quiet() && in_front,
            ShellPhase::Running => self.settled() && in_front,
            ShellPhase::Unmarked => false,
        }
    }

    /// Whether that may matter once a look that saw this is noted.
    pub fn may_ask_rest(&self, seen: Option<&KernelView>, commands: &Commands) -> bool {
        let in_front = seen.is_some_and(|seen| seen.shell_in_front);
        match commands.phase() {
            ShellPhase::Reading => self.typed.ahead || in_front,
            ShellPhase::Prompting | ShellPhase::Running => in_front,
            ShellPhase::Unmarked => false,
        }
    }

    /// Notes what the shell does about what was typed, once all its output is here.
    pub fn on_rest(&mut self, now: Moment, rest: LeaderRest, commands: &Commands) {
        let silent = now.since(self.polling.stirred_at) >= PAUSE_MAX;
        self.rests = match rest {
            LeaderRest::Waits => true,
            LeaderRest::Pauses | LeaderRest::Unknown => silent,
            LeaderRest::Unread | LeaderRest::Works => false,
        };
        let age = now.since(self.typed.at.max(self.marked_at));
        let given_up = rest != LeaderRest::Unread && age >= READ_AHEAD_MAX;
        if commands.phase() == ShellPhase::Reading && (self.rests || given_up) {
            self.typed.ahead = false;
        }
    }

    fn stir(&mut self, now: Moment) {
        self.polling.stir(now);
        self.rests = false;
    }

    /// Whether this ends as the prompt does at which was typed last.
    fn is_known_prompt(&self, before_cursor: &str) -> bool {
        let shown =
            |prompt: &str| !prompt.trim().is_empty() && ends_with_prompt(before_cursor, prompt);
        self.typed.prompt.as_deref().is_some_and(shown)
    }

    /// Whether a shell that tells codes and no more has begun its prompt since anything was typed.
    fn is_at_told_prompt(&self, facts: &ScreenFacts<'_>) -> bool {
        facts.commands.told_since(self.typed.at)
    }

    fn waits(&self, now: Moment, state: ActivityState) -> bool {
        match state {
            ActivityState::NeedsInput | ActivityState::SecretPrompt => true,
            // Some paint for ever.
            ActivityState::FullScreen => {
                let long = |since| now.since(since) >= FULL_SCREEN_PATIENCE;
                // One that works may be about to end.
                self.polling.quiet() && self.seen().is_none_or(|seen| !seen.works)
                    || self.full_screen_since.is_some_and(long)
            }
            ActivityState::Prompt
            | ActivityState::Running
            | ActivityState::Exited
            | ActivityState::Unknown => false,
        }
    }
}

fn place_of(commands: &Commands) -> (ShellPhase, Option<Position>) {
    (commands.phase(), commands.reading_at())
}

#[cfg(test)]
mod tests;
