//! The judgement: what the terminal is doing.

use crate::core::moment::Moment;
use crate::core::shell::activity::{Activity, ActivityState, Evidence, KernelView};
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::core::shell::prompt_text::{is_continuation, is_prompt, is_question, is_without_prompt};
use crate::core::shell::{ScreenFacts, Shell, ShellView};

impl Shell {
    /// Judges what the terminal is doing, and whether it takes a command.
    pub fn judge(&mut self, now: Moment, facts: &ScreenFacts<'_>) -> (Activity, ShellView) {
        let (state, evidence) = self.state(now, facts);
        self.note_ended_line(facts);
        self.asked_secret = state == ActivityState::SecretPrompt;
        let full = (state == ActivityState::FullScreen).then_some(now);
        self.full_screen_since = full.map(|now| self.full_screen_since.unwrap_or(now));
        self.typed.goes_on =
            state == ActivityState::NeedsInput && is_continuation(facts.before_cursor);
        let waits = self.waits(now, state);
        let idle_after = self.polling.idle_after();
        let readiness = self.readiness(now, facts, state);
        let is_own_shell = matches!(readiness.ends_by(), Some(EndsBy::Marks | EndsBy::Kernel));
        // Without marks, nobody says where the line begins.
        let is_empty = facts.commands.reading_at().is_none_or(|at| at == facts.cursor);
        self.line.on_commands(facts.commands.last());
        let by_marks = readiness.ends_by() == Some(EndsBy::Marks);
        let at_empty_line = is_own_shell && is_empty && self.line.is_empty(by_marks);
        let goes_on = self.typed.goes_on;
        let view = ShellView { readiness, at_empty_line, goes_on, waits, idle_after };
        let kernel = self.seen();
        let activity = Activity {
            state,
            evidence,
            foreground: kernel.and_then(|kernel| kernel.foreground.clone()),
            canonical: kernel.is_some_and(|kernel| kernel.canonical),
            echo: kernel.is_some_and(|kernel| kernel.echo),
        };
        (activity, view)
    }

    /// Whether the shell has read a line, and waits for the rest of the command.
    fn reads_on(&self, facts: &ScreenFacts<'_>) -> bool {
        let commands = facts.commands;
        if commands.phase() != ShellPhase::Reading || !self.rests {
            return false;
        }
        // It gave the line back, to be looked at before it runs.
        let given_back = commands.prompted_at().is_some_and(|at| at != facts.cursor);
        self.typed.entered_at.is_some() && is_below(facts) || given_back
    }

    /// Forgets an Enter before this prompt that ended its line: all that was typed is read, and nothing of it asks for more.
    fn note_ended_line(&mut self, facts: &ScreenFacts<'_>) {
        let reads = facts.commands.phase() == ShellPhase::Reading && self.rests;
        let has_ended = |at: &Moment| reads && !is_below(facts) && *at < self.marked_at;
        self.typed.entered_at = self.typed.entered_at.filter(|at| !has_ended(at));
    }

    fn state(&self, now: Moment, facts: &ScreenFacts<'_>) -> (ActivityState, Evidence) {
        let judged = self.state_of_front(now, facts);
        let sent = facts.commands.sent().filter(|sent| sent.ends_by == EndsBy::Prompt);
        match sent {
            // It has yet to be read, or what is shown may be the next prompt.
            Some(sent)
                if judged.0 == ActivityState::NeedsInput
                    && (!self.moved_on(sent, facts)
                        || facts.commands.is_told(sent)
                        || is_prompt(facts.before_cursor)
                            && !is_continuation(facts.before_cursor)) =>
            {
                (ActivityState::Running, judged.1)
            }
            Some(_) | None => judged,
        }
    }

    pub(super) fn state_of_front(
        &self,
        now: Moment,
        facts: &ScreenFacts<'_>,
    ) -> (ActivityState, Evidence) {
        if facts.exited {
            return (ActivityState::Exited, Evidence::Exit);
        }
        let phase = facts.commands.phase();
        let Some(kernel) = self.seen() else { return without_kernel(phase) };
        let prompting = matches!(phase, ShellPhase::Prompting | ShellPhase::Reading);
        // A program that was killed leaves the other screen behind, and the shell goes on there.
        let left = (prompting || phase == ShellPhase::Unmarked) && kernel.shell_in_front;
        if facts.alternate && !left {
            let evidence = if kernel.canonical { Evidence::Pattern } else { Evidence::Kernel };
            return (ActivityState::FullScreen, evidence);
        }
        match phase {
            ShellPhase::Prompting | ShellPhase::Reading if kernel.shell_in_front => {
                match self.reads_on(facts) {
                    true => (ActivityState::NeedsInput, Evidence::Osc133),
                    false => (ActivityState::Prompt, Evidence::Osc133),
                }
            }
            ShellPhase::Unmarked if kernel.shell_in_front => self.unmarked_shell(kernel, facts),
            ShellPhase::Prompting | ShellPhase::Reading | ShellPhase::Unmarked => {
                self.program(now, kernel, facts, Evidence::Kernel)
            }
            ShellPhase::Running => self.program(now, kernel, facts, Evidence::Osc133),
        }
    }

