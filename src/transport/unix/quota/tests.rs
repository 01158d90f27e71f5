//! The quota at its edges.

use super::*;

const OWN: u32 = 1_000;
const OTHER: u32 = 1_001;
const MOST: Most = Most {
    connections: Quota { own: 2_048, others: 64 },
    incoming: Quota { own: 1_000, others: 100 },
};

fn fill(quota: &ConnectionQuota, uid: u32, count: usize) -> Vec<Ticket> {
    let tickets: Vec<Ticket> = (0..count).map_while(|_| quota.enter(uid, MOST)).collect();
    assert_eq!(tickets.len(), count);
    tickets
}

#[test]
fn the_own_user_has_2048_connections_and_no_more() {
    let quota = ConnectionQuota::new(OWN);
    let _tickets = fill(&quota, OWN, 2_048);
    assert!(quota.enter(OWN, MOST).is_none());
}

#[test]
fn another_user_has_64_and_takes_nothing_from_the_own_one() {
    let quota = ConnectionQuota::new(OWN);
    let _tickets = fill(&quota, OTHER, 64);
    assert!(quota.enter(OTHER, MOST).is_none());
    let _own = fill(&quota, OWN, 2_048);
}

#[test]
fn a_connection_that_ends_makes_room_for_one() {
    let quota = ConnectionQuota::new(OWN);
    let mut tickets = fill(&quota, OTHER, 64);
    tickets.pop();
    let again = quota.enter(OTHER, MOST);
    assert!(again.is_some());
    assert!(quota.enter(OTHER, MOST).is_none());
}

#[test]
fn strangers_are_limited_in_number_and_never_keep_the_own_user_out() {
    let quota = ConnectionQuota::new(OWN);
    let first = 2_000;
    let mut tickets: Vec<Ticket> =
        (0..64).map_while(|number| quota.enter(first + number, MOST)).collect();
    assert_eq!(tickets.len(), 64);
    assert!(quota.enter(first + 64, MOST).is_none());
    assert!(quota.enter(first, MOST).is_some(), "who is in the table may open another one");
    assert!(quota.enter(OWN, MOST).is_some());
    tickets.pop();
    assert!(quota.enter(first + 64, MOST).is_some(), "who left is forgotten");
}

#[test]
fn all_connections_of_a_user_share_the_memory_for_what_comes_in() {
    let quota = ConnectionQuota::new(OWN);
    let tickets = fill(&quota, OWN, 2);
    let begun = tickets[0].incoming().begin();
    assert!(begun.add(&[b'x'; 600]));
    assert!(tickets[1].incoming().begin().add(&[b'x'; 600]));
    assert_eq!(begun.so_far(), None, "it gave way");
    let other = quota.enter(OTHER, MOST).expect("room");
    assert!(!other.incoming().begin().add(&[b'x'; 101]));
    assert!(other.incoming().begin().add(&[b'x'; 100]));
}
