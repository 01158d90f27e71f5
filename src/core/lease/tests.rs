//! The rules of a lease, one sentence each.

mod restart;
mod revoked;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::core::caller::Kind;
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::lease::holding::EndedLeases;
use crate::core::lease::request::OnDisconnect;

const FLOOR: Epoch = Epoch(7);

fn at(seconds: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(1_000 + seconds))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn id(number: u128) -> LeaseId {
    LeaseId(Uuid::from_u128(number))
}

/// A principal of the first tenant, on a connection of its own.
fn caller(number: u64) -> Caller {
    Caller {
        principal: PrincipalId::Connection(number),
        connection: ConnectionId(number),
        tenant: TenantId::of_uid(1_000),
        kind: Kind::Agent,
        label: Arc::from("agent"),
    }
}

fn stranger(number: u64) -> Caller {
    Caller { tenant: TenantId::of_uid(1_001), ..caller(number) }
}

fn lease() -> LeaseManager {
    LeaseManager::new(FLOOR, LeaseLimits::default())
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

fn waiting(fresh: u128, until: u64) -> AcquireRequest {
    AcquireRequest { wait_until: Some(at(until)), ..asking(fresh) }
}

fn showing(fresh: u128, shown: u128) -> AcquireRequest {
    AcquireRequest { presented: Some(id(shown)), ..asking(fresh) }
}

fn granted(answer: Result<Acquired, LeaseError>) -> Grant {
    match answer {
        Ok(Acquired::Granted(grant)) => grant,
        Ok(Acquired::Waiting(waiter)) => panic!("{waiter:?} was not to wait"),
        Err(error) => panic!("{error}"),
    }
}

fn waits(answer: Result<Acquired, LeaseError>) -> WaiterId {
    match answer {
        Ok(Acquired::Waiting(waiter)) => waiter,
        Ok(Acquired::Granted(_)) => panic!("was to wait"),
        Err(error) => panic!("{error}"),
    }
}

/// A lease that principal 1 got at second 0 under id 1.
fn held(on_disconnect: OnDisconnect) -> LeaseManager {
    let mut lease = lease();
    let request = AcquireRequest { on_disconnect: Some(on_disconnect), ..asking(1) };
    granted(lease.acquire(at(0), &caller(1), request));
    lease
}

fn in_grace() -> LeaseManager {
    held(OnDisconnect::Grace(seconds(5)))
}

fn holder(lease: &LeaseManager) -> Option<u64> {
    lease.holder().map(|holder| holder.principal.number())
}

fn may_write(lease: &LeaseManager, second: u64, who: &Caller, shown: Option<u128>) -> bool {
    right(lease, second, who, shown).is_ok()
}

fn right(
    lease: &LeaseManager,
    second: u64,
    who: &Caller,
    shown: Option<u128>,
) -> Result<WriteRight, LeaseError> {
    lease.right_under(at(second), who, shown.map(id), TakeRule::HeldOnly)
}

fn refusal(answer: Result<WriteRight, LeaseError>) -> LeaseError {
    answer.expect_err("was to be refused")
}

fn hand_to(to: &Caller, fresh: u128) -> ReleaseRequest {
    ReleaseRequest { presented: None, hand_to: Some(HandOver { to: to.name(), fresh: id(fresh) }) }
}

fn ends(lease: &mut LeaseManager) -> Vec<EndCause> {
    let ended = |event: LeaseEvent| match event.change {
        LeaseChange::Ended(cause) => Some(cause),
        LeaseChange::Granted
        | LeaseChange::Revived
        | LeaseChange::Renewed
        | LeaseChange::Suspended { .. }
        | LeaseChange::Resumed => None,
    };
    lease.take_events().into_iter().filter_map(ended).collect()
}

#[test]
fn a_free_lease_goes_to_whoever_asks_with_an_epoch_above_the_floor() {
    let grant = granted(lease().acquire(at(0), &caller(1), asking(1)));
    assert_eq!(grant.lease, id(1));
    assert_eq!(grant.epoch, FLOOR.next());
    assert_eq!(grant.expires_at, at(30));
    assert!(!grant.revived);
}

#[test]
fn a_second_client_cannot_acquire_a_held_lease_and_learns_who_has_it() {
    let mut lease = lease();
    let reason = || Some(Box::from("deploys"));
    granted(lease.acquire(at(0), &caller(1), AcquireRequest { reason: reason(), ..asking(1) }));
    let error = lease.acquire(at(10), &caller(2), asking(2)).unwrap_err();
    let expected = LeaseError::Held {
        by: caller(1).name(),
        tenant: caller(1).tenant,
        kind: Kind::Agent,
        reason: reason(),
        expires_in: seconds(20),
        at_most: seconds(590),
        waiters: 0,
        reclaimable: false,
    };
    assert_eq!(error, expected);
}

#[test]
fn the_holder_asking_again_gets_the_same_lease_on_the_new_terms() {
    let mut lease = in_grace();
    let again = AcquireRequest { ttl: Some(seconds(60)), ..asking(2) };
    let grant = granted(lease.acquire(at(10), &caller(1), again));
    assert_eq!((grant.lease, grant.epoch), (id(1), FLOOR.next()));
    assert_eq!(grant.expires_at, at(70));
}

#[test]
fn a_time_to_live_out_of_bounds_is_refused() {
    for ttl in [Duration::from_millis(999), seconds(601)] {
        let request = AcquireRequest { ttl: Some(ttl), ..asking(1) };
        let bounds = LeaseError::TtlOutOfBounds { min: seconds(1), max: seconds(600) };
        assert_eq!(lease().acquire(at(0), &caller(1), request), Err(bounds.clone()));
        let renewal = RenewRequest { presented: None, ttl: Some(ttl) };
        assert_eq!(in_grace().renew(at(0), &caller(1), renewal), Err(bounds));
    }
}

#[test]
fn renewing_by_name_counts_from_now_and_is_an_event() {
    let mut lease = in_grace();
    lease.take_events();
    let grant = lease.renew(at(20), &caller(1), RenewRequest::default()).unwrap();
    assert_eq!(grant.expires_at, at(50));
    assert_eq!(lease.take_events()[0].change, LeaseChange::Renewed);
}

#[test]
fn nobody_else_renews_or_releases_a_lease() {
    let mut lease = in_grace();
    let renewed = lease.renew(at(20), &caller(2), RenewRequest::default());
    assert!(matches!(renewed, Err(LeaseError::Held { .. })));
    let released = lease.release(at(20), &caller(2), ReleaseRequest::default());
    assert!(matches!(released, Err(LeaseError::Held { .. })));
    assert_eq!(lease.expires_at(at(20)), Some(at(30)));
}

#[test]
fn an_expired_lease_is_free_though_no_timer_has_run() {
    let mut lease = in_grace();
    let grant = granted(lease.acquire(at(30), &caller(2), asking(2)));
    assert_eq!(grant.epoch, FLOOR.next().next());
    assert_eq!(ends(&mut lease), [EndCause::Expired]);
}

#[test]
fn an_expired_lease_is_revived_for_its_holder_with_the_same_epoch() {
    let mut lease = in_grace();
    lease.on_time(at(30));
    assert_eq!(holder(&lease), None);
    let grant = granted(lease.acquire(at(1_000), &caller(1), asking(2)));
    assert!(grant.revived);
    assert_eq!((grant.lease, grant.epoch), (id(1), FLOOR.next()));
    assert_eq!(grant.expires_at, at(1_030));
}

#[test]
fn an_expired_lease_is_lost_once_somebody_else_was_granted_one() {
    let mut lease = in_grace();
    granted(lease.acquire(at(30), &caller(2), asking(2)));
    lease.release(at(31), &caller(2), ReleaseRequest::default()).unwrap();
    let lost = LeaseError::Lost { cause: EndCause::Expired };
    assert_eq!(refusal(right(&lease, 32, &caller(1), Some(1))), lost);
    assert_eq!(refusal(right(&lease, 32, &caller(1), None)), lost);
}

#[test]
fn without_a_lease_and_without_a_holder_a_lease_is_required() {
    assert_eq!(refusal(right(&lease(), 0, &caller(1), None)), LeaseError::Required);
}

#[test]
fn another_tenant_presenting_an_id_is_told_that_there_is_no_such_session() {
    let mut lease = in_grace();
    assert_eq!(refusal(right(&lease, 0, &stranger(2), Some(1))), LeaseError::OtherTenant);
    lease.release(at(1), &caller(1), ReleaseRequest::default()).unwrap();
    assert_eq!(refusal(right(&lease, 1, &stranger(2), Some(1))), LeaseError::OtherTenant);
}

#[test]
fn an_id_that_was_never_issued_here_is_superseded() {
    assert_eq!(refusal(right(&in_grace(), 0, &caller(1), Some(99))), LeaseError::Superseded);
}

#[test]
fn the_memory_of_ended_leases_is_bounded() {
    let mut lease = lease();
    let count = EndedLeases::KEPT_MAX as u128 + 1;
    for number in 1..=count {
        granted(lease.acquire(at(0), &caller(1), asking(number)));
        lease.release(at(0), &caller(1), ReleaseRequest::default()).unwrap();
    }
    assert_eq!(refusal(right(&lease, 0, &caller(1), Some(1))), LeaseError::Superseded);
    let released = LeaseError::Lost { cause: EndCause::Released };
    assert_eq!(refusal(right(&lease, 0, &caller(1), Some(2))), released);
}

#[test]
fn while_the_holder_lives_its_key_opens_nothing_for_another_connection() {
    let lease = in_grace();
    assert!(may_write(&lease, 0, &caller(1), Some(1)));
    assert!(!may_write(&lease, 0, &caller(2), Some(1)));
}

/// One of the command line's connections.
fn operator(number: u64) -> Caller {
    Caller { kind: Kind::Operator, ..caller(number) }
}

/// A lease that the command line got at second 0 under id 1, on connection 1.
fn command_lines() -> LeaseManager {
    let mut lease = lease();
    let request = AcquireRequest { on_disconnect: Some(OnDisconnect::Keep), ..asking(1) };
    granted(lease.acquire(at(0), &operator(1), request));
    lease
}

fn use_lease(lease: &mut LeaseManager, second: u64, who: &Caller, shown: u128) -> Grant {
    let right = right(lease, second, who, Some(shown)).unwrap();
    lease.exercise(at(second), who, right)
}

#[test]
fn a_lease_of_the_command_line_is_that_of_each_of_its_connections_that_shows_the_id() {
    let mut lease = command_lines();
    assert!(!may_write(&lease, 0, &operator(2), None));
    assert!(!may_write(&lease, 0, &Caller { kind: Kind::Operator, ..stranger(2) }, Some(1)));
    let grant = use_lease(&mut lease, 10, &operator(2), 1);
    assert_eq!((grant.epoch, grant.expires_at), (FLOOR.next(), at(40)));
    lease.on_connection_closed(at(11), ConnectionId(1));
    lease.on_connection_closed(at(11), ConnectionId(2));
    let grant = granted(lease.acquire(at(12), &operator(3), showing(2, 1)));
    assert_eq!((grant.epoch, holder(&lease)), (FLOOR.next(), Some(1)));
}

#[test]
fn an_agent_that_shows_the_command_lines_id_is_refused_while_one_of_its_connections_lives() {
    let mut lease = command_lines();
    assert!(!may_write(&lease, 0, &caller(5), Some(1)));
    use_lease(&mut lease, 1, &operator(2), 1);
    lease.on_connection_closed(at(2), ConnectionId(1));
    assert!(!may_write(&lease, 2, &caller(5), Some(1)));
    lease.on_connection_closed(at(3), ConnectionId(2));
    assert!(may_write(&lease, 3, &caller(5), Some(1)));
}

#[test]
fn whoever_takes_a_lease_of_the_command_line_over_has_it_alone() {
    let mut lease = command_lines();
    lease.on_connection_closed(at(1), ConnectionId(1));
    let grant = use_lease(&mut lease, 2, &caller(5), 1);
    assert_eq!((grant.epoch, holder(&lease)), (FLOOR.next().next(), Some(5)));
    for other in [operator(1), operator(2), caller(6)] {
        assert!(!may_write(&lease, 2, &other, Some(1)), "{other:?}");
        let acquired = lease.acquire(at(2), &other, showing(3, 1));
        assert!(matches!(acquired, Err(LeaseError::Held { .. })), "{acquired:?}");
        let renewed = lease.renew(at(2), &other, RenewRequest::default());
        assert!(renewed.is_err(), "{renewed:?}");
    }
    lease.on_connection_closed(at(3), ConnectionId(5));
    lease.on_time(at(8));
    assert_eq!(holder(&lease), None);
}

#[test]
fn the_command_line_finds_its_own_lease_and_no_other() {
    let mut lease = command_lines();
    lease.on_connection_closed(at(1), ConnectionId(1));
    assert_eq!(lease.command_lines(), Some(id(1)));
    lease.type_in(at(1), &Caller { kind: Kind::Human, ..caller(9) }, id(9));
    assert_eq!(lease.command_lines(), Some(id(1)));
    lease.hand_back(at(2), &Caller { kind: Kind::Human, ..caller(9) });
    use_lease(&mut lease, 3, &caller(5), 1);
    assert_eq!(lease.command_lines(), None);
    let free = self::lease();
    assert_eq!((free.command_lines(), in_grace().command_lines()), (None, None));
}

#[test]
fn a_suspended_lease_of_the_command_line_answers_its_connections_and_no_agent() {
    let mut lease = command_lines();
    let person = Caller { kind: Kind::Human, ..caller(9) };
    lease.type_in(at(1), &person, id(9));
    let refused = |lease: &LeaseManager, who: &Caller| refusal(right(lease, 1, who, Some(1)));
    assert!(matches!(refused(&lease, &operator(2)), LeaseError::Suspended { .. }));
    assert!(matches!(refused(&lease, &caller(5)), LeaseError::Held { .. }));
    lease.on_connection_closed(at(2), ConnectionId(1));
    let moved = lease.acquire(at(2), &caller(5), showing(2, 1));
    assert!(matches!(moved, Err(LeaseError::Suspended { .. })), "{moved:?}");
    assert!(matches!(refused(&lease, &operator(2)), LeaseError::Held { .. }));
}

#[test]
fn a_lease_moves_to_whoever_shows_its_key_once_its_connection_is_gone() {
    let mut lease = in_grace();
    lease.on_connection_closed(at(1), ConnectionId(1));
    lease.take_events();
    let grant = granted(lease.acquire(at(2), &caller(2), showing(2, 1)));
    assert_eq!((grant.lease, grant.epoch), (id(1), FLOOR.next().next()));
    assert_eq!(holder(&lease), Some(2));
    assert_eq!(ends(&mut lease), [EndCause::HandedOver { to: caller(2).name() }]);
    lease.on_time(at(10));
    assert_eq!(holder(&lease), Some(2));
}

#[test]
fn an_expired_lease_moves_too_while_nobody_was_granted_one() {
    let mut lease = held(OnDisconnect::Keep);
    lease.on_connection_closed(at(1), ConnectionId(1));
    lease.on_time(at(30));
    let grant = granted(lease.acquire(at(31), &caller(2), showing(2, 1)));
    assert_eq!((grant.lease, grant.epoch), (id(1), FLOOR.next().next()));
}

#[test]
fn a_principal_that_is_back_on_another_connection_keeps_its_lease() {
    let mut lease = in_grace();
    lease.on_connection_closed(at(1), ConnectionId(1));
    let back = Caller { connection: ConnectionId(9), ..caller(1) };
    let grant = granted(lease.acquire(at(2), &back, asking(2)));
    assert_eq!((grant.lease, grant.epoch), (id(1), FLOOR.next()));
    lease.on_time(at(6));
    assert_eq!(holder(&lease), Some(1));
    lease.on_connection_closed(at(7), ConnectionId(9));
    lease.on_time(at(12));
    assert_eq!(holder(&lease), None);
}

/// The owner of a token, on a connection.
fn owner(connection: u64) -> Caller {
    let principal = PrincipalId::Token(1);
    Caller { principal, connection: ConnectionId(connection), ..caller(0) }
}

fn owns(lease: &LeaseManager) -> bool {
    lease.holder().is_some_and(|holder| holder.principal == PrincipalId::Token(1))
}

#[test]
fn connections_of_one_principal_share_its_lease_in_one_epoch() {
    let mut lease = lease();
    let first = granted(lease.acquire(at(0), &owner(1), asking(1)));
    let by_name = granted(lease.acquire(at(1), &owner(2), asking(2)));
    let by_key = lease.renew(at(2), &owner(3), RenewRequest { presented: Some(id(1)), ttl: None });
    for grant in [by_name, by_key.unwrap()] {
        assert_eq!((grant.lease, grant.epoch), (first.lease, first.epoch));
    }
    let stranger = lease.acquire(at(3), &caller(4), showing(3, 1));
    assert!(matches!(stranger, Err(LeaseError::Held { .. })), "{stranger:?}");
}

#[test]
fn the_grace_begins_with_the_last_connection_that_used_the_lease() {
    for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
        let mut lease = lease();
        for connection in 1..=3 {
            granted(lease.acquire(at(0), &owner(connection), asking(connection.into())));
        }
        // It never used the lease, so that nothing hangs on it.
        lease.on_connection_closed(at(0), ConnectionId(9));
        lease.on_connection_closed(at(1), ConnectionId(order[0]));
        lease.on_connection_closed(at(2), ConnectionId(order[1]));
        lease.on_time(at(20));
        assert!(owns(&lease), "{order:?}");
        lease.on_connection_closed(at(20), ConnectionId(order[2]));
        assert_eq!(lease.deadline(), Some(at(25)), "{order:?}");
        granted(lease.acquire(at(24), &owner(10), asking(10)));
        lease.on_time(at(26));
        assert!(owns(&lease), "it came back in time: {order:?}");
    }
}

