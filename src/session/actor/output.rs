//! What the program wrote, on its way into the screen, and a terminal that falls silent.
//!
//! Output is fed in slices. Between two of them, everybody else who asks the session's task for something has a turn,
//! and so have other tasks. While the terminal is silent, the session can be read and ended, and waits for the rest.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::core::frame::Exit;
use crate::core::input::request::DiscardCause;
use crate::core::moment::Moment;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::CommandId;
use crate::session::actor::Actor;
use crate::session::actor::ending::END_TOLD_MAX;
use crate::session::actor::looks::Looks;
use crate::session::pty::{Pty, ReadOutput};
use crate::session::records::Gap;
use crate::session::records::commands::UncoveredCommand;
use crate::session::restore::CANCEL;

/// How long feeding a slice may take; much less, and the next one is longer.
const SLICE_TIME: Duration = Duration::from_micros(500);

/// The shortest slice, and the one that a session begins with, in bytes.
const SLICE_MIN: usize = 1024;

const SLICE_FIRST: usize = 16 * 1024;

/// How long output waits for somebody who compares every row and does not keep up.
const HOLD_MAX: Duration = Duration::from_millis(100);

/// How long it then does not wait again, so that those who wait slow a program down by a tenth at most.
const HOLD_PAUSE: Duration = Duration::from_secs(1);

/// The longest slice while somebody compares every row, where history is short.
const FOLLOWED_SLICE_MIN: usize = 1024;

/// Output that waits for those who compare every row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    None,
    Until(Moment),
    /// They were waited for, and are not before this, and before they have caught up.
    GivenUp(Moment),
}

impl<P: Pty> Actor<P> {
    pub(super) async fn on_output(&mut self, output: std::io::Result<ReadOutput>) {
        match output {
            Ok(ReadOutput::Bytes(count)) => {
                self.count_output(self.unfed.offset + count as u64);
                self.unfed.on_read(self.clock.now());
                self.feed_slice();
            }
            Ok(ReadOutput::End) => {
                let exit = self.pty.exited().await;
                if exit == Exit::Lost && self.pty.is_superseded() {
                    self.make_way().await;
                }
                self.on_exit(exit);
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput && self.skip_lost() => {}
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the terminal cannot be read");
                let _ = self.pty.kill().await;
                let exit = timeout(END_TOLD_MAX, self.pty.exited()).await;
                self.on_exit(exit.unwrap_or(Exit::Unknown));
            }
        }
        self.catch_up();
    }

    /// Publishes what was there when the session was found, once all of that is on the screen.
    pub(super) fn catch_up(&mut self) {
        if self.ending.exit.is_some() || self.outlets.live.catches_up(self.unfed.offset) {
            self.publish_output();
            self.outlets.live.set_caught_up();
        }
    }

    /// Tells that another daemon has the session, and answers nobody any more: whoever asks here is to ask
    /// there, and finds that daemon once this one has ended.
    async fn make_way(&mut self) {
        tracing::error!(session = %self.id, "another daemon has taken over its terminal");
        self.outlets.facts.tell_superseded();
        std::future::pending::<()>().await;
    }

    /// Goes on behind output that is not there any more, and says whether there was any: whoever keeps
    /// the terminal may have taken this daemon for gone while neither heard the other.
    pub(super) fn skip_lost(&mut self) -> bool {
        let oldest = self.pty.oldest();
        let bytes = oldest.saturating_sub(self.unfed.offset);
        if bytes == 0 {
            return false;
        }
        tracing::warn!(session = %self.id, bytes, "output was lost");
        // It is no output, and counts as none.
        let now = self.clock.now();
        self.submit_again_before(oldest);
        self.screen.feed(now, CANCEL);
        self.screen.on_lost_output();
        self.shell.on_output(now);
        self.pace.dirty = true;
        self.unfed.offset = oldest;
        self.reserve.seen = self.reserve.seen.max(oldest);
        let uncounted = oldest.saturating_sub(self.reserve.counted);
        self.reserve.counted += uncounted;
        self.outlets.live.output_bytes.add(uncounted);
        let row = self.screen.cursor_row();
        self.remember_gap(Gap { row, bytes: Some(bytes), since: None });
        true
    }

