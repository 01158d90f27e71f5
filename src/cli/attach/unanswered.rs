//! What a person typed and the daemon has not answered: if the daemon goes away, the next one is asked
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

/// How long the same may be asked for: daemons know what was typed under a name for a minute longer.
const AGE_MAX: Duration = Duration::from_secs(4 * 60);

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

/// The batches of one person of which nobody knows yet what became of them, oldest first. There are
/// as many as requests may wait.
#[derive(Debug)]
pub struct Unanswered {
    /// Tells this person's batches from all others'.
    person: Uuid,
    last: Number,
    batches: VecDeque<(Number, Batch, Instant)>,
    /// How many bytes that were answered for the program may not have taken yet.
    queued: usize,
}

impl Default for Unanswered {
    fn default() -> Self {
        Self { person: Uuid::new_v4(), last: Number(0), batches: VecDeque::new(), queued: 0 }
    }
}

impl Unanswered {
    /// Takes in a batch that is about to be sent behind all others.
    pub fn add(&mut self, batch: Batch) -> Number {
        self.last.0 += 1;
        self.batches.push_back((self.last, batch, Instant::now()));
        self.last
    }

    /// The parameters of the request that asks for a batch, at the attachment of this id; none once it
    /// was answered.
    pub fn request(&self, number: Number, attach: i64) -> Option<Value> {
        let (Number(number), batch, _) =
            self.batches.iter().find(|(known, ..)| *known == number)?;
        Some(json!({
            "attach": attach,
            "data": STANDARD.encode(&batch.bytes),
            "idempotency_key": format!("{}.{number}", self.person.simple()),
            "resize": batch.resize,
        }))
    }

    /// Notes that the daemon said what became of a batch.
    pub fn on_answer(&mut self, number: Number) {
        self.batches.retain(|(known, ..)| *known != number);
    }

    /// Notes how many bytes of a batch the program had not taken when it was answered. When it has taken
    /// all of one, it has taken all before.
    pub fn on_queued(&mut self, bytes: usize) {
        self.queued = if bytes == 0 { 0 } else { self.queued + bytes };
    }

    /// What is to be asked for again, in the order in which it was typed.
    pub fn numbers(&self) -> Vec<Number> {
        self.batches.iter().map(|(number, ..)| *number).collect()
    }

    /// Lets go of what the next daemon is not to be asked for, and says how many bytes of what was typed
    /// may be lost: those that only the daemon before had, and those that are too old.
    pub fn lose(&mut self, now: Instant) -> usize {
        let old = |begun: Instant| now.saturating_duration_since(begun) > AGE_MAX;
        let lost = self.batches.iter().filter(|(.., begun)| old(*begun));
        let lost: usize = lost.map(|(_, batch, _)| batch.bytes.len()).sum();
        self.batches.retain(|(.., begun)| !old(*begun));
        lost + std::mem::take(&mut self.queued)
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
        unanswered.on_answer(second);
        assert_eq!(unanswered.numbers(), [first, third]);
        let again = unanswered.request(third, 1).unwrap();
        assert_eq!((&again["data"], &again["attach"]), (&json!("Yw=="), &json!(1)));
        assert_eq!(again["idempotency_key"], before["idempotency_key"]);
        assert_eq!(unanswered.request(second, 1), None);
    }

    #[test]
    fn what_the_daemon_alone_had_and_what_is_too_old_is_lost_with_it() {
        let mut unanswered = Unanswered::default();
        let now = Instant::now();
        for bytes in [5, 0, 7, 8] {
            unanswered.on_queued(bytes);
        }
        let number = unanswered.add(batch("abc"));
        assert_eq!(unanswered.lose(now), 15);
        assert_eq!(unanswered.numbers(), [number]);
        assert_eq!(unanswered.lose(now + 2 * AGE_MAX), 3);
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
