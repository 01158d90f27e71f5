//! What happens in one session, as events: each is told once, also over a restart of the daemon.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::core::burst::Burst;
use crate::core::event::Event;
use crate::core::frame::Frame;
use crate::core::ids::TenantId;
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::core::screen::sequence::{Report, TaskProgress};
use crate::core::shell::activity::ActivityState;
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::record::{CommandId, CommandRecord};

/// A program that gets its input sooner needs nobody's attention.
pub const NEEDS_INPUT_AFTER: Duration = Duration::from_millis(500);

/// How many events programs may send at once, and how soon one more.
const AT_ONCE: u32 = 10;
const ONE_MORE_AFTER: Duration = Duration::from_secs(1);

/// The longest title and text that a program sends, in bytes.
const TITLE_MAX: usize = 80;
const BODY_MAX: usize = 400;

/// What a daemon before told of a session, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldEvents {
    /// Whose session it is.
    pub tenant: Option<TenantId>,
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
            ToldEvent::SessionCreated => {}
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
    SessionCreated,
    SessionEnded,
}

/// Whether the program waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputWait {
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
    waiting: InputWait,
    is_over: bool,
    /// How often the bell rang as it was told last, and in the newest frame.
    bell: u64,
    seen_bell: u64,
    /// What was sent before this place in the output was told, or waits.
    offset: u64,
    places: Burst,
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
            waiting: if told.waits { InputWait::Told } else { InputWait::No },
            is_over: told.is_over,
            bell: told.bell.unwrap_or(first.bell.value),
            seen_bell: first.bell.value,
            offset: told.offset,
            places: Burst::new(AT_ONCE, ONE_MORE_AFTER),
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
            _ if !waits => InputWait::No,
            InputWait::No => InputWait::Since(now),
            waiting @ (InputWait::Since(_) | InputWait::Told) => waiting,
        };
        let seen = std::mem::replace(&mut self.seen_bell, frame.bell.value);
        if frame.bell.value < seen {
            // Another emulator counts from the beginning.
            self.bell = frame.bell.value;
        } else if frame.bell.value > self.bell {
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

    /// Takes what programs sent in a piece of the output, and how much more they sent that is not kept.
    pub fn on_reports(
        &mut self,
        now: Moment,
        reports: Vec<Report>,
        left_out: u64,
        (start, end): (u64, u64),
    ) {
        if end <= self.offset {
            return;
        }
        let first = self.events.len();
        self.left_out += left_out;
        for report in reports {
            match report {
                Report::Directory(_) => {}
                Report::Progress(progress) => self.progress = Some((progress, end)),
                Report::Notification { title, body } if self.places.take(now) => {
                    // A later notification must not make the next daemon take this for told.
                    self.tell_progress();
                    let title = title.map(|title| cut(&title, TITLE_MAX));
                    let body = cut(&body, BODY_MAX);
                    self.events.push(Event::Notification { title, body, offset: start });
                }
                Report::Notification { .. } => self.left_out += 1,
            }
        }
        self.offset = end;
        // Only the last one says that the whole piece was told: a daemon that ends before tells the others again.
        if let Some(Event::Notification { offset, .. }) = self.events[first..].last_mut() {
            *offset = end;
        }
    }

    fn tell_progress(&mut self) {
        if let Some((progress, offset)) = self.progress.take() {
            self.events.push(Event::Progress { progress, offset });
        }
    }

    /// When something is to be told that waits.
    pub fn due(&self) -> Option<Moment> {
        let waiting = match self.waiting {
            InputWait::Since(since) => Some(since + NEEDS_INPUT_AFTER),
            InputWait::No | InputWait::Told => None,
        };
        let sent = self.rung.is_some() || self.progress.is_some() || self.left_out > 0;
        let sent = sent.then(|| self.places.free_at());
        waiting.into_iter().chain(sent).min()
    }

    /// Finds what has become due; `frame` is the newest.
    pub fn on_time(&mut self, now: Moment, frame: &Frame) {
        if let InputWait::Since(since) = self.waiting
            && now >= since + NEEDS_INPUT_AFTER
        {
            self.waiting = InputWait::Told;
            let activity = &frame.activity.value;
            let program = activity.foreground.as_ref().and_then(|front| front.program.clone());
            let is_secret = activity.state == ActivityState::SecretPrompt;
            self.events.push(Event::NeedsInput { is_secret, program });
        }
        if self.rung.is_some()
            && self.places.take(now)
            && let Some(count) = self.rung.take()
        {
            self.events.push(Event::Bell { count });
        }
        if self.progress.is_some() && self.places.take(now) {
            self.tell_progress();
        }
        if self.left_out > 0 && self.places.take(now) {
            let (count, offset) = (std::mem::take(&mut self.left_out), self.offset);
            self.events.push(Event::LeftOut { count, offset });
        }
    }

    /// Takes the events found since the last call.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// The beginning of a text, on one line.
fn cut(text: &str, most: usize) -> String {
    let line = one_line(text);
    line[..line.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests;
