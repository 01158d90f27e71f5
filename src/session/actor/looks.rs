//! Looks at the kernel: when it is asked, and what it said is only believed once all output from before is here.
//!
//! Whoever keeps the terminal may take a moment to say where that output ends. Nothing waits for it: what was found is
//! kept until then, and dropped if anything came in between.

use std::io;
use std::sync::Arc;

use crate::core::moment::Moment;
use crate::core::shell::activity::{Idleness, KernelView, LeaderRest};
use crate::core::shell::commands::ShellPhase;
use crate::session::actor::Actor;
use crate::session::pty::surroundings::ReaderSearch;
use crate::session::pty::{OutputEnd, Pty};

/// What was found, and is not known to belong to what the screen shows.
#[derive(Debug)]
struct AwaitedFinding {
    end: AwaitedEnd,
    /// Counts what had come by then.
    stirs: u64,
    /// What was seen, unless that is noted already.
    seen: Option<Option<KernelView>>,
    rest: Option<LeaderRest>,
}

/// An idle program, of whose output more may be on its way.
#[derive(Debug)]
pub(super) struct IdleFinding {
    pub(super) end: AwaitedEnd,
    /// Counts what had come by then.
    pub(super) stirs: u64,
    pub(super) idleness: Idleness,
}

/// A question whether all output was read, up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AwaitedEnd {
    offset: u64,
    end: OutputEnd,
}

impl AwaitedEnd {
    /// Whether the answer takes a while, and was asked for when the output up to this offset was read.
    pub(super) fn is_late_at(self, offset: u64) -> bool {
        self.offset == offset && matches!(self.end, OutputEnd::Asked(_))
    }
}

/// What is to be said about the end of the output.
#[derive(Debug, Default)]
pub(super) struct Looks {
    finding: Option<AwaitedFinding>,
    pub(super) idle: Option<IdleFinding>,
    /// The newest question that was not answered.
    asked: Option<u64>,
    /// The newest question that was, and the end of the output then, if that is known.
    answered: Option<(u64, Option<u64>)>,
    /// Those who follow the frames get the newest one before the kernel is asked: that takes as long as to tell them.
    pub(super) make_way: bool,
}

impl Looks {
    /// Waits for the answer to the newest question.
    pub(super) async fn output_end(&self, pty: &impl Pty) -> io::Result<Option<u64>> {
        match self.asked {
            Some(question) => pty.output_end(question).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The answer to the newest question, if it is there already.
    pub(super) fn known_output_end(&self, pty: &impl Pty) -> Option<io::Result<Option<u64>>> {
        pty.known_output_end(self.asked?)
    }
}

impl<P: Pty> Actor<P> {
    pub(super) fn look_due(&self) -> Option<Moment> {
        // Of a silent terminal nobody knows what is on its way.
        let silent = self.ending.exit.is_some() || self.returning.is_some();
        if silent || self.looks.make_way || self.awaits_finding() {
            return None;
        }
        let attended = self.outlets.live.attended();
        self.shell.look_due(self.screen.commands(), self.rules.frame_interval, attended)
    }

    /// Whether something was found that may still count.
    fn awaits_finding(&self) -> bool {
        let stirs = self.shell.stirs();
        self.looks.finding.as_ref().is_some_and(|finding| finding.stirs == stirs)
    }

    /// Looks at a shell that has come to its prompt before any caller is told.
    pub(super) fn look_at_prompt(&mut self) {
        if self.shell.is_at_another_prompt(self.screen.commands()) {
            self.look_if_due();
        }
    }

    pub(super) fn look_if_due(&mut self) {
        let now = self.clock.now();
        if self.look_due().is_none_or(|due| due > now) {
            return;
        }
        let commands = Arc::clone(self.screen.commands());
        let settles = self.shell.settles();
        let at_prompt = !settles && self.shell.is_at_another_prompt(&commands);
        // A program that is not given its input yet does what it did before.
        let is_early = self.pty.is_input_on_its_way();
        let seen = match self.shell.seen().filter(|_| at_prompt) {
            Some(known) => self.pty.look_at_prompt(known),
            None => self.pty.look(self.search(settles)),
        };
        let seen = seen.ok();
        if !self.shell.decides(seen.as_ref()) {
            self.shell.on_look(now, seen, &commands);
            let asks = self.shell.asks_rest(&commands) && self.input.next_bytes().is_none();
            if let Some(rest) = asks.then(|| self.pty.leader_rest().ok()).flatten() {
                self.await_end_of(None, Some(rest));
            }
        } else if is_early {
            self.shell.on_early_look(now, &commands);
        } else {
            let asks = self.shell.may_ask_rest(seen.as_ref(), &commands);
            let rest = asks.then(|| self.pty.leader_rest().ok()).flatten();
            self.await_end_of(Some(seen), rest);
        }
        self.end_commands();
    }

    /// Among whom a look searches for one that waits for input.
    fn search(&self, settles: bool) -> ReaderSearch {
        match self.screen.commands().phase() {
            _ if !settles => ReaderSearch::Nowhere,
            ShellPhase::Prompting | ShellPhase::Reading => ReaderSearch::Programs,
            ShellPhase::Running | ShellPhase::Unmarked => ReaderSearch::All,
        }
    }

    /// Notes what was found as soon as all output from before is known to be here.
    fn await_end_of(&mut self, seen: Option<Option<KernelView>>, rest: Option<LeaderRest>) {
        let (end, stirs) = (self.ask_output_end(), self.shell.stirs());
        self.looks.finding = Some(AwaitedFinding { end, stirs, seen, rest });
        self.note_finding();
    }

    /// Asks whether all output was read by now.
    pub(super) fn ask_output_end(&mut self) -> AwaitedEnd {
        let offset = self.unfed.offset;
        // A terminal that fails says so elsewhere.
        let end = self.pty.ask_output_end().unwrap_or(OutputEnd::Known(u64::MAX));
        if let OutputEnd::Asked(question) = end {
            self.looks.asked = Some(question);
        }
        AwaitedEnd { offset, end }
    }

    /// Whether all output was read at that time; `None` while nobody knows.
    pub(super) fn was_all_read(&self, asked: AwaitedEnd) -> Option<bool> {
        match (asked.end, self.looks.answered) {
            (OutputEnd::Known(end), _) => Some(end == asked.offset),
            (OutputEnd::Asked(question), Some((answered, end))) if question <= answered => {
                Some(end == Some(asked.offset))
            }
            (OutputEnd::Asked(_), _) => None,
        }
    }

    pub(super) fn on_output_end(&mut self, end: io::Result<Option<u64>>) {
        if let Some(question) = self.looks.asked.take() {
            self.looks.answered = Some((question, end.ok().flatten()));
        }
        self.note_finding();
        self.note_idle();
        self.end_commands();
    }

    /// Notes what was found, if it is known by now whether it counts.
    fn note_finding(&mut self) {
        let Some(finding) = self.looks.finding.take() else { return };
        if finding.stirs != self.shell.stirs() {
            // What came since is looked at by itself.
            return;
        }
        let Some(all) = self.was_all_read(finding.end) else {
            self.looks.finding = Some(finding);
            return;
        };
        let (now, commands) = (self.clock.now(), Arc::clone(self.screen.commands()));
        match finding.seen {
            Some(seen) if all => self.shell.on_look(now, seen, &commands),
            Some(_) => self.shell.on_early_look(now, &commands),
            None => {}
        }
        if all
            && let Some(rest) = finding.rest
            && self.shell.asks_rest(&commands)
            && self.input.next_bytes().is_none()
        {
            self.shell.on_rest(now, rest, &commands);
        }
    }
}
