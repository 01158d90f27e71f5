//! What is of a terminal of the daemon's own only; `tests/shim/either.rs` has what every one does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::core::ids::RowNumber;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::{ClientEnvironment, Environment, clean_environment};
use crate::session::pty::processes::{Process, ProcessHandle};

const PATIENCE: Duration = Duration::from_secs(30);
const SIZE: Size = Size { rows: 24, cols: 80 };

fn a_session() -> SessionId {
    SessionId::from_random(uuid::Uuid::new_v4())
}

fn environment() -> Environment {
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let base = Environment::from([path, ("SHELL".into(), "/bin/bash".into())]);
    clean_environment(&base, &ClientEnvironment::default(), &BTreeMap::new()).unwrap()
}

fn spec(launch: Launch) -> SpawnSpec {
    SpawnSpec::resolve(launch, a_session(), PathBuf::from("/"), environment(), SIZE).unwrap()
}

fn line(line: &str) -> OwnPty {
    OwnPty::open(&spec(Launch::Line(line.to_owned()))).unwrap()
}

/// Reads on until the output holds `text`, or to its end when there is none to wait for.
async fn read_until(pty: &OwnPty, output: &mut Vec<u8>, text: Option<&str>) {
    let reading = async {
        while !text.is_some_and(|text| String::from_utf8_lossy(output).contains(text)) {
            match pty.read(output.len() as u64, output).await.unwrap() {
                ReadOutput::Bytes(_) => {}
                ReadOutput::End => {
                    assert_eq!(text, None, "output ended: {}", String::from_utf8_lossy(output));
                    return;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the output comes");
}

async fn read_to_end(pty: &OwnPty) -> String {
    let mut output = Vec::new();
    read_until(pty, &mut output, None).await;
    String::from_utf8(output).unwrap()
}

async fn wait_for(pty: &OwnPty, text: &str) {
    read_until(pty, &mut Vec::new(), Some(text)).await;
}

async fn exit_of(pty: &OwnPty) -> Exit {
    tokio::time::timeout(PATIENCE, pty.exited()).await.expect("the program ends")
}

async fn end(process: &Process) {
    // Who cannot be opened has ended already.
    if let Ok(handle) = process.open() {
        let handle = crate::session::pty::watch::watch(handle, Interest::READABLE).unwrap();
        let ended = tokio::time::timeout(PATIENCE, handle.readable()).await;
        ended.expect("the process ends").unwrap().retain_ready();
    }
}

#[tokio::test]
async fn the_other_end_is_let_go_once_the_program_has_ended() {
    let pty = line("printf 'one\\ntwo\\n'; exit 7");
    assert_eq!(read_to_end(&pty).await, "one\r\ntwo\r\n");
    assert!(pty.slave.lock().unwrap().is_none(), "the other end is let go");
    assert_eq!(exit_of(&pty).await, Exit::Code(7));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_leaves_nothing_behind() {
    let mut spec = spec(Launch::Shell);
    spec.program = PathBuf::from("/nonexistent/program");
    let refused = OwnPty::open(&spec).unwrap_err();
    assert!(matches!(refused, SpawnError::Program { .. }), "{refused}");
    // This thread forked, and the kernel lists the children of each thread.
    assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
}

#[tokio::test]
async fn dropping_the_terminal_hangs_up_on_the_program() {
    let pty = line("echo ready; read -r word");
    wait_for(&pty, "ready").await;
    let leader = Process::find(pty.child.pid()).unwrap();
    drop(pty);
    end(&leader).await;
}

#[tokio::test]
async fn a_handle_of_a_waited_for_child_is_not_found() {
    let pty = line("exit 0");
    let child = ProcessHandle::open(pty.child.pid()).unwrap();
    exit_of(&pty).await;
    assert_eq!(child.signal(libc::SIGTERM).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn output_can_be_read_again_until_a_checkpoint_covers_it() {
    let pty = line("printf 'one two'; exit 0");
    assert_eq!(read_to_end(&pty).await, "one two");
    let mut again = Vec::new();
    assert_eq!(pty.read(4, &mut again).await.unwrap(), ReadOutput::Bytes(3));
    assert_eq!(again, b"two");
    assert!(!pty.owes(7));
    let covered = TerminalCheckpoint {
        offset: 4,
        snapshot: Vec::new(),
        rows: Vec::new(),
        whole: true,
        first_row: RowNumber(0),
        end_row: RowNumber(0),
        quiet: true,
    };
    pty.commit(&covered).unwrap();
    assert_eq!(pty.oldest(), 4);
    let refused = pty.read(3, &mut again).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(pty.read(4, &mut again).await.unwrap(), ReadOutput::Bytes(3));
    assert_eq!(pty.read(7, &mut again).await.unwrap(), ReadOutput::End);
}

#[tokio::test]
async fn a_checkpoint_is_due_before_too_much_is_kept_and_no_more_is_kept_than_may_be() {
    let pty = line("head -c 3000000 /dev/zero");
    let mut output = Vec::new();
    let mut owed = false;
    while pty.read(output.len() as u64, &mut output).await.unwrap() != ReadOutput::End {
        owed |= pty.owes(output.len() as u64);
        assert!(pty.reading().kept.len() <= KEPT_MAX);
    }
    assert!(owed && output.len() == 3_000_000);
    assert!(pty.oldest() > 0);
}
