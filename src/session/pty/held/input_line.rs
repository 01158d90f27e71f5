//! The daemon's side of the memory through which its shim gets input. Nothing here waits: what is in the memory
//! counts as written, since the shim writes it even if this daemon is killed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::write;

use crate::session::pty::Stamp;
use crate::shim::input::ends::{AnsweredQuestion, InputClosed, InputMemory, InputSender, Wake};
use crate::shim::input::{InputHeader, InputMap, WAITING_MAX};

/// How long a shim may take to answer before it counts as silent.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// The extra time after that, in case the whole machine stood still.
const AFTER_A_STALL: Duration = Duration::from_millis(200);

/// The way of input to one shim, on one connection.
#[derive(Debug)]
pub(super) struct ShimInput {
    line: Mutex<LineState>,
    /// Wakes the shim.
    bell: OwnedFd,
}

#[derive(Debug)]
struct LineState {
    sender: InputSender<InputMap>,
    /// The highest epoch that was seen.
    epoch: u64,
    /// How many bytes that need a lease were handed over in all, by former daemons as well.
    typed: Option<u64>,
    /// Where the records end that may wait for the shim, and how many bytes of input each has.
    waiting: VecDeque<(u64, usize)>,
    outstanding: Option<Outstanding>,
}

/// What the shim has not done yet.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// What it had done last, and since when it has done no more: what it took, what it answered.
    done: (u64, u64),
    since: Duration,
    /// The machine may have stood still, so that there was no time to answer.
    again: bool,
}

/// Why nothing was put into the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    Closed(InputClosed),
    /// Input with a higher epoch came before.
    Outdated,
}

impl ShimInput {
    /// Takes the memory that the shim has just made, and its bell. `epoch` is the highest one it has seen, `typed` how
    /// much it took.
    pub(super) fn new(
        memory: OwnedFd,
        bell: OwnedFd,
        epoch: u64,
        typed: Option<u64>,
    ) -> io::Result<Self> {
        let sender = InputSender::new(InputMap::open(memory)?);
        // Whatever came as a bell must make nobody wait.
        fcntl(&bell, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK))?;
        Ok(Self {
            line: Mutex::new(LineState {
                sender,
                epoch,
                typed,
                waiting: VecDeque::new(),
                outstanding: None,
            }),
            bell,
        })
    }

    fn line(&self) -> MutexGuard<'_, LineState> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the shim.
    fn ring_if(&self, wake: Wake) {
        if wake == Wake::Ring {
            // The write fails only at 2^64 unread signals, and then the shim is awake anyway.
            let _ = write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Hands over as much as there is room for, and returns the byte count; 0 if the terminal takes nothing now.
    /// From then on it outlives this daemon.
    pub(super) fn append(
        &self,
        now: Duration,
        bytes: &[u8],
        stamp: Stamp,
    ) -> Result<usize, NotTaken> {
        let mut line = self.line();
        let epoch = stamp.epoch.map_or(0, |epoch| epoch.0);
        if epoch != 0 && epoch < line.epoch {
            return Err(NotTaken::Outdated);
        }
        let length = bytes.len().min(line.room().map_err(NotTaken::Closed)?);
        if length == 0 {
            return Ok(0);
        }
        let header = InputHeader {
            length: u32::try_from(length).expect("the memory is smaller"),
            epoch,
            // The rest of an answer is still to come.
            answered: if length == bytes.len() { stamp.answered } else { 0 },
            write: stamp.write.map_or([0; 16], |write| write.0),
        };
        line.expect_progress(now);
        let appended = line.sender.append([&header.encode(), &bytes[..length]]);
        self.ring_if(appended.map_err(NotTaken::Closed)?);
        line.epoch = line.epoch.max(epoch);
        let head = line.sender.head();
        line.waiting.push_back((head, length));
        if epoch != 0 {
            line.typed = line.typed.map(|typed| typed + length as u64);
        }
        Ok(length)
    }

    /// How many bytes that need a lease were handed over in all; `None` if the shim does not count them.
    pub(super) fn typed(&self) -> Option<u64> {
        self.line().typed
    }

    /// Whether [`Self::append`] takes anything now, or fails.
    pub(super) fn has_room(&self) -> bool {
        self.line().room() != Ok(0)
    }

    /// Has the shim ring when there is room. Look once more after this, before you wait.
    pub(super) fn wait_for_room(&self) {
        self.line().sender.wait_for_room();
    }

    /// Whether the terminal takes nothing at the moment, and so has not all that was handed over.
    pub(super) fn is_blocked(&self) -> bool {
        self.line().sender.is_blocked()
    }

    /// Whether the shim is about to write what was handed over.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.line().has_input()
    }

    /// Asks the shim to read all output that there is. Returns the number of the question.
    pub(super) fn ask(&self, now: Duration) -> u64 {
        let mut line = self.line();
        line.expect_progress(now);
        let (question, wake) = line.sender.ask();
        self.ring_if(wake);
        question
    }

    /// The newest question that was answered.
    pub(super) fn answered(&self) -> AnsweredQuestion {
        self.line().sender.answered()
    }

    /// Whether the shim serves another daemon or none, or its program has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.line().sender.is_closed()
    }

    /// When to look whether the shim is silent.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let mut line = self.line();
        line.note_progress(now);
        line.outstanding.map(|outstanding| outstanding.deadline())
    }

    /// Whether the shim is silent: it has done nothing for as long as it may take. Call this at the deadline.
    pub(super) fn stands_still(&self, now: Duration) -> bool {
        let mut line = self.line();
        line.note_progress(now);
        let Some(outstanding) = line.outstanding.as_mut().filter(|it| it.deadline() <= now) else {
            return false;
        };
        let had_its_time = outstanding.again;
        // If the machine itself stood still, the shim could not answer earlier.
        (outstanding.again, outstanding.since) = (true, now);
        had_its_time
    }
}

