//! Output that no daemon may lose, whenever it goes and comes.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand_like::Random;
use termgate::core::frame::Exit;
use termgate::core::ids::RowNumber;
use termgate::session::pty::held::recovered::HistorySegment;
use termgate::session::pty::{Note, Pty, ReadOutput, Stamp, TerminalCheckpoint};

use crate::harness::waiting::{soon, until};
use crate::shim::harness::{
    Terminal, all_read, checkpoint, exit_of, find, is_there, read_until, wait_for,
};

/// Numbers that look random and are the same in every run.
mod rand_like {
    #[derive(Debug)]
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }
    }
}

const LINES: u64 = 2_500_000;

/// What `seq -w` writes in a terminal that adds nothing to it.
fn expected() -> Vec<u8> {
    let width = LINES.to_string().len();
    (1..=LINES).flat_map(|line| format!("{line:0width$}\n").into_bytes()).collect()
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[tokio::test]
async fn twenty_megabytes_arrive_whole_whenever_the_daemon_is_killed() {
    let mut terminal = Terminal::held(&format!("stty raw; seq -w 1 {LINES} | cat"), |_| {});
    let mut random = Random(7);
    let (mut output, mut restarts) = (Vec::new(), 0);
    let reading = async {
        loop {
            // What was read and not committed is read again by the next daemon.
            for _ in 0..random.below(20) {
                let offset = output.len() as u64;
                if terminal.read(offset, &mut output).await.unwrap() == ReadOutput::End {
                    return;
                }
                if terminal.owes(output.len() as u64) {
                    terminal.commit(&checkpoint(output.len() as u64)).unwrap();
                }
            }
            let recovered = terminal.restart();
            restarts += 1;
            assert_eq!(recovered.gap(), None);
            assert_eq!(recovered.attached.generation, restarts + 1);
            output.truncate(recovered.resume_at() as usize);
        }
    };
    soon("the output", reading).await;
    assert!(restarts > 10, "{restarts}");
    let expected = expected();
    assert!(expected.len() >= 20_000_000);
    assert_eq!((output.len(), digest(&output)), (expected.len(), digest(&expected)));
}

#[tokio::test]
async fn a_program_waits_when_there_is_no_room_and_loses_nothing() {
    let terminal = Terminal::held("stty raw; head -c 1000000 /dev/zero; echo over", |options| {
        options.limits.ring_bytes = 64 << 10;
    });
    let mut output = Vec::new();
    while output.len() < 64 << 10 {
        terminal.read(output.len() as u64, &mut output).await.unwrap();
    }
    let mut more = Vec::new();
    let offset = output.len() as u64;
    let read = tokio::time::timeout(
        std::time::Duration::from_millis(200),
        terminal.read(offset, &mut more),
    );
    assert!(read.await.is_err(), "no more comes before a checkpoint");
    assert!(!all_read(&terminal, offset).await.unwrap(), "the kernel has more");
    terminal.commit(&checkpoint(offset)).unwrap();
    read_until(&terminal, &mut output, Some("over")).await;
    assert!(output[..1_000_000].iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn a_checkpoint_is_due_when_more_than_a_quarter_of_the_room_is_taken() {
    let terminal = Terminal::held("sleep 1000", |options| options.limits.ring_bytes = 64 << 10);
    assert!(!terminal.owes(16 << 10));
    assert!(terminal.owes((16 << 10) + 1));
    terminal.commit(&checkpoint(0)).unwrap();
    assert!(terminal.owes((16 << 10) + 1));
}

#[tokio::test]
async fn everything_that_was_handed_over_is_there_for_the_next_daemon() {
    let mut terminal = Terminal::held("echo ready; sleep 1000", |_| {});
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("ready")).await;
    let offset = output.len() as u64;
    for (number, rows) in [b"one".as_slice(), b"two", b""].into_iter().enumerate() {
        terminal
            .commit(&TerminalCheckpoint {
                offset,
                snapshot: format!("screen {number}").into_bytes(),
                rows: rows.to_vec(),
                first_row: RowNumber(0),
                whole: false,
                end_row: RowNumber(number as u64 + 1),
                quiet: true,
            })
            .unwrap();
    }
    terminal.remember(Note::Identity, b"who it is");
    terminal.remember(Note::Lease, b"nobody");
    terminal.remember(Note::Lease, b"somebody");
    for generation in 2..5 {
        let recovered = terminal.restart();
        assert_eq!(recovered.attached.generation, generation);
        assert_eq!((recovered.attached.committed, recovered.gap()), (offset, None));
        let snapshots: Vec<_> =
            recovered.snapshots.iter().map(|one| (one.offset, one.bytes.as_slice())).collect();
        assert_eq!(snapshots, [(offset, b"screen 1".as_slice()), (offset, b"screen 2")]);
        let segment = |end_row, rows: &[u8]| HistorySegment {
            end_row: RowNumber(end_row),
            rows: rows.to_vec(),
        };
        assert_eq!(recovered.segments, [segment(1, b"one"), segment(2, b"two")]);
        assert_eq!(recovered.notes.get(Note::Identity), b"who it is");
        assert_eq!(recovered.notes.get(Note::Lease), b"somebody");
        assert_eq!(recovered.notes.get(Note::Terminal), b"");
    }
    terminal
        .commit(&TerminalCheckpoint {
            offset,
            snapshot: b"screen 3".to_vec(),
            rows: b"three".to_vec(),
            first_row: RowNumber(2),
            whole: false,
            end_row: RowNumber(3),
            quiet: true,
        })
        .unwrap();
    let recovered = terminal.restart();
    let rows: Vec<_> = recovered.segments.iter().map(|one| one.rows.as_slice()).collect();
    assert_eq!(rows, [b"three"], "rows that history has no more are not kept");
    assert_eq!(recovered.snapshots.last().unwrap().bytes, b"screen 3");
}

#[tokio::test]
async fn an_exit_is_kept_until_the_session_is_forgotten() {
    let mut terminal = Terminal::held("printf last; exit 7", |_| {});
    exit_of(&terminal).await;
    for _ in 0..3 {
        let recovered = terminal.restart();
        assert_eq!(recovered.exit(), Some(Exit::Code(7)));
        wait_for(&terminal, "last").await;
        assert_eq!(exit_of(&terminal).await, Exit::Code(7));
    }
}

#[tokio::test]
async fn an_exit_while_no_daemon_was_there_is_told_to_the_next() {
    let mut terminal = Terminal::held("echo ready; read -r word; exit 9", |_| {});
    wait_for(&terminal, "ready").await;
    let leader = find(terminal.as_held().leader());
    terminal.try_write(b"go\r", Stamp::default()).unwrap();
    terminal.leave();
    until("the program ends", || !is_there(&leader)).await;
    terminal.restart();
    assert_eq!(exit_of(&terminal).await, Exit::Code(9));
}

#[tokio::test]
async fn memory_is_given_back_when_it_is_quiet() {
    let terminal =
        Terminal::held("stty raw; head -c 700000 /dev/zero; echo ready; sleep 1000", |_| {});
    let mut output = Vec::new();
    let shim = terminal.as_held().shim();
    let shared = || {
        let status = std::fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    while !output.ends_with(b"ready\n") {
        terminal.read(output.len() as u64, &mut output).await.unwrap();
    }
    assert!(shared() > 600, "{} kB", shared());
    terminal
        .commit(&TerminalCheckpoint { quiet: true, ..checkpoint(output.len() as u64) })
        .unwrap();
    until("the memory is given back", || shared() < 50).await;
}
