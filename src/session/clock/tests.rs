//! The clock on paused time, and on the real one where a condition alone is waited for.

use std::task::{Context, Poll, Waker};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Polls a future once, as a task that is then busy with something else would.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_stands_until_time_is_advanced() {
    let clock = Clock::paused();
    let start = clock.now();
    assert_eq!(start, Moment::from_boot(Duration::from_secs(1_000)));
    tokio::time::advance(SECOND).await;
    assert_eq!(clock.now().since(start), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_paused_sleep_ends_at_its_deadline() {
    let clock = Clock::paused();
    let deadline = clock.now() + 90 * SECOND;
    clock.sleep_until(deadline).await;
    assert_eq!(clock.now(), deadline);
}

#[tokio::test(start_paused = true)]
async fn a_clone_shows_the_same_time() {
    let clock = Clock::paused();
    let clone = clock.clone();
    tokio::time::advance(5 * SECOND).await;
    assert_eq!(clock.now(), clone.now());
    assert_eq!(clock.wall_time(), SystemTime::UNIX_EPOCH + 1_005 * SECOND);
    assert_eq!(clock.now_by_wall(), (clock.now(), clock.wall_time()));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_does_not_wait() {
    let clock = Clock::paused();
    let before = clock.now();
    clock.sleep_until(Moment::default()).await;
    clock.sleep_until(before).await;
    assert_eq!(clock.now(), before);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_beyond_all_time_never_comes() {
    let clock = Clock::paused();
    let mut never = Box::pin(clock.sleep_until(Moment::from_boot(Duration::MAX)));
    tokio::time::advance(1_000_000 * SECOND).await;
    assert!(poll_once(never.as_mut()).is_pending());
}

#[tokio::test]
async fn boot_time_goes_on_through_a_sleep() {
    let clock = Clock::boot().unwrap();
    let deadline = clock.now() + Duration::from_millis(3);
    clock.sleep_until(deadline).await;
    assert!(clock.now() >= deadline);
}

#[tokio::test]
async fn an_earlier_deadline_ends_first_though_it_was_set_later() {
    let clock = Clock::boot().unwrap();
    let start = clock.now();
    let mut far = Box::pin(clock.sleep_until(start + 3_600 * SECOND));
    assert!(poll_once(far.as_mut()).is_pending());
    clock.sleep_until(start + Duration::from_millis(3)).await;
    assert!(poll_once(far.as_mut()).is_pending());
}

#[tokio::test]
async fn a_later_deadline_ends_though_an_earlier_one_was_forgotten() {
    let clock = Clock::boot().unwrap();
    let start = clock.now();
    let mut near = Box::pin(clock.sleep_until(start + Duration::from_millis(5)));
    let _ = poll_once(near.as_mut());
    drop(near);
    let deadline = start + Duration::from_millis(10);
    clock.sleep_until(deadline).await;
    assert!(clock.now() >= deadline);
}
