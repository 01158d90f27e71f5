//! What happens in one session, as events: each is told once, also over a restart of the daemon.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::core::event::Event;
use crate::core::frame::Frame;
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::core::screen::sequence::{Report, TaskProgress};
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::record::{CommandId, CommandRecord};

/// A program that gets its input sooner needs nobody's attention.
pub const NEEDS_INPUT_AFTER: Duration = Duration::from_millis(500);

/// How many events programs may send at once, and how soon one more.
const BURST: u32 = 10;
const ONE_MORE_AFTER: Duration = Duration::from_millis(200);

/// The longest title and text that a program sends, in bytes.
const TITLE_MAX: usize = 256;
const BODY_MAX: usize = 1_024;

/// What a daemon before told of a session, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldEvents {
    pub started: BTreeSet<CommandId>,
    pub ended: BTreeSet<CommandId>,
    /// The count of the newest bell.
    pub bell: Option<u64>,
    /// The place in the output of the newest notification or progress.
    pub offset: u64,
    /// The newest event of a command or of waiting is that the program waits.
    pub waits: bool,
    pub is_over: bool,
}

impl ToldEvents {
    pub fn add(&mut self, event: &ToldEvent) {
        match *event {
            ToldEvent::CommandStarted(id) => {
                self.started.insert(id);
                self.waits = false;
            }
            ToldEvent::CommandEnded(id) => {
                self.ended.insert(id);
                self.waits = false;
            }
            ToldEvent::Bell(count) => self.bell = self.bell.max(Some(count)),
            ToldEvent::Sent { offset } => self.offset = self.offset.max(offset),
            ToldEvent::NeedsInput => self.waits = true,
            ToldEvent::SessionEnded => self.is_over = true,
        }
        // Frames have no older commands.
        while self.started.len() > Commands::KEPT_MAX {
            self.started.pop_first();
        }
        while self.ended.len() > Commands::KEPT_MAX {
            self.ended.pop_first();
        }
    }
}

/// An event that may happen again when output is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldEvent {
    CommandStarted(CommandId),
    CommandEnded(CommandId),
    Bell(u64),
    /// A notification or progress.
    Sent {
        offset: u64,
    },
    NeedsInput,
    SessionEnded,
}

/// Whether the program waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    No,
    Since(Moment),
    Told,
}

/// Finds the events of a session in its frames and in what its programs send.
#[derive(Debug)]
pub struct EventSource {
    /// The newest command that was told to have started, and those of them that were not told to have ended.
    newest: CommandId,
    open: BTreeSet<CommandId>,
    /// As they were looked at last.
    commands: Arc<Commands>,
    waiting: Waiting,
    is_over: bool,
    bell: u64,
    /// What was sent before this place in the output was told.
    offset: u64,
    /// When programs may send [`BURST`] events at once again.
    full_at: Moment,
    /// What waits until programs may send one more.
    rung: Option<u64>,
    progress: Option<(TaskProgress, u64)>,
    left_out: u64,
    events: Vec<Event>,
}

impl EventSource {
    /// Begins with the first frame of this daemon. What it shows was told by the daemon before, unless `told` says
    /// what was.
    pub fn begin(first: &Frame, told: Option<ToldEvents>) -> Self {
        let told = told.unwrap_or_default();
        let commands = Arc::clone(&first.commands.value);
        let known_from = told.started.first().into_iter().chain(told.ended.first()).min().copied();
        let newest = told.started.last().copied().unwrap_or(commands.last());
        let is_open = |record: &&Arc<CommandRecord>| {
            let told_if_ended = known_from.is_none_or(|from| record.id < from);
            record.id <= newest && (record.finish.is_none() || !told_if_ended)
        };
        let shown = commands.iter().filter(is_open).map(|record| record.id);
        let open = shown.chain(told.started.iter().copied());
        let open = open.filter(|id| !told.ended.contains(id)).collect();
        Self {
            newest,
            open,
            // Another one, so that these are looked at.
            commands: Arc::default(),
            waiting: if told.waits { Waiting::Told } else { Waiting::No },
            is_over: told.is_over,
            bell: told.bell.unwrap_or(first.bell.value),
            offset: told.offset,
            full_at: Moment::default(),
            rung: None,
            progress: None,
            left_out: 0,
            events: Vec::new(),
        }
    }

    /// How much of the output from `offset` on was told already.
    pub fn told_bytes(&self, offset: u64) -> u64 {
        self.offset.saturating_sub(offset)
    }

