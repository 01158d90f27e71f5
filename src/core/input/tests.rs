//! The rules of the way in, one sentence each.

mod model;
mod people;
mod restart;

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, TenantId, Watermark};
use crate::core::input::attempt::{AttemptRequest, KeepLease, Tried};
use crate::core::input::idempotency::{EarlierCall, EarlierResult, IdempotencyKey};
use crate::core::input::request::{CommandSent, Discarded, Typing, WriteId, WriteOutcome};
use crate::core::keys::{Piece, Unit};
use crate::core::lease::error::LeaseError;
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::request::{
    AcquireRequest, Acquired, OnDisconnect, ReleaseRequest, Released, RenewRequest, TakeRule,
};
use crate::core::lease::view::{LeaseChange, LeaseEvent};
use crate::core::shell::commands::record::CommandId;

/// A write in one go.
#[derive(Clone, Debug)]
struct WriteRequest {
    presented: Option<LeaseId>,
    take: TakeRule,
    unit: Unit,
    write: WriteId,
    key: Option<IdempotencyKey>,
    expected: Option<Watermark>,
}

/// The answer to a write that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Accepted {
    Queued { write: WriteId, grant: Grant },
    InFlight(WriteId),
    Replayed(WriteOutcome),
}

impl Input {
    fn take_completions(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.take_completion()).collect()
    }

    fn write(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
    ) -> Result<Accepted, WriteError> {
        self.write_holding(now, caller, request, KeepLease::UntilAnswered).map(|(made, _)| made)
    }

    fn write_and_hold(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
    ) -> Result<(Accepted, Option<HoldToken>), WriteError> {
        self.write_holding(now, caller, request, KeepLease::UntilLetGo)
    }

    fn write_holding(
        &mut self,
        now: Moment,
        caller: &Caller,
        request: WriteRequest,
        holding: KeepLease,
    ) -> Result<(Accepted, Option<HoldToken>), WriteError> {
        let WriteRequest { presented, take, unit, write, key, expected } = request;
        let request = AttemptRequest { presented, take, key, expected };
        match self.attempt(now, caller, request)? {
            Tried::Earlier(EarlierCall { write: EarlierResult::InFlight(write), .. }) => {
                Ok((Accepted::InFlight(write), None))
            }
            Tried::Earlier(EarlierCall { write: EarlierResult::Written(outcome), .. }) => {
                Ok((Accepted::Replayed(outcome), None))
            }
            Tried::Allowed(attempt) => {
                let queued = self.commit(attempt, write, unit, holding)?;
                Ok((Accepted::Queued { write, grant: queued.grant }, queued.hold))
            }
        }
    }

    /// What a write without a key would be answered.
    fn would_write(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
        expected: Option<Watermark>,
    ) -> Result<(), WriteError> {
        let request = AttemptRequest { presented, take, key: None, expected };
        self.attempt(now, caller, request).map(|_| ())
    }

    /// An act without bytes, in one go.
    fn authorize(
        &mut self,
        now: Moment,
        caller: &Caller,
        presented: Option<LeaseId>,
        take: TakeRule,
    ) -> Result<(), WriteError> {
        let act = self.allow(now, caller, presented, take)?;
        self.commit_act(act);
        Ok(())
    }
}

fn at(millis: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(1_000_000 + millis))
}

fn id(number: u128) -> LeaseId {
    LeaseId(Uuid::from_u128(number))
}

fn caller(number: u64) -> Caller {
    Caller {
        principal: PrincipalId::Connection(number),
        connection: ConnectionId(number),
        tenant: TenantId::of_uid(1_000),
        kind: Kind::Agent,
        label: Arc::from("agent"),
    }
}

fn open() -> Input {
    Input::new(LeaseManager::new(Epoch(0), LeaseLimits::default()), WriteWindow::Open)
}

/// An input whose lease principal 1 got under id 1.
fn held() -> Input {
    let mut input = open();
    input.acquire(at(0), &caller(1), asking(1), None).unwrap();
    input.take_events();
    input
}

fn asking(fresh: u128) -> AcquireRequest {
    AcquireRequest {
        fresh: id(fresh),
        presented: None,
        ttl: None,
        on_disconnect: None,
        reason: None,
        wait_until: None,
        waiters_max: None,
    }
}

fn text(text: &str) -> Unit {
    Unit { pieces: vec![Piece::Text(text.as_bytes().to_vec())] }
}

fn keys(keys: &[&str]) -> Unit {
    Unit { pieces: keys.iter().map(|key| Piece::Key(key.as_bytes().to_vec())).collect() }
}

