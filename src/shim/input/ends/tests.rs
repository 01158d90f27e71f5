//! Both ends of an input memory, in every order in which two processors may see each other's doings.
//!
//! A record is one byte.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;

const BYTES: usize = 2;

/// Memory that loom watches.
#[derive(Debug)]
struct Watched {
    words: InputWords<AtomicU64>,
    places: [AtomicU64; BYTES],
}

impl InputMemory for Arc<Watched> {
    type Word = AtomicU64;

    fn words(&self) -> &InputWords<AtomicU64> {
        &self.words
    }

    fn bytes(&self) -> usize {
        BYTES
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        for (place, byte) in self.places[at..].iter().zip(bytes) {
            place.store(u64::from(*byte), Ordering::Relaxed);
        }
    }

    fn get(&self, at: usize, into: &mut [u8]) {
        for (place, byte) in self.places[at..].iter().zip(into) {
            *byte = place.load(Ordering::Relaxed) as u8;
        }
    }
}

type Sender = InputSender<Arc<Watched>>;
type Receiver = InputReceiver<Arc<Watched>>;

fn ends() -> (Sender, Receiver) {
    let number = || AtomicU64::new(0);
    let words = InputWords {
        gate: number(),
        taken: number(),
        blocked: number(),
        asleep: number(),
        asked: number(),
        answered: number(),
        waits: number(),
    };
    let memory = Arc::new(Watched { words, places: [number(), number()] });
    (
        InputSender::new(Arc::clone(&memory)),
        InputReceiver { memory, read: 0, taken: 0, answered: 0 },
    )
}

/// Tries every order in which one side is interrupted so often.
fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

/// A bell as the kernel has it: it is there until it is taken.
#[derive(Debug, Clone)]
struct Bell(Arc<Mutex<bool>>);

impl Bell {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(false)))
    }

    fn ring_if(&self, wake: Wake) {
        if wake == Wake::Ring {
            *self.0.lock().unwrap() = true;
        }
    }

    fn take(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Takes all there is.
fn take_all(receiver: &mut Receiver, waiting: usize, into: &mut Vec<u8>) {
    let from = into.len();
    into.resize(from + waiting, 0);
    receiver.read(&mut into[from..]);
}

#[test]
fn what_was_acknowledged_is_taken_once_and_nothing_else_when_the_memory_is_closed() {
    model(|| {
        let (mut sender, mut receiver) = ends();
        let sending = thread::spawn(move || {
            let sent = |byte: u8| sender.append([&[byte], &[]]).is_ok();
            [1, 2].map(sent)
        });
        let mut taken = Vec::new();
        let waiting = receiver.waiting().unwrap();
        take_all(&mut receiver, waiting, &mut taken);
        let rest = receiver.close(false).unwrap();
        take_all(&mut receiver, rest, &mut taken);
        let expected: &[u8] = match sending.join().unwrap() {
            [true, true] => &[1, 2],
            [true, false] => &[1],
            [false, false] => &[],
            [false, true] => panic!("it was closed before"),
        };
        assert_eq!(taken, expected);
    });
}

#[test]
fn a_place_is_used_again_once_it_was_taken() {
    model(|| {
        let (mut sender, mut receiver) = ends();
        let sending = thread::spawn(move || {
            let mut sent = 0;
            for byte in 1..=3_u8 {
                if sender.waiting().unwrap() < BYTES {
                    let _ = sender.append([&[byte], &[]]).unwrap();
                    sent = byte;
                } else {
                    break;
                }
            }
            sent
        });
        let mut taken = Vec::new();
        for _ in 0..2 {
            let waiting = receiver.waiting().unwrap();
            take_all(&mut receiver, waiting, &mut taken);
            let _ = receiver.publish(false);
        }
        let sent = sending.join().unwrap();
        let waiting = receiver.waiting().unwrap();
        take_all(&mut receiver, waiting, &mut taken);
        assert_eq!(taken, (1..=sent).collect::<Vec<_>>());
    });
}

/// Whether the shim, asleep until its bell rings, has missed nothing in any order. `tell` puts something in.
fn misses_nothing(
    tell: impl Fn(&mut Sender) -> Wake + Send + Sync + Copy + 'static,
    is_there: impl Fn(&Receiver) -> bool + Send + Sync + Copy + 'static,
) {
    model(move || {
        let (mut sender, receiver) = ends();
        let bell = Bell::new();
        let telling = thread::spawn({
            let bell = bell.clone();
            move || bell.ring_if(tell(&mut sender))
        });
        receiver.sleep();
        let before = is_there(&receiver);
        telling.join().unwrap();
        assert!(before || bell.take(), "it sleeps for ever");
        receiver.wake();
        assert!(is_there(&receiver), "what rang is there");
    });
}

#[test]
fn a_shim_that_sleeps_misses_no_input_and_no_question() {
    misses_nothing(
        |sender| sender.append([&[1], &[]]).unwrap(),
        |receiver| receiver.waiting() != Ok(0),
    );
    misses_nothing(|sender| sender.ask().1, |receiver| receiver.question().is_some());
}

#[test]
#[should_panic(expected = "it sleeps for ever")]
fn a_daemon_that_looked_before_it_told_would_be_slept_through() {
    let tell = |sender: &mut Sender| {
        let wake = sender.woken();
        let _ = sender.append([&[1], &[]]).unwrap();
        wake
    };
    misses_nothing(tell, |receiver| receiver.waiting() != Ok(0));
}

#[test]
fn a_daemon_that_waits_for_room_is_woken() {
    model(|| {
        let (mut sender, mut receiver) = ends();
        for byte in 1..=2 {
            let _ = sender.append([&[byte], &[]]).unwrap();
        }
        let bell = Bell::new();
        let taking = thread::spawn({
            let bell = bell.clone();
            move || {
                receiver.read(&mut [0; 2]);
                bell.ring_if(receiver.publish(true));
                bell.ring_if(receiver.publish(false));
            }
        });
        let has_room = |sender: &Sender| !sender.is_blocked() && sender.waiting() == Ok(0);
        sender.wait_for_room();
        let before = has_room(&sender);
        taking.join().unwrap();
        assert!(before || bell.take(), "it sleeps for ever");
        assert!(has_room(&sender));
    });
}

#[test]
fn whoever_sees_what_was_taken_sees_that_the_terminal_was_blocked_before() {
    model(|| {
        let (mut sender, mut receiver) = ends();
        let _ = sender.append([&[1], &[]]).unwrap();
        let taking = thread::spawn(move || {
            receiver.read(&mut [0]);
            let _ = receiver.publish(true);
        });
        if sender.waiting() == Ok(0) {
            assert!(sender.is_blocked());
        }
        taking.join().unwrap();
    });
}

#[test]
fn an_answer_comes_after_all_that_was_done_for_the_question() {
    model(|| {
        let (mut sender, mut receiver) = ends();
        let (question, _) = sender.ask();
        let done = Arc::new(AtomicU64::new(0));
        let answering = thread::spawn({
            let done = Arc::clone(&done);
            move || {
                let question = receiver.question().unwrap();
                done.store(1, Ordering::Relaxed);
                receiver.answer(AnsweredQuestion { question, all_is_there: true });
            }
        });
        if sender.answered().question == question {
            assert_eq!(done.load(Ordering::Relaxed), 1);
        }
        answering.join().unwrap();
    });
}
