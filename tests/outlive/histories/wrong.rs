//! Histories that no order allows are refused, each for one fault; the right ones beside them are taken.

use std::time::Duration;

use crate::harness::linearizability::{Action, Client, History, Outcome, Refusal};

const TTL: Duration = Duration::from_secs(1);
const A: Client = 1;
const B: Client = 2;
/// A lease's id.
const ONE: u128 = 11;
const TWO: u128 = 12;

fn acquire() -> Action {
    Action::Acquire { shown: None, ttl: TTL }
}

fn granted(lease: u128, epoch: u64) -> Outcome {
    Outcome::Granted { lease, epoch, revived: false }
}

fn write(text: &str) -> Action {
    Action::Write { shown: None, text: text.to_owned() }
}

fn wrote(bytes: usize) -> Outcome {
    Outcome::Wrote { bytes, queued: 0, epoch: None }
}

fn ended(typed: usize) -> Outcome {
    Outcome::Preempted { ended: true, typed: Some(typed) }
}

/// A history whose calls do not overlap, a millisecond each unless time passes.
#[derive(Default)]
struct Script {
    history: History,
    now: Duration,
}

impl Script {
    fn call(mut self, client: Client, action: Action, outcome: Outcome) -> Self {
        let number = self.history.begin(self.now, client, action);
        self.now += Duration::from_millis(1);
        self.history.end(self.now, number, outcome);
        self
    }

    fn pass(mut self, milliseconds: u64) -> Self {
        self.now += Duration::from_millis(milliseconds);
        self
    }

    /// Sends a call that is never answered.
    fn unanswered(self, client: Client, action: Action) -> Self {
        self.history.begin(self.now, client, action);
        self
    }

    fn is_allowed(&self, typed: &str) -> bool {
        self.history.check(typed, Duration::ZERO).is_ok()
    }
}

/// The first client has the lease, and has typed `a`.
fn held() -> Script {
    Script::default().call(A, acquire(), granted(ONE, 5)).call(A, write("a"), wrote(1))
}

#[test]
fn a_second_holder_is_refused() {
    assert!(held().call(B, acquire(), Outcome::Refused(Refusal::Held)).is_allowed("a"));
    assert!(!held().call(B, acquire(), granted(TWO, 6)).is_allowed("a"));
}

#[test]
fn a_lease_that_another_is_granted_before_it_has_expired_is_refused() {
    assert!(held().pass(1_000).call(B, acquire(), granted(TWO, 6)).is_allowed("a"));
    assert!(!held().pass(900).call(B, acquire(), granted(TWO, 6)).is_allowed("a"));
}

#[test]
fn a_lease_that_is_held_for_longer_than_its_time_is_refused() {
    let late = || held().pass(1_100).call(B, acquire(), Outcome::Refused(Refusal::Held));
    assert!(!late().is_allowed("a"));
    let renewed = held().pass(800).call(A, Action::Renew { shown: ONE }, granted(ONE, 5));
    let asked = renewed.pass(800).call(B, acquire(), Outcome::Refused(Refusal::Held));
    assert!(asked.is_allowed("a"));
}

#[test]
fn an_epoch_that_goes_back_or_stays_is_refused() {
    let free = || held().call(A, Action::Release { shown: ONE }, Outcome::Released);
    assert!(free().call(B, acquire(), granted(TWO, 6)).is_allowed("a"));
    assert!(!free().call(B, acquire(), granted(TWO, 5)).is_allowed("a"));
    assert!(!free().call(B, acquire(), granted(TWO, 4)).is_allowed("a"));
}

#[test]
fn a_write_under_a_lease_that_was_ended_is_refused() {
    let over = || held().call(B, Action::Preempt, ended(1));
    let refused = Outcome::Refused(Refusal::Lost);
    assert!(over().call(A, write("b"), refused).is_allowed("a"));
    assert!(!over().call(A, write("b"), wrote(1)).is_allowed("ab"));
    let shown = Action::Write { shown: Some(ONE), text: "b".to_owned() };
    assert!(!over().call(A, shown, wrote(1)).is_allowed("ab"));
}

#[test]
fn a_write_under_an_epoch_that_is_not_the_holders_is_refused() {
    let under = |epoch| Outcome::Wrote { bytes: 1, queued: 0, epoch: Some(epoch) };
    assert!(held().call(A, write("b"), under(5)).is_allowed("ab"));
    assert!(!held().call(A, write("b"), under(4)).is_allowed("ab"));
}