fn paste(content: &str) -> Unit {
    let content = Piece::Text(content.as_bytes().to_vec());
    let enter = Piece::Key(b"\r".to_vec());
    Unit { pieces: vec![Piece::PasteStart, content, Piece::PasteEnd, enter] }
}

fn request(number: u64, unit: Unit) -> WriteRequest {
    let (presented, take) = (None, TakeRule::HeldOnly);
    WriteRequest { presented, take, unit, write: WriteId(number), key: None, expected: None }
}

fn write(input: &mut Input, now: Moment, number: u64, unit: Unit) {
    input.write(now, &caller(1), request(number, unit)).unwrap();
}

/// Lets the terminal take up to `count` bytes, and gives what it took.
fn take(input: &mut Input, now: Moment, mut count: usize) -> String {
    let mut taken = Vec::new();
    while count > 0
        && let Some(bytes) = input.next_bytes().map(|next| next.bytes)
    {
        let bytes = bytes[..bytes.len().min(count)].to_vec();
        input.on_taken(now, bytes.len());
        count -= bytes.len();
        taken.extend(bytes);
    }
    String::from_utf8_lossy(&taken).into_owned()
}

fn take_all(input: &mut Input, now: Moment) -> String {
    take(input, now, usize::MAX)
}

fn outcome(written: usize, discarded: usize, queued: usize) -> WriteOutcome {
    WriteOutcome { written, discarded, queued }
}

fn completed(number: u64, outcome: WriteOutcome) -> Vec<Completion> {
    vec![Completion { write: WriteId(number), outcome }]
}

fn key(name: &str, fingerprint: u64) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(name, fingerprint).unwrap())
}

fn preempt(input: &mut Input, now: Moment) {
    assert!(input.preempt(now, caller(9).name()));
}

#[test]
fn the_holder_writes_and_its_lease_is_renewed() {
    let mut input = held();
    let accepted = input.write(at(10_000), &caller(1), request(1, text("ls"))).unwrap();
    let Accepted::Queued { write, grant } = accepted else { panic!("{accepted:?}") };
    assert_eq!((write, grant.expires_at), (WriteId(1), at(40_000)));
    assert_eq!(input.take_completions(), []);
    assert_eq!(take_all(&mut input, at(10_000)), "ls");
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 0)));
}

#[test]
fn nobody_else_writes_and_nothing_changes_when_they_try() {
    let mut input = held();
    let refused = input.write(at(10_000), &caller(2), request(1, text("ls")));
    assert!(matches!(refused, Err(WriteError::Lease(LeaseError::Held { .. }))));
    assert_eq!(input.next_bytes(), None);
    assert_eq!(input.lease().expires_at(at(10_000)), Some(at(30_000)));
}

#[test]
fn nothing_is_written_acquired_or_resized_while_writing_is_switched_off() {
    let lease = LeaseManager::new(Epoch(0), LeaseLimits::default());
    let mut input = Input::new(lease, WriteWindow::Closed);
    let take = TakeRule::ForThisCall(id(1));
    let write = WriteRequest { take, ..request(1, text("ls")) };
    assert_eq!(input.write(at(0), &caller(1), write), Err(WriteError::ReadOnly));
    assert_eq!(input.acquire(at(0), &caller(1), asking(1), None), Err(WriteError::ReadOnly));
    assert_eq!(input.authorize(at(0), &caller(1), None, take), Err(WriteError::ReadOnly));
    let renewal = RenewRequest::default();
    assert_eq!(input.renew(at(0), &caller(1), renewal, None), Err(WriteError::ReadOnly));
}

#[test]
fn switching_writing_off_ends_the_lease_and_discards_what_is_queued() {
    let mut input = held();
    write(&mut input, at(0), 1, text("ls"));
    input.set_window(at(1), WriteWindow::Closed);
    assert_eq!(input.next_bytes(), None);
    assert_eq!(input.take_completions(), completed(1, outcome(0, 2, 0)));
    let change = LeaseChange::Ended(EndCause::WritingSwitchedOff);
    let ended = LeaseEvent { holder: caller(1), epoch: Epoch(1), change };
    assert_eq!(input.take_events(), [InputEvent::Lease(ended)]);
}

#[test]
fn a_window_that_closes_by_itself_is_closed_though_no_timer_has_run() {
    let mut input = held();
    input.set_window(at(0), WriteWindow::Until(at(500)));
    assert_eq!(input.deadline(), Some(at(500)));
    let refused = input.write(at(500), &caller(1), request(1, text("ls")));
    assert_eq!(refused, Err(WriteError::ReadOnly));
    assert_eq!(input.lease().holder(), None);
    assert_eq!(input.deadline(), None);
}

