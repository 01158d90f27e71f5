//! Both ends of a ring, in every order in which two processors may see each other's doings.
//!
//! The ring holds two bytes. The one at an offset is the offset and one more.

use std::convert::Infallible;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;

const BYTES: usize = 2;

/// Memory that loom watches.
#[derive(Debug)]
struct Watched {
    marks: RingMarks<AtomicU64>,
    places: [AtomicU64; BYTES],
}

impl RingMemory for Arc<Watched> {
    type Word = AtomicU64;

    fn marks(&self) -> &RingMarks<AtomicU64> {
        &self.marks
    }

    fn bytes(&self) -> usize {
        BYTES
    }

    fn append(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        let places = self.places[at..][..count].iter();
        into.extend(places.map(|place| place.load(Ordering::Relaxed) as u8));
    }
}

fn ends() -> (WritingEnd<Arc<Watched>>, ReadingEnd<Arc<Watched>>) {
    let number = || AtomicU64::new(0);
    let marks = RingMarks::new(number(), number());
    let memory = Arc::new(Watched { marks, places: [number(), number()] });
    (WritingEnd::new(Arc::clone(&memory)), ReadingEnd::new(memory))
}

/// Writes the next byte.
fn write(end: &mut WritingEnd<Arc<Watched>>) {
    let byte = end.head() + 1;
    let put = |memory: &Arc<Watched>, at: usize, most: usize| {
        assert!(most > 0, "there is room");
        memory.places[at].store(byte, Ordering::Relaxed);
        Ok::<_, Infallible>(1)
    };
    end.fill(1, put).unwrap();
}

/// What is rung or said to somebody, as the kernel does it: it is there until it is taken.
#[derive(Debug)]
struct Post(Mutex<Option<u64>>);

impl Post {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }

    fn send(&self, what: u64) {
        *self.0.lock().unwrap() = Some(what);
    }

    fn take(&self) -> Option<u64> {
        self.0.lock().unwrap().take()
    }
}

#[test]
fn what_is_copied_is_what_was_written_also_while_it_is_overwritten() {
    loom::model(|| {
        let (mut writer, reader) = ends();
        let writing = thread::spawn(move || {
            write(&mut writer);
            write(&mut writer);
            writer.make_room(1);
            write(&mut writer);
        });
        for offset in [0, 1] {
            let mut copied = Vec::new();
            let count = reader.copy(offset, BYTES, &mut copied).unwrap_or(0);
            let expected: Vec<u8> = (0..count as u8).map(|at| offset as u8 + at + 1).collect();
            assert_eq!(copied, expected, "from offset {offset}");
        }
        writing.join().unwrap();
        let mut copied = Vec::new();
        assert_eq!(reader.copy(0, BYTES, &mut copied), Err(RingError::NotThere));
        assert_eq!((reader.copy(1, BYTES, &mut copied), copied), (Ok(2), vec![2, 3]));
    });
}

/// Reads all there is, and each time that the bell rang again; then it sleeps until it rings.
fn read_until_asleep(reader: &ReadingEnd<Arc<Watched>>, bell: &Post, read: &mut Vec<u8>) {
    while reader.copy(read.len() as u64, BYTES, read) != Ok(0) || bell.take().is_some() {}
}

/// Whether a reader that sleeps until the bell rings has read all there is when it sleeps for good, in every
/// order; `publish` writes a byte and rings.
fn misses_nothing(
    publish: impl Fn(&mut WritingEnd<Arc<Watched>>, &Post) + Send + Copy + Sync + 'static,
) {
    loom::model(move || {
        let (mut writer, reader) = ends();
        let bell = Post::new();
        let writing = thread::spawn({
            let bell = Arc::clone(&bell);
            move || (0..BYTES).for_each(|_| publish(&mut writer, &bell))
        });
        let mut read = Vec::new();
        read_until_asleep(&reader, &bell, &mut read);
        writing.join().unwrap();
        // Who sleeps is woken by a bell that has rung, and by nothing else.
        if bell.take().is_some() {
            read_until_asleep(&reader, &bell, &mut read);
        }
        assert_eq!(read, [1, 2], "it sleeps for ever");
    });
}

#[test]
fn whoever_sleeps_until_the_bell_rings_misses_nothing() {
    misses_nothing(|writer, bell| {
        write(writer);
        bell.send(1);
    });
}

#[test]
#[should_panic(expected = "it sleeps for ever")]
fn a_bell_that_rang_before_the_head_was_told_would_be_slept_through() {
    misses_nothing(|writer, bell| {
        bell.send(1);
        write(writer);
    });
}

#[test]
fn nothing_is_overwritten_that_was_not_committed() {
    loom::model(|| {
        let (mut writer, reader) = ends();
        let commits = Post::new();
        let writing = thread::spawn({
            let commits = Arc::clone(&commits);
            move || {
                for _ in 0..4 {
                    if let Some(committed) = commits.take() {
                        writer.release(committed);
                    }
                    if writer.room() > 0 {
                        write(&mut writer);
                    }
                }
            }
        });
        let mut read = Vec::new();
        for _ in 0..2 {
            let offset = read.len() as u64;
            let count = reader.copy(offset, BYTES, &mut read).expect("it is there until committed");
            // What was read is read again by the next daemon until it was committed.
            assert_eq!(reader.copy(offset, count, &mut Vec::new()), Ok(count));
            commits.send(read.len() as u64);
        }
        writing.join().unwrap();
        let expected: Vec<u8> = (1..=read.len() as u8).collect();
        assert_eq!(read, expected);
    });
}
