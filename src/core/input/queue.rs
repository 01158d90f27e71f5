//! The bytes that wait for the terminal: writes in order, and the terminal's own answers.

use std::collections::VecDeque;

use crate::core::caller::Caller;
use crate::core::ids::Epoch;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::progress::{PasteEdge, PieceProgress};
use crate::core::input::request::{NextBytes, WriteId, WriteOutcome};
use crate::core::keys::{Piece, Unit};
use crate::core::lease::request::HoldToken;
use crate::core::moment::Moment;

/// A caller that waits for the end of its write.
#[derive(Debug)]
pub(super) struct Awaited {
    /// When it is answered even if bytes are left.
    pub until: Moment,
    /// Keeps its lease alive meanwhile, unless the write does until it is taken.
    pub hold: Option<HoldToken>,
}

/// One write in the queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub write: WriteId,
    pub writer: Caller,
    pub epoch: Epoch,
    pub progress: PieceProgress,
    pub awaited: Option<Awaited>,
    /// Keeps the lease alive until the terminal has taken the last byte.
    pub until_taken: Option<HoldToken>,
    pub discarded: usize,
    /// By what the next daemon knows it, if it is ever asked for again.
    pub stamp: Option<WriteStamp>,
    /// By what this daemon knows it then.
    pub own: Option<WriteStamp>,
}

/// A write to be queued.
#[derive(Debug)]
pub(super) struct NewWrite {
    pub write: WriteId,
    pub unit: Unit,
    pub epoch: Epoch,
    /// Keeps the lease alive until the terminal has taken the last byte.
    pub until_taken: Option<HoldToken>,
    pub stamp: Option<WriteStamp>,
    pub own: Option<WriteStamp>,
}

impl Queued {
    pub(super) fn outcome(&self) -> WriteOutcome {
        let queued = self.progress.rest().len();
        WriteOutcome { written: self.progress.sent(), discarded: self.discarded, queued }
    }

    pub(super) fn take_holds(&mut self) -> impl Iterator<Item = HoldToken> + use<> {
        let awaited = self.awaited.as_mut().and_then(|awaited| awaited.hold.take());
        [awaited, self.until_taken.take()].into_iter().flatten()
    }

    /// Whose paste is open once all of it has gone out, if `before` is the one before it.
    fn paste_after(&self, before: Option<Epoch>) -> Option<Epoch> {
        match self.progress.last_mark() {
            Some(PasteEdge::Start) => Some(self.epoch),
            Some(PasteEdge::End) => None,
            None => before,
        }
    }

    fn is_done(&self) -> bool {
        self.progress.rest().is_empty()
    }
}

/// Whose bytes go out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextOut {
    Answers,
    Write,
    Nobody,
}

/// Everything that waits for the terminal.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    writes: VecDeque<Queued>,
    answers: Vec<u8>,
    /// The epoch whose bracketed paste is open where the first write begins.
    paste: Option<Epoch>,
    /// The paste was cut short and is to be closed before anything else goes out.
    closes_paste: bool,
}

impl WriteQueue {
    pub(super) const BYTES_MAX: usize = 1 << 20;
    pub(super) const WRITES_MAX: usize = 256;
    pub(super) const ANSWER_BYTES_MAX: usize = 4 << 10;

    pub(super) fn bytes(&self) -> usize {
        self.writes.iter().map(|queued| queued.progress.rest().len()).sum()
    }

    pub(super) fn bytes_before_last(&self) -> usize {
        let before = self.writes.iter().rev().skip(1);
        before.map(|queued| queued.progress.rest().len()).sum()
    }

    /// How many would wait if all were cut: only one that has begun leaves anything.
    pub(super) fn tail(&self) -> usize {
        self.writes.front().map_or(0, |front| front.progress.tail())
    }

