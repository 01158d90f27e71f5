//! The rules for people at the keyboard, one sentence each.

use super::*;
use crate::core::lease::request::{HandOver, OnDisconnect};

const IDLE: u64 = 10_000;

/// A person of the same tenant, attached by a connection of its own.
fn person(number: u64) -> Caller {
    Caller { kind: Kind::Human, label: Arc::from("person"), ..caller(number) }
}

fn typing(number: u64, unit: Unit) -> Typing {
    Typing { unit, write: WriteId(number), stamp: None, fresh: id(u128::from(number)) }
}

fn type_in(input: &mut Input, now: Moment, who: u64, number: u64, typed: &str) {
    input.type_in(now, &person(who), typing(number, text(typed))).unwrap();
}

/// What a write of principal 1 is refused with.
fn refused(input: &mut Input, now: Moment, expected: Option<Watermark>) -> WriteError {
    let order = WriteRequest { expected, ..request(99, text("x")) };
    input.write(now, &caller(1), order).unwrap_err()
}

fn lease_events(input: &mut Input) -> Vec<(u64, LeaseChange)> {
    let of_lease = |event| match event {
        InputEvent::Lease(event) => Some((event.holder.principal.number(), event.change)),
        InputEvent::Discarded(_) => None,
    };
    input.take_events().into_iter().filter_map(of_lease).collect()
}

fn holder(input: &Input) -> Option<u64> {
    input.lease().holder().map(|holder| holder.principal.number())
}

fn suspended(input: &Input) -> Option<u64> {
    input.lease().view().suspended.map(|suspended| suspended.by.principal.number())
}

#[test]
fn a_person_who_types_gets_the_keyboard_of_a_free_session() {
    let mut input = open();
    type_in(&mut input, at(0), 5, 1, "ls");
    assert_eq!(holder(&input), Some(5));
    assert_eq!(take_all(&mut input, at(0)), "ls");
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 0)));
    let held = input.acquire(at(1_000), &caller(1), asking(1), None).unwrap_err();
    let WriteError::Lease(LeaseError::Held { by, kind, expires_in, .. }) = held else {
        panic!("{held:?}")
    };
    assert_eq!((by, kind), (person(5).name(), Kind::Human));
    assert_eq!(expires_in, Duration::from_secs(9));
}

#[test]
fn what_the_holder_had_queued_is_discarded_and_reported_when_a_person_types() {
    let mut input = held();
    write(&mut input, at(0), 1, text("agent"));
    assert_eq!(take(&mut input, at(0), 2), "ag");
    input.on_time(at(2_000));
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 3)));
    type_in(&mut input, at(3_000), 5, 2, "me");
    assert_eq!(take_all(&mut input, at(3_000)), "me");
    let discarded = Discarded {
        writer: caller(1),
        write: WriteId(1),
        bytes: 3,
        cause: DiscardCause::PersonTyped,
    };
    assert!(input.take_events().contains(&InputEvent::Discarded(discarded)));
    let warning = Warning { discarded: 3, cause: DiscardCause::PersonTyped };
    assert_eq!(input.take_warning(PrincipalId::Connection(1)), Some(warning));
}

#[test]
fn a_person_cuts_no_key_and_no_character_in_two() {
    let mut input = held();
    write(&mut input, at(0), 1, keys(&["\x1b[A", "\x1b[B"]));
    take(&mut input, at(0), 1);
    type_in(&mut input, at(0), 5, 2, "q");
    assert_eq!(take_all(&mut input, at(0)), "[Aq");
}

#[test]
fn the_suspended_holder_is_told_by_whom_and_for_how_long() {
    let mut input = held();
    type_in(&mut input, at(6_000), 5, 1, "x");
    take_all(&mut input, at(6_000));
    let expected = WriteError::Lease(LeaseError::Suspended {
        by: person(5).name(),
        kind: Kind::Human,
        resumes_in: Duration::from_secs(10),
        remaining: Duration::from_secs(24),
    });
    let now = at(6_000);
    let (one, nothing) = (&caller(1), TakeRule::HeldOnly);
    assert_eq!(refused(&mut input, now, None), expected);
    let renewal = RenewRequest { presented: Some(id(1)), ttl: None };
    assert_eq!(input.renew(now, one, renewal, None), Err(expected.clone()));
    assert_eq!(input.authorize(now, one, None, nothing), Err(expected.clone()));
    assert_eq!(input.acquire(now, one, asking(2), None), Err(expected.clone()));
    assert_eq!(input.would_write(now, one, Some(id(1)), nothing, None), Err(expected));
}

