//! When the kernel is asked, and what it said last.
//!
//! The kernel reports no change. So it is asked a few times after each output and input, at growing
//! intervals while a caller waits for what only it knows, and never otherwise.

use std::time::Duration;

use crate::core::moment::Moment;
use crate::core::shell::kernel::KernelView;
use crate::core::shell::timing::{
    ATTENDED, ATTENDED_PART, FIRST_AFTER_INPUT, LOOK_AGAIN, LOOKS, SETTLED,
};

/// What was seen, and when to look next.
#[derive(Debug)]
pub(super) struct Looks {
    pub(super) seen: Option<KernelView>,
    /// When output or input last came.
    pub(super) stirred_at: Moment,
    /// Which of the looks after that comes next.
    next: usize,
    looked_at: Option<Moment>,
    /// What was seen belongs to output that has not come, and was not noted.
    postponed: bool,
}

impl Looks {
    pub(super) fn begin(now: Moment) -> Self {
        Self { seen: None, stirred_at: now, next: 0, looked_at: None, postponed: false }
    }

    /// Notes that output or input came.
    pub(super) fn stir(&mut self, now: Moment) {
        self.stirred_at = now;
        self.next = 0;
        self.postponed = false;
        if let Some(seen) = &mut self.seen {
            // The program that read has something to do now.
            seen.reading = None;
        }
    }

    /// Notes that something was typed, which no program can have read yet.
    pub(super) fn stir_by_input(&mut self, now: Moment) {
        self.stir(now);
        self.next = FIRST_AFTER_INPUT;
    }

    /// Whether nothing came for as long as the looks go on.
    pub(super) fn quiet(&self) -> bool {
        self.next == LOOKS.len()
    }

    /// Whether the next look comes late enough that a program has done all that it does at once.
    pub(super) fn settles(&self) -> bool {
        self.next >= SETTLED
    }

    /// Whether one such look was made since output or input last came.
    pub(super) fn settled(&self) -> bool {
        self.next > SETTLED
    }

    /// Whether something follows from a look that saw this.
    pub(super) fn decides(&self, seen: Option<&KernelView>) -> bool {
        self.settles() && (!self.quiet() || seen != self.seen.as_ref())
    }

    pub(super) fn note(&mut self, seen: Option<KernelView>, now: Moment) {
        self.next = (self.next + 1).min(LOOKS.len());
        self.postponed = false;
        (self.seen, self.looked_at) = (seen, Some(now));
    }

    pub(super) fn postpone(&mut self, now: Moment) {
        self.postponed = true;
        self.looked_at = Some(now);
    }

    pub(super) fn due(&self, interval: Duration, attended: bool) -> Option<Moment> {
        if self.postponed {
            return self.looked_at.map(|at| at + LOOK_AGAIN);
        }
        match LOOKS.get(self.next) {
            Some(offset) => {
                // However much is written, it is asked no more often than frames are published.
                let earliest = self.looked_at.map_or(Moment::default(), |at| at + interval);
                Some((self.stirred_at + *offset).max(earliest))
            }
            None => self.looked_at.filter(|_| attended).map(|at| {
                let [first, last] = ATTENDED;
                at + (at.since(self.stirred_at) / ATTENDED_PART).clamp(first, last)
            }),
        }
    }
}
