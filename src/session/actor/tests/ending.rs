//! What becomes of a session when its daemon ends.

use super::*;
use crate::session::pty::kill::Survivor;
use crate::session::pty::{Note, ProcessId};

/// A session with a program that said something and is still there.
async fn running() -> Desk {
    let desk = Desk::open();
    desk.terminal.push("hello");
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.lines[0].value.text.contains("hello")).await.unwrap();
    desk
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_left_goes_on_and_keeps_its_lease_for_whoever_had_it() {
    let desk = running().await;
    desk.acquire(&agent(1)).await.unwrap();
    let kept = desk.terminal.note(Note::Lease);
    desk.session.part(Parting::Leave);
    desk.task.await.unwrap();
    assert!(!desk.terminal.killed() && !desk.terminal.forgotten());
    assert_eq!(desk.terminal.note(Note::Lease), kept);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_left_is_gone_for_whoever_still_asks() {
    let desk = running().await;
    desk.session.part(Parting::Leave);
    desk.session.closed().await;
    let refused = desk.acquire(&agent(1)).await;
    assert!(matches!(refused, Err(SessionError::Closed)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_program_has_ended_is_left_for_those_who_still_read_it() {
    let desk = running().await;
    desk.terminal.exit(Exit::Code(3));
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.exit.value.is_some()).await.unwrap();
    desk.session.part(Parting::Leave);
    desk.task.await.unwrap();
    assert!(!desk.terminal.killed() && !desk.terminal.forgotten());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_outlive_its_daemon_ends_when_it_is_left() {
    let desk = running().await;
    desk.terminal.belong_to_daemon();
    desk.session.part(Parting::Leave);
    desk.task.await.unwrap();
    assert!(desk.terminal.killed() && desk.terminal.forgotten());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_both_left_and_ended_ends() {
    let desk = running().await;
    desk.session.part(Parting::End);
    desk.session.part(Parting::Leave);
    desk.task.await.unwrap();
    assert!(desk.terminal.killed() && desk.terminal.forgotten());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_with_the_daemon_is_told() {
    let desk = running().await;
    let survivor =
        Survivor { pid: ProcessId(7), name: "sudo".to_owned(), user: Some(0), stuck: false };
    desk.terminal.survive(survivor);
    assert_eq!(desk.session.live().unended(), None);
    desk.session.part(Parting::End);
    desk.task.await.unwrap();
    let told = desk.session.live().unended();
    assert_eq!(told, Some("processes that do not end: 7 (sudo, of user 0)"));
    assert!(desk.terminal.forgotten());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_daemon_has_is_told_as_one_that_did_not_end() {
    let desk = running().await;
    desk.terminal.be_superseded();
    desk.session.part(Parting::End);
    desk.task.await.unwrap();
    assert_eq!(desk.session.live().unended(), Some("another daemon may have the session"));
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_whose_processes_survive_a_kill_stays_and_can_be_killed_again() {
    let desk = Desk::open();
    desk.terminal.exit(Exit::Code(0));
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.exit.value.is_some()).await.expect("alive");
    let (pid, name) = (ProcessId(5), "sleep".to_owned());
    desk.terminal.survive(Survivor { pid, name, user: None, stuck: true });
    let kill = || ManageOrder {
        caller: agent(1),
        act: Act::Kill,
        fresh: fresh(),
        over_any_lease: false,
        bound: None,
    };
    // An ended session is kept for an hour, and again for one after a kill that failed.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(59 * 60)).await;
        let refused = desk.session.permitted_manage(kill(), Accepted::nothing()).await;
        assert!(matches!(refused, Err(SessionError::Terminal(_))), "{refused:?}");
    }
    assert!(!desk.task.is_finished());
}