#[test]
fn a_lease_comes_back_after_the_persons_last_key_with_the_time_it_had() {
    let mut input = held();
    type_in(&mut input, at(20_000), 5, 1, "x");
    take_all(&mut input, at(20_000));
    assert_eq!(input.deadline(), Some(at(20_000 + IDLE)));
    type_in(&mut input, at(25_000), 5, 2, "y");
    take_all(&mut input, at(25_000));
    input.on_time(at(34_999));
    assert_eq!((holder(&input), suspended(&input)), (Some(5), Some(1)));
    input.on_time(at(35_000));
    assert_eq!((holder(&input), suspended(&input)), (Some(1), None));
    let grant = input.lease().grant(at(35_000)).unwrap();
    assert_eq!((grant.lease, grant.epoch), (id(1), Epoch(3)));
    assert_eq!(grant.expires_at, at(45_000));
    let changes = lease_events(&mut input);
    let by = person(5).name();
    let expected = [
        (1, LeaseChange::Suspended { by }),
        (5, LeaseChange::Granted),
        (5, LeaseChange::Ended(EndCause::Expired)),
        (1, LeaseChange::Resumed),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn a_persons_pause_counts_from_when_the_terminal_took_the_last_byte() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "stuck");
    input.on_time(at(60_000));
    assert_eq!(input.take_completions(), completed(1, outcome(0, 0, 5)));
    assert_eq!(holder(&input), Some(5));
    assert_eq!(take_all(&mut input, at(60_000)), "stuck");
    input.on_time(at(60_000 + IDLE - 1));
    assert_eq!(holder(&input), Some(5));
    input.on_time(at(60_000 + IDLE));
    assert_eq!(holder(&input), Some(1));
}

#[test]
fn bytes_that_stay_stuck_keep_the_keyboard_for_ten_minutes_at_most() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "stuck");
    input.on_time(at(599_999));
    assert_eq!(holder(&input), Some(5));
    input.on_time(at(600_000));
    assert_eq!(holder(&input), Some(1));
    assert_eq!(take_all(&mut input, at(600_000)), "");
}

#[test]
fn a_lease_that_came_back_is_used_only_after_a_look_at_the_screen() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    take_all(&mut input, at(0));
    assert!(input.hand_back(at(1_000), &person(5)));
    let blind = refused(&mut input, at(1_000), Some(Watermark(100)));
    assert_eq!(blind, WriteError::NotSeen { since: None }, "no frame shows it yet");
    input.mark_resumed(Watermark(7));
    input.mark_resumed(Watermark(9));
    for expected in [None, Some(Watermark(6))] {
        let blind = refused(&mut input, at(1_000), expected);
        assert_eq!(blind, WriteError::NotSeen { since: Some(Watermark(7)) });
    }
    let seen = WriteRequest { expected: Some(Watermark(7)), ..request(2, text("a")) };
    input.write(at(1_000), &caller(1), seen).unwrap();
    write(&mut input, at(1_000), 3, text("b"));
    assert_eq!(take_all(&mut input, at(1_000)), "ab");
}

#[test]
fn a_lease_that_came_back_and_expired_still_needs_the_look() {
    let mut input = held();
    type_in(&mut input, at(29_000), 5, 1, "x");
    take_all(&mut input, at(29_000));
    input.on_time(at(90_000));
    assert_eq!(holder(&input), None);
    input.mark_resumed(Watermark(7));
    let blind = refused(&mut input, at(90_000), None);
    assert_eq!(blind, WriteError::NotSeen { since: Some(Watermark(7)) });
    let seen = WriteRequest { expected: Some(Watermark(7)), ..request(2, text("a")) };
    let Accepted::Queued { grant, .. } = input.write(at(90_000), &caller(1), seen).unwrap() else {
        panic!("new")
    };
    assert!(grant.revived);
}

