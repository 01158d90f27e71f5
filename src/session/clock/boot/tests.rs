//! The table of deadlines, and who is in it while a sleep lives.

use super::*;

fn at(seconds: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(seconds))
}

fn insert(table: &mut Deadlines, seconds: u64) -> Option<u64> {
    table.insert(at(seconds), Waker::noop().clone())
}

#[test]
fn the_timer_is_set_for_the_earliest_deadline_and_only_when_it_must_be() {
    let mut table = Deadlines::default();
    assert_eq!(table.rearm(), None);
    insert(&mut table, 20);
    assert_eq!(table.rearm(), Some(at(20)));
    insert(&mut table, 30);
    assert_eq!(table.rearm(), None);
    insert(&mut table, 10);
    assert_eq!(table.rearm(), Some(at(10)));
}

#[test]
fn what_is_due_is_taken_and_the_rest_waits_on() {
    let mut table = Deadlines::default();
    for seconds in [10, 20, 20, 30] {
        insert(&mut table, seconds);
    }
    let mut due = Vec::new();
    table.take_due(at(9), &mut due);
    assert_eq!(due.len(), 0);
    table.take_due(at(20), &mut due);
    assert_eq!(due.len(), 3);
    assert_eq!(table.rearm(), Some(at(30)));
}

#[test]
fn without_deadlines_the_timer_is_not_set_again() {
    let mut table = Deadlines::default();
    insert(&mut table, 10);
    table.rearm();
    table.take_due(at(10), &mut Vec::new());
    assert_eq!(table.rearm(), None);
}

#[test]
fn a_full_table_takes_no_more() {
    let mut table = Deadlines::default();
    for seconds in 0..DEADLINES_MAX as u64 {
        assert!(insert(&mut table, seconds).is_some());
    }
    assert_eq!(insert(&mut table, 1), None);
}

#[tokio::test]
async fn a_dropped_sleep_is_forgotten() {
    let timers = BootTimers::start().unwrap();
    let mut sleep = Box::pin(timers.sleep_until(now() + Duration::from_secs(3_600)));
    let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    assert_eq!(timers.shared.table().waiting.len(), 1);
    drop(sleep);
    assert_eq!(timers.shared.table().waiting.len(), 0);
}

#[tokio::test]
async fn a_sleep_that_is_polled_often_is_known_once() {
    let timers = BootTimers::start().unwrap();
    let mut sleep = Box::pin(timers.sleep_until(now() + Duration::from_secs(3_600)));
    for _ in 0..3 {
        let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    assert_eq!(timers.shared.table().waiting.len(), 1);
}