    /// Counts the output before this offset, unless that was done.
    fn count_output(&mut self, end: u64) {
        let more = end.saturating_sub(self.reserve.counted);
        self.reserve.counted += more;
        self.outlets.live.output_bytes.add(more);
        self.outlets.counters.output_bytes.add(more);
    }

    /// Puts all that was read on the screen: one read at most.
    pub(super) fn feed_rest(&mut self) {
        while !self.unfed.is_empty() {
            self.feed_slice();
        }
    }

    pub(super) fn feed_slice(&mut self) {
        // What was answered before is not answered again.
        let answered = usize::try_from(self.unfed.answered.saturating_sub(self.unfed.offset));
        let answered = answered.unwrap_or(usize::MAX);
        let most = if answered > 0 { answered } else { usize::MAX };
        let most = most.min(self.screen.slice_bytes()).min(self.followed_slice());
        let most = most.min(self.unfed.before_uncovered()).min(self.untold_from());
        let slice = self.unfed.take(most);
        let begun = self.clock.now();
        self.feed(slice.bytes(), answered == 0);
        self.unfed.put_back(slice, self.clock.now().since(begun));
        self.submit_again();
        self.note_output();
    }

    /// How much output was looked through for events before, in bytes; a slice does not go beyond.
    fn untold_from(&self) -> usize {
        let told = usize::try_from(self.events.told_bytes(self.unfed.offset));
        told.ok().filter(|told| *told > 0).unwrap_or(usize::MAX)
    }

    /// Submits the commands again that were sent behind the output that was fed. Once there are none left,
    /// those to come are numbered after all that anybody was told of.
    pub(super) fn submit_again(&mut self) {
        self.submit_again_before(self.unfed.offset + 1);
        let last = self.records.commands().last_before(&self.unfed.uncovered);
        if self.screen.commands().last() < last {
            self.screen.number_commands_after(last);
        }
    }

    /// Submits the commands again that were sent before this output. Returns whether there were any.
    pub(super) fn submit_again_before(&mut self, offset: u64) -> bool {
        let mut any = false;
        while let Some(command) = self.unfed.uncovered.pop_front_if(|one| one.offset < offset) {
            // That one had ended for this to be sent; what told its end is lost.
            if self.screen.commands().sent().is_some() {
                self.screen.finish_sent(command.at(), Evidence::Idle);
            }
            self.screen.number_commands_after(CommandId(command.id().0.saturating_sub(1)));
            self.screen.submit(command.at(), command.submission());
            (self.pace.dirty, any) = (true, true);
        }
        any
    }

    /// The longest slice that those who compare every row allow, in bytes: each may end a row.
    fn followed_slice(&self) -> usize {
        let rows = || self.screen.history().limits().rows_max / 2;
        let followed = self.outlets.live.row_followers.next_row().is_some();
        if followed { rows().max(FOLLOWED_SLICE_MIN) } else { usize::MAX }
    }

    /// Has the rest of the output wait once those who compare every row have not read half of what history
    /// holds.
    pub(super) fn hold_for_followers(&mut self) {
        let row = self.outlets.live.row_followers.next_row();
        let behind = row.is_some_and(|row| self.screen.history().is_half_after(row))
            && !self.ending.is_killing();
        let now = self.clock.now();
        self.unfed.hold = match self.unfed.hold {
            Hold::GivenUp(until) if behind || now < until => Hold::GivenUp(until),
            Hold::Until(until) if behind && now >= until => Hold::GivenUp(now + HOLD_PAUSE),
            Hold::Until(until) if behind => Hold::Until(until),
            Hold::None if behind => {
                // Half a synchronized update is shown to nobody.
                if self.screen.hold_until().is_none_or(|until| until <= now) {
                    self.publish_output();
                }
                Hold::Until(now + HOLD_MAX)
            }
            Hold::None | Hold::Until(_) | Hold::GivenUp(_) => Hold::None,
        };
    }

