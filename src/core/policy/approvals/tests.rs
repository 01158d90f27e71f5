//! An approval is for one exact call, is used once, and only while the terminal is as it was.

use super::*;
use crate::core::caller::PrincipalName;
use crate::core::ids::{Epoch, SessionId, TenantId, Watermark};
use crate::core::shell::commands::record::CommandId;

const NOW: Moment = Moment::from_boot(Duration::from_secs(1_000));

fn session() -> SessionId {
    SessionId::from_random(uuid::Uuid::from_u128(7 << 80))
}

fn id(number: u32) -> DecisionId {
    DecisionId::from_random(uuid::Uuid::from_u128(u128::from(number) << 96))
}

fn request(number: u32, what: &str) -> ApprovalRequest {
    ApprovalRequest {
        decision: id(number),
        fingerprint: Fingerprint::of(&[what.as_bytes()]),
        witness: Witness::default(),
        by: PrincipalName { label: "a".into(), principal: PrincipalId::Connection(1) },
        user: None,
        is_operators: false,
        tenant: TenantId::of_uid(1),
        session: Some(session()),
        tool: "run".into(),
        generation: 0,
        what: what.into(),
        line: None,
        programs: Some(["rm".to_owned()].into()),
        rule: None,
        reason: None,
        client_may_approve: false,
        command: None,
    }
}

fn waits(number: u32, is_new: bool) -> ApprovalAnswer {
    ApprovalAnswer::Waits { id: id(number), expires_at: NOW + VALID_FOR, is_new }
}

fn approve(approvals: &mut Approvals, number: u32) -> Result<DecisionId, ApprovalError> {
    let approved = approvals.approve(NOW, id(number), ApprovalScope::Once, "ada".into());
    approved.map(|call| call.id)
}

#[test]
fn an_approved_call_passes_once() {
    let mut approvals = Approvals::default();
    assert_eq!(approvals.ask(NOW, request(1, "rm a")), waits(1, true));
    assert_eq!(approvals.ask(NOW, request(2, "rm a")), waits(1, false));
    assert_eq!(approve(&mut approvals, 1), Ok(id(1)));
    assert_eq!(approve(&mut approvals, 1), Err(ApprovalError::Decided));
    assert_eq!(approvals.ask(NOW, request(3, "rm b")), waits(3, true), "another call");
    let passed = approvals.ask(NOW, request(4, "rm a"));
    assert_eq!(passed_by(&passed), Some((id(1), "ada")));
    assert_eq!(approvals.ask(NOW, request(5, "rm a")), waits(5, true));
}

fn passed_by(asked: &ApprovalAnswer) -> Option<(DecisionId, &str)> {
    if let ApprovalAnswer::Passes { id, by, .. } = asked { Some((*id, by)) } else { None }
}

#[test]
fn an_approval_that_was_used_for_nothing_can_be_used_again_once() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    approve(&mut approvals, 1).unwrap();
    let ApprovalAnswer::Passes { used: Some(used), .. } = approvals.ask(NOW, request(2, "rm a"))
    else {
        panic!("it passes");
    };
    approvals.give_back(*used.clone());
    approvals.give_back(*used);
    assert!(passed_by(&approvals.ask(NOW, request(3, "rm a"))).is_some());
    assert_eq!(approvals.ask(NOW, request(4, "rm a")), waits(4, true));
}

#[test]
fn parts_of_a_fingerprint_cannot_be_moved_into_each_other() {
    let of = |parts: &[&str]| {
        Fingerprint::of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
    };
    assert_ne!(of(&["a", "bc"]), of(&["ab", "c"]));
    assert_ne!(of(&["a", ""]), of(&["a"]));
    assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
}

#[test]
fn an_approval_is_gone_once_the_terminal_has_changed() {
    let changes: [fn(&mut Witness); 5] = [
        |it| it.others_epoch = Some(Epoch(3)),
        |it| it.command = CommandId(4),
        |it| it.directory = Some("/".into()),
        |it| it.foreground = Some(9),
        |it| it.screen = Some(Watermark(7)),
    ];
    for change in changes {
        let mut approvals = Approvals::default();
        approvals.ask(NOW, request(1, "rm a"));
        approve(&mut approvals, 1).unwrap();
        let mut changed = request(2, "rm a");
        change(&mut changed.witness);
        assert_eq!(approvals.ask(NOW, changed.clone()), ApprovalAnswer::Stale { id: id(1) });
        assert_eq!(approvals.ask(NOW, changed), waits(2, true));
    }
}