#[test]
fn a_lease_hangs_on_a_bounded_number_of_connections() {
    let mut lease = lease();
    for connection in 1..=100 {
        granted(lease.acquire(at(0), &owner(connection), asking(connection.into())));
    }
    for connection in 85..=100 {
        assert!(owns(&lease));
        assert_eq!(lease.deadline(), Some(at(30)));
        lease.on_connection_closed(at(1), ConnectionId(connection));
    }
    assert_eq!(lease.deadline(), Some(at(6)));
}

#[test]
fn what_was_waited_for_on_two_connections_hangs_on_both() {
    let mut lease = in_grace();
    for connection in [2, 3] {
        let request = AcquireRequest { wait_until: Some(at(20)), ..asking(connection.into()) };
        lease.acquire(at(0), &owner(connection), request).unwrap();
    }
    lease.release(at(1), &caller(1), ReleaseRequest::default()).unwrap();
    assert_eq!(lease.take_grants().len(), 2);
    lease.on_connection_closed(at(2), ConnectionId(2));
    assert_eq!(lease.deadline(), Some(at(31)));
    lease.on_connection_closed(at(3), ConnectionId(3));
    assert_eq!(lease.deadline(), Some(at(8)));
}

#[test]
fn a_lease_ends_with_its_connection_as_it_was_acquired() {
    let mut released = held(OnDisconnect::Release);
    released.on_connection_closed(at(1), ConnectionId(1));
    assert_eq!(holder(&released), None);

    let mut graced = in_grace();
    graced.on_connection_closed(at(1), ConnectionId(1));
    graced.on_time(at(5));
    assert_eq!(holder(&graced), Some(1));
    assert_eq!(graced.deadline(), Some(at(6)));
    graced.on_time(at(6));
    assert_eq!(ends(&mut graced), [EndCause::Disconnected]);

    let mut kept = held(OnDisconnect::Keep);
    kept.on_connection_closed(at(1), ConnectionId(1));
    kept.on_time(at(29));
    assert_eq!(holder(&kept), Some(1));
    assert_eq!(kept.deadline(), Some(at(30)));
}

