//! Asking the kernel, and telling the shell's judge what it said.

use std::sync::Arc;

use crate::core::moment::Moment;
use crate::core::shell::activity::Activity;
use crate::core::shell::{ScreenFacts, Shell, ShellView};
use crate::session::actor::Actor;
use crate::session::pty::Pty;

impl<P: Pty> Actor<P> {
    pub(super) fn look_due(&self) -> Option<Moment> {
        if self.ending.exit.is_some() {
            return None;
        }
        let attended = self.outlets.live.attended();
        self.shell.look_due(self.screen.commands(), self.rules.frame_interval, attended)
    }

    /// Looks at a shell that has come to its prompt before any caller is told.
    pub(super) fn look_at_prompt(&mut self) {
        if self.shell.is_at_another_prompt(self.screen.commands()) {
            self.look_if_due();
        }
    }

    /// Asks the kernel when it is time.
    pub(super) fn look_if_due(&mut self) {
        let now = self.clock.now();
        if self.look_due().is_none_or(|due| due > now) {
            return;
        }
        let commands = Arc::clone(self.screen.commands());
        let settles = self.shell.settles();
        let at_prompt = !settles && self.shell.is_at_another_prompt(&commands);
        let seen = match self.shell.seen().filter(|_| at_prompt) {
            Some(known) => self.pty.look_at_prompt(known),
            None => self.pty.look(settles),
        };
        let seen = seen.ok();
        if self.shell.decides(seen.as_ref()) && self.output_is_on_its_way() {
            self.shell.on_early_look(now, &commands);
        } else {
            self.shell.on_look(now, seen, &commands);
        }
        if self.shell.asks_rest(&commands)
            && self.input.next_bytes().is_none()
            && let Ok(rest) = self.pty.leader_rest()
            && !self.output_is_on_its_way()
        {
            self.shell.on_rest(now, rest, &commands);
        }
        self.end_commands();
    }

    /// Whether the kernel is ahead of what was read. A terminal that fails says so elsewhere.
    pub(super) fn output_is_on_its_way(&self) -> bool {
        self.pty.all_read(self.unfed.offset).is_ok_and(|all| !all)
    }

    /// What the terminal is doing, and whether it takes a command.
    pub(super) fn judge(&mut self) -> (Arc<Activity>, Arc<ShellView>) {
        let (activity, view) = self.with_facts(|shell, now, facts| shell.judge(now, facts));
        let frame = self.frames.borrow();
        let told = (&frame.activity.value, &frame.shell);
        let activity = if **told.0 == activity { Arc::clone(told.0) } else { Arc::new(activity) };
        let view = if **told.1 == view { Arc::clone(told.1) } else { Arc::new(view) };
        (activity, view)
    }

    /// Asks the judge with what the screen shows.
    pub(super) fn with_facts<T>(
        &mut self,
        ask: impl FnOnce(&mut Shell, Moment, &ScreenFacts<'_>) -> T,
    ) -> T {
        let settled = self.shell.settled();
        let before_cursor = if settled { self.screen.before_cursor() } else { String::new() };
        let commands = Arc::clone(self.screen.commands());
        let facts = ScreenFacts {
            commands: &commands,
            cursor: self.screen.cursor(),
            alternate: self.screen.alternate(),
            exited: self.ending.exit.is_some(),
            before_cursor: &before_cursor,
        };
        ask(&mut self.shell, self.clock.now(), &facts)
    }
}