#[test]
fn a_size_may_change_before_the_look() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    input.hand_back(at(0), &person(5));
    assert_eq!(input.authorize(at(0), &caller(1), None, TakeRule::HeldOnly), Ok(()));
}

#[test]
fn another_person_who_types_has_the_keyboard_and_the_first_ones_rest_is_discarded() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "first");
    take(&mut input, at(0), 1);
    type_in(&mut input, at(0), 6, 2, "second");
    assert_eq!(take_all(&mut input, at(0)), "second");
    let done = input.take_completions();
    assert_eq!(done[0], Completion { write: WriteId(1), outcome: outcome(1, 4, 0) });
    assert_eq!((holder(&input), suspended(&input)), (Some(6), Some(1)));
    assert!(!input.hand_back(at(0), &person(5)), "it had lost it");
    assert!(input.hand_back(at(0), &person(6)));
    assert_eq!(holder(&input), Some(1));
}

#[test]
fn who_took_over_keeps_other_people_from_typing_but_not_from_taking_over() {
    let mut input = held();
    input.take_over(at(0), &person(5), id(50)).unwrap();
    input.on_time(at(599_000));
    assert_eq!(holder(&input), Some(5));
    let refused = input.type_in(at(0), &person(6), typing(1, text("x"))).unwrap_err();
    let WriteError::Lease(LeaseError::Held { by, kind, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((by, kind), (person(5).name(), Kind::Human));
    input.take_over(at(599_000), &person(6), id(60)).unwrap();
    assert_eq!((holder(&input), suspended(&input)), (Some(6), Some(1)));
}

#[test]
fn who_took_over_has_the_keyboard_for_ten_minutes_without_a_key() {
    let mut input = held();
    input.take_over(at(0), &person(5), id(50)).unwrap();
    type_in(&mut input, at(60_000), 5, 1, "x");
    take_all(&mut input, at(60_000));
    input.on_time(at(659_999));
    assert_eq!(holder(&input), Some(5));
    input.on_time(at(660_000));
    assert_eq!(holder(&input), Some(1));
}

#[test]
fn who_types_may_take_over_without_a_change_of_epoch() {
    let mut input = open();
    type_in(&mut input, at(0), 5, 1, "x");
    let epoch = input.lease().epoch();
    let grant = input.take_over(at(1), &person(5), id(50)).unwrap();
    assert_eq!(Some(grant.epoch), epoch);
}

#[test]
fn a_person_who_leaves_hands_back_at_once() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    input.on_connection_closed(at(1), ConnectionId(5));
    assert_eq!(holder(&input), Some(1));
    input.take_over(at(2), &person(6), id(60)).unwrap();
    input.on_person_left(at(3), PrincipalId::Connection(5));
    assert_eq!(holder(&input), Some(6), "somebody else left");
    input.on_person_left(at(3), PrincipalId::Connection(6));
    assert_eq!(holder(&input), Some(1));
}

#[test]
fn after_a_person_the_suspended_lease_comes_before_those_who_wait() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    let wait = AcquireRequest { wait_until: Some(at(100_000)), ..asking(2) };
    let waiting = input.acquire(at(0), &caller(2), wait.clone(), None).unwrap();
    assert!(matches!(waiting, Acquired::Waiting(_)));
    input.hand_back(at(0), &person(5));
    assert_eq!(holder(&input), Some(1));
    assert_eq!(input.take_grants(), []);
    input.preempt(at(0), caller(9).name());
    assert_eq!(holder(&input), Some(2));
}

#[test]
fn after_a_person_in_a_free_session_the_first_who_waits_has_its_turn() {
    let mut input = open();
    type_in(&mut input, at(0), 5, 1, "x");
    let wait = AcquireRequest { wait_until: Some(at(100_000)), ..asking(2) };
    input.acquire(at(0), &caller(2), wait, None).unwrap();
    assert!(input.hand_back(at(0), &person(5)));
    assert_eq!(holder(&input), Some(2));
    let blind = request(2, text("no look needed"));
    input.write(at(0), &caller(2), blind).unwrap();
}