#[test]
fn a_disconnect_touches_nobody_elses_lease() {
    let mut lease = held(OnDisconnect::Release);
    lease.on_connection_closed(at(1), ConnectionId(2));
    assert_eq!(holder(&lease), Some(1));
}

#[test]
fn waiters_are_served_in_order() {
    let mut lease = in_grace();
    let first = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    let second = waits(lease.acquire(at(1), &caller(3), waiting(3, 500)));
    lease.release(at(2), &caller(1), ReleaseRequest::default()).unwrap();
    lease.release(at(3), &caller(2), ReleaseRequest::default()).unwrap();
    let served: Vec<_> = lease.take_grants().into_iter().map(|(w, g)| (w, g.lease)).collect();
    assert_eq!(served, [(first, id(2)), (second, id(3))]);
}

#[test]
fn a_dead_holder_is_replaced_when_its_time_is_up() {
    let mut lease = in_grace();
    waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    assert_eq!(lease.deadline(), Some(at(30)));
    lease.on_time(at(30));
    assert_eq!(holder(&lease), Some(2));
}

#[test]
fn a_wait_that_runs_out_is_told_who_holds_the_lease() {
    let mut lease = in_grace();
    let waiter = waits(lease.acquire(at(1), &caller(2), waiting(2, 20)));
    assert_eq!(lease.deadline(), Some(at(20)));
    lease.on_time(at(20));
    let refusals = lease.take_refusals();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].0, waiter);
    assert!(matches!(&refusals[0].1, LeaseError::Held { by, .. } if *by == caller(1).name()));
    assert_eq!(lease.view().waiters, 0);
}