#[test]
fn those_who_wait_are_told_when_writing_is_switched_off() {
    let mut input = held();
    let request = AcquireRequest { wait_until: Some(at(9_000)), ..asking(2) };
    let Acquired::Waiting(waiter) = input.acquire(at(0), &caller(2), request, None).unwrap() else {
        panic!("was to wait")
    };
    input.set_window(at(1), WriteWindow::Closed);
    assert_eq!(input.take_refusals(), [(waiter, WriteError::ReadOnly)]);
}

#[test]
fn a_lease_for_one_call_is_given_back_when_its_last_byte_is_taken() {
    let mut input = open();
    let take_rule = TakeRule::ForThisCall(id(5));
    let request = WriteRequest { take: take_rule, ..request(1, text("ls")) };
    input.write(at(0), &caller(1), request).unwrap();
    take(&mut input, at(0), 1);
    assert_eq!(input.lease().holder(), Some(&caller(1)));
    take(&mut input, at(0), 1);
    assert_eq!(input.lease().holder(), None);
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 0)));
}

#[test]
fn a_lease_for_one_call_outlives_its_callers_connection_until_the_bytes_are_taken() {
    let mut input = open();
    let request = WriteRequest { take: TakeRule::ForThisCall(id(5)), ..request(1, text("ls")) };
    input.write(at(0), &caller(1), request).unwrap();
    input.on_time(at(1_000));
    assert_eq!(input.take_completions(), completed(1, outcome(0, 0, 2)));
    input.on_connection_closed(at(1_100), ConnectionId(1));
    input.on_time(at(20_000));
    assert_eq!(take_all(&mut input, at(20_000)), "ls");
    assert_eq!(input.lease().holder(), None);
}

#[test]
fn a_lease_that_is_held_already_is_not_given_back_after_a_call() {
    let mut input = held();
    let request = WriteRequest { take: TakeRule::ForThisCall(id(5)), ..request(1, text("ls")) };
    input.write(at(0), &caller(1), request).unwrap();
    take_all(&mut input, at(0));
    assert_eq!(input.lease().holder(), Some(&caller(1)));
}

#[test]
fn a_lease_taken_along_with_a_write_is_kept() {
    let mut input = open();
    let take_rule = TakeRule::AndKeep(id(5), Duration::from_secs(60));
    let request = WriteRequest { take: take_rule, ..request(1, text("ls")) };
    input.write(at(0), &caller(1), request).unwrap();
    take_all(&mut input, at(0));
    assert_eq!(input.lease().expires_at(at(0)), Some(at(60_000)));
}

#[test]
fn an_act_that_sends_no_bytes_needs_the_lease_and_renews_it() {
    let mut input = held();
    let other = input.authorize(at(10_000), &caller(2), None, TakeRule::HeldOnly);
    assert!(matches!(other, Err(WriteError::Lease(LeaseError::Held { .. }))));
    assert_eq!(input.authorize(at(10_000), &caller(1), None, TakeRule::HeldOnly), Ok(()));
    assert_eq!(input.lease().expires_at(at(10_000)), Some(at(40_000)));
}

#[test]
fn an_act_on_a_free_session_takes_the_lease_for_itself_alone() {
    let mut input = open();
    let take_rule = TakeRule::ForThisCall(id(5));
    assert_eq!(input.authorize(at(0), &caller(1), None, take_rule), Ok(()));
    assert_eq!(input.lease().holder(), None);
    assert_eq!(input.take_events().len(), 2);
}

#[test]
fn a_rehearsal_answers_like_a_write_and_changes_nothing() {
    let mut input = open();
    let take_rule = TakeRule::AndKeep(id(5), Duration::from_secs(60));
    assert_eq!(input.would_write(at(0), &caller(1), None, take_rule, None), Ok(()));
    assert_eq!(input.lease().holder(), None);
    let refused = input.would_write(at(0), &caller(1), None, TakeRule::HeldOnly, None);
    assert_eq!(refused, Err(WriteError::Lease(LeaseError::Required)));
    let mut input = held();
    assert_eq!(input.would_write(at(9_000), &caller(1), None, TakeRule::HeldOnly, None), Ok(()));
    assert_eq!(input.lease().expires_at(at(9_000)), Some(at(30_000)));
}

#[test]
#[should_panic(expected = "in the step that allowed it")]
fn an_attempt_is_worth_nothing_once_the_input_was_asked_for_anything_else() {
    let mut input = held();
    let (presented, take, key, expected) = (None, TakeRule::HeldOnly, None, None);
    let request = AttemptRequest { presented, take, key, expected };
    let tried = input.attempt(at(0), &caller(1), request).unwrap();
    let Tried::Allowed(attempt) = tried else { panic!("{tried:?}") };
    preempt(&mut input, at(0));
    let _ = input.commit(attempt, WriteId(1), text("ls"), KeepLease::UntilAnswered);
}

