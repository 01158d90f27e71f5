//! Real children; each test waits for a condition.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn start(mut command: Command) -> Child {
    Child::start(|| command.spawn().map(|child| child.id())).unwrap()
}

async fn within_patience<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens")
}

#[tokio::test]
async fn a_child_tells_how_it_ended_however_often_it_is_asked() {
    let child = start(shell("exit 9"));
    assert_eq!(within_patience(child.exited()).await, Exit::Code(9));
    assert_eq!(within_patience(child.exited()).await, Exit::Code(9));
}

#[tokio::test]
async fn two_who_wait_get_the_same_answer() {
    let child = start(shell("exit 9"));
    let both = async { tokio::join!(child.exited(), child.exited()) };
    assert_eq!(within_patience(both).await, (Exit::Code(9), Exit::Code(9)));
}

#[tokio::test]
async fn a_child_that_ended_and_was_not_asked_is_no_orphan() {
    let child = start(shell("exit 6"));
    within_patience(async {
        while !Process::find(child.pid()).is_some_and(|process| process.ended) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let table = processes::table().unwrap();
    // Shown in a session of its own it could be one, but for being known.
    let elsewhere = |process: &Process| Process { session: ProcessId(0), ..*process };
    sweep(&table.iter().map(elsewhere).filter(|process| process.pid == child.pid()).collect());
    assert_eq!(within_patience(child.exited()).await, Exit::Code(6));
}

#[tokio::test]
async fn a_failed_start_is_told() {
    let refused = Child::start(|| Err(io::ErrorKind::PermissionDenied.into())).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn an_orphan_is_reaped_when_it_ends() {
    become_subreaper().unwrap();
    let told = tempfile::NamedTempFile::new().unwrap();
    let reaping = tokio::spawn(reap_orphans());
    let line = format!("(setsid sh -c 'echo $$' >{} &)", told.path().display());
    within_patience(start(shell(&line)).exited()).await;
    let reaped = async {
        loop {
            let pid = std::fs::read_to_string(told.path()).unwrap();
            match pid.trim().parse().map(ProcessId) {
                Ok(pid) if Process::find(pid).is_none() => return,
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    within_patience(reaped).await;
    reaping.abort();
}