#[test]
fn a_lease_that_came_free_in_time_goes_to_the_waiter_though_the_timer_is_late() {
    let mut lease = in_grace();
    let waiter = waits(lease.acquire(at(1), &caller(2), waiting(2, 30)));
    lease.on_time(at(100));
    let (served, grant) = lease.take_grants().remove(0);
    assert_eq!((served, grant.expires_at), (waiter, at(130)));
}

#[test]
fn a_cancelled_waiter_is_gone_at_once_and_is_never_served() {
    let mut lease = in_grace();
    let waiter = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    assert!(lease.cancel_wait(at(2), waiter));
    assert!(!lease.cancel_wait(at(2), waiter));
    assert_eq!(lease.view().waiters, 0);
    lease.on_time(at(30));
    assert_eq!(holder(&lease), None);
    assert_eq!(lease.take_grants(), []);
}

#[test]
fn a_waiter_leaves_the_queue_with_its_connection() {
    let mut lease = in_grace();
    let waiter = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    lease.on_connection_closed(at(2), ConnectionId(2));
    assert_eq!(lease.take_refusals(), [(waiter, LeaseError::WaitGivenUp)]);
    assert_eq!(lease.view().waiters, 0);
}

#[test]
fn a_grant_that_reaches_nobody_passes_to_the_next_at_once() {
    let mut lease = in_grace();
    let first = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    waits(lease.acquire(at(1), &caller(3), waiting(3, 500)));
    lease.release(at(2), &caller(1), ReleaseRequest::default()).unwrap();
    lease.on_undeliverable(at(2), first);
    assert_eq!(holder(&lease), Some(3));
    lease.on_undeliverable(at(2), first);
    assert_eq!(holder(&lease), Some(3));
}

