//! Input reaches a terminal once and in its order, whichever daemon put it in.

use std::io::Read;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::*;
use crate::shim::input::ends::{AnsweredQuestion, InputSender};

/// A pipe that takes as much as a terminal would, and its other end.
#[derive(Debug)]
struct Pipe {
    reading: std::io::PipeReader,
    writing: std::io::PipeWriter,
}

impl Pipe {
    fn new() -> Self {
        let (reading, writing) = std::io::pipe().unwrap();
        fcntl(&writing, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        fcntl(&writing, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
        fcntl(&reading, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        Self { reading, writing }
    }

    /// Fills it, so that it takes nothing.
    fn fill(&self) {
        while write(&self.writing, &[b'.'; 4096]).is_ok() {}
    }

    fn read(&mut self) -> String {
        let mut room = [0; 16_384];
        let mut read = Vec::new();
        while let Ok(count @ 1..) = self.reading.read(&mut room) {
            read.extend_from_slice(&room[..count]);
        }
        String::from_utf8(read).unwrap().replace('.', "")
    }
}

type Sender = InputSender<InputMap>;

fn begin(relay: &mut InputRelay) -> Sender {
    InputSender::new(InputMap::open(relay.begin().unwrap()).unwrap())
}

fn append(sender: &mut Sender, epoch: u64, write: u8, bytes: &str) -> Result<(), InputClosed> {
    let length = bytes.len() as u32;
    let header = InputHeader { length, epoch, answered: 0, write: [write; 16] };
    sender.append([&header.encode(), bytes.as_bytes()]).map(|_| ())
}

fn counted(relay: &InputRelay) -> Vec<(u8, u64)> {
    let results = relay.log().results();
    results.as_slice().iter().map(|one| (one.write[0], one.bytes)).collect()
}

#[test]
fn what_is_put_in_is_written_once_and_counted() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    append(&mut sender, 1, 7, "one ").unwrap();
    append(&mut sender, 1, 8, "two ").unwrap();
    for _ in 0..2 {
        assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Nothing);
    }
    assert_eq!(pipe.read(), "one two ");
    assert_eq!((sender.waiting(), counted(&relay)), (Ok(0), vec![(7, 4), (8, 4)]));
}

#[test]
fn records_wrap_around_at_the_end_of_the_memory() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    for number in 0..1_000 {
        let text = format!("<{number}>").repeat(40);
        append(&mut sender, 1, 1, &text).unwrap();
        relay.relay(pipe.writing.as_fd());
        assert_eq!(pipe.read(), text);
    }
}

#[test]
fn a_terminal_that_takes_nothing_is_told_and_the_daemon_woken_once_it_does() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    pipe.fill();
    append(&mut sender, 1, 7, "one").unwrap();
    assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Nothing);
    assert!(relay.is_blocked() && sender.is_blocked() && relay.may_sleep());
    assert_eq!(sender.waiting(), Ok(0));
    sender.wait_for_room();
    assert_eq!(pipe.read(), "");
    assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Ring);
    assert!(!relay.is_blocked() && !sender.is_blocked());
    assert_eq!(pipe.read(), "one");
}

#[test]
fn what_a_former_daemon_put_in_comes_before_what_the_next_one_puts_in() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut former = begin(&mut relay);
    pipe.fill();
    append(&mut former, 1, 7, "one ").unwrap();
    relay.relay(pipe.writing.as_fd());
    append(&mut former, 1, 7, "two ").unwrap();
    let mut next = begin(&mut relay);
    // All of it is counted by now, and the next one waits.
    assert_eq!(counted(&relay), [(7, 8)]);
    assert!(next.is_blocked());
    assert_eq!(append(&mut former, 1, 7, "late "), Err(InputClosed::Closed));
    append(&mut next, 2, 8, "three").unwrap();
    pipe.read();
    relay.relay(pipe.writing.as_fd());
    assert_eq!(pipe.read(), "one two three");
    assert_eq!(counted(&relay), [(7, 8), (8, 5)]);
}

