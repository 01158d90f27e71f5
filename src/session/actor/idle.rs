//! The moment when the program in front is idle, while a caller waits for that: it has read what was typed, all it wrote
//! about that is on the screen, and it waits for more.

use std::thread::yield_now;

use crate::core::moment::Moment;
use crate::core::shell::activity::Idleness;
use crate::session::actor::Actor;
use crate::session::actor::looks::IdleFinding;
use crate::session::pty::Pty;

/// How often to look again at once after output. A look takes some ten microseconds.
const LOOKS_AT_ONCE: usize = 3;

impl<P: Pty> Actor<P> {
    pub(super) fn idle_due(&self) -> Option<Moment> {
        let stirs = self.shell.stirs();
        let waits = self.looks.idle.as_ref().is_some_and(|finding| finding.stirs == stirs);
        let answers = self.ending.exit.is_none() && self.returning.is_none();
        let asked = answers && self.outlets.live.hurried() && !waits;
        self.shell.idle_due().filter(|_| asked)
    }

    pub(super) fn look_for_idle_if_due(&mut self) {
        let now = self.clock.now();
        if self.idle_due().is_none_or(|due| due > now) {
            return;
        }
        let input_is_there = self.input.next_bytes().is_none() && !self.pty.is_input_on_its_way();
        let all_there = self.unfed.is_empty() && input_is_there;
        match all_there.then(|| self.idleness()).flatten() {
            Some(idleness) => {
                let (end, stirs) = (self.ask_output_end(), self.shell.stirs());
                self.looks.idle = Some(IdleFinding { end, stirs, idleness });
                self.note_idle();
            }
            None => self.shell.on_idle_look(now, Idleness::Works),
        }
    }

    fn idleness(&self) -> Option<Idleness> {
        let look = || self.pty.idleness().ok().filter(|it| *it != Idleness::Works);
        let again = || {
            // The program that wrote may need no more than this to wait again, and a timer is slower.
            yield_now();
            look()
        };
        let tries = if self.shell.is_output_just_in() { LOOKS_AT_ONCE } else { 0 };
        look().or_else(|| (0..tries).find_map(|_| again()))
    }

    /// Notes that the program was idle, if it is known by now whether all its output was here.
    pub(super) fn note_idle(&mut self) {
        let stirs = self.shell.stirs();
        let Some(finding) = self.looks.idle.take().filter(|finding| finding.stirs == stirs) else {
            return;
        };
        let now = self.clock.now();
        match self.was_all_read(finding.end) {
            None => self.looks.idle = Some(finding),
            Some(true) => self.shell.on_idle_look(now, finding.idleness),
            Some(false) => self.shell.on_idle_look(now, Idleness::Works),
        }
    }
}