#[test]
fn only_so_many_of_one_tenant_and_of_all_may_wait() {
    let mut lease = in_grace();
    for number in 2..6 {
        waits(lease.acquire(at(1), &caller(number), waiting(number.into(), 500)));
    }
    let full = lease.acquire(at(1), &caller(6), waiting(6, 500));
    assert_eq!(full, Err(LeaseError::QueueFull { waiters_max: 4 }));
    let fewer = AcquireRequest { waiters_max: Some(1), ..waiting(6, 500) };
    let full = lease.acquire(at(1), &caller(6), fewer);
    assert_eq!(full, Err(LeaseError::QueueFull { waiters_max: 1 }));
    for number in 6..18 {
        let tenant = TenantId::of_uid(2_000 + number as u32);
        let other = Caller { tenant, ..caller(number) };
        waits(lease.acquire(at(1), &other, waiting(number.into(), 500)));
    }
    let full = lease.acquire(at(1), &stranger(18), waiting(18, 500));
    assert_eq!(full, Err(LeaseError::QueueFull { waiters_max: 16 }));
}

#[test]
fn while_others_wait_a_holding_lasts_no_longer_than_it_may() {
    let mut lease = in_grace();
    waits(lease.acquire(at(1), &caller(2), waiting(2, 5_000)));
    for second in (20..600).step_by(20) {
        lease.renew(at(second), &caller(1), RenewRequest::default()).unwrap();
    }
    assert_eq!(lease.deadline(), Some(at(600)));
    lease.on_time(at(600));
    assert_eq!(holder(&lease), Some(2));
    assert_eq!(ends(&mut lease), [EndCause::HeldTooLong]);
}

