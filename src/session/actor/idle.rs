//! The moment when the program in front is idle, while a caller waits for that: it has read what was typed, all it wrote
//! about that is on the screen, and it waits for more.

use std::thread::yield_now;
use std::time::Duration;

use crate::core::moment::Moment;
use crate::core::shell::activity::Idleness;
use crate::session::actor::Actor;
use crate::session::actor::looks::IdleFinding;
use crate::session::pty::Pty;

/// How often, and for how long at most, to look at once for what others are about to do. With a processor to run on they
/// do it sooner than a timer rings, or than this task could sleep and be woken.
const LOOKS_AT_ONCE: usize = 100;
const AT_ONCE: Duration = Duration::from_micros(100);

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
        if all_there {
            // Who is told that the program is idle is told what it is by now as well.
            self.looks.make_way = false;
            self.look_if_due();
        }
        match all_there.then(|| self.idleness()).flatten() {
            Some(idleness) => {
                let (end, stirs) = (self.ask_output_end(), self.shell.stirs());
                self.looks.idle = Some(IdleFinding { end, stirs, idleness });
                self.note_idle();
                if self.looks.is_asked() {
                    self.hear_output_end();
                }
            }
            None => self.shell.on_idle_look(now, Idleness::Works),
        }
    }

    /// Takes the answer where all output ends, if it comes at once.
    fn hear_output_end(&mut self) {
        if let Some(end) = self.at_once(|| self.looks.known_output_end(&*self.pty)) {
            self.on_output_end(end);
        }
    }

    fn idleness(&self) -> Option<Idleness> {
        let look = || self.pty.idleness().ok().filter(|it| *it != Idleness::Works);
        // The program that wrote may be about to wait again.
        if self.shell.is_output_just_in() { self.at_once(look) } else { look() }
    }

    fn at_once<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let until = self.clock.now() + AT_ONCE;
        for _ in 0..LOOKS_AT_ONCE {
            let found = look();
            if found.is_some() || self.clock.now() >= until {
                return found;
            }
            yield_now();
        }
        None
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
