//! What a person typed and the program may not have taken: if the daemon goes away, the next one is asked
//! for the same under the same names, and types what the last one did not.
//!
//! It sends nothing, and what an answer means is the desk's affair.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

/// How long after the last news of it the same may be asked for: daemons know what was typed under a
/// name for a minute longer.
const AGE_MAX: Duration = Duration::from_secs(4 * 60);
/// How many batches that wait for the program are kept. With as many requests as may wait they are fewer
/// than the names that daemons remember.
const WAITING_MAX: usize = 40;

/// Bytes for the program that go with one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub bytes: Vec<u8>,
    /// Whether the session takes the size of the person's view.
    pub resize: bool,
}

/// Names a batch among all that one person typed; they grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(u64);

/// A batch that the next daemon may be asked for.
#[derive(Debug)]
struct Kept {
    number: Number,
    batch: Batch,
    /// When it was sent, or a daemon last said of it that it waits.
    news: Instant,
    /// Whether the daemon said that it waits for the program.
    waits: bool,
}

/// The batches of one person of which nobody knows that the program has taken them, oldest first. There
/// are as many as requests may wait, and some more.
#[derive(Debug)]
pub struct Unanswered {
    /// Tells this person's batches from all others'.
    person: Uuid,
    last: Number,
    batches: VecDeque<Kept>,
    /// How many bytes that wait for the program are not kept, since there were too many batches.
    unkept: usize,
}

impl Default for Unanswered {
    fn default() -> Self {
        Self { person: Uuid::new_v4(), last: Number(0), batches: VecDeque::new(), unkept: 0 }
    }
}

impl Unanswered {
    /// Takes in a batch that is about to be sent behind all others.
    pub fn add(&mut self, batch: Batch) -> Number {
        self.last.0 += 1;
        let number = self.last;
        self.batches.push_back(Kept { number, batch, news: Instant::now(), waits: false });
        number
    }

    /// The parameters of the request that asks for a batch, at the attachment of this id; none once the
    /// program has it.
    pub fn request(&self, number: Number, attach: i64) -> Option<Value> {
        let Kept { batch, .. } = self.batches.iter().find(|kept| kept.number == number)?;
        let Number(number) = number;
        Some(json!({
            "attach": attach,
            "data": STANDARD.encode(&batch.bytes),
            "idempotency_key": format!("{}.{number}", self.person.simple()),
            "resize": batch.resize,
        }))
    }

    /// Notes that nothing more becomes of a batch.
    pub fn on_refused(&mut self, number: Number) {
        self.batches.retain(|kept| kept.number != number);
    }

    /// Notes that a batch was answered, and how many bytes of it wait for the program. Says which one to
    /// ask for again to hear when all was taken: the newest, where no other answer tells it.
    pub fn on_answer(&mut self, number: Number, queued: usize) -> Option<Number> {
        if queued == 0 {
            // What was typed before it, the program has taken before it.
            self.batches.retain(|kept| kept.number > number || kept.number < number && !kept.waits);
            self.unkept = 0;
            return None;
        }
        let now = Instant::now();
        let news = |kept: &&mut Kept| kept.number == number || kept.number < number && kept.waits;
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

    /// What is to be asked for again, in the order in which it was typed.
    pub fn numbers(&self) -> Vec<Number> {
        self.batches.iter().map(|kept| kept.number).collect()
    }

    /// Lets go of what the next daemon is not to be asked for, and says how many bytes of what was typed
    /// may be lost: those that only the daemon before had, and those of which there was no news for too
    /// long.
    pub fn lose(&mut self, now: Instant) -> usize {
        let old = |kept: &Kept| now.saturating_duration_since(kept.news) > AGE_MAX;
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
        let mut unanswered = Unanswered::default();
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
        let mut unanswered = Unanswered::default();
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
        let mut unanswered = Unanswered::default();
        let [first, second] = ["a", "b"].map(|text| unanswered.add(batch(text)));
        unanswered.on_answer(second, 0);
        assert_eq!(unanswered.numbers(), [first]);
        unanswered.on_refused(first);
        assert_eq!(unanswered.numbers(), []);
    }

    #[test]
    fn what_is_too_much_or_too_old_is_told_to_be_lost_unless_the_program_took_it_after_all() {
        let mut unanswered = Unanswered::default();
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
        let (mut one, mut other) = (Unanswered::default(), Unanswered::default());
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