#[test]
fn nobody_waiting_a_holding_lasts_as_long_as_it_is_used_but_yields_to_the_first_who_waits() {
    let mut lease = in_grace();
    for second in (20..=620).step_by(20) {
        lease.renew(at(second), &caller(1), RenewRequest::default()).unwrap();
    }
    assert_eq!(holder(&lease), Some(1));
    waits(lease.acquire(at(630), &caller(2), waiting(2, 5_000)));
    assert_eq!(holder(&lease), Some(2));
}

#[test]
fn a_call_in_flight_keeps_the_lease_alive_and_its_time_counts_from_the_end_of_the_call() {
    let mut lease = in_grace();
    let token = lease.hold();
    assert_eq!(lease.deadline(), None);
    lease.on_time(at(100));
    assert_eq!(holder(&lease), Some(1));
    lease.let_go(at(100), token);
    assert_eq!(lease.deadline(), Some(at(130)));
}

#[test]
fn a_call_in_flight_does_not_hold_up_others_for_longer_than_one_may() {
    let mut lease = in_grace();
    let token = lease.hold();
    waits(lease.acquire(at(1), &caller(2), waiting(2, 5_000)));
    lease.on_time(at(599));
    assert_eq!(holder(&lease), Some(1));
    lease.on_time(at(600));
    assert_eq!(holder(&lease), Some(2));
    lease.let_go(at(610), token);
    assert_eq!(lease.deadline(), Some(at(630)));
}

