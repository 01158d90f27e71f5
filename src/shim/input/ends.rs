//! The lock-free protocol of an input memory: a daemon appends records, the shim takes them.
//! One word, the gate, says how far records reach and whether the memory is closed. So a daemon cannot append
//! to a memory that the shim has closed, however long it stood still before.

use std::sync::atomic::Ordering;

use crate::shim::word::Word;

/// A bit of the gate: the shim serves another daemon, or none.
const CLOSED: u64 = 1 << 63;
/// A bit of the gate: the program has ended.
const ENDED: u64 = 1 << 62;
/// The bits of the gate that are the end of the records.
const HEAD: u64 = ENDED - 1;

/// A bit beside an answered question: the kernel may have more output than the ring has room for.
const MORE: u64 = 1 << 63;

/// What both sides share beside the records. Positions count bytes since the memory was made.
#[derive(Debug, Default)]
#[repr(C)]
pub struct InputWords<W> {
    /// The end of the records, and the bits above.
    gate: W,
    /// The shim has taken the records before this position.
    taken: W,
    /// 1 if the terminal takes nothing at the moment.
    blocked: W,
    /// 1 if the shim sleeps, or is about to, and is woken by its bell only.
    asleep: W,
    /// Counts the questions of the daemon.
    asked: W,
    /// The newest question that the shim has answered, and a bit above it.
    answered: W,
    /// 1 if the daemon wants its bell rung when more can be appended.
    waits: W,
}

/// Why a memory takes no more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputClosed {
    /// The program has ended.
    #[error("the program has ended")]
    Ended,
    /// The shim serves another daemon or none, or has damaged the memory.
    #[error("the shim takes no more input from here")]
    Closed,
}

/// What the shim says of all output that was written before a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredQuestion {
    pub question: u64,
    /// Whether it is in the ring. Otherwise the ring was full.
    pub all_is_there: bool,
}

/// Whether the other side sleeps and its bell must be rung.
#[must_use = "the other side may sleep for ever"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    Ring,
    Nothing,
}

/// Memory that both sides share: the words, and records that wrap around at its end.
pub trait InputMemory {
    /// The atomic type of the words.
    type Word: Word;

    fn words(&self) -> &InputWords<Self::Word>;

    /// How many bytes of records fit.
    fn bytes(&self) -> usize;

    /// Writes bytes from position `at` on. They do not wrap around.
    fn put(&self, at: usize, bytes: &[u8]);

    /// Reads bytes from position `at` on. They do not wrap around, and may change meanwhile.
    fn get(&self, at: usize, into: &mut [u8]);
}

/// Where `count` bytes at a position lie, and how many of them before the wrap-around.
fn split(memory: &impl InputMemory, position: u64, count: usize) -> (usize, usize) {
    let at = (position % memory.bytes() as u64) as usize;
    (at, count.min(memory.bytes() - at))
}

/// The daemon's end of a memory.
#[derive(Debug)]
pub struct InputSender<M> {
    memory: M,
    head: u64,
    asked: u64,
}

impl<M: InputMemory> InputSender<M> {
    /// Starts in a memory that was just made.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, asked: 0 }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The end of the records.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// How many bytes of records wait for the shim.
    ///
    /// # Errors
    /// If the shim says that it has taken what there never was.
    pub fn waiting(&self) -> Result<usize, InputClosed> {
        let waiting = self.head.checked_sub(self.taken()).map(|waiting| waiting as usize);
        let waiting = waiting.filter(|waiting| *waiting <= self.memory.bytes());
        waiting.ok_or(InputClosed::Closed)
    }

    /// How far the shim has taken the records.
    pub fn taken(&self) -> u64 {
        self.memory.words().taken.load(Ordering::Acquire)
    }

    /// Whether the terminal takes nothing at the moment.
    pub fn is_blocked(&self) -> bool {
        self.memory.words().blocked.load(Ordering::Acquire) != 0
    }

    /// Appends a record of these parts. There must be room for it.
    ///
    /// # Errors
    /// Why the memory takes no more; nothing was appended then.
    pub fn append(&mut self, parts: [&[u8]; 2]) -> Result<Wake, InputClosed> {
        let mut end = self.head;
        for part in parts {
            let (at, in_one_piece) = split(&self.memory, end, part.len());
            self.memory.put(at, &part[..in_one_piece]);
            self.memory.put(0, &part[in_one_piece..]);
            end += part.len() as u64;
        }
        let words = self.memory.words();
        words.gate.replace(self.head, end, Ordering::Release).map_err(|found| {
            if found & ENDED != 0 { InputClosed::Ended } else { InputClosed::Closed }
        })?;
        self.head = end;
        Ok(self.woken())
    }

    /// Asks the shim for an answer, and returns the number of the question.
    pub fn ask(&mut self) -> (u64, Wake) {
        self.asked += 1;
        self.memory.words().asked.store(self.asked, Ordering::Release);
        (self.asked, self.woken())
    }

