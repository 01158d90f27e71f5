//! Families on paper, and some of this machine.

use super::*;

/// The daemon, or a shim that is asked.
const OWN: i32 = 10;

type Family<'a> = &'a [(i32, i32, u64)];

fn look_in(family: Family<'_>, shims: &[i32], wanted: i32) -> Result<ProcessStat, Unseen> {
    let found = family.iter().find(|member| member.0 == wanted);
    let &(pid, parent, started) = found.ok_or(Unseen::Gone)?;
    let is_shim = shims.contains(&pid);
    Ok(ProcessStat { parent, started, is_shim, ..ProcessStat::default() })
}

/// Marks that lie so many sessions deep.
fn marks(theirs: u64, own: u64) -> Marks {
    Marks { theirs: Depth::in_sessions(theirs), own: Depth::in_sessions(own) }
}

/// Whether process 30 lives inside, where nobody carries a mark.
fn is_inside(family: Family<'_>, shims: &[i32]) -> Option<bool> {
    inside(30, OWN, marks(0, 0), |wanted| look_in(family, shims, wanted)).ok()
}

/// Whether process 30 lives inside as one that came, and as one that listens.
fn both(family: Family<'_>, shims: &[i32], marks: Marks) -> [bool; 2] {
    let look = |wanted| look_in(family, shims, wanted);
    [inside(30, OWN, marks, look).unwrap(), listener_inside(30, OWN, marks, look).unwrap()]
}

const INIT: (i32, i32, u64) = (1, 0, 1);
const DAEMON: (i32, i32, u64) = (OWN, 1, 2);

#[test]
fn whoever_came_of_the_daemon_is_inside() {
    assert_eq!(is_inside(&[(30, 20, 9), (20, OWN, 8), DAEMON, INIT], &[]), Some(true));
    assert_eq!(is_inside(&[(30, 20, 9), (20, 11, 8), (11, 1, 7), DAEMON, INIT], &[]), Some(false));
    assert_eq!(
        inside(OWN, OWN, marks(0, 0), |_| Err(Unseen::Gone)),
        Ok(false),
        "it is not inside itself"
    );
}

#[test]
fn whoever_came_of_a_shim_is_inside_also_when_its_daemon_is_gone() {
    assert_eq!(is_inside(&[(30, 20, 9), (20, 1, 8), DAEMON, INIT], &[20]), Some(true));
    let deep = [(30, 21, 9), (21, 20, 8), (20, 1, 7), DAEMON, INIT];
    assert_eq!(is_inside(&deep, &[20]), Some(true));
    assert_eq!(is_inside(&[(30, 1, 9), DAEMON, INIT], &[30]), Some(true), "or imitates one");
}

#[test]
fn the_neighbours_of_a_daemon_that_lives_in_a_session_are_outside_of_its_own() {
    let (shim, daemon) = ((5, 1, 2), (OWN, 5, 3));
    assert_eq!(is_inside(&[(30, 5, 9), shim, daemon, INIT], &[5]), Some(false));
    assert_eq!(is_inside(&[(30, 6, 9), (6, 1, 3), shim, daemon, INIT], &[5, 6]), Some(true));
    assert_eq!(is_inside(&[(30, 6, 9), (6, 5, 4), shim, daemon, INIT], &[5, 6]), Some(true));
    assert_eq!(is_inside(&[(30, 1, 9), shim, daemon, INIT], &[5]), Some(false));
}

#[test]
fn whoever_lost_its_shim_is_inside_by_its_mark_whatever_was_done_to_the_limit_of_who_asks() {
    let family = [(30, 1, 9), DAEMON, INIT];
    for (theirs, own) in [(1, 0), (1, 1), (5, 5), (1, 5)] {
        assert_eq!(both(&family, &[], marks(theirs, own)), [true; 2], "{theirs} {own}");
    }
    assert_eq!(both(&family, &[], marks(0, 5)), [false; 2]);
}

#[test]
fn of_those_with_the_same_shim_only_the_deeper_one_is_inside() {
    let family = [(30, 5, 9), (5, 1, 2), (OWN, 5, 3), INIT];
    assert_eq!(both(&family, &[5], marks(1, 1)), [false; 2]);
    assert_eq!(both(&family, &[5], marks(2, 1)), [true; 2]);
}

#[test]
fn a_shim_that_listens_lives_where_the_daemon_does_that_started_it() {
    let family = [(30, OWN, 9), DAEMON, INIT];
    assert_eq!(both(&family, &[30], marks(0, 0)), [true, false]);
    assert_eq!(both(&family, &[30], marks(1, 0)), [true; 2]);
    let family = [(30, 20, 9), (20, 1, 8), DAEMON, INIT];
    assert_eq!(both(&family, &[20, 30], marks(0, 0)), [true; 2], "it is in another session");
}

#[test]
fn a_family_that_lost_a_member_on_the_way_tells_nothing() {
    assert_eq!(is_inside(&[(30, 20, 9), INIT], &[]), None);
    assert_eq!(is_inside(&[], &[]), None);
}

#[test]
fn a_parent_younger_than_its_child_is_another_process_with_its_number() {
    assert_eq!(is_inside(&[(30, 20, 9), (20, 1, 10), INIT], &[]), None);
    assert_eq!(is_inside(&[(30, 20, 9), (20, 1, 9), INIT], &[]), Some(false));
}

#[test]
fn a_family_without_an_end_is_given_up() {
    assert_eq!(is_inside(&[(30, 20, 9), (20, 30, 9)], &[]), None);
}

#[test]
fn whom_nobody_has_a_descriptor_to_look_at_is_not_gone() {
    let family = [(30, 20, 9), (20, 5, 8), (5, 1, 2), DAEMON, INIT];
    let short = Unseen::Shortage(Errno::EMFILE);
    for missing in [30, 20, OWN] {
        let look = |wanted| {
            if wanted == missing { Err(short) } else { look_in(&family, &[20], wanted) }
        };
        assert_eq!(outermost(30, OWN, look), Err(Errno::EMFILE), "{missing}");
        assert_eq!(inside(30, OWN, marks(0, 0), look), Err(short), "{missing}");
    }
}

/// The outermost shim of process 30.
fn outermost_of(family: Family<'_>, shims: &[i32]) -> Option<i32> {
    outermost(30, OWN, |wanted| look_in(family, shims, wanted)).unwrap()
}

#[test]
fn whatever_imitates_a_shim_in_a_session_counts_as_of_that_session() {
    let family = [(30, 22, 9), (22, 21, 9), (21, 20, 8), (20, OWN, 7), DAEMON, INIT];
    assert_eq!(outermost_of(&family, &[20]), Some(20));
    assert_eq!(outermost_of(&family, &[20, 21, 22, 30]), Some(20));
    assert_eq!(outermost_of(&family, &[]), None);
    assert_eq!(outermost_of(&[(30, OWN, 9), DAEMON, INIT], &[]), None);
    assert_eq!(outermost_of(&[(30, 20, 9)], &[30]), Some(30), "as far as can be seen");
}

#[test]
fn what_a_daemon_came_of_itself_does_not_count() {
    let (outer, daemon) = ((5, 1, 2), (OWN, 5, 3));
    let family = [(30, 6, 9), (6, 5, 4), outer, daemon, INIT];
    assert_eq!(outermost_of(&family, &[5, 6]), Some(6));
    assert_eq!(outermost_of(&[(30, 5, 9), outer, daemon, INIT], &[5]), None);
}