#[test]
fn a_call_of_several_steps_keeps_its_lease_and_gives_it_back_at_the_end() {
    let mut input = open();
    let take_rule = TakeRule::ForThisCall(id(5));
    let request = WriteRequest { take: take_rule, ..request(1, text("make\r")) };
    let (_, token) = input.write_and_hold(at(0), &caller(1), request).unwrap();
    let token = token.expect("it is no replay");
    take_all(&mut input, at(0));
    input.on_time(at(300_000));
    assert_eq!(input.lease().holder(), Some(&caller(1)));
    input.let_go(at(300_000), token);
    assert_eq!(input.lease().holder(), None);
}

#[test]
fn a_write_beyond_what_may_wait_is_refused_and_renews_nothing() {
    let mut input = held();
    let full = "x".repeat(Input::QUEUE_BYTES_MAX);
    write(&mut input, at(0), 1, text(&full));
    let refused = input.write(at(500), &caller(1), request(2, text("y")));
    let bytes_max = Input::QUEUE_BYTES_MAX;
    assert_eq!(refused, Err(WriteError::TooMuchQueued { queued: bytes_max, bytes_max }));
    preempt(&mut input, at(500));
    assert_eq!(input.take_completions(), completed(1, outcome(0, bytes_max, 0)));
}

#[test]
fn a_write_that_is_to_be_waited_for_renews_nothing_when_it_is_refused() {
    let full = "x".repeat(Input::QUEUE_BYTES_MAX + 1);
    let mut input = held();
    assert!(input.write_and_hold(at(10_000), &caller(1), request(1, text(&full))).is_err());
    assert_eq!(input.lease().expires_at(at(10_000)), Some(at(30_000)));
    let mut input = open();
    let take = TakeRule::ForThisCall(id(5));
    let once = WriteRequest { take, ..request(1, text(&full)) };
    assert!(input.write_and_hold(at(0), &caller(1), once).is_err());
    assert_eq!((input.lease().epoch(), input.take_events()), (None, Vec::new()));
}

#[test]
fn a_command_is_interrupted_for_its_caller_until_another_holding_begins() {
    let mut input = held();
    let epoch = input.lease().epoch();
    let may = |input: &mut Input, now| input.may_interrupt(now, &caller(1), epoch).is_ok();
    assert!(may(&mut input, at(0)));
    input.on_time(at(31_000));
    assert!(may(&mut input, at(31_000)), "nobody has the lease");
    input.acquire(at(32_000), &caller(2), asking(2), None).unwrap();
    assert!(!may(&mut input, at(32_000)));
    preempt(&mut input, at(33_000));
    input.set_window(at(33_000), WriteWindow::Closed);
    assert!(!may(&mut input, at(33_000)), "writing is switched off");
}

#[test]
fn a_command_is_not_interrupted_for_its_caller_once_another_holding_is_over() {
    let mut input = held();
    let epoch = input.lease().epoch();
    input.on_time(at(31_000));
    input.acquire(at(32_000), &caller(2), asking(2), None).unwrap();
    preempt(&mut input, at(33_000));
    assert!(input.may_interrupt(at(33_000), &caller(1), epoch).is_err(), "it may be another's");
    input.acquire(at(34_000), &caller(1), asking(3), None).unwrap();
    assert!(input.may_interrupt(at(34_000), &caller(1), epoch).is_ok(), "it may write");
}

#[test]
fn only_so_many_writes_may_wait() {
    let mut input = held();
    for number in 0..Input::QUEUE_WRITES_MAX as u64 {
        write(&mut input, at(0), number, text("x"));
    }
    let refused = input.write(at(0), &caller(1), request(999, text("y")));
    assert!(matches!(refused, Err(WriteError::TooMuchQueued { .. })));
}

#[test]
fn a_write_that_the_terminal_does_not_take_is_answered_after_a_second() {
    let mut input = held();
    write(&mut input, at(0), 1, text("hello"));
    take(&mut input, at(0), 2);
    assert_eq!(input.deadline(), Some(at(1_000)));
    input.on_time(at(1_000));
    assert_eq!(input.take_completions(), completed(1, outcome(2, 0, 3)));
    assert_eq!(take_all(&mut input, at(2_000)), "llo");
    assert_eq!(input.take_completions(), []);
}

