//! A terminal that does not answer for a while, over one in memory.

use super::*;
use crate::session::pty::Note;

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
    desk.write(order).await.expect("it is the holder's still");
    assert_eq!(desk.terminal.written(), b"third");
}

#[tokio::test(start_paused = true)]
async fn who_killed_a_session_is_answered_also_when_nobody_tells_its_end() {
    let desk = Desk::open();
    desk.terminal.keep_end_untold();
    let kill =
        ManageOrder { caller: agent(1), act: Act::Kill, fresh: fresh(), over_any_lease: false };
    let permit = permit();
    let killing = desk.session.manage(&permit, kill, Accepted::nothing());
    tokio::time::timeout(Duration::from_secs(3), killing)
        .await
        .expect("an answer")
        .expect("killed");
    assert_eq!(desk.session.frame().exit.value, None);
}
