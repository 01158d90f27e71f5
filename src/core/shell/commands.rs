//! The commands that ran in a session: what they were, who sent them, how they ended, and what they
//! printed.
//!
//! A shell that marks its prompts and commands (OSC 133) tells all of it; of others is known what
//! was sent and when they were ready again.

pub mod mark;
mod marked_ends;
pub mod output;
pub mod record;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::ids::Watermark;
use crate::core::moment::Moment;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::output::Output;
use crate::core::shell::commands::record::{CommandId, CommandRecord, Finish, Here, Position};

/// Where a shell is between its prompts, as it marked it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellPhase {
    /// It marks nothing, has not yet, or does not any more.
    #[default]
    Unmarked,
    /// It writes its prompt, or is about to.
    Prompting,
    /// It reads a command line.
    Reading,
    Running,
}

/// How the end of a command that was sent is going to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsBy {
    /// The shell marks it.
    Marks,
    /// The shell is in front again and waits.
    Kernel,
    /// What runs in the terminal shows its prompt again and is quiet.
    Prompt,
}

/// A command that was sent and whose end is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCommand {
    pub id: CommandId,
    pub ends_by: EndsBy,
    /// What stood before the cursor when it was sent.
    pub prompt: Arc<str>,
    /// What was typed for it; after a restart, its text as far as that is kept.
    pub typed: Arc<str>,
    /// The screen was wrapped anew or reset since: where the command began says nothing any more.
    pub rows_moved: bool,
}

impl SentCommand {
    /// Whether it is nothing but comments and empty lines, of which shells tell neither a beginning nor
    /// an end.
    fn is_comment(&self) -> bool {
        self.typed.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with('#'))
    }
}

/// What is sent as one command.
#[derive(Clone, Debug)]
pub struct Submission<'a> {
    pub text: &'a str,
    /// What is typed for it: of a command that a shell reads from a file, the line that has it do so.
    pub typed: &'a str,
    pub by: Option<Arc<str>>,
    pub ends_by: EndsBy,
    pub prompt: &'a str,
    /// What is typed is shown, and so stands before the output.
    pub echoed: bool,
}

/// The commands of one session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    list: VecDeque<Arc<CommandRecord>>,
    last: CommandId,
    phase: ShellPhase,
    /// How many prompts the shell has marked, as far as that was seen.
    prompts: u64,
    /// Where the shell began to read a line.
    reading_at: Option<Position>,
    sent: Option<SentCommand>,
    /// The command sent before it, of which it is a part.
    outer: Option<SentCommand>,
    /// Where the shell prompted without ending what runs, or what it was sent, before.
    prompted_at: Option<Position>,
    /// The first frame after a line that was no command has this watermark.
    idled: Watermark,
    /// The shell said with its last prompt that its line editor knows our key.
    bound: bool,
    /// The last code that a shell other than the one that marks told before a prompt.
    told: Option<ToldCode>,
    /// The shell said, where programs can as well, that the output of what runs has ended.
    end_told: bool,
}

/// A code that a shell told before it showed its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToldCode {
    code: Option<i32>,
    at: Moment,
    /// Where its prompt begins.
    position: Position,
}

impl Commands {
    /// How many commands are kept; of more the newest.
    pub const KEPT_MAX: usize = 256;