    /// Gives the output from here on to the emulator.
    fn feed(&mut self, bytes: &[u8], answers: bool) {
        let now = self.clock.now();
        let end = self.unfed.offset + bytes.len() as u64;
        self.reserve.seen = self.reserve.seen.max(end);
        self.record_output(now, bytes);
        self.screen.feed(now, bytes);
        self.unfed.offset = end;
        self.take_reports(now, (end - bytes.len() as u64, end));
        let answer = self.screen.take_answers();
        if answers && !answer.is_empty() {
            self.input.answer(&answer);
            self.shell.on_answer(self.screen.commands());
        }
        self.shell.on_output(now);
        self.pace.dirty = true;
    }
}

/// Output on its way to the screen.
#[derive(Debug)]
pub(super) struct Unfed {
    /// How much output was fed, in bytes.
    pub(super) offset: u64,
    /// The queries in the output before this offset were answered by a daemon before.
    pub(super) answered: u64,
    /// All of it is output; what was fed of it stays until the rest is.
    pub(super) bytes: Vec<u8>,
    /// The commands that were sent behind output to come, as a daemon before, or a task that failed, noted
    /// them.
    pub(super) uncovered: VecDeque<UncoveredCommand>,
    fed: usize,
    /// When it was read.
    since: Moment,
    slice: usize,
    hold: Hold,
}

impl Unfed {
    pub(super) fn new(
        now: Moment,
        offset: u64,
        answered: u64,
        uncovered: VecDeque<UncoveredCommand>,
    ) -> Self {
        let (bytes, fed, slice) = (Vec::new(), 0, SLICE_FIRST);
        Self { offset, answered, bytes, uncovered, fed, since: now, slice, hold: Hold::None }
    }

    /// How much may be fed before the next command is to be submitted again, in bytes.
    fn before_uncovered(&self) -> usize {
        let next = self.uncovered.front().map(|next| next.offset.saturating_sub(self.offset));
        next.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fed == self.bytes.len()
    }

    pub(super) fn is_held(&self) -> bool {
        self.held_until().is_some()
    }

    pub(super) fn held_until(&self) -> Option<Moment> {
        match self.hold {
            Hold::Until(until) => Some(until),
            Hold::None | Hold::GivenUp(_) => None,
        }
    }

    /// When the oldest of it was read; none when there is none.
    pub(super) fn since(&self) -> Option<Moment> {
        (!self.is_empty()).then_some(self.since)
    }

    /// Notes that more was read just now, after all before it was fed.
    pub(super) fn on_read(&mut self, now: Moment) {
        self.since = now;
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fed = 0;
    }

    /// Gives back the memory of the longest read, once all is fed.
    pub(super) fn rest(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            self.fed = 0;
        }
    }

    /// Takes the next slice out, of so many bytes at most, to be given back with [`Unfed::put_back`].
    pub(super) fn take(&mut self, most: usize) -> Slice {
        let length = self.slice.min(most).min(self.bytes.len() - self.fed);
        let from = self.fed;
        self.fed += length;
        Slice { bytes: std::mem::take(&mut self.bytes), from, length }
    }

    /// Gives a slice back that was fed, which took so long.
    pub(super) fn put_back(&mut self, slice: Slice, took: Duration) {
        let Slice { bytes, length, .. } = slice;
        self.bytes = bytes;
        if self.is_empty() {
            self.clear();
        }
        if took > SLICE_TIME {
            self.slice = (length / 2).max(SLICE_MIN);
        } else if took < SLICE_TIME / 4 && length == self.slice {
            self.slice = self.slice.saturating_mul(2).min(SLICE_FIRST * 4);
        }
    }
}

/// A piece of output, while it is fed.
#[derive(Debug)]
pub(super) struct Slice {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Slice {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.from + self.length]
    }
}