#[test]
fn the_suspended_holder_may_wait_in_line_for_its_own_lease() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    let wait = AcquireRequest { wait_until: Some(at(100_000)), ..asking(2) };
    let Acquired::Waiting(waiter) = input.acquire(at(0), &caller(1), wait, None).unwrap() else {
        panic!("suspended")
    };
    input.hand_back(at(5_000), &person(5));
    let grants = input.take_grants();
    assert_eq!(grants.len(), 1);
    assert_eq!((grants[0].0, grants[0].1.lease), (waiter, id(1)));
}

#[test]
fn a_suspended_holder_whose_wait_runs_out_is_told_that_its_lease_comes_back() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    take_all(&mut input, at(0));
    let wait = |fresh| AcquireRequest { wait_until: Some(at(3_000)), ..asking(fresh) };
    for (who, fresh) in [(1, 2), (2, 3)] {
        let waiting = input.acquire(at(0), &caller(who), wait(fresh), None).unwrap();
        assert!(matches!(waiting, Acquired::Waiting(_)));
    }
    input.on_time(at(3_000));
    let refusals: Vec<_> = input.take_refusals().into_iter().map(|(_, error)| error).collect();
    let expected = WriteError::Lease(LeaseError::Suspended {
        by: person(5).name(),
        kind: Kind::Human,
        resumes_in: Duration::from_secs(7),
        remaining: Duration::from_secs(30),
    });
    assert_eq!(refusals[0], expected);
    let WriteError::Lease(LeaseError::Held { by, .. }) = &refusals[1] else {
        panic!("{refusals:?}")
    };
    assert_eq!(*by, person(5).name());
}

#[test]
fn a_suspended_lease_may_be_given_back_but_not_handed_on() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    let hand_to = Some(HandOver { to: caller(2).name(), fresh: id(7) });
    let handing = ReleaseRequest { presented: None, hand_to };
    let refused = input.release(at(0), &caller(1), handing, None).unwrap_err();
    assert!(matches!(refused, WriteError::Lease(LeaseError::Suspended { .. })), "{refused:?}");
    let released = input.release(at(0), &caller(1), ReleaseRequest::default(), None);
    assert_eq!(released, Ok(Released::Freed));
    assert_eq!((holder(&input), suspended(&input)), (Some(5), None));
    input.hand_back(at(0), &person(5));
    assert_eq!(holder(&input), None);
}

#[test]
fn an_operator_ends_the_persons_grant_and_the_suspended_lease() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    preempt(&mut input, at(0));
    assert_eq!((holder(&input), suspended(&input)), (None, None));
    let lost = refused(&mut input, at(0), None);
    let cause = EndCause::Preempted { by: caller(9).name() };
    assert_eq!(lost, WriteError::Lease(LeaseError::Lost { cause }));
}

#[test]
fn switching_writing_off_and_the_end_of_the_session_end_both() {
    let mut switched = held();
    type_in(&mut switched, at(0), 5, 1, "x");
    switched.set_window(at(0), WriteWindow::Closed);
    assert_eq!((holder(&switched), suspended(&switched)), (None, None));
    let refused = switched.type_in(at(0), &person(5), typing(2, text("y")));
    assert_eq!(refused, Err(WriteError::ReadOnly));
    assert_eq!(switched.take_over(at(0), &person(5), id(9)), Err(WriteError::ReadOnly));
    assert_eq!(take_all(&mut switched, at(0)), "");
    let mut ended = held();
    type_in(&mut ended, at(0), 5, 1, "x");
    ended.close(at(0));
    assert_eq!((holder(&ended), suspended(&ended)), (None, None));
    let refused = ended.type_in(at(0), &person(5), typing(2, text("y")));
    assert_eq!(refused, Err(WriteError::SessionEnded));
}