#[test]
fn what_is_discarded_after_the_answer_is_an_event_and_a_warning() {
    let mut input = held();
    write(&mut input, at(0), 1, text("hello"));
    input.on_time(at(1_000));
    input.take_completions();
    preempt(&mut input, at(2_000));
    let discarded = input.take_events().into_iter().find_map(|event| match event {
        InputEvent::Discarded(discarded) => Some(discarded),
        InputEvent::Lease(_) => None,
    });
    let cause = DiscardCause::LeaseEnded;
    let expected = Discarded { writer: caller(1), write: WriteId(1), bytes: 5, cause };
    assert_eq!(discarded, Some(expected));
    assert_eq!(input.take_completions(), []);
    let warning = Warning { discarded: 5, cause };
    assert_eq!(input.take_warning(caller(1).principal), Some(warning));
    assert_eq!(input.take_warning(caller(1).principal), None);
}

#[test]
fn after_the_end_of_a_lease_no_byte_of_it_goes_out() {
    let mut input = held();
    write(&mut input, at(0), 1, text("first"));
    write(&mut input, at(0), 2, text("second"));
    take(&mut input, at(0), 3);
    preempt(&mut input, at(1));
    assert_eq!(take_all(&mut input, at(1)), "");
    let mut both = completed(1, outcome(3, 2, 0));
    both.extend(completed(2, outcome(0, 6, 0)));
    assert_eq!(input.take_completions(), both);
}

#[test]
fn an_abort_finishes_the_key_that_has_begun() {
    let mut input = held();
    write(&mut input, at(0), 1, keys(&["\x1b[A", "\x1b[B"]));
    assert_eq!(take(&mut input, at(0), 1), "\x1b");
    preempt(&mut input, at(1));
    assert_eq!(take_all(&mut input, at(1)), "[A");
    assert_eq!(input.take_completions(), completed(1, outcome(3, 3, 0)));
}

#[test]
fn an_abort_finishes_the_character_that_has_begun() {
    let mut input = held();
    write(&mut input, at(0), 1, text("a\u{20ac}b"));
    input.on_taken(at(0), 2);
    preempt(&mut input, at(1));
    assert_eq!(input.next_bytes().map(|next| next.bytes), Some(&"\u{20ac}".as_bytes()[1..]));
    input.on_taken(at(1), 2);
    assert_eq!(input.take_completions(), completed(1, outcome(4, 1, 0)));
    assert_eq!(input.next_bytes(), None);
}

#[test]
fn a_character_that_has_begun_is_finished_however_often_its_text_is_cut() {
    type Cut = fn(&mut Input);
    let interrupt: Cut = |input| {
        write(input, at(1), 2, keys(&["\x03"]));
        write(input, at(1), 3, keys(&["\x03"]));
    };
    let release: Cut = |input| {
        input.release(at(1), &caller(1), ReleaseRequest::default(), None).unwrap();
    };
    let expire: Cut = |input| input.on_time(at(99_000));
    let hang_up: Cut = |input| input.on_connection_closed(at(1), ConnectionId(1));
    let persons: Cut = |input| {
        let unit = keys(&["\x03"]);
        let typing = Typing { unit, write: WriteId(2), stamp: None, fresh: id(50) };
        input.type_in(at(1), &caller(5), typing).unwrap();
    };
    for cut in [interrupt, release, expire, hang_up, persons] {
        let mut input = held();
        write(&mut input, at(0), 1, text(&"\u{1f600}".repeat(9)));
        input.on_taken(at(0), 6);
        cut(&mut input);
        input.discard(at(99_000), DiscardCause::Interrupted);
        assert_eq!(input.next_bytes().map(|next| next.bytes), Some(&"\u{1f600}".as_bytes()[2..]));
        input.on_taken(at(99_000), 2);
        assert_eq!(input.queued_bytes(), 0);
    }
}

#[test]
fn the_next_holders_bytes_follow_the_rest_of_a_key() {
    let mut input = held();
    write(&mut input, at(0), 1, keys(&["\x1b[A", "\x1b[B"]));
    take(&mut input, at(0), 2);
    preempt(&mut input, at(1));
    let take_rule = TakeRule::AndKeep(id(2), Duration::from_secs(30));
    let request = WriteRequest { take: take_rule, ..request(2, text("x")) };
    input.write(at(1), &caller(2), request).unwrap();
    assert_eq!(input.next_bytes().and_then(|next| next.epoch), Some(Epoch(1)));
    assert_eq!(take_all(&mut input, at(1)), "Ax");
}