    pub(super) fn writes(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn has_writes_of(&self, epoch: Option<Epoch>) -> bool {
        self.writes.iter().any(|queued| Some(queued.epoch) == epoch)
    }

    pub(super) fn push(&mut self, writer: Caller, new: NewWrite, awaited: Awaited) {
        let NewWrite { write, unit, epoch, until_taken, stamp, own } = new;
        self.writes.push_back(Queued {
            write,
            writer,
            epoch,
            progress: PieceProgress::new(unit),
            awaited: Some(awaited),
            until_taken,
            discarded: 0,
            stamp,
            own,
        });
    }

    /// Queues an answer of the terminal whole, or not at all; says which.
    pub(super) fn push_answer(&mut self, bytes: &[u8]) -> bool {
        let fits = self.answers.len() + bytes.len() <= Self::ANSWER_BYTES_MAX;
        if fits {
            self.answers.extend_from_slice(bytes);
        }
        fits
    }

    fn turn(&self) -> NextOut {
        match self.writes.front() {
            Some(front) if !front.progress.may_pause(self.paste.is_some()) => NextOut::Write,
            // The rest of an open paste is still to come, and whatever came between would be part of
            // it for the program.
            None if self.paste.is_some() => NextOut::Nobody,
            Some(_) | None if !self.answers.is_empty() => NextOut::Answers,
            Some(_) => NextOut::Write,
            None => NextOut::Nobody,
        }
    }

    pub(super) fn next(&self) -> Option<NextBytes<'_>> {
        match (self.turn(), self.writes.front()) {
            (NextOut::Answers, _) => {
                Some(NextBytes { bytes: &self.answers, epoch: None, stamp: None, own: None })
            }
            (NextOut::Write, Some(front)) => {
                let Queued { progress, epoch, stamp, own, .. } = front;
                let bytes = match self.answers.is_empty() {
                    true => progress.rest(),
                    false => progress.rest_until_pause(self.paste.is_some()),
                };
                Some(NextBytes { bytes, epoch: Some(*epoch), stamp: *stamp, own: *own })
            }
            (NextOut::Write | NextOut::Nobody, _) => None,
        }
    }

    pub(super) fn on_taken(&mut self, count: usize) {
        match (self.turn(), self.writes.front_mut()) {
            (NextOut::Answers, _) => {
                self.answers.drain(..count.min(self.answers.len()));
            }
            (NextOut::Write, Some(front)) => front.progress.advance(count),
            (NextOut::Write | NextOut::Nobody, _) => {}
        }
    }

    /// Cuts the writes of the epochs that `ends` names as short as is harmless, and hands each to
    /// `tell` with the number of bytes it lost. What is left of one that has begun stays in front.
    pub(super) fn cut(
        &mut self,
        ends: impl Fn(Epoch) -> bool,
        mut tell: impl FnMut(&mut Queued, usize),
    ) {
        for queued in self.writes.iter_mut().filter(|queued| ends(queued.epoch)) {
            let discarded = queued.progress.cut();
            queued.discarded += discarded;
            tell(queued, discarded);
        }
        // What is left of the first one goes out for certain, so the paste is judged by its end.
        let left_open = match self.writes.front() {
            Some(front) if ends(front.epoch) => front.paste_after(self.paste),
            Some(_) | None => self.paste,
        };
        self.closes_paste |= left_open.is_some_and(ends);
    }

    /// Takes out the first write of which no byte is left.
    pub(super) fn take_done(&mut self) -> Option<Queued> {
        let at = self.writes.iter().position(Queued::is_done);
        if let Some(done) = at.and_then(|at| self.writes.remove(at)) {
            self.paste = done.paste_after(self.paste);
            return Some(done);
        }
        let cut_is_out = self.writes.front().is_none_or(|front| front.progress.sent() == 0);
        if self.closes_paste && cut_is_out {
            self.close_former_paste();
            (self.paste, self.closes_paste) = (None, false);
        }
        None
    }

    /// Has whatever comes next not be taken for pasted text.
    pub(super) fn close_former_paste(&mut self) {
        self.answers.splice(..0, Piece::PASTE_END.iter().copied());
    }

    /// Takes out the callers that have waited long enough by now; their writes stay.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<(WriteId, WriteOutcome, Awaited)> {
        let is_late = |awaited: &mut Awaited| awaited.until <= now;
        let overdue = self.writes.iter_mut().filter_map(|queued| {
            let awaited = queued.awaited.take_if(is_late)?;
            Some((queued.write, queued.outcome(), awaited))
        });
        overdue.collect()
    }

    /// Has a caller wait for the write with this stamp, until then at most; none when none waits here.
    pub(super) fn await_again(&mut self, stamp: &WriteStamp, until: Moment) -> Option<WriteId> {
        let queued = self.writes.iter_mut().find(|queued| queued.stamp.as_ref() == Some(stamp))?;
        queued.awaited.get_or_insert(Awaited { until, hold: None });
        Some(queued.write)
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        self.writes.iter().filter_map(|queued| Some(queued.awaited.as_ref()?.until)).min()
    }

    pub(super) fn take_all(&mut self) -> Vec<Queued> {
        self.answers.clear();
        (self.paste, self.closes_paste) = (None, false);
        self.writes.drain(..).collect()
    }
}