impl Outstanding {
    fn deadline(&self) -> Duration {
        self.since + if self.again { AFTER_A_STALL } else { PATIENCE }
    }
}

impl LineState {
    /// How many bytes can be handed over now.
    fn room(&mut self) -> Result<usize, InputClosed> {
        if self.sender.is_blocked() {
            return Ok(0);
        }
        let room = self.sender.memory().bytes() - self.sender.waiting()?;
        let taken = self.sender.taken();
        while self.waiting.pop_front_if(|(end, _)| *end <= taken).is_some() {}
        let waiting: usize = self.waiting.iter().map(|(_, length)| length).sum();
        Ok(room.saturating_sub(InputHeader::BYTES).min(WAITING_MAX - waiting))
    }

    /// Whether there is something that the shim can write.
    fn has_input(&self) -> bool {
        !self.sender.is_blocked() && self.sender.waiting() != Ok(0)
    }

    fn done(&self) -> (u64, u64) {
        (self.sender.taken(), self.sender.answered().question)
    }

    /// Notes that the shim has something to do.
    fn expect_progress(&mut self, now: Duration) {
        let done = self.done();
        self.outstanding.get_or_insert(Outstanding { done, since: now, again: false });
    }

    fn note_progress(&mut self, now: Duration) {
        let idle = !self.has_input() && self.sender.answered().question == self.sender.asked();
        let done = self.done();
        match &mut self.outstanding {
            Some(_) if idle => self.outstanding = None,
            Some(outstanding) if outstanding.done != done => {
                *outstanding = Outstanding { done, since: now, again: false };
            }
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::Epoch;
    use crate::shim::input::ends::InputReceiver;

    const NOW: Duration = Duration::from_secs(100);

    fn line() -> (ShimInput, InputReceiver<InputMap>) {
        let (file, memory) = InputMap::create().unwrap();
        let (_, bell) = std::io::pipe().unwrap();
        let receiver = InputReceiver::new(memory, false);
        (ShimInput::new(file.into(), bell.into(), 3, Some(7)).unwrap(), receiver)
    }

    fn of_epoch(epoch: u64) -> Stamp {
        Stamp { epoch: Some(Epoch(epoch)), answered: 9, write: None }
    }

    fn take(receiver: &mut InputReceiver<InputMap>, blocked: bool) -> Vec<u8> {
        let mut taken = vec![0; receiver.waiting().unwrap()];
        receiver.read(&mut taken);
        let _ = receiver.publish(blocked);
        taken
    }

    #[test]
    fn at_most_as_much_as_fits_is_taken_at_once() {
        let (line, mut receiver) = line();
        let bytes = [b'x'; 10_000];
        assert_eq!(line.append(NOW, &bytes, of_epoch(3)), Ok(4096));
        assert_eq!(line.append(NOW, &bytes, of_epoch(3)), Ok(0));
        assert!(!line.has_room() && line.is_on_its_way());
        let taken = take(&mut receiver, false);
        let header = InputHeader::decode(taken.first_chunk().unwrap());
        // Only the end of an answer answers.
        assert_eq!((header.length, header.epoch, header.answered), (4096, 3, 0));
        assert_eq!(line.append(NOW, &bytes[..5], of_epoch(3)), Ok(5));
        let taken = take(&mut receiver, false);
        assert_eq!(InputHeader::decode(taken.first_chunk().unwrap()).answered, 9);
        assert!(!line.is_on_its_way());
    }

    #[test]
    fn as_many_small_writes_are_taken_as_there_are_records_for() {
        let (line, mut receiver) = line();
        let taken = || (0..2_000).filter(|_| line.append(NOW, b"x", of_epoch(3)) == Ok(1)).count();
        assert_eq!(taken(), 32_768 / 41);
        take(&mut receiver, false);
        assert_eq!(taken(), 32_768 / 41);
    }

    #[test]
    fn a_terminal_that_is_blocked_is_given_nothing() {
        let (line, mut receiver) = line();
        line.append(NOW, b"x", of_epoch(3)).unwrap();
        take(&mut receiver, true);
        assert_eq!(line.append(NOW, b"x", of_epoch(3)), Ok(0));
        assert!(!line.has_room() && line.is_blocked() && !line.is_on_its_way());
        // It waits for the program, and not for the shim.
        assert_eq!(line.deadline(NOW), None);
        take(&mut receiver, false);
        assert!(line.has_room());
    }

    #[test]
    fn an_epoch_that_is_over_is_refused() {
        let (line, _receiver) = line();
        assert_eq!(line.append(NOW, b"x", of_epoch(2)), Err(NotTaken::Outdated));
        assert_eq!(line.append(NOW, b"x", of_epoch(5)), Ok(1));
        assert_eq!(line.append(NOW, b"x", of_epoch(4)), Err(NotTaken::Outdated));
        assert_eq!(line.append(NOW, b"x", Stamp::default()), Ok(1));
    }

    #[test]
    fn a_memory_that_was_closed_takes_nothing() {
        for ended in [false, true] {
            let (line, receiver) = line();
            receiver.close(ended).unwrap();
            let cause = if ended { InputClosed::Ended } else { InputClosed::Closed };
            assert_eq!(line.append(NOW, b"x", of_epoch(3)), Err(NotTaken::Closed(cause)));
        }
    }

    #[test]
    fn a_shim_that_does_nothing_is_silent_after_a_while_and_a_second_chance() {
        let (line, mut receiver) = line();
        assert_eq!(line.deadline(NOW), None);
        line.append(NOW, b"x", of_epoch(3)).unwrap();
        assert_eq!(line.deadline(NOW), Some(NOW + PATIENCE));
        assert!(!line.stands_still(NOW + PATIENCE));
        let again = NOW + PATIENCE + AFTER_A_STALL;
        assert_eq!(line.deadline(NOW + PATIENCE), Some(again));
        assert!(line.stands_still(again));
        take(&mut receiver, false);
        assert_eq!(line.deadline(again), None);
        assert!(!line.stands_still(again));
    }

    #[test]
    fn a_shim_that_does_something_now_and_then_is_not_silent() {
        let (line, mut receiver) = line();
        line.append(NOW, b"x", of_epoch(3)).unwrap();
        line.ask(NOW);
        let later = NOW + PATIENCE / 2;
        take(&mut receiver, false);
        assert_eq!(line.deadline(later), Some(later + PATIENCE));
        assert_eq!(line.answered().question, 0);
        let answered =
            AnsweredQuestion { question: receiver.question().unwrap(), all_is_there: true };
        receiver.answer(answered);
        assert_eq!(line.answered(), answered);
        assert_eq!(line.deadline(later), None);
    }

    #[test]
    fn a_shim_that_has_taken_what_there_never_was_is_not_believed() {
        use std::os::unix::fs::FileExt;

        let (file, _) = InputMap::create().unwrap();
        let forged = file.try_clone().unwrap();
        let (_, bell) = std::io::pipe().unwrap();
        let line = ShimInput::new(file.into(), bell.into(), 0, None).unwrap();
        for taken in [1, 5_000, u64::MAX] {
            forged.write_all_at(&u64::to_le_bytes(taken), 72).unwrap();
            let refused = Err(NotTaken::Closed(InputClosed::Closed));
            assert_eq!(line.append(NOW, b"x", Stamp::default()), refused);
            assert!(line.has_room() && line.is_on_its_way());
        }
    }
}