#[test]
fn a_paste_that_is_cut_short_is_closed_before_anything_else_goes_out() {
    let mut input = held();
    write(&mut input, at(0), 1, paste("rm -rf"));
    take(&mut input, at(0), 8);
    assert!(input.answer(b"\x1b[0n"));
    preempt(&mut input, at(1));
    let take_rule = TakeRule::AndKeep(id(2), Duration::from_secs(30));
    let next = WriteRequest { take: take_rule, ..request(2, text("x")) };
    input.write(at(1), &caller(2), next).unwrap();
    assert_eq!(input.next_bytes().and_then(|next| next.epoch), None);
    assert_eq!(take_all(&mut input, at(1)), "\x1b[201~\x1b[0nx");
    let first = input.take_completions()[0];
    assert_eq!(first, Completion { write: WriteId(1), outcome: outcome(8, 11, 0) });
}

#[test]
fn a_paste_of_which_nothing_went_out_is_not_closed() {
    let mut input = held();
    write(&mut input, at(0), 1, paste("ls"));
    preempt(&mut input, at(1));
    assert_eq!(take_all(&mut input, at(1)), "");
}

#[test]
fn a_paste_whose_mark_was_split_is_completed_and_closed() {
    let mut input = held();
    write(&mut input, at(0), 1, paste("ls"));
    take(&mut input, at(0), 3);
    preempt(&mut input, at(1));
    assert_eq!(take_all(&mut input, at(1)), "00~\x1b[201~");
    assert_eq!(input.take_completions(), completed(1, outcome(6, 9, 0)));
}

#[test]
fn answers_of_the_terminal_go_out_first_but_never_inside_a_key_or_a_paste() {
    let mut input = held();
    write(&mut input, at(0), 1, keys(&["\x1b[A", "b"]));
    write(&mut input, at(0), 2, paste("c"));
    assert_eq!(take(&mut input, at(0), 1), "\x1b");
    assert!(input.answer(b"<1>"));
    assert_eq!(take(&mut input, at(0), 5), "[A<1>");
    assert_eq!(take(&mut input, at(0), 7), "b\x1b[200~");
    assert!(input.answer(b"<2>"));
    assert_eq!(take_all(&mut input, at(0)), "c\x1b[201~<2>\r");
}

#[test]
fn answers_of_the_terminal_need_no_lease_and_are_bounded() {
    let mut input = open();
    assert!(input.answer(&vec![b'x'; Input::ANSWER_BYTES_MAX]));
    assert!(!input.answer(b"y"));
    assert_eq!(take_all(&mut input, at(0)).len(), Input::ANSWER_BYTES_MAX);
}

#[test]
fn an_interrupt_goes_past_what_is_stuck() {
    let mut input = held();
    write(&mut input, at(0), 1, text("sleep"));
    input.on_time(at(1_000));
    write(&mut input, at(1_000), 2, text(" 1000"));
    take(&mut input, at(1_000), 2);
    write(&mut input, at(1_500), 3, keys(&["\x03"]));
    assert_eq!(take_all(&mut input, at(1_500)), "\x03");
    let mut answers = completed(1, outcome(0, 0, 5));
    answers.extend(completed(2, outcome(0, 5, 0)));
    answers.extend(completed(3, outcome(1, 0, 0)));
    assert_eq!(input.take_completions(), answers);
    let warning = Warning { discarded: 3, cause: DiscardCause::Interrupted };
    assert_eq!(input.take_warning(caller(1).principal), Some(warning));
}

#[test]
fn nobody_elses_interrupt_discards_anything() {
    let mut input = held();
    write(&mut input, at(0), 1, text("sleep"));
    assert!(input.write(at(0), &caller(2), request(2, keys(&["\x03"]))).is_err());
    assert_eq!(take_all(&mut input, at(0)), "sleep");
}

#[test]
fn a_write_of_nothing_is_answered_at_once() {
    let mut input = held();
    write(&mut input, at(0), 1, Unit::default());
    assert_eq!(input.take_completions(), completed(1, outcome(0, 0, 0)));
}

#[test]
fn the_end_of_the_session_discards_everything_and_refuses_the_rest() {
    let mut input = held();
    write(&mut input, at(0), 1, keys(&["\x1b[A", "\x1b[B"]));
    take(&mut input, at(0), 1);
    input.close(at(1));
    assert_eq!(input.next_bytes(), None);
    assert_eq!(input.take_completions(), completed(1, outcome(1, 5, 0)));
    assert!(!input.answer(b"x"));
    let refused = input.write(at(2), &caller(1), request(2, text("x")));
    assert_eq!(refused, Err(WriteError::SessionEnded));
    let released = input.release(at(2), &caller(1), ReleaseRequest::default(), None);
    assert_eq!(released, Ok(Released::AlreadyGone(EndCause::SessionEnded)));
    assert_eq!(input.deadline(), None);
}