#[test]
fn a_call_that_is_made_at_another_state_is_another_one() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    let moved = Witness { directory: Some("/".into()), ..Witness::default() };
    let again = ApprovalRequest { witness: moved, ..request(2, "rm a") };
    assert_eq!(approvals.ask(NOW, again.clone()), waits(2, true));
    assert_eq!(approve(&mut approvals, 1), Err(ApprovalError::Unknown));
    approve(&mut approvals, 2).unwrap();
    assert!(matches!(approvals.ask(NOW, again), ApprovalAnswer::Passes { .. }));
}

#[test]
fn other_rules_make_all_void_also_what_is_given_back_later() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    approvals.ask(NOW, request(2, "rm b"));
    approve(&mut approvals, 2).unwrap();
    let ApprovalAnswer::Passes { used: Some(used), .. } = approvals.ask(NOW, request(3, "rm b"))
    else {
        panic!("it passes");
    };
    approvals.clear();
    approvals.give_back(*used);
    assert!(approvals.list(NOW).is_empty());
    assert_eq!(approve(&mut approvals, 1), Err(ApprovalError::Unknown));
    assert_eq!(approvals.ask(NOW, request(4, "rm b")), ApprovalAnswer::Outdated);
    let generation = approvals.generation();
    let newer = ApprovalRequest { generation, ..request(5, "rm b") };
    assert_eq!(approvals.ask(NOW, newer), waits(5, true));
}

#[test]
fn a_call_that_nobody_makes_any_more_can_be_withdrawn_until_it_is_decided() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    assert!(approvals.withdraw(id(1)));
    assert!(!approvals.withdraw(id(1)));
    assert_eq!(approvals.state(NOW, id(1)), None);
    approvals.ask(NOW, request(2, "rm a"));
    approve(&mut approvals, 2).unwrap();
    assert!(!approvals.withdraw(id(2)));
}

#[test]
fn a_denied_call_is_not_asked_about_again_for_a_minute() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    approvals.deny(NOW, id(1), "ada".into()).unwrap();
    let until = NOW + DENIED_FOR;
    let denied = ApprovalAnswer::Denied { id: id(1), by: "ada".into(), until };
    assert_eq!(approvals.ask(NOW, request(2, "rm a")), denied);
    assert!(approvals.list(NOW).is_empty());
    assert_eq!(approve(&mut approvals, 1), Err(ApprovalError::Decided));
    let expires_at = until + VALID_FOR;
    let waits = ApprovalAnswer::Waits { id: id(3), expires_at, is_new: true };
    assert_eq!(approvals.ask(until, request(3, "rm a")), waits);
}

#[test]
fn what_nobody_decides_expires() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    approvals.ask(NOW, request(2, "rm b"));
    approve(&mut approvals, 2).unwrap();
    let later = NOW + VALID_FOR;
    let denied = approvals.deny(later, id(1), "ada".into()).map(|call| call.id);
    assert_eq!(denied, Err(ApprovalError::Unknown));
    let asked = approvals.ask(later, request(3, "rm b"));
    assert!(matches!(asked, ApprovalAnswer::Waits { is_new: true, .. }), "{asked:?}");
}

#[test]
fn programs_pass_for_a_time_in_one_session_for_one_principal_and_rule() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "rm a"));
    let until = NOW + Duration::from_secs(60);
    let scope = ApprovalScope::Programs(until);
    approvals.approve(NOW, id(1), scope, "ada".into()).unwrap();
    // The call itself passes once, as it was.
    assert!(matches!(
        approvals.ask(NOW, request(2, "rm a")),
        ApprovalAnswer::Passes { used: Some(_), .. }
    ));
    for what in ["rm a", "rm b"] {
        let passes = ApprovalAnswer::Passes { id: id(1), by: "ada".into(), used: None };
        assert_eq!(approvals.ask(NOW, request(2, what)), passes, "{what}");
    }
    let other = PrincipalName { label: "a".into(), principal: PrincipalId::Connection(2) };
    let more = Some(["rm".to_owned(), "cp".to_owned()].into());
    let others = [
        ApprovalRequest { by: other, ..request(3, "c") },
        ApprovalRequest { session: None, ..request(4, "d") },
        ApprovalRequest { programs: more, ..request(5, "e") },
        ApprovalRequest { programs: None, ..request(6, "f") },
        ApprovalRequest { rule: Some("other".into()), ..request(7, "g") },
    ];
    for request in others {
        let asked = approvals.ask(NOW, request.clone());
        assert!(matches!(asked, ApprovalAnswer::Waits { .. }), "{request:?}");
    }
    let unknown = approvals.approve(NOW, id(6), scope, "ada".into()).map(|call| call.id);
    assert_eq!(unknown, Err(ApprovalError::ProgramsUnknown));
    approvals.deny(NOW, id(1), "ada".into()).unwrap();
    let asked = approvals.ask(NOW, request(8, "rm b"));
    assert!(matches!(asked, ApprovalAnswer::Waits { .. }), "they pass no more: {asked:?}");
}

