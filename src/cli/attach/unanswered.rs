//! What a person typed and the daemon has not answered: if the daemon goes away, the next one is asked
//! for the same under the same names, and types what the last one did not.
//!
//! It sends nothing, and what an answer means is the desk's affair.

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use uuid::Uuid;

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
    batches: VecDeque<(Number, Batch)>,
}

impl Default for Unanswered {
    fn default() -> Self {
        Self { person: Uuid::new_v4(), last: Number(0), batches: VecDeque::new() }
    }
}

impl Unanswered {
    /// Takes in a batch that is about to be sent behind all others.
    pub fn add(&mut self, batch: Batch) -> Number {
        self.last.0 += 1;
        self.batches.push_back((self.last, batch));
        self.last
    }

    /// The parameters of the request that asks for a batch, at the attachment of this id; none once it
    /// was answered.
    pub fn request(&self, number: Number, attach: i64) -> Option<Value> {
        let (Number(number), batch) = self.batches.iter().find(|(known, _)| *known == number)?;
        Some(json!({
            "attach": attach,
            "data": STANDARD.encode(&batch.bytes),
            "idempotency_key": format!("{}.{number}", self.person.simple()),
            "resize": batch.resize,
        }))
    }

    /// Notes that the daemon said what became of a batch.
    pub fn on_answer(&mut self, number: Number) {
        self.batches.retain(|(known, _)| *known != number);
    }

    /// What is to be asked for again, in the order in which it was typed.
    pub fn numbers(&self) -> Vec<Number> {
        self.batches.iter().map(|(number, _)| *number).collect()
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