#[test]
fn a_suspended_holder_that_leaves_has_its_grace_and_no_more() {
    let mut input = held();
    input.take_over(at(0), &person(5), id(50)).unwrap();
    input.on_connection_closed(at(1_000), ConnectionId(1));
    assert_eq!(suspended(&input), Some(1));
    assert_eq!(input.deadline(), Some(at(6_000)));
    input.on_time(at(6_000));
    assert_eq!((holder(&input), suspended(&input)), (Some(5), None));
}

#[test]
fn a_suspended_holder_that_comes_back_with_the_id_keeps_its_lease() {
    let mut input = held();
    input.take_over(at(0), &person(5), id(50)).unwrap();
    input.on_connection_closed(at(1_000), ConnectionId(1));
    let again = AcquireRequest { presented: Some(id(1)), ..asking(8) };
    let told = input.acquire(at(2_000), &caller(8), again, None).unwrap_err();
    assert!(matches!(told, WriteError::Lease(LeaseError::Suspended { .. })), "{told:?}");
    input.on_time(at(60_000));
    assert_eq!(suspended(&input), Some(8));
    input.hand_back(at(60_000), &person(5));
    assert_eq!(holder(&input), Some(8));
}

#[test]
fn a_lease_that_ends_with_its_connection_ends_so_while_suspended() {
    let mut input = open();
    let request = AcquireRequest { on_disconnect: Some(OnDisconnect::Release), ..asking(1) };
    input.acquire(at(0), &caller(1), request, None).unwrap();
    type_in(&mut input, at(0), 5, 1, "x");
    input.on_connection_closed(at(0), ConnectionId(1));
    assert_eq!((holder(&input), suspended(&input)), (Some(5), None));
}

#[test]
fn an_offered_lease_that_is_suspended_is_its_holders_again() {
    let mut input = held();
    let hand_to = Some(HandOver { to: caller(2).name(), fresh: id(7) });
    let handing = ReleaseRequest { presented: None, hand_to };
    input.release(at(0), &caller(1), handing, None).unwrap();
    type_in(&mut input, at(1_000), 5, 1, "x");
    assert!(input.acquire(at(1_000), &caller(2), asking(2), None).is_err());
    input.hand_back(at(1_000), &person(5));
    assert_eq!(holder(&input), Some(1));
    assert_eq!(input.lease().view().holding.unwrap().offered_to, None);
}

#[test]
fn the_longest_a_lease_may_be_held_stands_still_while_it_is_suspended() {
    let mut input = held();
    let renewal = RenewRequest { presented: None, ttl: Some(Duration::from_secs(600)) };
    input.renew(at(0), &caller(1), renewal, None).unwrap();
    input.take_over(at(100_000), &person(5), id(50)).unwrap();
    input.hand_back(at(400_000), &person(5));
    input.mark_resumed(Watermark(1));
    let seen = WriteRequest { expected: Some(Watermark(1)), ..request(1, text("x")) };
    input.write(at(400_000), &caller(1), seen).unwrap();
    take_all(&mut input, at(400_000));
    let wait = AcquireRequest { wait_until: Some(at(2_000_000)), ..asking(2) };
    input.acquire(at(400_000), &caller(2), wait, None).unwrap();
    input.on_time(at(899_999));
    assert_eq!(holder(&input), Some(1));
    input.on_time(at(900_000));
    assert_eq!(holder(&input), Some(2));
}

#[test]
fn a_call_in_flight_neither_ends_nor_revives_a_suspended_lease() {
    let mut input = held();
    let (_, token) = input.write_and_hold(at(0), &caller(1), request(9, Unit::default())).unwrap();
    let token = token.expect("it is no replay");
    type_in(&mut input, at(10_000), 5, 1, "x");
    take_all(&mut input, at(10_000));
    input.let_go(at(15_000), token);
    assert_eq!((holder(&input), suspended(&input)), (Some(5), Some(1)));
    input.on_time(at(20_000));
    assert_eq!(input.lease().expires_at(at(20_000)), Some(at(50_000)));
}

