//! What becomes of a lease when its daemon ends and the next one begins.

use super::*;
use crate::core::lease::record::LeaseRecord;

/// The lease that the next daemon makes of a record at this second.
fn next(record: LeaseRecord, second: u64) -> LeaseManager {
    LeaseManager::recovered(record, Epoch(0), LeaseLimits::default(), at(second))
}

/// The lease that principal 1 had under id 1, at the start of the next daemon at second 100.
fn former() -> LeaseManager {
    next(in_grace().record(), 100)
}

fn refused(answer: Result<Acquired, LeaseError>) -> LeaseError {
    match answer {
        Err(error) => error,
        Ok(answer) => panic!("{answer:?}"),
    }
}

fn type_in(lease: &mut LeaseManager, second: u64, person: u64) {
    let ada = Caller { kind: Kind::Human, ..caller(person) };
    lease.check_typing(at(second), &ada).unwrap();
    lease.type_in(at(second), &ada, id(50));
}

#[test]
fn whoever_shows_the_id_has_the_lease_back_with_a_higher_epoch_and_its_whole_time() {
    let before = in_grace();
    let mut lease = next(before.record(), 100);
    let grant = granted(lease.acquire(at(109), &caller(7), showing(2, 1)));
    assert_eq!((grant.lease, grant.revived), (id(1), false));
    assert!(grant.epoch > before.epoch().unwrap());
    assert_eq!(grant.expires_at, at(139));
    assert_eq!(lease.holder(), Some(&caller(7)));
    let granted =
        LeaseEvent { holder: caller(7), epoch: grant.epoch, change: LeaseChange::Granted };
    assert_eq!(lease.take_events().last(), Some(&granted));
}

#[test]
fn nobody_else_is_granted_the_lease_until_ten_seconds_are_over() {
    let mut lease = former();
    let told = refused(lease.acquire(at(104), &caller(2), asking(2)));
    let LeaseError::Held { by, expires_in, at_most, .. } = told else { panic!("{told:?}") };
    assert_eq!(by.to_string(), "agent#former");
    assert_eq!((expires_in, at_most), (seconds(6), seconds(6)));
    assert!(lease.view().holding.unwrap().reclaimable);
    refused(lease.acquire(at(109), &caller(2), asking(2)));
    let grant = granted(lease.acquire(at(110), &caller(2), asking(2)));
    assert_eq!(grant.lease, id(2));
    assert!(!lease.view().holding.unwrap().reclaimable);
}

#[test]
fn the_first_in_line_has_the_lease_when_it_is_not_taken_back() {
    let mut lease = former();
    let waiter = waits(lease.acquire(at(100), &caller(2), waiting(2, 200)));
    waits(lease.acquire(at(101), &caller(3), waiting(3, 200)));
    assert_eq!(lease.deadline(), Some(at(110)));
    lease.on_time(at(110));
    let grants = lease.take_grants();
    assert_eq!(grants.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [waiter]);
}

#[test]
fn the_time_to_take_it_back_begins_when_its_holder_can_come() {
    let mut lease = former();
    lease.begin_reclaim(at(104));
    assert_eq!(lease.deadline(), Some(at(114)));
    lease.begin_reclaim(at(103));
    assert_eq!(lease.deadline(), Some(at(114)), "it is never shorter");
    lease.on_time(at(114));
    lease.begin_reclaim(at(115));
    assert_eq!(refused(lease.acquire(at(115), &caller(1), showing(2, 1))), LeaseError::Superseded);
}

#[test]
fn an_id_that_was_not_shown_in_time_is_superseded_like_every_other_from_before() {
    let mut lease = former();
    assert_eq!(refused(lease.acquire(at(101), &caller(1), showing(2, 99))), LeaseError::Superseded);
    assert_eq!(refused(lease.acquire(at(110), &caller(1), showing(2, 1))), LeaseError::Superseded);
    let renewal = RenewRequest { presented: Some(id(1)), ttl: None };
    assert_eq!(lease.renew(at(110), &caller(1), renewal), Err(LeaseError::Superseded));
}

#[test]
fn another_tenant_that_shows_the_id_learns_nothing_and_changes_nothing() {
    let mut lease = former();
    assert_eq!(
        refused(lease.acquire(at(101), &stranger(1), showing(2, 1))),
        LeaseError::OtherTenant
    );
    granted(lease.acquire(at(102), &caller(1), showing(2, 1)));
}

#[test]
fn whoever_has_the_number_of_the_former_holder_is_not_taken_for_it() {
    let mut lease = former();
    assert!(matches!(
        refused(lease.acquire(at(101), &caller(1), asking(2))),
        LeaseError::Held { .. }
    ));
    let renewal = lease.renew(at(101), &caller(1), RenewRequest::default());
    assert!(matches!(renewal, Err(LeaseError::Held { .. })));
    lease.on_connection_closed(at(101), ConnectionId(1));
    granted(lease.acquire(at(109), &caller(5), showing(2, 1)));
}

