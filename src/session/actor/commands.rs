//! Commands that are sent as such: noted when they go out, ended when the shell's judge says so.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::keys::encode::encode_keys;
use crate::core::keys::unit::Piece;
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::commands::{EndsBy, ShellPhase, Submission};
use crate::core::shell::endings::CommandEnding;
use crate::session::actor::Actor;
use crate::session::command::CommandOrder;
use crate::session::error::SessionError;
use crate::session::pty::{Evidence, Pty};

impl<P: Pty> Actor<P> {
    /// Refuses a command when what it is for is not ready for it any more; the next frame says so.
    pub(super) fn check_ready(&self, order: &CommandOrder) -> Result<(), SessionError> {
        let ready = self.shell.accepts(order.ends_by, self.screen.commands());
        if ready { Ok(()) } else { Err(SessionError::CommandRunning) }
    }

    /// What clears the line that a command is typed on.
    pub(super) fn clearing(&self, order: &CommandOrder) -> Vec<Piece> {
        match order.ends_by {
            EndsBy::Marks => {
                let keys = self.shell.emptying(self.screen.commands(), self.screen.cursor());
                encode_keys(&keys, &self.screen.modes())
            }
            EndsBy::Kernel => self.taking_back(),
            EndsBy::Prompt => Vec::new(),
        }
    }

    /// What takes back the line that the kernel collects for a shell without a line editor; twice, since
    /// a key may wait that takes the next character as it is.
    fn taking_back(&self) -> Vec<Piece> {
        let kill = || self.pty.evidence().ok()?.line_kill;
        let kill = self.shell.half_line().then(kill).flatten();
        kill.map_or_else(Vec::new, |kill| vec![Piece::Key(vec![kill]); 2])
    }

    /// Notes that something is about to be typed that is no command. Needs the newest frame.
    pub(super) fn begin_typing(&mut self) {
        let frame = Arc::clone(&self.frames.borrow());
        let at_prompt = frame.activity.value.state == ActivityState::Prompt
            && frame.commands.value.phase() == ShellPhase::Unmarked;
        let prompt = at_prompt.then(|| self.screen.before_cursor());
        self.shell.on_type_ahead(prompt.as_deref());
    }

    /// Notes that a command goes out now, by a call with this stamp if it may be asked for again, and has
    /// it kept before it does.
    pub(super) fn begin_command(
        &mut self,
        order: &CommandOrder,
        by: &Caller,
        call: Option<WriteStamp>,
    ) -> CommandId {
        let CommandOrder { text, typed, ends_by, provision, .. } = order;
        let (now, ends_by) = (self.clock.now(), *ends_by);
        let before_cursor = self.screen.before_cursor();
        let prompt = self.shell.on_command(now, ends_by, &before_cursor);
        let by = Some(Arc::from(by.name().to_string()));
        // A line editor shows what is typed by itself.
        let hidden = |it: Evidence| it.canonical && !it.echo;
        let echoed = ends_by != EndsBy::Kernel || !self.pty.evidence().is_ok_and(hidden);
        let submission = Submission { text, typed, by, ends_by, prompt: &prompt, echoed };
        let id = self.screen.submit(now, submission);
        if let Some(provision) = provision {
            self.luggage.keep(id, provision.clone());
        }
        if let Some(call) = call {
            self.note_call(call, id);
        }
        self.keep_commands();
        id
    }

    /// Ends what has ended, and then the command of which it was a part. Called after each look at the
    /// kernel.
    pub(super) fn end_commands(&mut self) {
        while let Some(ending) = self.with_facts(|shell, now, facts| shell.next_ending(now, facts))
        {
            let now = self.clock.now();
            match ending {
                CommandEnding::Prompted => self.screen.on_prompted(now),
                CommandEnding::Reading => self.screen.on_reading(now),
                CommandEnding::Finished(evidence) => self.screen.finish_sent(now, evidence),
            }
        }
    }
}