#[test]
fn a_lease_taken_for_one_call_does_not_come_back() {
    let mut input = open();
    let take_rule = TakeRule::ForThisCall(id(1));
    let order = WriteRequest { take: take_rule, ..request(1, text("agent")) };
    input.write(at(0), &caller(1), order).unwrap();
    type_in(&mut input, at(0), 5, 2, "x");
    assert_eq!((holder(&input), suspended(&input)), (Some(5), None));
    assert_eq!(take_all(&mut input, at(0)), "x");
}

#[test]
fn a_paste_that_spans_calls_is_closed_when_the_person_is_gone() {
    let mut input = held();
    let begin = vec![Piece::PasteStart, Piece::Text(b"rm".to_vec())];
    input.type_in(at(0), &person(5), typing(1, Unit { pieces: begin })).unwrap();
    assert_eq!(take_all(&mut input, at(0)), "\x1b[200~rm");
    assert!(input.answer(b"\x1b[0n"));
    assert_eq!(input.next_bytes(), None, "an answer would be part of the paste");
    type_in(&mut input, at(0), 5, 2, " -rf");
    assert_eq!(take_all(&mut input, at(0)), " -rf");
    input.hand_back(at(0), &person(5));
    assert_eq!(input.next_bytes().and_then(|next| next.epoch), None);
    assert_eq!(take_all(&mut input, at(0)), "\x1b[201~\x1b[0n");
}

#[test]
fn a_paste_that_spans_calls_and_ends_is_not_closed_twice() {
    let mut input = open();
    let begin = vec![Piece::PasteStart, Piece::Text(b"a".to_vec())];
    input.type_in(at(0), &person(5), typing(1, Unit { pieces: begin })).unwrap();
    take_all(&mut input, at(0));
    let end = vec![Piece::Text(b"b".to_vec()), Piece::PasteEnd];
    input.type_in(at(0), &person(5), typing(2, Unit { pieces: end })).unwrap();
    assert!(input.answer(b"\x1b[0n"));
    assert_eq!(take_all(&mut input, at(0)), "b\x1b[201~\x1b[0n");
    input.hand_back(at(0), &person(5));
    assert_eq!(take_all(&mut input, at(0)), "");
}

#[test]
fn an_interrupt_behind_a_paste_that_spans_calls_comes_after_its_end() {
    let mut input = open();
    let begin = vec![Piece::PasteStart, Piece::Text("\u{e9}\u{e9}".as_bytes().to_vec())];
    input.type_in(at(0), &person(5), typing(1, Unit { pieces: begin })).unwrap();
    type_in(&mut input, at(0), 5, 2, "more");
    take(&mut input, at(0), 7);
    input.type_in(at(0), &person(5), typing(3, keys(&["\x03"]))).unwrap();
    assert_eq!(
        input.next_bytes().map(|next| next.bytes),
        Some([0xa9].as_slice()),
        "the rest of a character"
    );
    take(&mut input, at(0), 1);
    assert_eq!(take_all(&mut input, at(0)), "\x1b[201~\x03");
}

#[test]
fn a_person_waits_for_no_room_that_others_took() {
    let mut input = held();
    let full = text(&"a".repeat(Input::QUEUE_BYTES_MAX));
    write(&mut input, at(0), 1, full.clone());
    input.type_in(at(0), &person(5), typing(2, full)).unwrap();
    let refused = input.type_in(at(0), &person(5), typing(3, text("x"))).unwrap_err();
    assert!(matches!(refused, WriteError::TooMuchQueued { .. }), "{refused:?}");
}

#[test]
fn another_tenant_learns_nothing_of_a_suspended_lease_by_its_id() {
    let mut input = held();
    type_in(&mut input, at(0), 5, 1, "x");
    let stranger = Caller { tenant: TenantId::of_uid(1_001), ..caller(3) };
    let order = WriteRequest { presented: Some(id(1)), ..request(2, text("x")) };
    let refused = input.write(at(0), &stranger, order).unwrap_err();
    assert_eq!(refused, WriteError::Lease(LeaseError::OtherTenant));
    let order = WriteRequest { presented: Some(id(1)), ..request(3, text("x")) };
    let refused = input.write(at(0), &caller(2), order).unwrap_err();
    assert!(matches!(refused, WriteError::Lease(LeaseError::Held { .. })), "{refused:?}");
}
