//! The end of a principal's right, wherever it has something of a lease.

use super::*;
use crate::core::lease::record::LeaseRecord;

const WHO: PrincipalId = PrincipalId::Connection(1);

fn person() -> Caller {
    Caller { kind: Kind::Human, ..caller(9) }
}

/// Says that nothing of principal 1 is left in a lease that another one can have at once.
fn is_gone(mut lease: LeaseManager, second: u64) {
    lease.end_right_of(at(second), WHO);
    assert!(!may_write(&lease, second, &caller(1), None));
    assert!(!may_write(&lease, second, &caller(1), Some(1)));
    assert!(!may_write(&lease, second, &caller(2), Some(1)), "nobody takes it over by its id");
    granted(lease.acquire(at(second), &caller(2), asking(20)));
    assert_eq!(holder(&lease), Some(2));
}

#[test]
fn a_lease_in_force_ends_and_the_next_in_line_has_it() {
    let mut lease = in_grace();
    lease.acquire(at(0), &caller(2), waiting(2, 60)).unwrap();
    lease.take_events();
    lease.end_right_of(at(1), WHO);
    assert_eq!((holder(&lease), lease.take_grants().len()), (Some(2), 1));
    assert_eq!(ends(&mut lease), [EndCause::RightEnded]);
    is_gone(in_grace(), 1);
}

#[test]
fn a_lease_whose_holder_is_away_ends_whatever_was_to_become_of_it() {
    for on_disconnect in [OnDisconnect::Grace(seconds(500)), OnDisconnect::Keep] {
        let mut lease = held(on_disconnect);
        lease.on_connection_closed(at(1), ConnectionId(1));
        is_gone(lease, 2);
    }
}

#[test]
fn a_lease_that_has_expired_is_not_revived() {
    let mut lease = in_grace();
    lease.on_time(at(40));
    is_gone(lease, 41);
}

#[test]
fn a_suspended_lease_does_not_resume() {
    let mut lease = in_grace();
    lease.type_in(at(1), &person(), id(9));
    lease.end_right_of(at(2), WHO);
    assert!(lease.view().suspended.is_none());
    lease.hand_back(at(3), &person());
    assert_eq!(holder(&lease), None);
    is_gone(lease, 3);
}

#[test]
fn a_lease_of_a_daemon_before_is_not_taken_back() {
    let before = {
        let mut lease = lease();
        granted(lease.acquire(at(0), &owner(1), asking(1)));
        lease.record()
    };
    let recovered = |record: LeaseRecord| {
        LeaseManager::recovered(record, Epoch(0), LeaseLimits::default(), at(100))
    };
    let mut lease = recovered(before);
    assert!(may_write(&lease, 100, &owner(2), None));
    lease.end_right_of(at(100), PrincipalId::Token(1));
    assert!(!may_write(&lease, 100, &owner(2), None));
    assert!(!may_write(&lease, 100, &caller(2), Some(1)));
    granted(lease.acquire(at(100), &caller(2), asking(2)));
}

#[test]
fn what_it_was_offered_returns_and_what_it_offers_ends() {
    let mut lease = in_grace();
    lease.release(at(1), &caller(1), hand_to(&caller(2), 2)).unwrap();
    lease.end_right_of(at(2), PrincipalId::Connection(2));
    assert!(lease.view().holding.is_some_and(|holding| holding.offered_to.is_none()));
    assert!(may_write(&lease, 2, &caller(1), None) && !may_write(&lease, 2, &caller(2), None));

    let mut lease = in_grace();
    lease.release(at(1), &caller(1), hand_to(&caller(2), 2)).unwrap();
    lease.end_right_of(at(2), WHO);
    assert_eq!(holder(&lease), None);
    assert!(!may_write(&lease, 2, &caller(2), None), "nobody gave it away");
}

#[test]
fn its_waits_are_over_and_those_of_others_go_on() {
    let mut lease = held(OnDisconnect::Keep);
    let its = waits(lease.acquire(at(0), &caller(2), waiting(2, 60)));
    waits(lease.acquire(at(0), &caller(3), waiting(3, 60)));
    lease.end_right_of(at(1), PrincipalId::Connection(2));
    let lost = LeaseError::Lost { cause: EndCause::RightEnded };
    assert_eq!(lease.take_refusals(), [(its, lost)]);
    assert_eq!((lease.view().waiters, holder(&lease)), (1, Some(1)));
}