    /// Finds what has happened since the frame before.
    pub fn on_frame(&mut self, now: Moment, frame: &Frame) {
        if !Arc::ptr_eq(&self.commands, &frame.commands.value) {
            self.commands = Arc::clone(&frame.commands.value);
            self.on_commands();
        }
        let waits = match frame.activity.value.state {
            ActivityState::NeedsInput | ActivityState::SecretPrompt => true,
            ActivityState::Prompt
            | ActivityState::Running
            | ActivityState::FullScreen
            | ActivityState::Exited
            | ActivityState::Unknown => false,
        };
        self.waiting = match self.waiting {
            _ if !waits => Waiting::No,
            Waiting::No => Waiting::Since(now),
            waiting @ (Waiting::Since(_) | Waiting::Told) => waiting,
        };
        if frame.bell.value > self.bell {
            self.bell = frame.bell.value;
            self.rung = Some(self.bell);
        }
        if let Some(exit) = frame.exit.value
            && !self.is_over
        {
            self.is_over = true;
            self.events.push(Event::SessionEnded { exit });
        }
        self.on_time(now, frame);
    }

    fn on_commands(&mut self) {
        let newest = self.newest;
        let commands = Arc::clone(&self.commands);
        let new = commands.iter().rev().take_while(|record| record.id > newest);
        let new: Vec<_> = new.collect();
        for record in new.into_iter().rev() {
            let CommandRecord { id, text, by, .. } = &**record;
            self.newest = *id;
            self.open.insert(*id);
            let (id, text, by) = (*id, Arc::clone(text), by.clone());
            self.events.push(Event::CommandStarted { id, text, by });
        }
        let events = &mut self.events;
        self.open.retain(|id| {
            let finish = commands.get(*id).map(|record| record.finish);
            if let Some(Some(finish)) = finish {
                let (code, evidence) = (finish.code, finish.evidence);
                events.push(Event::CommandEnded { id: *id, code, evidence });
            }
            // Of one that is not there any more, nothing follows; one that is to come again is there later.
            finish == Some(None) || *id > commands.last()
        });
    }

    /// Takes what programs sent in the output before `offset`.
    pub fn on_report(&mut self, now: Moment, report: Report, offset: u64) {
        if offset <= self.offset {
            return;
        }
        match report {
            Report::Directory(_) => {}
            Report::Progress(progress) => self.progress = Some((progress, offset)),
            Report::Notification { title, body } if self.take_place(now) => {
                let cut = |text: &str, most| {
                    let line = one_line(text);
                    line[..line.floor_char_boundary(most)].to_owned()
                };
                let title = title.map(|title| cut(&title, TITLE_MAX));
                let body = cut(&body, BODY_MAX);
                self.events.push(Event::Notification { title, body, offset });
            }
            Report::Notification { .. } => self.left_out += 1,
        }
        self.offset = offset;
    }

    /// When something is to be told that waits.
    pub fn due(&self) -> Option<Moment> {
        let waiting = match self.waiting {
            Waiting::Since(since) => Some(since + NEEDS_INPUT_AFTER),
            Waiting::No | Waiting::Told => None,
        };
        let sent = self.rung.is_some() || self.progress.is_some() || self.left_out > 0;
        let sent = sent.then(|| self.place_at());
        waiting.into_iter().chain(sent).min()
    }

    /// Finds what has become due; `frame` is the newest.
    pub fn on_time(&mut self, now: Moment, frame: &Frame) {
        if let Waiting::Since(since) = self.waiting
            && now >= since + NEEDS_INPUT_AFTER
        {
            self.waiting = Waiting::Told;
            let activity = &frame.activity.value;
            let program = activity.foreground.as_ref().and_then(|front| front.program.clone());
            let is_secret = activity.state == ActivityState::SecretPrompt;
            self.events.push(Event::NeedsInput { is_secret, program });
        }
        if self.rung.is_some()
            && self.take_place(now)
            && let Some(count) = self.rung.take()
        {
            self.events.push(Event::Bell { count });
        }
        if self.progress.is_some()
            && self.take_place(now)
            && let Some((progress, offset)) = self.progress.take()
        {
            self.events.push(Event::Progress { progress, offset });
        }
        if self.left_out > 0 && self.take_place(now) {
            let count = std::mem::take(&mut self.left_out);
            self.events.push(Event::LeftOut { count });
        }
    }

    /// Takes the events found since the last call.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// When programs may send one more.
    fn place_at(&self) -> Moment {
        Moment::from_boot(self.full_at.since_boot().saturating_sub(ONE_MORE_AFTER * (BURST - 1)))
    }

    fn take_place(&mut self, now: Moment) -> bool {
        let is_free = now >= self.place_at();
        if is_free {
            self.full_at = self.full_at.max(now) + ONE_MORE_AFTER;
        }
        is_free
    }
}

#[cfg(test)]
mod tests;