    /// Puts together what was kept.
    pub(crate) fn restored(
        list: VecDeque<Arc<CommandRecord>>,
        last: CommandId,
        phase: ShellPhase,
        reading_at: Option<Position>,
        (sent, outer): (Option<SentCommand>, Option<SentCommand>),
    ) -> Self {
        Self { list, last, phase, reading_at, sent, outer, ..Self::default() }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<CommandRecord>> {
        self.list.iter()
    }

    /// One of them.
    pub fn get(&self, id: CommandId) -> Option<&Arc<CommandRecord>> {
        let at = self.list.binary_search_by_key(&id, |record| record.id).ok()?;
        self.list.get(at)
    }

    /// The number of the newest; 0 when there was none.
    pub fn last(&self) -> CommandId {
        self.last
    }

    /// Gives no command that is still to come this number or a lower one.
    pub(crate) fn number_after(&mut self, id: CommandId) {
        self.last = self.last.max(id);
    }

    pub fn phase(&self) -> ShellPhase {
        self.phase
    }

    /// How many prompts the shell has marked, as far as that was seen.
    pub fn prompts(&self) -> u64 {
        self.prompts
    }

    pub fn reading_at(&self) -> Option<Position> {
        self.reading_at
    }

    /// The command that was sent and has not ended.
    pub fn sent(&self) -> Option<&SentCommand> {
        self.sent.as_ref()
    }

    /// The command before, of which the one that was sent is a part.
    pub fn outer(&self) -> Option<&SentCommand> {
        self.outer.as_ref()
    }

    /// Where the shell prompted again though nothing told of the end of what it was given: some take
    /// a line back, and some had their marks taken away.
    pub fn prompted_at(&self) -> Option<Position> {
        self.prompted_at
    }

    /// Whether the shell took a line after this watermark that was no command, such as an empty one
    /// or one that it could not read.
    pub fn idled_after(&self, mark: Watermark) -> bool {
        self.idled > mark
    }

    /// Whether the shell said that its line editor knows the key by which it begins an empty line; one
    /// that was started by an older daemon does not.
    pub fn knows_key(&self) -> bool {
        self.bound
    }

    /// The newest that has not ended.
    pub fn running(&self) -> Option<&Arc<CommandRecord>> {
        self.list.iter().rev().find(|record| record.finish.is_none())
    }

    /// Whether it is known and has not ended.
    pub fn is_open(&self, id: CommandId) -> bool {
        self.get(id).is_some_and(|record| record.finish.is_none())
    }

    /// The newest that ended after this watermark; of those that ended with it, the one whose code is known.
    pub fn ended_after(&self, mark: Watermark) -> Option<&Arc<CommandRecord>> {
        let after = |finish: &Finish| finish.ran && finish.mark > mark;
        let ended = |record: &&Arc<CommandRecord>| record.finish.as_ref().is_some_and(after);
        let newest = self.list.iter().rev().find(ended)?;
        let with_code = |finish: &Finish| {
            finish.code.is_some() && Some(finish.mark) == newest.finish.map(|finish| finish.mark)
        };
        let outer = self.list.iter().find(|record| record.finish.as_ref().is_some_and(with_code));
        Some(outer.unwrap_or(newest))
    }

    pub fn submit(&mut self, submission: Submission<'_>, here: &Here) -> CommandId {
        // It may be the rest of what was sent to a program that asks for it.
        if let Some(sent) = self.sent.as_ref().filter(|sent| sent.ends_by == EndsBy::Prompt) {
            let id = sent.id;
            self.finish(id, here, None, Evidence::Pattern, true);
        }
        // What it is for goes on below what it has started.
        self.outer = self.sent.take().filter(|sent| sent.ends_by == EndsBy::Kernel);
        let Submission { text, typed, by, ends_by, prompt, echoed } = submission;
        let lines = if echoed { typed.matches('\n').count() + 1 } else { 0 };
        let mut record = CommandRecord::open(self.next_id(), text, here.now, here.position);
        record.by = by;
        record.echo_lines = u16::try_from(lines).unwrap_or(u16::MAX);
        let id = record.id;
        self.push(record);
        self.sent = Some(SentCommand {
            id,
            ends_by,
            prompt: prompt.into(),
            typed: typed.into(),
            rows_moved: false,
        });
        self.prompted_at = None;
        id
    }

    /// Forgets a command of which nothing was sent. No other gets its number.
    pub fn withdraw(&mut self, id: CommandId) {
        self.list.retain(|record| record.id != id);
        if self.sent.as_ref().is_some_and(|sent| sent.id == id) {
            self.sent = self.outer.take();
        }
        self.number_after(id);
    }

    /// Ends the command that was sent, whose end nothing marks.
    pub fn finish_sent(&mut self, here: &Here, evidence: Evidence, ran: bool) {
        if let Some(sent) = &self.sent {
            let (id, told) = (sent.id, self.told_code(sent));
            let code = told.and_then(|told| told.code).filter(|_| !sent.is_comment());
            let position = told.map_or(here.position, |told| told.position);
            self.finish(id, &Here { position, ..*here }, code, evidence, ran);
        }
    }

    /// A shell that marks no more than this is about to show its prompt, and tells with what code its last command ended.
    pub(crate) fn on_told_code(&mut self, code: Option<i32>, here: &Here) {
        self.told = Some(ToldCode { code, at: here.now, position: here.position });
    }

    /// Whether there was such a shell.
    pub fn tells_codes(&self) -> bool {
        self.told.is_some()
    }

    /// Whether such a shell has begun a prompt since this moment.
    pub fn told_since(&self, since: Moment) -> bool {
        self.told.is_some_and(|told| told.at > since)
    }

    /// Whether the end of what was sent was told in this way.
    pub fn is_told(&self, sent: &SentCommand) -> bool {
        self.told_code(sent).is_some()
    }

    fn told_code(&self, sent: &SentCommand) -> Option<ToldCode> {
        let started = self.get(sent.id)?.started;
        self.told.filter(|told| sent.ends_by != EndsBy::Marks && told.at > started)
    }

    /// Ends all that runs, because the program of the session has ended; what ran in its shell ended
    /// with this code.
    pub fn on_exit(&mut self, here: &Here, code: Option<i32>) {
        for id in self.unfinished() {
            self.finish(id, here, code, Evidence::Exit, true);
        }
        (self.phase, self.reading_at) = (ShellPhase::Unmarked, None);
    }

    /// Notes that what the screen shows has other places now.
    pub fn on_rows_moved(&mut self, cursor: Position) {
        if let Some(reading_at) = &mut self.reading_at {
            *reading_at = cursor;
        }
        self.prompted_at = None;
        if let Some(sent) = &mut self.sent {
            sent.rows_moved = true;
        }
    }

    /// Keeps what a command printed, and of all commands about so many bytes: of older ones less.
    pub(crate) fn keep_output(&mut self, id: CommandId, output: Output, bytes_max: usize) {
        self.change(id, |record| record.output = output.into());
        let mut room = bytes_max;
        for record in self.list.iter_mut().rev() {
            if record.output.bytes() > room {
                let record = Arc::make_mut(record);
                Arc::make_mut(&mut record.output).trim(room);
            }
            room -= record.output.bytes().min(room);
        }
    }

    pub fn on_alternate(&mut self) {
        if let Some(id) = self.running().map(|record| record.id) {
            self.change(id, |record| record.full_screen = true);
        }
    }

    fn finish(
        &mut self,
        id: CommandId,
        here: &Here,
        code: Option<i32>,
        evidence: Evidence,
        ran: bool,
    ) {
        let finish = Finish { code, evidence, ran, at: here.now, mark: here.mark };
        self.change(id, |record| record.close(here, finish));
        if self.sent.as_ref().is_some_and(|sent| sent.id == id) {
            self.sent = self.outer.take();
        }
    }

    fn change(&mut self, id: CommandId, change: impl FnOnce(&mut CommandRecord)) {
        if let Ok(at) = self.list.binary_search_by_key(&id, |record| record.id) {
            change(Arc::make_mut(&mut self.list[at]));
        }
    }

    fn unfinished(&self) -> Vec<CommandId> {
        self.list.iter().filter(|record| record.finish.is_none()).map(|record| record.id).collect()
    }

    fn next_id(&mut self) -> CommandId {
        self.last.0 += 1;
        self.last
    }

    fn push(&mut self, record: CommandRecord) {
        if self.list.len() == Self::KEPT_MAX {
            // What runs is a part of something; there are never more than a few of those.
            let ended = self.list.iter().position(|record| record.finish.is_some());
            self.list.remove(ended.unwrap_or(0));
        }
        self.list.push_back(Arc::new(record));
    }
}

#[cfg(test)]
mod tests;