impl<P: Pty> Actor<P> {
    /// Whether it matters if the terminal is silent.
    pub(super) fn minds_silence(&self) -> bool {
        self.returning.is_some() || self.ending.exit.is_none()
    }

    /// Begins to wait for a terminal that has fallen silent.
    pub(super) fn mind_silence(&mut self) {
        if self.returning.is_none() && self.ending.exit.is_none() && self.pty.is_silent() {
            tracing::warn!(session = %self.id, "its shim does not answer; retrying");
            let pty = Arc::clone(&self.pty);
            self.returning = Some(Box::pin(async move { pty.returned().await }));
        }
    }

    /// Nobody knows how much of the input on its way was taken, so none of it is written again.
    pub(super) fn on_silence(&mut self) {
        self.input.discard(self.clock.now(), DiscardCause::TerminalSilent);
        self.mind_silence();
    }

    pub(super) fn on_returned(&mut self) {
        self.returning = None;
        // It has forgotten what it was asked.
        self.looks = Looks::default();
        self.running.forget_questions();
        tracing::info!(session = %self.id, "its shim answers again, or has ended");
        // What a note leaves to a checkpoint is in one then.
        self.kept.forget();
        self.checkpoint_now(false);
        self.records.keep_again(&*self.pty);
        if let Err(error) = self.pty.resize(self.size) {
            tracing::debug!(session = %self.id, %error, "cannot resize the terminal");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfed(count: usize) -> Unfed {
        let mut unfed = Unfed::new(Moment::default(), 0, 0, VecDeque::new());
        unfed.bytes = vec![b'x'; count];
        unfed
    }

    /// The length of the next slice, if the one before took so long.
    fn next(unfed: &mut Unfed, took: Duration) -> usize {
        let slice = unfed.take(usize::MAX);
        let length = slice.bytes().len();
        unfed.put_back(slice, took);
        length
    }

    #[test]
    fn all_of_it_is_fed_once_and_in_its_order() {
        let mut unfed = Unfed::new(Moment::default(), 0, 0, VecDeque::new());
        unfed.bytes = (0..100_000_u32).map(|byte| byte as u8).collect();
        let expected = unfed.bytes.clone();
        let mut fed = Vec::new();
        while !unfed.is_empty() {
            let slice = unfed.take(7_000);
            assert!(slice.bytes().len() <= 7_000);
            fed.extend_from_slice(slice.bytes());
            unfed.put_back(slice, Duration::ZERO);
        }
        assert!(fed == expected && unfed.bytes.is_empty());
    }

    #[test]
    fn the_memory_of_a_long_read_is_given_back_once_all_of_it_was_fed() {
        let mut unfed = unfed(100_000);
        next(&mut unfed, Duration::ZERO);
        let left = unfed.bytes.len() - unfed.fed;
        unfed.rest();
        assert_eq!(unfed.bytes.len() - unfed.fed, left);
        while !unfed.is_empty() {
            next(&mut unfed, Duration::ZERO);
        }
        assert!(unfed.bytes.capacity() >= 100_000, "the next read needs it");
        unfed.rest();
        assert_eq!((unfed.bytes.capacity(), unfed.is_empty()), (0, true));
    }

    #[test]
    fn a_slice_that_takes_long_is_followed_by_shorter_ones_and_a_quick_one_by_longer_ones() {
        let mut unfed = unfed(10_000_000);
        let slow = [(); 8].map(|()| next(&mut unfed, Duration::from_millis(20)));
        assert!(slow.is_sorted_by(|one, other| one >= other), "{slow:?}");
        assert_eq!(slow.last(), Some(&SLICE_MIN));
        let quick = [(); 9].map(|()| next(&mut unfed, Duration::ZERO));
        assert!(quick.is_sorted(), "{quick:?}");
        assert_eq!(quick.last(), Some(&(4 * SLICE_FIRST)));
        assert_eq!(next(&mut unfed, SLICE_TIME / 2), 4 * SLICE_FIRST);
        assert_eq!(next(&mut unfed, SLICE_TIME / 2), 4 * SLICE_FIRST);
    }
}
