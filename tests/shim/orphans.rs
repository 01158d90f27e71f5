//! What becomes of a terminal for which no daemon comes.

use std::time::Duration;

use termgate::session::pty::{Pty, ReadOutput};
use termgate::shim::wire::to_shim::Unread;

use crate::harness::waiting::{SAFETY, until};
use crate::shim::harness::{Terminal, end, find, is_there, read_until, wait_for};

/// Writes far more than the ring holds, and then leaves a file.
fn flood(terminal_directory: &str) -> String {
    format!("stty raw; seq -w 1 200000; touch {terminal_directory}; sleep 1000")
}

#[tokio::test]
async fn a_program_waits_for_a_daemon_unless_it_shall_go_on() {
    let ground = tempfile::tempdir().unwrap();
    let over = ground.path().join("over");
    let line = flood(over.to_str().unwrap());
    let mut terminal = Terminal::held(&line, |options| options.limits.ring_bytes = 64 << 10);
    terminal.leave();
    let recovered = terminal.restart();
    assert_eq!(recovered.gap(), None);
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("200000\n")).await;
    assert!(output.starts_with(b"000001\n000002\n"));
    assert_eq!(output.len(), 7 * 200_000);
    until("the program goes on", || over.exists()).await;
}

#[tokio::test]
async fn a_program_that_shall_go_on_loses_its_oldest_output_and_that_is_told() {
    let ground = tempfile::tempdir().unwrap();
    let over = ground.path().join("over");
    let line = flood(over.to_str().unwrap());
    let mut terminal = Terminal::held(&line, |options| {
        options.limits.ring_bytes = 64 << 10;
        options.limits.unread = Unread::Overwrite;
    });
    terminal.leave();
    until("the program goes on", || over.exists()).await;
    let recovered = terminal.restart();
    let gap = recovered.gap().expect("some of it was lost");
    assert_eq!(gap.start, recovered.attached.committed);
    assert_eq!(recovered.resume_at(), gap.end);
    assert_eq!(recovered.attached.head, 7 * 200_000);
    assert!(recovered.attached.head - gap.end <= 64 << 10);
    assert!(recovered.attached.head - gap.end > 48 << 10, "no more is lost than need be");
    let mut rest = Vec::new();
    while gap.end + (rest.len() as u64) < recovered.attached.head {
        let offset = gap.end + rest.len() as u64;
        assert!(matches!(terminal.read(offset, &mut rest).await, Ok(ReadOutput::Bytes(_))));
    }
    assert!(rest.ends_with(b"199999\n200000\n"));
    assert!(terminal.read(gap.end - 1, &mut Vec::new()).await.is_err());
}

#[tokio::test]
async fn a_session_that_nobody_claims_in_time_ends_itself() {
    let mut terminal = Terminal::held(
        "trap 'echo told; exit' HUP; (setsid sleep 1000 &); echo ready; sleep 1001 & wait",
        |options| options.limits.orphan_ttl = Some(Duration::from_millis(200)),
    );
    wait_for(&terminal, "ready").await;
    let shim = find(terminal.as_held().shim());
    let leader = find(terminal.as_held().leader());
    terminal.leave();
    end(&shim).await;
    assert!(!is_there(&leader));
    assert!(!terminal.socket().exists());
}

#[tokio::test]
async fn a_session_that_is_claimed_in_time_goes_on() {
    let mut terminal = Terminal::held("echo ready; sleep 1000", |options| {
        options.limits.orphan_ttl = Some(Duration::from_secs(20));
    });
    wait_for(&terminal, "ready").await;
    let shim = find(terminal.as_held().shim());
    terminal.restart();
    wait_for(&terminal, "ready").await;
    assert!(is_there(&shim));
}

#[tokio::test]
async fn without_its_directory_a_shim_ends_with_its_program_also_when_its_ring_is_full() {
    let ground = tempfile::tempdir().unwrap();
    let go = ground.path().join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let line = format!("stty raw; echo ready; {waits}; head -c 70000 /dev/zero");
    let mut terminal = Terminal::held(&line, |options| {
        options.limits.ring_bytes = 64 << 10;
        options.limits.orphan_ttl = Some(2 * SAFETY);
    });
    wait_for(&terminal, "ready").await;
    let shim = find(terminal.as_held().shim());
    terminal.leave();
    std::fs::remove_dir_all(terminal.directory()).unwrap();
    std::fs::write(&go, "").unwrap();
    end(&shim).await;
}
