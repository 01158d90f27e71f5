//! Writes that are asked for again after the daemon that made them has ended.

use super::*;
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::input::typing::TypedBefore;
use crate::core::lease::record::LeaseRecord;

/// Some seconds after the death of the daemon before.
const LATER: u64 = 60_000;

fn named(number: u64, name: &str, unit: Unit) -> WriteRequest {
    WriteRequest { key: key(name, 1), ..request(number, unit) }
}

fn shown(lease: u128, request: WriteRequest) -> WriteRequest {
    WriteRequest { presented: Some(id(lease)), ..request }
}

/// What outlived a daemon in which principal 1 held lease 1 and wrote `ls` under the key `a`, of
/// which the terminal took so many bytes.
fn survived(taken: usize) -> (LeaseRecord, Vec<FormerWrite>) {
    let mut before = held();
    before.write(at(0), &caller(1), named(1, "a", text("ls"))).unwrap();
    let stamp = before.next_bytes().and_then(|next| next.stamp).expect("the write has a key");
    assert_eq!(take(&mut before, at(0), taken).len(), taken);
    let writes = if taken > 0 {
        vec![FormerWrite { stamp, taken, own: None, length: Some(2), command: None }]
    } else {
        Vec::new()
    };
    (before.lease().record(), writes)
}

fn next_daemon((record, writes): (LeaseRecord, Vec<FormerWrite>)) -> Input {
    let limits = LeaseLimits::default();
    let lease = LeaseManager::recovered(record, Epoch(0), limits, at(LATER));
    Input::new(lease, WriteWindow::Open).with_former(at(LATER), writes)
}

fn take_back(input: &mut Input, who: u64) {
    let request = AcquireRequest { presented: Some(id(1)), ..asking(9) };
    input.acquire(at(LATER), &caller(who), request, None).unwrap();
}

#[test]
fn a_retry_after_a_restart_gets_the_first_result_and_writes_nothing() {
    let mut input = next_daemon(survived(2));
    take_back(&mut input, 5);
    let answer = input.write(at(LATER), &caller(5), named(1, "a", text("ls")));
    assert_eq!(answer, Ok(Accepted::Replayed(outcome(2, 0, 0))));
    assert_eq!(input.next_bytes(), None);
}

#[test]
fn a_retry_that_shows_the_lease_may_come_too_late_to_take_it_back() {
    let mut input = next_daemon(survived(2));
    let now = at(LATER + 200_000);
    let answer = input.write(now, &caller(5), shown(1, named(1, "a", text("ls"))));
    assert_eq!(answer, Ok(Accepted::Replayed(outcome(2, 0, 0))));
    assert_eq!((input.next_bytes(), input.lease().holder()), (None, None));
}

#[test]
fn a_retry_that_shows_the_lease_takes_it_back_and_writes_nothing() {
    let mut input = next_daemon(survived(2));
    let former = input.lease().grant(at(LATER)).unwrap();
    let answer = input.write(at(LATER), &caller(5), shown(1, named(1, "a", text("ls"))));
    assert_eq!(answer, Ok(Accepted::Replayed(outcome(2, 0, 0))));
    assert_eq!(input.next_bytes(), None);
    let now = input.lease().grant(at(LATER)).unwrap();
    assert_eq!((now.lease, input.lease().holder()), (former.lease, Some(&caller(5))));
    assert!(now.epoch > former.epoch);
    // From then on it is used by writes alone.
    let later = at(LATER + 5_000);
    input.write(later, &caller(5), shown(1, named(1, "a", text("ls")))).unwrap();
    assert_eq!(input.lease().grant(later).unwrap().expires_at, now.expires_at);
}

#[test]
fn a_retry_that_asks_for_its_command_takes_the_lease_back() {
    let mut input = next_daemon(survived(2));
    let asked = key("a", 1).expect("a key");
    input.recall(at(LATER), &caller(5), Some(id(1)), &asked).unwrap();
    assert_eq!(input.lease().holder(), Some(&caller(5)));
}

#[test]
fn what_the_terminal_had_not_taken_is_told_as_discarded() {
    let mut input = next_daemon(survived(1));
    let answer = input.write(at(LATER), &caller(5), shown(1, named(1, "a", text("ls"))));
    assert_eq!(answer, Ok(Accepted::Replayed(outcome(1, 1, 0))));
}

#[test]
fn a_write_of_which_no_byte_went_out_is_made_after_the_restart() {
    let mut input = next_daemon(survived(0));
    take_back(&mut input, 5);
    input.write(at(LATER), &caller(5), named(1, "a", text("ls"))).unwrap();
    assert_eq!(take_all(&mut input, at(LATER)), "ls");
}

#[test]
fn the_key_of_another_holder_says_nothing_after_a_restart() {
    let mut input = next_daemon(survived(2));
    input.preempt(at(LATER), caller(9).name());
    // It has the number that the former holder had.
    input.acquire(at(LATER), &caller(1), asking(2), None).unwrap();
    input.write(at(LATER), &caller(1), named(1, "a", text("ls"))).unwrap();
    assert_eq!(take_all(&mut input, at(LATER)), "ls");
}