#[test]
fn a_replay_of_a_write_in_flight_waits_for_the_same_completion() {
    let mut input = held();
    let named = WriteRequest { key: key("a", 1), ..request(1, text("ls")) };
    input.write(at(0), &caller(1), named.clone()).unwrap();
    let again = WriteRequest { write: WriteId(2), ..named };
    let replay = input.write(at(0), &caller(1), again);
    assert_eq!(replay, Ok(Accepted::InFlight(WriteId(1))));
    assert_eq!(take_all(&mut input, at(0)), "ls");
}

#[test]
fn a_replay_gets_the_first_result_and_writes_nothing() {
    let mut input = held();
    let named = WriteRequest { key: key("a", 1), ..request(1, text("ls")) };
    input.write(at(0), &caller(1), named.clone()).unwrap();
    take_all(&mut input, at(0));
    preempt(&mut input, at(1));
    let replay = input.write(at(2), &caller(1), WriteRequest { write: WriteId(2), ..named });
    assert_eq!(replay, Ok(Accepted::Replayed(outcome(2, 0, 0))));
    assert_eq!(input.next_bytes(), None);
}

#[test]
fn a_key_stands_for_the_command_that_was_sent_under_it() {
    let mut input = held();
    let named = WriteRequest { key: key("a", 1), ..request(1, text("ls")) };
    let asked = key("a", 1).expect("a key");
    let command = |input: &mut Input, now| {
        input.recall(now, &caller(1), None, &asked).unwrap().map(|call| call.command)
    };
    assert_eq!(command(&mut input, at(0)), None);
    input.write(at(0), &caller(1), named).unwrap();
    let sent = CommandSent { id: CommandId(7), before: Watermark(3) };
    input.note_command(WriteId(1), sent);
    assert_eq!(command(&mut input, at(0)), Some(Some(sent)));
    take_all(&mut input, at(0));
    assert_eq!(command(&mut input, at(299_000)), Some(Some(sent)));
    assert_eq!(command(&mut input, at(300_000)), None);
}

#[test]
fn a_key_used_for_another_call_is_refused() {
    let mut input = held();
    let named = WriteRequest { key: key("a", 1), ..request(1, text("ls")) };
    input.write(at(0), &caller(1), named.clone()).unwrap();
    let other = WriteRequest { key: key("a", 2), write: WriteId(2), ..named };
    assert_eq!(input.write(at(0), &caller(1), other), Err(WriteError::KeyReused));
}

#[test]
fn a_call_that_may_only_be_repeated_has_no_effect_once_it_is_forgotten() {
    let mut input = open();
    let asked = |input: &mut Input, now, key: Option<IdempotencyKey>| {
        let key = key.map(IdempotencyKey::of_repetition);
        input.acquire(now, &caller(1), asking(9), key)
    };
    assert_eq!(asked(&mut input, at(0), key("a", 1)), Err(WriteError::NotRepeated));
    let Ok(Acquired::Granted(grant)) = input.acquire(at(0), &caller(1), asking(1), key("a", 1))
    else {
        panic!("it is free")
    };
    assert_eq!(asked(&mut input, at(0), key("a", 1)), Ok(Acquired::Granted(grant)));
    assert_eq!(asked(&mut input, at(0), key("a", 2)), Err(WriteError::KeyReused));
    assert_eq!(asked(&mut input, at(300_000), key("a", 1)), Err(WriteError::NotRepeated));
    let request = RenewRequest { presented: Some(id(1)), ttl: None };
    let unmade = key("b", 1).map(IdempotencyKey::of_repetition);
    assert_eq!(
        input.renew(at(0), &caller(1), request, unmade.clone()),
        Err(WriteError::NotRepeated)
    );
    let released = input.release(at(0), &caller(1), ReleaseRequest::default(), unmade);
    assert_eq!(released, Err(WriteError::NotRepeated));
}

#[test]
fn a_refused_call_may_be_tried_again_under_its_key() {
    let mut input = open();
    let named = WriteRequest { key: key("a", 1), ..request(1, text("ls")) };
    assert!(input.write(at(0), &caller(1), named.clone()).is_err());
    input.acquire(at(0), &caller(1), asking(1), None).unwrap();
    assert!(matches!(input.write(at(0), &caller(1), named), Ok(Accepted::Queued { .. })));
}

#[test]
fn replaying_an_acquire_or_a_release_has_the_effect_of_one() {
    let mut input = open();
    let first = input.acquire(at(0), &caller(1), asking(1), key("a", 1)).unwrap();
    let second = input.acquire(at(9_000), &caller(1), asking(2), key("a", 1)).unwrap();
    assert_eq!(second, first);
    assert_eq!(input.lease().expires_at(at(9_000)), Some(at(30_000)));
    let release = ReleaseRequest::default;
    assert_eq!(input.release(at(9_000), &caller(1), release(), key("b", 2)), Ok(Released::Freed));
    input.acquire(at(9_000), &caller(1), asking(3), None).unwrap();
    assert_eq!(input.release(at(9_000), &caller(1), release(), key("b", 2)), Ok(Released::Freed));
    assert_eq!(input.lease().holder(), Some(&caller(1)));
}