#[test]
fn releasing_what_is_gone_is_no_error_for_its_former_holder() {
    let mut lease = in_grace();
    let release =
        |lease: &mut LeaseManager| lease.release(at(1), &caller(1), ReleaseRequest::default());
    assert_eq!(release(&mut lease), Ok(Released::Freed));
    assert_eq!(release(&mut lease), Ok(Released::AlreadyGone(EndCause::Released)));
    let other = lease.release(at(1), &caller(2), ReleaseRequest::default());
    assert_eq!(other, Err(LeaseError::Required));
}

#[test]
fn an_expired_lease_that_is_released_does_not_come_back() {
    let mut lease = in_grace();
    let gone = lease.release(at(30), &caller(1), ReleaseRequest::default());
    assert_eq!(gone, Ok(Released::AlreadyGone(EndCause::Expired)));
    assert_eq!(refusal(right(&lease, 31, &caller(1), None)), LeaseError::Required);
}

#[test]
fn a_lease_handed_to_one_who_waits_is_there_at_once_past_those_before() {
    let mut lease = in_grace();
    waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    let target = waits(lease.acquire(at(1), &caller(3), waiting(3, 500)));
    let released = lease.release(at(2), &caller(1), hand_to(&caller(3), 9));
    assert_eq!(released, Ok(Released::HandedOver));
    assert_eq!(lease.take_grants()[0].0, target);
    assert_eq!(lease.view().waiters, 1);
    assert_eq!(ends(&mut lease), [EndCause::HandedOver { to: caller(3).name() }]);
}

#[test]
fn a_lease_that_is_offered_is_taken_up_by_a_write_under_an_id_of_its_own() {
    let mut lease = in_grace();
    let offered = lease.release(at(2), &caller(1), hand_to(&caller(2), 9));
    assert_eq!(offered, Ok(Released::Offered { until: at(12) }));
    let offered_to = lease.view().holding.and_then(|holding| holding.offered_to);
    assert_eq!(offered_to, Some(caller(2).name()));
    let write = right(&lease, 3, &caller(2), None).unwrap();
    let grant = lease.exercise(at(3), &caller(2), write);
    assert_eq!((grant.lease, grant.epoch), (id(9), FLOOR.next().next()));
    let lost = LeaseError::Lost { cause: EndCause::HandedOver { to: caller(2).name() } };
    assert_eq!(refusal(right(&lease, 4, &caller(1), Some(1))), lost);
}

#[test]
fn an_offer_that_nobody_takes_up_returns_with_the_time_it_had() {
    let mut lease = in_grace();
    lease.release(at(2), &caller(1), hand_to(&caller(2), 9)).unwrap();
    let offered = LeaseError::Offered { to: caller(2).name() };
    assert_eq!(refusal(right(&lease, 3, &caller(1), None)), offered);
    assert!(!may_write(&lease, 3, &caller(3), None));
    lease.on_time(at(12));
    assert!(may_write(&lease, 12, &caller(1), None));
    assert!(!may_write(&lease, 12, &caller(2), None));
    assert_eq!(lease.expires_at(at(12)), Some(at(40)));
}

