//! The quota at its edges.

use super::*;

const UID: u32 = 1_000;
const OWN: Party = Party::User(UID);
const OTHER: Party = Party::User(1_001);
const MOST: Most = Most { connections: Quota::new(2_048, 64), incoming: Quota::new(1_000, 100) };

fn fill(quota: &ConnectionQuota, party: Party, count: usize) -> Vec<Ticket> {
    let tickets: Vec<Ticket> =
        (0..count).map_while(|_| quota.enter(party.clone(), &MOST)).collect();
    assert_eq!(tickets.len(), count);
    tickets
}

#[test]
fn the_own_user_has_2048_connections_and_no_more() {
    let quota = ConnectionQuota::new(UID);
    let _tickets = fill(&quota, OWN, 2_048);
    assert!(quota.enter(OWN, &MOST).is_none());
}

#[test]
fn another_user_has_64_and_takes_nothing_from_the_own_one() {
    let quota = ConnectionQuota::new(UID);
    let _tickets = fill(&quota, OTHER, 64);
    assert!(quota.enter(OTHER, &MOST).is_none());
    let _own = fill(&quota, OWN, 2_048);
}

#[test]
fn a_connection_that_ends_makes_room_for_one() {
    let quota = ConnectionQuota::new(UID);
    let mut tickets = fill(&quota, OTHER, 64);
    tickets.pop();
    let again = quota.enter(OTHER, &MOST);
    assert!(again.is_some());
    assert!(quota.enter(OTHER, &MOST).is_none());
}

#[test]
fn strangers_are_limited_in_number_and_never_keep_the_own_user_out() {
    let quota = ConnectionQuota::new(UID);
    let user = |number: u32| Party::User(2_000 + number);
    let mut tickets: Vec<Ticket> =
        (0..64).map_while(|number| quota.enter(user(number), &MOST)).collect();
    assert_eq!(tickets.len(), 64);
    assert!(quota.enter(user(64), &MOST).is_none());
    assert!(quota.enter(user(0), &MOST).is_some(), "who is in the table may open another one");
    assert!(quota.enter(OWN, &MOST).is_some());
    tickets.pop();
    assert!(quota.enter(user(64), &MOST).is_some(), "who left is forgotten");
}

#[test]
fn all_connections_of_a_user_share_the_memory_for_what_comes_in() {
    let quota = ConnectionQuota::new(UID);
    let tickets = fill(&quota, OWN, 2);
    let begun = tickets[0].incoming().begin();
    assert!(begun.add(&[b'x'; 600]));
    assert!(tickets[1].incoming().begin().add(&[b'x'; 600]));
    assert_eq!(begun.so_far(), None, "it gave way");
    let other = quota.enter(OTHER, &MOST).expect("room");
    assert!(!other.incoming().begin().add(&[b'x'; 101]));
    assert!(other.incoming().begin().add(&[b'x'; 100]));
}

#[test]
fn operators_have_room_that_nobody_else_counts_in() {
    let quota = ConnectionQuota::new(UID);
    let _agents = fill(&quota, OWN, 2_048);
    let _operators = fill(&quota, Party::Operators(UID), 2_048);
    let _others = fill(&quota, Party::Operators(1_001), 64);
}

#[test]
fn programs_inside_a_session_have_8_whatever_the_user_has() {
    let quota = ConnectionQuota::new(UID);
    for party in [Party::Session(7), Party::Session(8)] {
        let _tickets = fill(&quota, party.clone(), 8);
        assert!(quota.enter(party.clone(), &MOST).is_none(), "{party:?}");
    }
    let _own = fill(&quota, OWN, 2_048);
}

#[test]
fn the_programs_of_many_sessions_keep_those_of_another_one_no_place() {
    let quota = ConnectionQuota::new(UID);
    let _others: Vec<_> = (1..512).map(|shim| fill(&quota, Party::Session(shim), 8)).collect();
    let _own = fill(&quota, Party::Session(512), 8);
}

#[test]
fn a_program_inside_a_session_has_nothing_for_long_lines() {
    let quota = ConnectionQuota::new(UID);
    let inside = quota.enter(Party::Session(7), &MOST).expect("room");
    assert!(!inside.incoming().begin().add(b"x"));
}
