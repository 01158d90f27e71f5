//! A terminal that does not answer for a while, over one in memory.

use super::*;
use crate::core::ids::RowNumber;
use crate::session::pty::Note;
use crate::session::records::{Gap, Gaps};

#[tokio::test(start_paused = true)]
async fn what_a_silent_terminal_may_have_taken_is_not_written_again() {
    let desk = Desk::open();
    let lease = desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.set_silent(true);
    let first = desk.write(typing(&agent(1), "first")).await.expect("it is not known before");
    assert_eq!((first.outcome.written, first.outcome.discarded), (0, 5));
    let second = desk.write(typing(&agent(1), "second")).await;
    assert!(matches!(second, Err(SessionError::Silent)), "{second:?}");

    let notes = desk.terminal.notes().len();
    desk.terminal.set_silent(false);
    // All that might not have been kept is kept again before anything is written.
    desk.wait_until(|terminal| terminal.notes().len() == notes + 3).await;
    let kept: Vec<_> =
        desk.terminal.notes().into_iter().skip(notes).map(|(note, _)| note).collect();
    assert_eq!(kept, [Note::Identity, Note::Lease, Note::Commands]);
    let whole = desk.terminal.checkpoints().pop().expect("the screen is kept again");
    assert!(whole.whole);
    let order = WriteOrder { presented: Some(lease), ..typing(&agent(1), "third") };
    desk.write(order).await.expect("the lease is still its own");
    assert_eq!(desk.terminal.written(), b"third");
}

#[tokio::test(start_paused = true)]
async fn of_a_silent_terminal_nothing_is_found_out_before_it_answers() {
    let desk = Desk::open();
    let lease = desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.set_silent(true);
    let order = WriteOrder { presented: Some(lease), ..typing(&agent(1), "lost") };
    desk.write(order).await.expect("it is not known before");
    let looks = desk.terminal.looks();
    let (_attending, _hurrying) = (desk.session.attend(), desk.session.hurry());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.looks(), looks);
    desk.terminal.set_silent(false);
    desk.wait_until(|terminal| terminal.looks() > looks).await;
}

#[tokio::test(start_paused = true)]
async fn who_killed_a_session_is_answered_also_when_nobody_tells_its_end() {
    let desk = Desk::open();
    desk.terminal.keep_end_untold();
    let kill = ManageOrder {
        caller: agent(1),
        act: Act::Kill,
        fresh: fresh(),
        over_any_lease: false,
        bound: None,
    };
    let killing = desk.session.permitted_manage(kill, Accepted::nothing());
    tokio::time::timeout(Duration::from_secs(3), killing)
        .await
        .expect("an answer")
        .expect("killed");
    assert_eq!(desk.session.frame().exit.value, None);
}

#[tokio::test(start_paused = true)]
async fn output_that_is_gone_before_it_was_read_ends_no_session_and_is_told() {
    let desk = Desk::open();
    desk.terminal.push("one\r\ntwo ");
    desk.wait_until(|_| desk.session.frame().cursor.value.row == RowNumber(1)).await;
    desk.terminal.lose("\x1b]0;nobody reads this");
    desk.wait_until(|_| !desk.session.live().gaps().as_slice().is_empty()).await;
    desk.terminal.push("three");
    desk.wait_until(|_| &*desk.session.frame().lines[1].value.text == "two three").await;
    let bytes = Some("\x1b]0;nobody reads this".len() as u64);
    let gaps = desk.session.live().gaps();
    assert_eq!(gaps.as_slice(), [Gap { row: RowNumber(1), bytes, since: None }]);
    let note = desk.terminal.note(Note::Gaps).expect("the next daemon tells it as well");
    assert_eq!(Gaps::from_note(&note).unwrap(), gaps);
    assert_eq!(desk.session.frame().exit.value, None);
}