#[test]
fn an_offer_can_be_declined_or_taken_back() {
    let mut declined = in_grace();
    declined.release(at(2), &caller(1), hand_to(&caller(2), 9)).unwrap();
    let answer = declined.release(at(3), &caller(2), ReleaseRequest::default());
    assert_eq!(answer, Ok(Released::Returned));
    assert!(may_write(&declined, 3, &caller(1), None));

    let mut taken_back = in_grace();
    taken_back.release(at(2), &caller(1), hand_to(&caller(2), 9)).unwrap();
    let grant = granted(taken_back.acquire(at(3), &caller(1), asking(2)));
    assert_eq!(grant.lease, id(1));
    assert!(!may_write(&taken_back, 3, &caller(2), None));
}

#[test]
fn a_lease_is_not_taken_up_from_another_tenant() {
    let mut lease = in_grace();
    lease.release(at(2), &caller(1), hand_to(&stranger(2), 9)).unwrap();
    assert!(!may_write(&lease, 3, &stranger(2), None));
}

#[test]
fn one_who_hands_on_and_leaves_does_not_take_the_offer_along() {
    let mut lease = held(OnDisconnect::Release);
    lease.release(at(2), &caller(1), hand_to(&caller(2), 9)).unwrap();
    lease.on_connection_closed(at(3), ConnectionId(1));
    assert!(may_write(&lease, 4, &caller(2), None));
    lease.on_time(at(12));
    assert_eq!(ends(&mut lease), [EndCause::Disconnected]);
}

#[test]
fn an_operator_ends_any_lease_at_once_and_the_next_waiter_has_it() {
    let mut lease = in_grace();
    waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    lease.take_events();
    let operator = Caller { kind: Kind::Operator, ..caller(8) };
    assert!(lease.preempt(at(2), operator.name()));
    let ended = lease.take_events().remove(0);
    assert_eq!(ended.holder, caller(1));
    assert_eq!(ended.change, LeaseChange::Ended(EndCause::Preempted { by: operator.name() }));
    assert_eq!(holder(&lease), Some(2));
    let lost = LeaseError::Lost { cause: EndCause::Preempted { by: operator.name() } };
    assert_eq!(refusal(right(&lease, 3, &caller(1), None)), lost);
}

#[test]
fn preempting_a_free_session_changes_nothing() {
    let mut lease = in_grace();
    lease.on_time(at(30));
    assert!(!lease.preempt(at(31), caller(8).name()));
    assert!(granted(lease.acquire(at(32), &caller(1), asking(2))).revived);
}

#[test]
fn ending_everything_leaves_no_holder_no_waiter_and_nothing_to_revive() {
    let mut lease = in_grace();
    let waiter = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    lease.end_all(at(2), EndCause::WritingSwitchedOff);
    let lost = LeaseError::Lost { cause: EndCause::WritingSwitchedOff };
    assert_eq!(lease.take_refusals(), [(waiter, lost.clone())]);
    assert_eq!(lease.view(), LeaseView::default());
    assert_eq!(refusal(right(&lease, 3, &caller(1), Some(1))), lost);
    assert_eq!(lease.deadline(), None);
}

#[test]
fn a_principal_that_waits_twice_has_its_lease_for_both() {
    let mut lease = in_grace();
    let first = waits(lease.acquire(at(1), &caller(2), waiting(2, 500)));
    let second = waits(lease.acquire(at(1), &caller(2), waiting(3, 500)));
    lease.release(at(2), &caller(1), ReleaseRequest::default()).unwrap();
    let mut served: Vec<_> = lease.take_grants().into_iter().map(|(w, g)| (w, g.lease)).collect();
    served.sort_unstable();
    assert_eq!(served, [(first, id(2)), (second, id(2))]);
}

#[test]
fn renewals_do_not_show_in_the_view() {
    let mut lease = in_grace();
    let before = lease.view();
    lease.renew(at(20), &caller(1), RenewRequest::default()).unwrap();
    assert_eq!(lease.view(), before);
}