#[test]
fn what_was_put_in_is_written_without_a_daemon() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    append(&mut sender, 1, 7, "one").unwrap();
    relay.close();
    assert_eq!(append(&mut sender, 1, 7, "late"), Err(InputClosed::Closed));
    relay.relay(pipe.writing.as_fd());
    assert_eq!(pipe.read(), "one");
}

#[test]
fn input_of_an_epoch_that_is_over_is_not_written() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    for (epoch, text) in [(5, "five "), (4, "four "), (0, "none "), (6, "six")] {
        append(&mut sender, epoch, 7, text).unwrap();
    }
    relay.relay(pipe.writing.as_fd());
    assert_eq!(pipe.read(), "five none six");
    assert_eq!((relay.log().epoch(), counted(&relay)), (6, vec![(7, 13)]));
}

#[test]
fn a_program_that_has_ended_takes_nothing_from_any_daemon() {
    let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let mut sender = begin(&mut relay);
    append(&mut sender, 1, 7, "late").unwrap();
    sender.wait_for_room();
    assert_eq!((relay.end(), sender.waiting()), (Relayed::Ring, Ok(0)));
    assert_eq!(append(&mut sender, 1, 7, "late"), Err(InputClosed::Ended));
    assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Nothing);
    assert!(relay.may_sleep());
    let mut next = begin(&mut relay);
    assert_eq!(append(&mut next, 1, 7, "late"), Err(InputClosed::Ended));
    assert_eq!((pipe.read().as_str(), counted(&relay)), ("", Vec::new()));
}

#[test]
fn a_memory_that_holds_no_records_is_closed() {
    use std::os::unix::fs::FileExt;

    let record =
        |length: u32| InputHeader { length, epoch: 0, answered: 0, write: [0; 16] }.encode();
    for (gate, header) in [
        (u64::MAX >> 2, record(1)),
        (32_769, record(1)),
        (40 + 8_193, record(8_193)),
        (41, record(2)),
        (41, record(u32::MAX)),
        (39, record(0)),
        (82, record(1)),
    ] {
        let (mut relay, mut pipe) = (InputRelay::new().unwrap(), Pipe::new());
        let file = File::from(relay.begin().unwrap());
        file.write_all_at(&[b'.'; 32_768], 4096).unwrap();
        file.write_all_at(&header, 4096).unwrap();
        file.write_all_at(&gate.to_le_bytes(), 64).unwrap();
        assert!(!relay.may_sleep(), "{gate}");
        assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Damaged, "{gate}");
        assert!(relay.may_sleep());
        let mut next = begin(&mut relay);
        append(&mut next, 1, 7, "next").unwrap();
        relay.relay(pipe.writing.as_fd());
        assert!(pipe.read().ends_with("next"), "{gate}");
    }
}

#[test]
fn a_gate_that_goes_back_is_damage() {
    use std::os::unix::fs::FileExt;

    let (mut relay, pipe) = (InputRelay::new().unwrap(), Pipe::new());
    let file = File::from(relay.begin().unwrap());
    let mut sender = InputSender::new(InputMap::open(&file).unwrap());
    append(&mut sender, 1, 7, "one").unwrap();
    relay.relay(pipe.writing.as_fd());
    file.write_all_at(&7_u64.to_le_bytes(), 64).unwrap();
    assert_eq!(relay.relay(pipe.writing.as_fd()), Relayed::Damaged);
}

#[test]
fn a_question_keeps_the_shim_awake_until_it_is_answered() {
    let mut relay = InputRelay::new().unwrap();
    let mut sender = begin(&mut relay);
    assert!(relay.may_sleep());
    let (question, wake) = sender.ask();
    assert_eq!((question, wake, relay.may_sleep()), (1, Wake::Ring, false));
    assert_eq!(relay.question(), Some(1));
    let answered = AnsweredQuestion { question: 1, all_is_there: false };
    relay.answer(answered);
    assert_eq!((sender.answered(), relay.question()), (answered, None));
}