#[test]
fn a_principal_cannot_have_more_than_some_calls_waiting() {
    let mut approvals = Approvals::default();
    for number in 0..16 {
        assert_eq!(approvals.ask(NOW, request(number, &format!("{number}"))), waits(number, true));
    }
    for number in 0..16 {
        approvals.on_wait(id(number), true);
    }
    let minute = NOW + Duration::from_secs(60);
    let waits = |number| {
        let expires_at = minute + VALID_FOR;
        ApprovalAnswer::Waits { id: id(number), expires_at, is_new: true }
    };
    let too_many = ApprovalAnswer::TooMany { retry_after: AGAIN_AFTER };
    assert_eq!(approvals.ask(minute, request(16, "more")), too_many);
    assert_eq!(approvals.list(minute).len(), 16);
    // One that nobody waits for any more gives way, and stands behind the others until then.
    approvals.on_wait(id(3), false);
    assert_eq!(approvals.list(minute).last().map(|call| call.id), Some(id(3)));
    assert_eq!(approvals.ask(minute, request(16, "more")), waits(16));
    assert_eq!(approvals.state(minute, id(3)), None);
    assert_eq!(approvals.list(minute).len(), 16);
    assert!(!approvals.leave(PrincipalId::Connection(2)));
    assert!(approvals.leave(PrincipalId::Connection(1)));
    assert!(approvals.list(minute).is_empty());
    assert_eq!(approvals.ask(minute, request(17, "more")), waits(17));
}

/// A call of a client on this connection.
fn request_of(connection: u64, number: u32) -> ApprovalRequest {
    let by = PrincipalName { label: "a".into(), principal: PrincipalId::Connection(connection) };
    let fingerprint = Fingerprint::of(&[&connection.to_be_bytes(), &number.to_be_bytes()]);
    ApprovalRequest { by, fingerprint, ..request(number, &format!("{number}")) }
}

#[test]
fn a_tenant_has_people_asked_no_faster_than_they_can_decide() {
    let mut approvals = Approvals::default();
    let mut ask = |now: Moment, number: u32| {
        let asked = approvals.ask(now, request_of(u64::from(number), number));
        // Its caller gives it up at once.
        approvals.withdraw(id(number));
        asked
    };
    let asked = (0..100).filter(|number| ask(NOW, *number) == waits(*number, true)).count();
    assert_eq!(asked, TENANT_MAX);
    let second = Duration::from_secs(1);
    let too_many = ApprovalAnswer::TooMany { retry_after: second };
    assert_eq!(ask(NOW, 100), too_many);
    let expires_at = NOW + second + VALID_FOR;
    let waits = ApprovalAnswer::Waits { id: id(101), expires_at, is_new: true };
    assert_eq!(ask(NOW + second, 101), waits);
    assert_eq!(ask(NOW + second, 102), too_many);
}

#[test]
fn one_who_asks_without_a_pause_keeps_nobody_else_of_its_tenant_from_asking() {
    let mut approvals = Approvals::default();
    let mut asked = 0;
    // Ten calls a second, for five minutes.
    for number in 0..3_000 {
        let now = NOW + Duration::from_millis(100) * number;
        let answer = approvals.ask(now, request_of(1, number));
        asked += usize::from(matches!(answer, ApprovalAnswer::Waits { .. }));
        approvals.withdraw(id(number));
        if number % 100 == 0 {
            let other = approvals.ask(now, request_of(2, 100_000 + number));
            assert!(matches!(other, ApprovalAnswer::Waits { is_new: true, .. }), "{other:?}");
        }
    }
    // The last one is made after 299.9 seconds.
    assert_eq!(asked, WAITING_MAX + 299 / 4);
}

