//! Input that reaches the program once or not at all, and whoever may not write.

use std::time::Duration;

use termgate::core::ids::Epoch;
use termgate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use termgate::session::pty::processes::ProcessHandle;
use termgate::session::pty::signal::Signal;
use termgate::session::pty::{Pty, ReadOutput, Stamp};
use tokio::time::timeout;

use crate::harness::waiting::{soon, until};
use crate::shim::harness::{Terminal, read_until, wait_for, write_all};

fn named(number: u8) -> Stamp {
    Stamp { write: Some(WriteStamp([number; 16])), ..Stamp::default() }
}

fn of_epoch(epoch: u64) -> Stamp {
    Stamp { epoch: Some(Epoch(epoch)), ..Stamp::default() }
}

#[tokio::test]
async fn every_write_is_counted_for_the_next_daemon() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; sleep 1000", |_| {});
    wait_for(&terminal, "ready").await;
    assert_eq!(terminal.try_write(b"abc", named(1)).unwrap(), 3);
    assert_eq!(terminal.try_write(b"de", named(1)).unwrap(), 2);
    assert_eq!(terminal.try_write(b"f", named(2)).unwrap(), 1);
    assert_eq!(terminal.try_write(b"g", Stamp::default()).unwrap(), 1);
    let written = |number: u8, taken| FormerWrite {
        stamp: WriteStamp([number; 16]),
        own: None,
        taken,
        length: None,
        command: None,
    };
    assert_eq!(terminal.restart().writes(), [written(1, 5), written(2, 1)]);
}

#[tokio::test]
async fn a_write_that_is_too_long_for_the_terminal_is_counted_as_far_as_it_was_taken() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; sleep 1000", |_| {});
    wait_for(&terminal, "ready").await;
    let mut taken = 0;
    // Until nothing is taken for a while: not even the memory is.
    loop {
        match terminal.try_write(&[b'x'; 50_000], named(1)).unwrap() {
            0 if timeout(Duration::from_millis(200), terminal.writable()).await.is_err() => break,
            count => taken += count,
        }
    }
    assert!(terminal.unread().unwrap());
    assert_eq!(
        terminal.restart().writes(),
        [FormerWrite { stamp: WriteStamp([1; 16]), taken, own: None, length: None, command: None }]
    );
}

#[tokio::test]
async fn input_of_an_epoch_that_is_over_is_refused_also_by_the_next_daemon() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("ready")).await;
    assert_eq!(terminal.try_write(b"first", of_epoch(5)).unwrap(), 5);
    let recovered = terminal.restart();
    assert_eq!(recovered.attached.epoch, 5);
    let refused = terminal.try_write(b"late", of_epoch(4)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(terminal.try_write(b"answer", Stamp::default()).unwrap(), 6);
    assert_eq!(terminal.try_write(b"last", of_epoch(6)).unwrap(), 4);
    read_until(&terminal, &mut output, Some("last")).await;
    assert!(output.ends_with(b"firstanswerlast"), "{}", String::from_utf8_lossy(&output));
}

#[tokio::test]
async fn answers_that_were_given_are_known_to_the_next_daemon() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    terminal.try_write(b"x", Stamp { answered: 5, ..Stamp::default() }).unwrap();
    assert_eq!(terminal.restart().attached.answered, 5);
}

#[tokio::test]
async fn numbered_lines_arrive_once_and_in_order_whenever_the_daemon_is_killed() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("ready\n")).await;
    output.clear();
    let start = 6 + output.len() as u64;
    let writing = async {
        for number in 0..300_u32 {
            let line = format!("{number:06}\n");
            write_all(&terminal, line.as_bytes(), Stamp::default()).await;
            if number % 7 == 0 {
                terminal.restart();
            }
        }
        while output.len() < 300 * 7 {
            let offset = start + output.len() as u64;
            assert!(matches!(terminal.read(offset, &mut output).await, Ok(ReadOutput::Bytes(_))));
        }
    };
    soon("all lines to come back", writing).await;
    let expected: String = (0..300).map(|number| format!("{number:06}\n")).collect();
    assert_eq!(String::from_utf8(output).unwrap(), expected);
}

#[tokio::test]
async fn what_was_taken_arrives_even_if_the_shim_stood_still_and_the_daemon_was_killed() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let shim = ProcessHandle::open(terminal.as_held().shim()).unwrap();
    shim.signal(19).unwrap();
    for number in 0..20 {
        let text = format!("{number}.");
        assert_eq!(terminal.try_write(text.as_bytes(), named(1)).unwrap(), text.len());
    }
    assert!(terminal.is_input_on_its_way());
    terminal.leave();
    shim.signal(18).unwrap();
    let recovered = terminal.restart();
    assert_eq!(recovered.writes().first().map(|write| write.taken), Some(50));
    let expected: String = (0..20).map(|number| format!("{number}.")).collect();
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("19.")).await;
    assert!(String::from_utf8_lossy(&output).ends_with(&expected));
}

#[tokio::test]
async fn a_large_write_passes_a_terminal_that_is_read_slowly_once_and_in_order() {
    let line =
        "stty raw -echo; echo ready; while read -r -N 5000 part; do printf %s \"$part\"; done";
    let mut terminal = Terminal::held(line, |_| {});
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("ready\n")).await;
    let text: String = (0..10_000_u32).map(|number| format!("{number:05}")).collect();
    let start = output.len();
    let reading = async {
        while output.len() < start + text.len() {
            let offset = output.len() as u64;
            assert!(matches!(terminal.read(offset, &mut output).await, Ok(ReadOutput::Bytes(_))));
        }
    };
    let writing = write_all(&terminal, text.as_bytes(), named(1));
    soon("all of it to come back", async { tokio::join!(writing, reading) }).await;
    assert_eq!(String::from_utf8_lossy(&output[start..]), text);
    until("the terminal to have all", || !terminal.is_input_on_its_way()).await;
    assert_eq!(terminal.restart().writes().first().map(|write| write.taken), Some(text.len()));
}

#[tokio::test]
async fn what_a_blocked_terminal_has_not_taken_arrives_before_what_the_next_daemons_write() {
    let line = "stty raw -echo; trap 'exec cat' USR1; echo ready; sleep 1000 & wait";
    let mut terminal = Terminal::held(line, |_| {});
    let mut output = Vec::new();
    read_until(&terminal, &mut output, Some("ready\n")).await;
    let start = output.len();
    let text: String = (0..20_000_u32).map(|number| format!("{number:05}")).collect();
    let mut taken = 0;
    for _ in 0..3 {
        loop {
            match terminal.try_write(&text.as_bytes()[taken..], named(1)).unwrap() {
                0 if timeout(Duration::from_millis(200), terminal.writable()).await.is_err() => {
                    break;
                }
                count => taken += count,
            }
        }
        // Each daemon finds it blocked, and counts all that was taken.
        assert_eq!(terminal.restart().writes().first().map(|write| write.taken), Some(taken));
    }
    terminal.signal(Signal::User1).unwrap();
    let reading = async {
        while output.len() < start + taken + 3 {
            let offset = output.len() as u64;
            assert!(matches!(terminal.read(offset, &mut output).await, Ok(ReadOutput::Bytes(_))));
        }
    };
    let writing = write_all(&terminal, b"end", Stamp::default());
    soon("all of it to come back", async { tokio::join!(writing, reading) }).await;
    assert_eq!(String::from_utf8_lossy(&output[start..]), format!("{}end", &text[..taken]));
}
