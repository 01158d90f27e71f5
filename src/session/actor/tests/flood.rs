//! A program that writes without a pause, and those who ask for something meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;

use super::*;
use crate::core::ids::RowNumber;
use crate::session::pty::READ_MAX;

/// Many numbered lines, all of the same length.
const LINE: usize = 10;

fn lines(count: usize) -> String {
    (0..count).map(|number| format!("{number:08}\r\n")).collect()
}

/// Waits until some output was read, and the first of it is being fed.
async fn until_flooded(desk: &Desk) {
    while desk.session.live().output_bytes.get() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.session.live().output_bytes.get(), READ_MAX as u64, "one read");
}

/// How many lines the newest frame knows of.
fn shown(desk: &Desk) -> usize {
    let RowNumber(row) = desk.session.frame().cursor.value.row;
    row as usize
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_ended_and_granted_between_two_slices_of_what_was_read_at_once() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.push(lines(8 * READ_MAX / LINE));
    until_flooded(&desk).await;
    assert!(desk.session.permitted_preempt(&agent(9)).await.expect("alive"));
    let ended = shown(&desk);
    desk.acquire(&agent(2)).await.expect("free");
    let granted = shown(&desk);
    assert!(ended <= granted && granted < READ_MAX / LINE, "{ended}, {granted} lines before");
    desk.wait_until(|_| shown(&desk) == 8 * READ_MAX / LINE).await;
}

#[tokio::test(start_paused = true)]
async fn output_is_shown_however_many_ask_for_something() {
    const ASKING: u64 = 64;
    const TIMES: usize = 2_000;
    let desk = Desk::open();
    // The first frame comes at once after that.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let seen = Arc::new(AtomicBool::new(false));
    let mut asking = JoinSet::new();
    for number in 0..ASKING {
        let (session, seen) = (desk.session.clone(), Arc::clone(&seen));
        let caller = agent(number);
        asking.spawn(async move {
            for _ in 0..TIMES {
                // There is nothing to release; that somebody asks is enough.
                let (nothing, released) = (Accepted::nothing(), ReleaseRequest::default());
                let _ = session.permitted_release(caller.clone(), released, None, nothing).await;
                if seen.load(Ordering::Relaxed) {
                    return true;
                }
            }
            false
        });
    }
    desk.terminal.push(lines(READ_MAX / LINE));
    let mut frames = desk.session.frames();
    let all = RowNumber((READ_MAX / LINE) as u64);
    frames.wait_for(|frame| frame.cursor.value.row == all).await.expect("alive");
    seen.store(true, Ordering::Relaxed);
    assert!(asking.join_all().await.into_iter().all(|while_asking| while_asking));
}

#[tokio::test(start_paused = true)]
async fn what_was_read_at_once_is_shown_at_once() {
    let desk = Desk::open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut frames = desk.session.frames();
    frames.mark_unchanged();
    let count = 64 * 1024 / LINE;
    desk.terminal.push(lines(count));
    frames.changed().await.expect("alive");
    assert_eq!(shown(&desk), count);
}

#[tokio::test(start_paused = true)]
async fn rows_that_somebody_compares_stay_in_history_until_they_are_read() {
    let desk = Desk::open();
    let follower = desk.session.follow_rows(RowNumber(0));
    let count = 4 * READ_MAX / LINE;
    desk.terminal.push(lines(count));
    let (mut frames, mut read) = (desk.session.frames(), RowNumber(0));
    while shown(&desk) < count {
        frames.changed().await.expect("alive");
        let frame = Arc::clone(&frames.borrow_and_update());
        assert!(frame.history.first() <= read, "{:?} is trimmed", read);
        read = frame.base_row;
        follower.advance(read);
    }
    assert!(desk.session.frame().history.first() > RowNumber(0));
}

#[tokio::test(start_paused = true)]
async fn output_does_not_wait_long_for_somebody_who_does_not_read() {
    let desk = Desk::open();
    let follower = desk.session.follow_rows(RowNumber(0));
    let started = desk.clock.now();
    let count = 4 * READ_MAX / LINE;
    desk.terminal.push(lines(count));
    desk.wait_until(|_| shown(&desk) == count).await;
    let took = desk.clock.now().since(started);
    assert!((100..130).contains(&took.as_millis()), "{took:?}");
    // Nor does it for somebody who has gone.
    follower.advance(desk.session.frame().base_row);
    drop(follower);
    let started = desk.clock.now();
    desk.terminal.push(lines(count));
    desk.wait_until(|_| shown(&desk) == 2 * count).await;
    let took = desk.clock.now().since(started);
    assert!(took.as_millis() < 30, "{took:?}");
}
