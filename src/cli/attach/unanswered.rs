//! The person's input that the program may not have received.
//!
//! If the daemon exits, the client sends the input to the next one with the same idempotency keys. That
//! daemon types what the last one did not.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

/// How long after the last answer a batch may be repeated. Daemons remember a key for a minute longer.
const AGE_MAX: Duration = Duration::from_secs(4 * 60);
/// How many batches that wait for the program are kept. Together with the unanswered requests they are
/// fewer than the keys that a daemon remembers.
const WAITING_MAX: usize = 40;

/// The input of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub bytes: Vec<u8>,
    /// Whether the session resizes to the person's terminal.
    pub resize: bool,
}

/// The number of a batch, increasing for each person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(u64);

/// A batch that may be sent to the next daemon.
#[derive(Debug)]
struct KeptBatch {
    number: Number,
    batch: Batch,
    /// When it was sent, or when a daemon last reported that it waits.
    news: Instant,
    /// Whether the daemon reported that it waits for the program.
    waits: bool,
}

/// One person's batches that the program may not have received, oldest first: those with
/// unanswered requests, and at most `WAITING_MAX` that wait for the program.
#[derive(Debug)]
pub struct UnansweredInput {
    /// Distinguishes this person's batches from all others.
    person: Uuid,
    last: Number,
    batches: VecDeque<KeptBatch>,
    /// How many bytes that wait for the program are not kept, because there were too many batches.
    unkept: usize,
}

impl Default for UnansweredInput {
    fn default() -> Self {
        Self { person: Uuid::new_v4(), last: Number(0), batches: VecDeque::new(), unkept: 0 }
    }
}

impl UnansweredInput {
    /// Adds a batch before it is sent.
    pub fn add(&mut self, batch: Batch) -> Number {
        self.last.0 += 1;
        let number = self.last;
        self.batches.push_back(KeptBatch { number, batch, news: Instant::now(), waits: false });
        number
    }

    /// The parameters of a batch's request for this attachment; none once the program has the batch.
    pub fn request(&self, number: Number, attach: i64) -> Option<Value> {
        let KeptBatch { batch, .. } = self.batches.iter().find(|kept| kept.number == number)?;
        let Number(number) = number;
        Some(json!({
            "attach": attach,
            "data": STANDARD.encode(&batch.bytes),
            "idempotency_key": format!("{}.{number}", self.person.simple()),
            "resize": batch.resize,
        }))
    }

    /// Removes a batch that was refused.
    pub fn on_refused(&mut self, number: Number) {
        self.batches.retain(|kept| kept.number != number);
    }

    /// Notes a batch's answer, with the number of its bytes that wait for the program. Returns the newest
    /// batch if the client must repeat its request to learn when the program has taken everything.
    pub fn on_answer(&mut self, number: Number, queued: usize) -> Option<Number> {
        if queued == 0 {
            // The program took earlier batches first.
            self.batches.retain(|kept| kept.number > number || kept.number < number && !kept.waits);
            self.unkept = 0;
            return None;
        }
        let now = Instant::now();
        let news =
            |kept: &&mut KeptBatch| kept.number == number || kept.number < number && kept.waits;
        for kept in self.batches.iter_mut().filter(news) {
            (kept.news, kept.waits) = (now, true);
        }
        if self.batches.iter().filter(|kept| kept.waits).count() > WAITING_MAX
            && let Some(oldest) = self.batches.iter().position(|kept| kept.waits)
        {
            let oldest = self.batches.remove(oldest);
            self.unkept += oldest.map_or(0, |kept| kept.batch.bytes.len());
        }
        (number == self.last).then_some(number)
    }

    /// The batches to send again, in the order in which they were typed.
    pub fn numbers(&self) -> Vec<Number> {
        self.batches.iter().map(|kept| kept.number).collect()
    }

