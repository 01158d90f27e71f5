//! When the kernel is asked, what it said last, and all times by which the shell in a terminal is judged.
//!
//! The kernel reports no change. So it is asked a few times after each output and input, at growing
//! intervals while a caller waits for what only it knows, and never otherwise.

use std::time::Duration;

use crate::core::moment::Moment;
use crate::core::shell::activity::{Idleness, KernelView};

/// What was seen, and when to look next.
#[derive(Debug)]
pub(super) struct KernelPolling {
    pub(super) seen: Option<KernelView>,
    /// When output or input last came.
    pub(super) stirred_at: Moment,
    /// Counts how often it did.
    pub(super) stirs: u64,
    /// Which of the looks after that comes next.
    next: usize,
    looked_at: Option<Moment>,
    /// When the first look after output or input was last made.
    first_at: Option<Moment>,
    /// How many second looks in turn showed nothing new.
    fruitless: u32,
    /// What was seen belongs to output that has not come, and was not noted.
    postponed: bool,
    /// Which of the looks for an idle program comes next, when the last was, and whether it found one.
    next_idle: usize,
    idle_looked_at: Option<Moment>,
    idles: bool,
}

impl KernelPolling {
    pub(super) fn begin(now: Moment) -> Self {
        Self {
            seen: None,
            stirred_at: now,
            stirs: 0,
            next: 0,
            looked_at: None,
            first_at: None,
            fruitless: 0,
            postponed: false,
            next_idle: 0,
            idle_looked_at: None,
            idles: false,
        }
    }

    pub(super) fn stir(&mut self, now: Moment) {
        self.stirred_at = now;
        self.stirs += 1;
        self.next = 0;
        self.postponed = false;
        (self.next_idle, self.idles) = (0, false);
        if let Some(seen) = &mut self.seen {
            // The program that read has something to do now.
            seen.reading = None;
        }
    }

    /// Notes that something was typed, which no program can have read yet.
    pub(super) fn stir_by_input(&mut self, now: Moment, bytes: &[u8]) {
        self.stir(now);
        // Editors wait a moment for the rest of a sequence, as if they were idle, before they act.
        let sequence_begins = bytes.last() == Some(&ESCAPE);
        self.next_idle = if sequence_begins { IDLE_LOOKS.len() } else { FIRST_AFTER_INPUT };
        (self.next, self.fruitless) = (FIRST_AFTER_INPUT, 0);
        // Only output that comes again and again has the next look wait.
        self.idle_looked_at = None;
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
        let is_same = seen == self.seen;
        if self.next == 0 {
            self.first_at = Some(now);
        }
        self.fruitless = match self.next {
            0 if is_same => self.fruitless,
            1 if is_same => self.fruitless + 1,
            _ => 0,
        };
        let step = if self.next == 0 && self.fruitless >= FRUITLESS_MAX { SETTLED } else { 1 };
        self.next = (self.next + step).min(LOOKS.len());
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
                // However much is written, no first look is made more often than frames are published. It needs no
                // timer of its own where output comes less often.
                let before = if self.next == 0 { self.first_at } else { self.looked_at };
                let earliest = before.map_or(Moment::default(), |at| at + interval);
                Some((self.stirred_at + *offset).max(earliest))
            }
            None => self.looked_at.filter(|_| attended).map(|at| {
                let [first, last] = ATTENDED;
                at + (at.since(self.stirred_at) / ATTENDED_PART).clamp(first, last)
            }),
        }
    }
}

impl KernelPolling {
    /// When to look whether the program is idle. None once it is, or only quiet tells.
    pub(super) fn idle_due(&self) -> Option<Moment> {
        let offset = IDLE_LOOKS.get(self.next_idle).filter(|_| !self.idles)?;
        let earliest = self.idle_looked_at.map_or(Moment::default(), |at| at + IDLE_LOOKS[1]);
        Some((self.stirred_at + *offset).max(earliest))
    }

    pub(super) fn is_output_just_in(&self) -> bool {
        self.next_idle == 0
    }

    pub(super) fn note_idle(&mut self, idleness: Idleness, now: Moment) {
        self.next_idle += 1;
        self.idle_looked_at = Some(now);
        self.idles = match idleness {
            Idleness::Waits => true,
            Idleness::Sleeps => now.since(self.stirred_at) >= SLEEP_LEAST,
            Idleness::Works => false,
        };
    }

    /// When output or input last came, if the program has become idle since.
    pub(super) fn idle_after(&self) -> Option<Moment> {
        self.idles.then_some(self.stirred_at)
    }
}

const ESCAPE: u8 = 0x1b;

/// When to look for an idle program after output or input, as long as a caller waits for it.
const IDLE_LOOKS: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
    Duration::from_millis(32),
    Duration::from_millis(64),
];

/// How long a program sleeps that may wait for other events than input before it counts as idle.
const SLEEP_LEAST: Duration = Duration::from_millis(30);

/// When the kernel is asked after output or input. The last look decides what only quiet tells.
pub(super) const LOOKS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
];

/// After this many fruitless second looks they are skipped: output comes again and again.
const FRUITLESS_MAX: u32 = 4;

/// The first look after input: a program that reads it and writes is looked at then.
pub(super) const FIRST_AFTER_INPUT: usize = 1;

/// The look from which on a program has done all that it does at once.
pub(super) const SETTLED: usize = 2;

/// How soon the kernel is asked again when output was still on its way here.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How often the kernel is asked while a caller waits for what only it knows: at first, and at most.
/// Between them, after this part of the silence.
pub(super) const ATTENDED: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
pub(super) const ATTENDED_PART: u32 = 20;

/// How long a shell has to be silent where the kernel does not say whether it waits for input. fish
/// pauses for 250 ms.
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(300);

/// After this time a shell counts as done with what was typed ahead, even if it seems to work.
pub(super) const READ_AHEAD_MAX: Duration = Duration::from_secs(10);

/// How long another prompt than the one before has to stand still: output can end as prompts do.
pub(super) const OTHER_PROMPT_QUIET: Duration = Duration::from_secs(1);

/// How long a program may paint the whole screen before it counts as one that waits for keys.
pub(super) const FULL_SCREEN_PATIENCE: Duration = Duration::from_secs(2);

/// How long a shell that should mark its prompts may be silent before it counts as one without marks.
pub(super) const MARKS_PATIENCE: Duration = Duration::from_secs(2);

/// How long a terminal may take to become ready after input, an interrupt, or being ready.
pub(super) const SOON: Duration = Duration::from_secs(2);