#[test]
fn replaying_a_renewal_moves_no_deadline() {
    let mut input = held();
    let renewal = RenewRequest::default();
    let first = input.renew(at(1_000), &caller(1), renewal, key("a", 1)).unwrap();
    assert_eq!(input.renew(at(9_000), &caller(1), renewal, key("a", 1)), Ok(first));
    assert_eq!(input.lease().expires_at(at(9_000)), Some(at(31_000)));
}

#[test]
fn replaying_an_acquire_that_waits_waits_as_the_same_waiter() {
    let mut input = held();
    let request = AcquireRequest { wait_until: Some(at(99_000)), ..asking(2) };
    let first = input.acquire(at(0), &caller(2), request.clone(), key("a", 1)).unwrap();
    assert_eq!(input.acquire(at(0), &caller(2), request.clone(), key("a", 1)), Ok(first));
    assert_eq!(input.lease().view().waiters, 1);
    input.on_time(at(30_000));
    let (_, grant) = input.take_grants().remove(0);
    let replay = input.acquire(at(31_000), &caller(2), request, key("a", 1));
    assert_eq!(replay, Ok(Acquired::Granted(grant)));
}

#[test]
fn a_write_in_flight_keeps_its_lease_no_longer_than_it_is_waited_for() {
    let mut input = open();
    let request = AcquireRequest { ttl: Some(Duration::from_secs(1)), ..asking(1) };
    input.acquire(at(0), &caller(1), request, None).unwrap();
    write(&mut input, at(0), 1, text("ls"));
    input.on_time(at(1_999));
    assert_eq!(input.lease().holder(), Some(&caller(1)));
    input.on_time(at(3_600_000));
    assert_eq!(input.lease().holder(), None);
    assert_eq!(input.next_bytes(), None);
}

#[test]
fn a_lease_that_moved_takes_no_bytes_of_its_former_holder_along() {
    let mut input = held();
    write(&mut input, at(0), 1, text("old"));
    input.on_connection_closed(at(1), ConnectionId(1));
    let request = WriteRequest { presented: Some(id(1)), ..request(2, text("new")) };
    input.write(at(2), &caller(2), request).unwrap();
    assert_eq!(take_all(&mut input, at(2)), "new");
    assert_eq!(input.take_completions()[0], completed(1, outcome(0, 3, 0))[0]);
}

#[test]
fn an_acquire_whose_grant_reached_nobody_is_not_replayed() {
    let mut input = held();
    let request = AcquireRequest { wait_until: Some(at(99_000)), ..asking(2) };
    let answer = input.acquire(at(0), &caller(2), request.clone(), key("a", 1));
    let Ok(Acquired::Waiting(waiter)) = answer else { panic!("{answer:?}") };
    input.on_time(at(30_000));
    input.on_undeliverable(at(30_000), waiter);
    let again = AcquireRequest { fresh: id(3), ..request };
    let answer = input.acquire(at(31_000), &caller(2), again, key("a", 1));
    assert!(matches!(answer, Ok(Acquired::Granted(grant)) if grant.lease == id(3)));
}

#[test]
fn a_lease_hangs_on_nobody_who_asks_again_for_one_that_it_had_before() {
    let operator = |number| Caller { kind: Kind::Operator, ..caller(number) };
    let kept = |fresh| AcquireRequest { on_disconnect: Some(OnDisconnect::Keep), ..asking(fresh) };
    let mut input = open();
    let again = |input: &mut Input| input.acquire(at(1), &operator(1), kept(1), key("a", 1));
    assert!(matches!(again(&mut input), Ok(Acquired::Granted(grant)) if grant.lease == id(1)));
    let release = ReleaseRequest { presented: Some(id(1)), hand_to: None };
    input.release(at(1), &operator(1), release, None).unwrap();
    input.acquire(at(1), &operator(2), kept(2), None).unwrap();
    assert!(matches!(again(&mut input), Ok(Acquired::Granted(grant)) if grant.lease == id(1)));
    input.on_connection_closed(at(2), ConnectionId(2));
    // With none of its connections there, it goes to the agent that shows its id.
    let shown = AcquireRequest { presented: Some(id(2)), ..asking(3) };
    let taken = input.acquire(at(3), &caller(5), shown, None);
    assert!(matches!(&taken, Ok(Acquired::Granted(grant)) if grant.lease == id(2)), "{taken:?}");
}