#[test]
fn calls_that_many_clients_have_left_give_way_to_another_one() {
    let mut approvals = Approvals::default();
    for client in 1..=4 {
        for number in 0..16 {
            let number = client * 100 + number;
            let left = approvals.ask(NOW, request_of(u64::from(client), number));
            assert_eq!(left, waits(number, true));
        }
    }
    let minute = NOW + Duration::from_secs(60);
    let first = ApprovalAnswer::Waits { id: id(900), expires_at: minute + VALID_FOR, is_new: true };
    assert_eq!(approvals.ask(minute, request_of(9, 900)), first);
    assert_eq!(approvals.list(minute).len(), TENANT_MAX);
    // It has fewer than those, so the next one takes no place of it.
    let second = approvals.ask(minute, request_of(10, 901));
    assert!(matches!(second, ApprovalAnswer::Waits { .. }), "{second:?}");
    assert_eq!(approvals.state(minute, id(900)), Some(&ApprovalState::Waiting));
    // Nobody gives way whose calls are waited in.
    let waiting: Vec<_> = approvals.list(minute).into_iter().map(|call| call.id).collect();
    waiting.into_iter().for_each(|id| approvals.on_wait(id, true));
    let third = approvals.ask(minute, request_of(11, 902));
    assert_eq!(third, ApprovalAnswer::TooMany { retry_after: AGAIN_AFTER });
}

#[test]
fn who_connects_again_is_not_asked_for_again() {
    let mut approvals = Approvals::default();
    let of = |connection: u64, number: u32, what: &str| {
        let by =
            PrincipalName { label: "a".into(), principal: PrincipalId::Connection(connection) };
        let fingerprint = Fingerprint::of(&[&connection.to_be_bytes(), what.as_bytes()]);
        ApprovalRequest { by, user: Some(1), fingerprint, ..request(number, what) }
    };
    let deny = |approvals: &mut Approvals, number| {
        approvals.deny(NOW, id(number), "ada".into()).unwrap();
    };
    let until = NOW + DENIED_FOR;
    let denied = |number| ApprovalAnswer::Denied { id: id(number), by: "ada".into(), until };
    assert_eq!(approvals.ask(NOW, of(1, 1, "rm $x")), waits(1, true));
    deny(&mut approvals, 1);
    approvals.leave(PrincipalId::Connection(1));
    assert_eq!(approvals.ask(NOW, of(2, 2, "rm $x")), denied(1));
    let other_user = ApprovalRequest { user: Some(2), ..of(3, 3, "rm $x") };
    assert_eq!(approvals.ask(NOW, other_user), waits(3, true));
    let person = ApprovalRequest { is_operators: true, ..of(5, 10, "rm $x") };
    assert_eq!(approvals.ask(NOW, person), waits(10, true));
    let elsewhere = ApprovalRequest { session: None, ..of(2, 4, "rm $x") };
    assert_eq!(approvals.ask(NOW, elsewhere), waits(4, true));
    // Other spellings are asked about, but not without end.
    for (number, what) in [(5, "rm  $x"), (6, "rm ${x}")] {
        assert_eq!(approvals.ask(NOW, of(2, number, what)), waits(number, true), "{what}");
        deny(&mut approvals, number);
    }
    let last = approvals.ask(NOW, of(2, 7, "rm $x$y"));
    assert!(matches!(last, ApprovalAnswer::Denied { until: at, .. } if at == until), "{last:?}");
    let other_rule = ApprovalRequest { rule: Some("other".into()), ..of(2, 8, "rm $x$y") };
    assert_eq!(approvals.ask(NOW, other_rule), waits(8, true));
    assert_eq!(
        approvals.ask(until, of(4, 9, "rm $x")),
        ApprovalAnswer::Waits { id: id(9), expires_at: until + VALID_FOR, is_new: true }
    );
}

#[test]
fn a_denied_call_stays_denied_where_its_description_changes() {
    let mut approvals = Approvals::default();
    approvals.ask(NOW, request(1, "send_text x"));
    approvals.deny(NOW, id(1), "ada".into()).unwrap();
    let described = ApprovalRequest {
        what: "send_text x, which ends the line: rm x".into(),
        ..request(2, "send_text x")
    };
    let until = NOW + DENIED_FOR;
    let denied = ApprovalAnswer::Denied { id: id(1), by: "ada".into(), until };
    assert_eq!(approvals.ask(NOW, described), denied);
}