#[test]
fn a_key_that_was_used_for_something_else_before_a_restart_is_refused() {
    let mut input = next_daemon(survived(2));
    let other = WriteRequest { key: key("a", 2), ..request(1, text("rm")) };
    let answer = input.write(at(LATER), &caller(5), shown(1, other));
    assert_eq!(answer, Err(WriteError::KeyReused));
}

#[test]
fn only_the_bytes_of_a_write_with_a_key_have_a_stamp() {
    let mut input = held();
    write(&mut input, at(0), 1, text("x"));
    assert_eq!(input.next_bytes().and_then(|next| next.stamp), None);
    assert_eq!(take_all(&mut input, at(0)), "x");
    input.write(at(0), &caller(1), named(2, "a", keys(&["\x1b[A"]))).unwrap();
    let stamp = input.next_bytes().and_then(|next| next.stamp);
    assert_eq!(take(&mut input, at(0), 1), "\x1b");
    assert!(stamp.is_some() && input.next_bytes().and_then(|next| next.stamp) == stamp);
    input.answer(b"<1>");
    assert_eq!(take(&mut input, at(0), 2), "[A");
    assert_eq!(
        (
            input.next_bytes().and_then(|next| next.epoch),
            input.next_bytes().and_then(|next| next.stamp)
        ),
        (None, None)
    );
}

#[test]
fn a_write_that_shows_the_id_takes_the_lease_back() {
    let mut input = next_daemon(survived(2));
    input.write(at(LATER), &caller(5), shown(1, request(2, text("w")))).unwrap();
    assert_eq!(input.lease().holder(), Some(&caller(5)));
    assert_eq!(take_all(&mut input, at(LATER)), "w");
}

#[test]
fn which_command_a_daemon_before_sent_is_forgotten_and_not_that_it_sent_one() {
    let mut input = next_daemon(survived(2));
    let asked = key("a", 1).expect("a key");
    let recalled = input.recall(at(LATER), &caller(5), Some(id(1)), &asked).unwrap();
    let write = EarlierResult::Written(outcome(2, 0, 0));
    assert_eq!(recalled, Some(EarlierCall { write, command: None }));
}

/// The stamp of what a person types under this name.
fn stamp_of_person(name: &str, fingerprint: u64) -> WriteStamp {
    WriteStamp::of_person(&caller(5).tenant, &key(name, fingerprint).expect("a key"))
}

#[test]
fn what_a_person_typed_is_known_by_this_daemon_and_by_the_next_as_far_as_it_was_taken() {
    let mut before = open();
    let stamp = stamp_of_person("a", 1);
    assert_eq!(before.typed_before(at(0), &stamp, 2), Ok(TypedBefore::Bytes(0)));
    let typing = Typing { unit: text("ls"), write: WriteId(1), stamp: Some(stamp), fresh: id(1) };
    before.type_in(at(0), &caller(5), typing).unwrap();
    assert_eq!(
        before.next_bytes().and_then(|next| next.stamp),
        Some(stamp),
        "the terminal's keeper is told"
    );
    take_all(&mut before, at(0));
    assert_eq!(before.typed_before(at(0), &stamp, 2), Ok(TypedBefore::Bytes(2)));

    let writes = vec![FormerWrite { stamp, taken: 1, own: None, length: None, command: None }];
    let mut next = next_daemon((before.lease().record(), writes));
    assert_eq!(next.typed_before(at(LATER), &stamp, 2), Ok(TypedBefore::Bytes(1)));
    let other = stamp_of_person("a", 2);
    assert_eq!(next.typed_before(at(LATER), &other, 2), Err(WriteError::KeyReused));
    let new = next.typed_before(at(LATER), &stamp_of_person("b", 1), 2);
    assert_eq!(new, Ok(TypedBefore::Bytes(0)));
}

#[test]
fn who_asks_again_for_what_waits_for_the_program_is_answered_when_that_has_taken_it() {
    let mut input = open();
    let stamp = stamp_of_person("a", 1);
    let write = WriteId(1);
    let typing = Typing { unit: text("ls"), write, stamp: Some(stamp), fresh: id(1) };
    input.type_in(at(0), &caller(5), typing).unwrap();
    input.on_time(at(1_000));
    assert_eq!(input.take_completions(), completed(1, outcome(0, 0, 2)));
    assert_eq!(input.typed_before(at(5_000), &stamp, 2), Ok(TypedBefore::Waits(write)));
    assert_eq!(input.deadline(), Some(at(6_000)));
    assert_eq!(take_all(&mut input, at(5_500)), "ls");
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 0)));
}

#[test]
fn only_the_last_keys_of_people_are_remembered_within_one_daemon() {
    let mut input = open();
    for number in 0..65 {
        let stamp = Some(stamp_of_person(&number.to_string(), 1));
        let typing = Typing { unit: text("x"), write: WriteId(number), stamp, fresh: id(1) };
        input.type_in(at(0), &caller(5), typing).unwrap();
        take_all(&mut input, at(0));
    }
    assert_eq!(input.typed_before(at(0), &stamp_of_person("0", 1), 1), Ok(TypedBefore::Bytes(0)));
    assert_eq!(input.typed_before(at(0), &stamp_of_person("1", 1), 1), Ok(TypedBefore::Bytes(1)));
}