    /// The newest question.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// The newest question that was answered.
    pub fn answered(&self) -> AnsweredQuestion {
        let word = self.memory.words().answered.load(Ordering::Acquire);
        AnsweredQuestion { question: word & !MORE, all_is_there: word & MORE == 0 }
    }

    /// Whether the memory takes no more records.
    pub fn is_closed(&self) -> bool {
        self.memory.words().gate.load(Ordering::Acquire) & !HEAD != 0
    }

    /// Has the bell rung when more can be appended. Look for room once more after this, before you sleep.
    pub fn wait_for_room(&self) {
        self.memory.words().waits.store(1, Ordering::Relaxed);
        // Either this side then sees the room, or the shim sees that this side waits.
        M::Word::fence(Ordering::SeqCst);
    }

    fn woken(&self) -> Wake {
        // Either the shim sees the news before it sleeps, or this side sees that it sleeps.
        M::Word::fence(Ordering::SeqCst);
        match self.memory.words().asleep.load(Ordering::Relaxed) {
            0 => Wake::Nothing,
            _ => Wake::Ring,
        }
    }
}

/// The shim's end of a memory.
#[derive(Debug)]
pub struct InputReceiver<M> {
    memory: M,
    /// The records before this position were read.
    read: u64,
    /// What was last announced as taken.
    taken: u64,
    answered: u64,
}

impl<M: InputMemory> InputReceiver<M> {
    /// Starts in a memory that was just made. `blocked` is whether the terminal takes nothing at the moment.
    pub fn new(memory: M, blocked: bool) -> Self {
        memory.words().blocked.store(u64::from(blocked), Ordering::Relaxed);
        Self { memory, read: 0, taken: 0, answered: 0 }
    }

    /// How many bytes of records were not read.
    ///
    /// # Errors
    /// If the daemon says that there are more than fit.
    pub fn waiting(&self) -> Result<usize, InputClosed> {
        self.before(self.memory.words().gate.load(Ordering::Acquire))
    }

    fn before(&self, gate: u64) -> Result<usize, InputClosed> {
        let head = gate & HEAD;
        let fits =
            head.checked_sub(self.taken).is_some_and(|all| all <= self.memory.bytes() as u64);
        let waiting = head.checked_sub(self.read).filter(|_| fits);
        waiting.map(|waiting| waiting as usize).ok_or(InputClosed::Closed)
    }

    /// Reads the next bytes of the records. So many must be waiting.
    pub fn read(&mut self, into: &mut [u8]) {
        let (at, in_one_piece) = split(&self.memory, self.read, into.len());
        let (first, second) = into.split_at_mut(in_one_piece);
        self.memory.get(at, first);
        self.memory.get(0, second);
        self.read += into.len() as u64;
    }

    /// Passes over the next bytes of the records. So many must be waiting.
    pub fn skip(&mut self, count: usize) {
        self.read += count as u64;
    }

    /// Announces that all that was read is taken, and whether the terminal takes more.
    pub fn publish(&mut self, blocked: bool) -> Wake {
        let words = self.memory.words();
        // A daemon that sees what is taken also sees whether the terminal is blocked.
        words.blocked.store(u64::from(blocked), Ordering::Release);
        self.taken = self.read;
        words.taken.store(self.taken, Ordering::Release);
        M::Word::fence(Ordering::SeqCst);
        if !blocked && words.waits.load(Ordering::Relaxed) != 0 {
            words.waits.store(0, Ordering::Relaxed);
            return Wake::Ring;
        }
        Wake::Nothing
    }

    /// Takes no more records than there are now, and returns how many bytes of them were not read. `ended` says
    /// that the program has ended.
    ///
    /// # Errors
    /// If the daemon says that there are more than fit.
    pub fn close(&self, ended: bool) -> Result<usize, InputClosed> {
        let bits = if ended { ENDED } else { CLOSED };
        self.before(self.memory.words().gate.fetch_or(bits, Ordering::AcqRel))
    }

    /// A question that was not answered.
    pub fn question(&self) -> Option<u64> {
        let asked = self.memory.words().asked.load(Ordering::Acquire);
        (asked != self.answered).then_some(asked)
    }

    /// Answers a question. The daemon's bell must be rung then.
    pub fn answer(&mut self, answered: AnsweredQuestion) {
        self.answered = answered.question;
        let more = if answered.all_is_there { 0 } else { MORE };
        self.memory.words().answered.store(answered.question | more, Ordering::Release);
    }

    /// Notes that this side is about to sleep. It must not if anything is there after this.
    pub fn sleep(&self) {
        self.memory.words().asleep.store(1, Ordering::Relaxed);
        M::Word::fence(Ordering::SeqCst);
    }

    pub fn wake(&self) {
        self.memory.words().asleep.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
