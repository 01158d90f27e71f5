//! Queues answers to a program's terminal queries, for the daemon to write to its input.
//!
//! Answers come from a fixed table and never repeat text that a program chose. The queue is bounded,
//! because a program can ask without reading.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alacritty_terminal::event::{Event, EventListener};

use crate::core::moment::Moment;

pub(crate) const QUEUED_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug)]
struct AnswerQueue {
    per_second_max: usize,
    bytes: Vec<u8>,
    now: Moment,
    /// The start of the second in which `given` answers were queued.
    since: Moment,
    given: usize,
}

/// A handle to the queue of answers, shared with the emulator, which answers some queries itself.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Arc<Mutex<AnswerQueue>>);

impl Answers {
    pub(crate) fn new(per_second_max: usize) -> Self {
        let (bytes, now, since) = (Vec::new(), Moment::default(), Moment::default());
        Self(Arc::new(Mutex::new(AnswerQueue { per_second_max, bytes, now, since, given: 0 })))
    }

    /// Sets the time that the rate limit uses.
    pub(crate) fn set_now(&self, now: Moment) {
        self.with(|queue| queue.now = now);
    }

    /// Queues the whole answer, or drops it when it exceeds a bound.
    pub(crate) fn push(&self, answer: &str) {
        self.with(|queue| {
            if queue.now.since(queue.since) >= Duration::from_secs(1) {
                queue.since = queue.now;
                queue.given = 0;
            }
            let fits = queue.bytes.len() + answer.len() <= QUEUED_BYTES_MAX;
            if fits && queue.given < queue.per_second_max {
                queue.given += 1;
                queue.bytes.extend_from_slice(answer.as_bytes());
            }
        });
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        self.with(|queue| std::mem::take(&mut queue.bytes))
    }

    fn with<T>(&self, work: impl FnOnce(&mut AnswerQueue) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EventListener for Answers {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(answer) = event {
            self.push(&answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_so_many_answers_a_second() {
        const PER_SECOND_MAX: usize = 1_000;
        let answers = Answers::new(PER_SECOND_MAX);
        let mut bytes = 0;
        for _ in 0..2 * PER_SECOND_MAX {
            answers.push("x");
            bytes += answers.take().len();
        }
        assert_eq!(bytes, PER_SECOND_MAX);
        answers.set_now(Moment::from_boot(Duration::from_secs(1)));
        answers.push("x");
        assert_eq!(answers.take(), b"x");
    }

    #[test]
    fn an_answer_that_does_not_fit_is_left_out_whole() {
        let answers = Answers::new(3);
        answers.push(&"x".repeat(QUEUED_BYTES_MAX - 1));
        answers.push("yz");
        answers.push("z");
        let taken = answers.take();
        assert_eq!(taken.len(), QUEUED_BYTES_MAX);
        assert_eq!(taken.last(), Some(&b'z'));
    }
}