/// The same of the owner of a token, on a connection of this number.
fn owner(token: u64, connection: u64) -> Caller {
    Caller { principal: PrincipalId::Token(token), ..caller(connection) }
}

#[test]
fn the_owner_of_the_token_has_the_lease_back_without_its_id() {
    let mut lease = lease();
    granted(lease.acquire(at(0), &owner(3, 1), asking(1)));
    let before = lease.epoch().unwrap();
    let record = lease.record();
    let mut lease = next(record.clone(), 100);
    assert_eq!(lease.view().holding.unwrap().by.to_string(), "agent#t3");
    for other in [caller(3), owner(4, 2)] {
        let told = refused(lease.acquire(at(101), &other, asking(2)));
        assert!(matches!(told, LeaseError::Held { reclaimable: true, .. }), "{told:?}");
    }
    let grant = granted(lease.acquire(at(102), &owner(3, 7), asking(2)));
    assert_eq!((grant.lease, grant.expires_at), (id(1), at(132)));
    assert!(grant.epoch > before);
    assert!(!lease.view().holding.unwrap().reclaimable);

    let mut lease = next(record, 100);
    let recovered = lease.epoch().unwrap();
    let renewal = lease.renew(at(105), &owner(3, 8), RenewRequest::default()).unwrap();
    assert!((renewal.lease, renewal.epoch) > (id(1), recovered), "by any use of it");
}

#[test]
fn the_owner_of_the_token_is_late_after_ten_seconds_like_everybody() {
    let mut lease = lease();
    granted(lease.acquire(at(0), &owner(3, 1), asking(1)));
    let mut lease = next(lease.record(), 100);
    assert_eq!(granted(lease.acquire(at(110), &owner(3, 7), asking(2))).lease, id(2));
}

#[test]
fn a_lease_of_the_command_line_is_taken_back_by_the_first_call_that_shows_it() {
    let mut lease = next(held(OnDisconnect::Keep).record(), 100);
    let renewal = RenewRequest { presented: Some(id(1)), ttl: None };
    let grant = lease.renew(at(105), &caller(8), renewal).unwrap();
    assert_eq!(grant.expires_at, at(135));
    lease.on_time(at(134));
    assert_eq!(lease.holder(), Some(&caller(8)));
}

#[test]
fn an_operator_ends_the_time_to_take_a_lease_back() {
    let mut lease = former();
    assert!(lease.preempt(at(101), caller(9).name()));
    assert_eq!(refused(lease.acquire(at(101), &caller(1), showing(2, 1))), LeaseError::Superseded);
    granted(lease.acquire(at(101), &caller(2), asking(2)));
}

#[test]
fn a_lease_may_be_given_up_instead_of_taken_back() {
    let mut lease = former();
    let request = ReleaseRequest { presented: Some(id(1)), hand_to: None };
    assert_eq!(lease.release(at(101), &caller(1), request), Ok(Released::Freed));
    granted(lease.acquire(at(101), &caller(2), asking(2)));
}

#[test]
fn a_person_who_types_first_only_suspends_the_lease_that_is_to_be_taken_back() {
    let mut lease = former();
    type_in(&mut lease, 101, 4);
    let told = refused(lease.acquire(at(105), &caller(1), showing(2, 1)));
    assert!(matches!(told, LeaseError::Suspended { .. }), "{told:?}");
    let typed = lease.epoch();
    lease.on_time(at(111));
    assert_eq!(lease.holder(), Some(&caller(1)));
    assert!(lease.epoch() > typed);
    assert_eq!(lease.expires_at(at(111)), Some(at(141)));
}

#[test]
fn a_suspended_lease_that_is_not_taken_back_in_time_does_not_come_back() {
    let mut lease = former();
    type_in(&mut lease, 105, 4);
    lease.on_time(at(110));
    assert_eq!(lease.view().suspended, None);
    lease.on_time(at(115));
    assert_eq!(lease.holder(), None);
    assert_eq!(refused(lease.acquire(at(115), &caller(1), showing(2, 1))), LeaseError::Superseded);
}

#[test]
fn a_person_who_is_done_early_leaves_the_lease_to_be_taken_back() {
    let mut lease = former();
    type_in(&mut lease, 101, 4);
    let ada = Caller { kind: Kind::Human, ..caller(4) };
    assert!(lease.hand_back(at(103), &ada));
    assert!(lease.view().holding.unwrap().reclaimable);
    assert_eq!(lease.deadline(), Some(at(110)));
    granted(lease.acquire(at(109), &caller(1), showing(2, 1)));
}

#[test]
fn of_a_person_at_the_keyboard_only_the_lease_below_is_recorded() {
    let mut lease = in_grace();
    type_in(&mut lease, 1, 4);
    let record = lease.record();
    assert_eq!(record.holding.as_ref().map(|holding| holding.lease), Some(id(1)));
    assert_eq!(Some(record.epoch), lease.epoch());
    let mut free = super::lease();
    type_in(&mut free, 1, 4);
    assert_eq!(free.record().holding, None);
    assert_eq!(Some(free.record().epoch), free.epoch());
}