    /// A shell with a line editor turns canonical mode off while it waits; one without waits in a read,
    /// at its prompt and for its command `read`.
    fn unmarked_shell(
        &self,
        kernel: &KernelView,
        facts: &ScreenFacts<'_>,
    ) -> (ActivityState, Evidence) {
        let (quiet, before) = (self.polling.quiet(), facts.before_cursor);
        let prompted = self.is_known_prompt(before) || self.is_at_told_prompt(facts);
        if quiet && !prompted && self.typed.prompt.is_some() && is_continuation(before) {
            return (ActivityState::NeedsInput, Evidence::Pattern);
        }
        // Line editors of some shells read what their command `read` asks for.
        let missing = facts.commands.tells_codes() && !prompted;
        if !kernel.canonical && quiet && missing {
            match kernel.reading {
                Some(false) if !kernel.selects => {
                    return (ActivityState::Running, Evidence::Kernel);
                }
                // A blank line may be a prompt without text.
                Some(_) | None if is_question(before) => {
                    return (ActivityState::NeedsInput, Evidence::Pattern);
                }
                Some(_) | None => {}
            }
        }
        if !kernel.canonical {
            // It does so before it writes its prompt. A line editor shows by itself what is typed.
            let state = match self.polling.settled() {
                false => ActivityState::Running,
                // On a busy machine the shell may not have written its prompt yet.
                true if kernel.works && !quiet => ActivityState::Running,
                true if kernel.echo && !prompted => ActivityState::Unknown,
                true => ActivityState::Prompt,
            };
            return (state, Evidence::Kernel);
        }
        // At its prompt it shows nothing that is typed either, once it was told so.
        if self.hides_a_line(kernel) && !prompted {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        let asks = before.trim().is_empty() || is_question(before);
        match kernel.reading {
            // The kernel knows that it reads before its prompt has come here.
            Some(true) if asks && !prompted => {
                let state = if quiet { ActivityState::NeedsInput } else { ActivityState::Running };
                (state, Evidence::Kernel)
            }
            Some(true) => (ActivityState::Prompt, Evidence::Kernel),
            Some(false) if kernel.selects && quiet && is_question(before) && !prompted => {
                (ActivityState::NeedsInput, Evidence::Pattern)
            }
            None if quiet => (ActivityState::Prompt, Evidence::Idle),
            Some(false) | None => (ActivityState::Running, Evidence::Kernel),
        }
    }

    /// Whether a line is waited for that will not be shown. Echo is turned off before the question is
    /// written, and may be off for a while after the answer was read.
    fn hides_a_line(&self, kernel: &KernelView) -> bool {
        let asked = self.asked_secret && !self.typed.answered;
        let waits = kernel.reading.unwrap_or(self.polling.quiet()) || asked;
        kernel.canonical && !kernel.echo && waits
    }

    fn program(
        &self,
        now: Moment,
        kernel: &KernelView,
        facts: &ScreenFacts<'_>,
        running: Evidence,
    ) -> (ActivityState, Evidence) {
        if self.hides_a_line(kernel) {
            return (ActivityState::SecretPrompt, Evidence::Kernel);
        }
        if self.told_prompt_waits(kernel, facts) {
            return (ActivityState::NeedsInput, Evidence::Osc133);
        }
        let paints = facts.painted && !kernel.canonical && self.polling.settled();
        if !self.polling.quiet() && !paints {
            return (ActivityState::Running, running);
        }
        let before = facts.before_cursor;
        let asks = is_question(before) || is_prompt(before) || is_continuation(before);
        if !kernel.canonical && !kernel.relaying {
            // Many programs read keys while they work: reading is no question. What paints the screen shows lines
            // that look like one.
            let asked_above = facts.asked_above && !facts.painted;
            let asked = asks || self.reads_keys() && (kernel.shell_in_front || asked_above);
            return if self.is_at_no_prompt() {
                (ActivityState::NeedsInput, Evidence::Kernel)
            } else if !asked && facts.keypad {
                (ActivityState::FullScreen, Evidence::Kernel)
            } else if asked || !facts.cursor_visible && self.other_prompt_stands(now) {
                // A menu hides the cursor.
                (ActivityState::NeedsInput, Evidence::Pattern)
            } else if facts.painted {
                (ActivityState::FullScreen, Evidence::Kernel)
            } else {
                (ActivityState::Running, running)
            };
        }
        match (asks, kernel.reading) {
            (_, Some(true)) => (ActivityState::NeedsInput, Evidence::Kernel),
            (_, Some(false)) if !kernel.selects => (ActivityState::Running, running),
            (true, _) => (ActivityState::NeedsInput, Evidence::Pattern),
            (false, Some(false)) => (ActivityState::Running, running),
            (false, None) => (ActivityState::Unknown, Evidence::Kernel),
        }
    }

    /// Whether a shell inside of the session's waits at the prompt that it told of.
    fn told_prompt_waits(&self, kernel: &KernelView, facts: &ScreenFacts<'_>) -> bool {
        let may_read = kernel.reading != Some(false) || kernel.selects || kernel.relaying;
        self.polling.settled() && may_read && self.is_at_told_prompt(facts)
    }

    /// Whether an interpreter that shows no prompt waits for a command.
    pub(super) fn is_at_no_prompt(&self) -> bool {
        let waits = |kernel: &&KernelView| kernel.reading == Some(true) || kernel.selects;
        let kernel = self.seen().filter(waits);
        is_without_prompt(kernel.and_then(|kernel| kernel.foreground.as_ref()?.program.as_deref()))
    }
}

fn without_kernel(phase: ShellPhase) -> (ActivityState, Evidence) {
    match phase {
        ShellPhase::Prompting | ShellPhase::Reading => (ActivityState::Prompt, Evidence::Osc133),
        ShellPhase::Running => (ActivityState::Running, Evidence::Osc133),
        ShellPhase::Unmarked => (ActivityState::Unknown, Evidence::Idle),
    }
}

/// Whether the cursor is below the row where the shell began to read.
fn is_below(facts: &ScreenFacts<'_>) -> bool {
    facts.commands.reading_at().is_some_and(|at| facts.cursor.row > at.row)
}