    /// Drops the batches that must not be sent to the next daemon. Returns how many bytes may be lost:
    /// bytes that only the last daemon had, and bytes without an answer for too long.
    pub fn lose(&mut self, now: Instant) -> usize {
        let old = |kept: &KeptBatch| now.saturating_duration_since(kept.news) > AGE_MAX;
        let lost = self.batches.iter().filter(|kept| old(kept));
        let lost: usize = lost.map(|kept| kept.batch.bytes.len()).sum();
        self.batches.retain(|kept| !old(kept));
        lost + std::mem::take(&mut self.unkept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(text: &str) -> Batch {
        Batch { bytes: text.into(), resize: true }
    }

    #[test]
    fn what_was_not_answered_is_asked_for_again_under_its_name_and_in_its_order() {
        let mut unanswered = UnansweredInput::default();
        let [first, second, third] = ["a", "b", "c"].map(|text| unanswered.add(batch(text)));
        let before = unanswered.request(third, 7).unwrap();
        assert_eq!(unanswered.on_answer(second, 0), None);
        assert_eq!(unanswered.numbers(), [first, third]);
        let again = unanswered.request(third, 1).unwrap();
        assert_eq!((&again["data"], &again["attach"]), (&json!("Yw=="), &json!(1)));
        assert_eq!(again["idempotency_key"], before["idempotency_key"]);
        assert_eq!(unanswered.request(second, 1), None);
    }

    #[test]
    fn what_waits_for_the_program_is_asked_for_again_until_it_has_taken_what_came_last() {
        let mut unanswered = UnansweredInput::default();
        let [first, second, third] = ["a", "b", "c"].map(|text| unanswered.add(batch(text)));
        assert_eq!(unanswered.on_answer(first, 1), None, "the others are still to be answered");
        assert_eq!(unanswered.on_answer(second, 1), None);
        assert_eq!(unanswered.on_answer(third, 1), Some(third));
        assert_eq!(unanswered.numbers(), [first, second, third]);
        let fourth = unanswered.add(batch("d"));
        assert_eq!(unanswered.on_answer(third, 1), None, "the next one tells it");
        assert_eq!(unanswered.on_answer(second, 0), None);
        assert_eq!(unanswered.numbers(), [third, fourth]);
        assert_eq!(unanswered.on_answer(fourth, 0), None);
        assert_eq!(unanswered.numbers(), []);
    }

    #[test]
    fn what_was_not_answered_stays_though_a_later_one_was() {
        let mut unanswered = UnansweredInput::default();
        let [first, second] = ["a", "b"].map(|text| unanswered.add(batch(text)));
        unanswered.on_answer(second, 0);
        assert_eq!(unanswered.numbers(), [first]);
        unanswered.on_refused(first);
        assert_eq!(unanswered.numbers(), []);
    }

    #[test]
    fn what_is_too_much_or_too_old_is_told_to_be_lost_unless_the_program_took_it_after_all() {
        let mut unanswered = UnansweredInput::default();
        let mut type_all = |count: usize| {
            for _ in 0..count {
                let number = unanswered.add(batch("abc"));
                unanswered.on_answer(number, 1);
            }
            unanswered.numbers().len()
        };
        assert_eq!(type_all(WAITING_MAX + 2), WAITING_MAX);
        assert_eq!(unanswered.lose(Instant::now()), 6);
        let next = unanswered.add(batch("d"));
        unanswered.on_answer(next, 1);
        let last = unanswered.add(batch("e"));
        unanswered.on_answer(last, 0);
        let late = unanswered.add(batch("fg"));
        assert_eq!(unanswered.numbers(), [late]);
        assert_eq!(unanswered.lose(Instant::now() + AGE_MAX + AGE_MAX), 2);
        assert_eq!(unanswered.numbers(), []);
    }

    #[test]
    fn no_two_batches_have_the_same_name() {
        let (mut one, mut other) = (UnansweredInput::default(), UnansweredInput::default());
        let mut names = Vec::new();
        for person in [&mut one, &mut other] {
            for _ in 0..2 {
                let number = person.add(batch("x"));
                names.push(person.request(number, 1).unwrap()["idempotency_key"].to_string());
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 4);
    }
}