#[test]
fn a_write_under_the_lease_of_another_is_refused_while_that_one_is_there() {
    let shown = || Action::Write { shown: Some(ONE), text: "b".to_owned() };
    assert!(!held().call(B, shown(), wrote(1)).is_allowed("ab"));
    let left = held().unanswered(A, Action::Leave { grace: TTL });
    assert!(left.call(B, shown(), wrote(1)).is_allowed("ab"));
}

#[test]
fn a_write_that_was_lost_or_typed_twice_is_refused() {
    assert!(held().is_allowed("a"));
    assert!(!held().is_allowed(""));
    assert!(!held().is_allowed("aa"));
}

#[test]
fn a_write_without_an_answer_may_have_been_typed_or_not_and_never_twice() {
    let unanswered = || held().unanswered(A, write("b"));
    assert!(unanswered().is_allowed("a"));
    assert!(unanswered().is_allowed("ab"));
    assert!(!unanswered().is_allowed("abb"));
}

#[test]
fn writes_in_another_order_than_they_were_answered_are_refused() {
    assert!(held().call(A, write("b"), wrote(1)).is_allowed("ab"));
    assert!(!held().call(A, write("b"), wrote(1)).is_allowed("ba"));
}

#[test]
fn a_write_that_was_cut_elsewhere_than_it_was_said_is_refused() {
    let cut = || held().call(A, write("bcd"), wrote(2));
    assert!(cut().is_allowed("abc"));
    assert!(!cut().is_allowed("abcd"));
    assert!(!cut().is_allowed("ab"));
}

#[test]
fn a_byte_that_is_typed_after_its_lease_was_said_to_have_ended_is_refused() {
    assert!(held().call(B, Action::Preempt, ended(1)).is_allowed("a"));
    assert!(!held().call(B, Action::Preempt, ended(0)).is_allowed("a"));
}

#[test]
fn a_refusal_of_the_holder_is_refused() {
    for refusal in [Refusal::Required, Refusal::Held, Refusal::Lost, Refusal::Superseded] {
        assert!(!held().call(A, write("b"), Outcome::Refused(refusal)).is_allowed("a"));
    }
}

#[test]
fn only_who_waits_for_a_held_lease_is_told_that_the_queue_is_full() {
    let full = || Outcome::Refused(Refusal::QueueFull);
    assert!(held().call(B, acquire(), full()).is_allowed("a"));
    assert!(!held().call(A, acquire(), full()).is_allowed("a"));
    assert!(!held().call(B, write("b"), full()).is_allowed("a"));
    assert!(!held().pass(1_100).call(B, acquire(), full()).is_allowed("a"));
}

#[test]
fn an_expired_lease_that_comes_back_after_another_was_granted_is_refused() {
    let revived = || Outcome::Granted { lease: ONE, epoch: 5, revived: true };
    assert!(held().pass(1_100).call(A, acquire(), revived()).is_allowed("a"));
    let other = held().pass(1_100).call(B, acquire(), granted(TWO, 6)).pass(1_100);
    assert!(!other.call(A, acquire(), revived()).is_allowed("a"));
}

#[test]
fn a_lease_from_before_a_restart_comes_back_with_a_higher_epoch_only() {
    let restart = || Action::Restart { grace: TTL };
    let shown = || Action::Acquire { shown: Some(ONE), ttl: TTL };
    let restarted = || held().call(0, restart(), Outcome::Restarted);
    assert!(restarted().call(B, shown(), granted(ONE, 9)).is_allowed("a"));
    assert!(!restarted().call(B, shown(), granted(ONE, 5)).is_allowed("a"));
    assert!(!restarted().call(B, acquire(), granted(TWO, 9)).is_allowed("a"));
}

#[test]
fn calls_that_overlap_may_have_happened_in_either_order() {
    let script = held();
    let release = script.history.begin(script.now, A, Action::Release { shown: ONE });
    let number = script.history.begin(script.now, B, acquire());
    script.history.end(script.now, number, granted(TWO, 6));
    let typing = script.history.begin(script.now, B, write("b"));
    script.history.end(script.now, typing, wrote(1));
    script.history.end(script.now, release, Outcome::Released);
    assert!(script.is_allowed("ab"));
    assert!(!script.is_allowed("ba"));
}