#[test]
fn a_holder_that_was_to_look_before_it_writes_is_to_look_after_a_restart() {
    let mut before = in_grace();
    type_in(&mut before, 1, 4);
    before.on_time(at(11));
    let mut lease = next(before.record(), 100);
    granted(lease.acquire(at(101), &caller(1), showing(2, 1)));
    let right = |lease: &LeaseManager| {
        lease.right_under(at(102), &caller(1), None, TakeRule::HeldOnly).unwrap()
    };
    assert_eq!(lease.check_seen(&right(&lease), None), Err(None));
    lease.on_seen();
    let mut later = next(lease.record(), 200);
    granted(later.acquire(at(201), &caller(1), showing(2, 1)));
    let right = later.right_under(at(202), &caller(1), None, TakeRule::HeldOnly).unwrap();
    assert_eq!(later.check_seen(&right, None), Ok(()));
}

#[test]
fn what_was_to_end_with_a_call_or_a_connection_is_not_recorded() {
    assert_eq!(held(OnDisconnect::Release).record().holding, None);
    let mut lease = lease();
    let take = TakeRule::ForThisCall(id(1));
    let right = lease.right_under(at(0), &caller(1), None, take).unwrap();
    let grant = lease.exercise(at(0), &caller(1), right);
    assert_eq!(lease.record(), LeaseRecord { epoch: grant.epoch, holding: None });
}

#[test]
fn mere_use_of_a_lease_does_not_change_its_record() {
    let mut lease = in_grace();
    let before = lease.record();
    let right = lease.right_under(at(3), &caller(1), None, TakeRule::HeldOnly).unwrap();
    lease.exercise(at(3), &caller(1), right);
    assert_eq!(lease.record(), before);
}

#[test]
fn every_epoch_is_above_those_that_were_recorded_and_those_that_were_written_under() {
    let known = Epoch(Epoch::MAX.0 - 9);
    for (epoch, written) in [(known, Epoch(0)), (Epoch(0), known)] {
        let record = LeaseRecord { epoch, holding: None };
        let limits = LeaseLimits::default();
        let mut lease = LeaseManager::recovered(record, written, limits, at(0));
        let grant = granted(lease.acquire(at(0), &caller(1), asking(1)));
        assert!(grant.epoch > known);
    }
}

#[test]
fn every_epoch_is_above_those_of_a_daemon_that_left_no_record_or_was_only_stopped() {
    let mut before = next(LeaseRecord::default(), 100);
    let mut given = Epoch(0);
    for number in 0..100 {
        given = granted(before.acquire(at(100), &caller(1), asking(number))).epoch;
        before.preempt(at(100), caller(9).name());
    }
    let mut lease = next(LeaseRecord::default(), 101);
    assert!(granted(lease.acquire(at(101), &caller(1), asking(500))).epoch > given);
}

#[test]
fn another_restart_begins_another_ten_seconds_and_raises_the_epochs_again() {
    let first = former();
    let mut second = next(first.record(), 105);
    assert!(second.epoch() > first.epoch());
    granted(second.acquire(at(114), &caller(1), showing(2, 1)));
}

#[test]
fn the_time_of_a_lease_does_not_count_while_it_is_to_be_taken_back() {
    let mut before = lease();
    let request = AcquireRequest { ttl: Some(seconds(1)), ..asking(1) };
    granted(before.acquire(at(0), &caller(1), request));
    let mut lease = next(before.record(), 100);
    let grant = granted(lease.acquire(at(109), &caller(1), showing(2, 1)));
    assert_eq!(grant.expires_at, at(110));
}

#[test]
fn a_lease_that_had_expired_is_not_taken_back() {
    let mut before = in_grace();
    before.on_time(at(30));
    assert_eq!(before.record().holding, None);
}

#[test]
fn a_time_out_of_the_bounds_of_the_next_daemon_is_brought_within_them() {
    let (ttl_default, ttl_max) = (seconds(5), seconds(12));
    let limits = LeaseLimits { ttl_default, ttl_max, ..LeaseLimits::default() };
    let mut lease = LeaseManager::recovered(in_grace().record(), FLOOR, limits, at(100));
    let grant = granted(lease.acquire(at(101), &caller(1), showing(2, 1)));
    assert_eq!(grant.ttl, seconds(12));
}

#[test]
fn an_offer_that_was_on_its_way_is_its_givers_again() {
    let mut before = in_grace();
    let hand_to = Some(HandOver { to: caller(2).name(), fresh: id(5) });
    before.release(at(1), &caller(1), ReleaseRequest { presented: None, hand_to }).unwrap();
    let mut lease = next(before.record(), 100);
    assert!(lease.acquire(at(101), &caller(2), showing(2, 5)).is_err());
    granted(lease.acquire(at(101), &caller(1), showing(2, 1)));
}
