//! What a session may rely on when a terminal in memory stands in for a real one.

use super::*;
use crate::core::ids::{Epoch, RowNumber};

#[tokio::test(start_paused = true)]
async fn pushed_output_is_read_from_any_offset_that_was_not_committed() {
    let (pty, program) = pair();
    program.push("hello");
    let mut read = Vec::new();
    assert_eq!(pty.read(0, &mut read).await.unwrap(), ReadOutput::Bytes(5));
    assert_eq!(pty.read(3, &mut read).await.unwrap(), ReadOutput::Bytes(2));
    assert_eq!(read, b"hellolo");
    let checkpoint = TerminalCheckpoint {
        offset: 4,
        snapshot: b"screen".to_vec(),
        rows: Vec::new(),
        first_row: RowNumber(0),
        whole: false,
        end_row: RowNumber(0),
        quiet: true,
    };
    pty.commit(&checkpoint).unwrap();
    assert_eq!(program.checkpoints(), [checkpoint]);
    let refused = pty.read(3, &mut read).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn an_offset_beyond_the_output_is_refused() {
    let (pty, _program) = pair();
    let refused = pty.read(1, &mut Vec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn a_read_hands_over_no_more_than_its_bound() {
    let (pty, program) = pair();
    program.push(vec![b'x'; READ_MAX + 1]);
    let mut read = Vec::new();
    assert_eq!(pty.read(0, &mut read).await.unwrap(), ReadOutput::Bytes(READ_MAX));
    assert_eq!(pty.read(READ_MAX as u64, &mut read).await.unwrap(), ReadOutput::Bytes(1));
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_output() {
    let (pty, program) = pair();
    let mut read = Vec::new();
    let (output, ()) = tokio::join!(pty.read(0, &mut read), async { program.push("late") });
    assert_eq!(output.unwrap(), ReadOutput::Bytes(4));
}

#[tokio::test(start_paused = true)]
async fn the_end_comes_after_the_output_and_again() {
    let (pty, program) = pair();
    program.push("x");
    program.exit(Exit::Code(2));
    let mut read = Vec::new();
    assert_eq!(pty.exited().await, Exit::Code(2));
    assert_eq!(pty.read(0, &mut read).await.unwrap(), ReadOutput::Bytes(1));
    assert_eq!(pty.read(1, &mut read).await.unwrap(), ReadOutput::End);
    assert_eq!(pty.read(1, &mut read).await.unwrap(), ReadOutput::End);
    assert_eq!(pty.exited().await, Exit::Code(2));
}

#[tokio::test(start_paused = true)]
async fn the_first_exit_counts() {
    let (pty, program) = pair();
    program.exit(Exit::Code(0));
    pty.kill().await.unwrap();
    assert_eq!(pty.exited().await, Exit::Code(0));
    assert!(program.killed());
}

#[tokio::test(start_paused = true)]
async fn a_stuck_terminal_takes_what_it_has_room_for_and_then_nothing() {
    let (pty, program) = pair();
    program.limit_writes(Some(3));
    assert_eq!(pty.try_write(b"abcde", Stamp::default()).unwrap(), 3);
    assert_eq!(pty.try_write(b"de", Stamp::default()).unwrap(), 0);
    let (ready, ()) = tokio::join!(pty.writable(), async { program.limit_writes(None) });
    ready.unwrap();
    assert_eq!(pty.try_write(b"de", Stamp::default()).unwrap(), 2);
    assert_eq!(program.take_written(), b"abcde");
    assert_eq!(program.written(), b"");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_ended_takes_no_input() {
    let (pty, program) = pair();
    program.exit(Exit::Unknown);
    assert_eq!(
        pty.try_write(b"x", Stamp::default()).unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
}

#[tokio::test(start_paused = true)]
async fn sizes_signals_and_evidence_are_what_the_other_end_set() {
    let (pty, program) = pair();
    let size = Size { rows: 5, cols: 9 };
    pty.resize(size).unwrap();
    pty.signal(Signal::Interrupt).unwrap();
    assert_eq!(program.sizes(), [size]);
    assert_eq!(program.signals(), [Signal::Interrupt]);
    let secret = TerminalEvidence { echo: false, ..program.evidence() };
    program.set_evidence(secret);
    assert_eq!(pty.evidence().unwrap(), secret);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_due_once_more_than_asked_for_is_not_committed() {
    let (pty, program) = pair();
    assert!(!pty.owes(1_000_000));
    program.ask_for_checkpoints(10);
    assert!(!pty.owes(10));
    assert!(pty.owes(11));
}

#[tokio::test(start_paused = true)]
async fn what_was_remembered_last_is_kept_by_its_note() {
    let (pty, program) = pair();
    pty.remember(Note::Lease, b"one");
    pty.remember(Note::Lease, b"two");
    assert_eq!(program.note(Note::Lease), Some(b"two".to_vec()));
    assert_eq!(program.note(Note::Terminal), None);
}

#[tokio::test(start_paused = true)]
async fn each_write_is_kept_with_its_stamp() {
    let (pty, program) = pair();
    let stamp = Stamp { epoch: Some(Epoch(3)), ..Stamp::default() };
    pty.try_write(b"x", stamp).unwrap();
    assert_eq!(program.stamps(), [stamp]);
}
