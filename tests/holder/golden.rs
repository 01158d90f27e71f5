//! Version 1 of the protocol, byte for byte. The files were written by hand and never change, so
//! that daemons of every later version understand holders of the first.

use std::fs;
use std::path::PathBuf;

use termgate::holder::wire::from_holder::{
    Attached, Failed, FromHolder, Outcome, Process, Stage, Taken, Written,
};
use termgate::holder::wire::to_holder::{Commit, Input, Start, ToHolder, Unread};
use termgate::holder::wire::{Ended, FRAME_MAX, Note, Window};

const WRITE: [u8; 16] = [
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
];

/// Reads a file of hexadecimal bytes with comments.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = format!("tests/holder/golden/{name}.hex");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = fs::read_to_string(path).unwrap();
    let data = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let bytes = data.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn to_holder(name: &str, frame: ToHolder<'_>) {
    let bytes = golden(name);
    assert_eq!(ToHolder::decode(&bytes), Ok(Some(frame)), "{name}");
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(room[..length], bytes, "{name}");
}

fn from_holder(name: &str, frame: &FromHolder<'_>) {
    let bytes = golden(name);
    assert_eq!(FromHolder::decode(&bytes).as_ref(), Ok(&Some(frame.clone())), "{name}");
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(room[..length], bytes, "{name}");
}

#[test]
fn what_daemons_of_version_1_say_is_understood_for_ever() {
    let start = Start {
        window: Window { rows: 24, cols: 80 },
        ring_bytes: 1 << 20,
        unread: Unread::Overwrite,
        orphan_ttl_ms: 300_000,
        descriptors: 1_024,
    };
    let input = Input { sequence: 7, epoch: 258, answered: 65_536, write: WRITE, bytes: b"ls\r" };
    let commit = Commit {
        offset: 1 << 32,
        segment_bytes: 512,
        segments_dropped: 2,
        snapshot: true,
        segment: true,
        quiet: true,
    };
    to_holder("start", ToHolder::Start(start));
    to_holder("attach", ToHolder::Attach { version: 1 });
    to_holder("input", ToHolder::Input(input));
    to_holder("want_writable", ToHolder::WantWritable);
    to_holder("resize", ToHolder::Resize(Window { rows: 50, cols: 132 }));
    to_holder("commit", ToHolder::Commit(commit));
    to_holder("note_to_holder", ToHolder::Note(Note { slot: 2, bytes: b"hello" }));
    to_holder("end", ToHolder::End);
}

#[test]
fn what_holders_of_version_1_say_is_understood_for_ever() {
    let attached = Attached {
        version: 1,
        generation: 2,
        holder: Process { pid: 1_001, started: 10 },
        leader: Process { pid: 1_002, started: 11 },
        terminal: 5,
        window: Window { rows: 24, cols: 80 },
        ring_bytes: 1 << 20,
        notes: 3,
        head: 4_096,
        committed: 2_048,
        tail: 2_304,
        answered: 128,
        epoch: 9,
        ended: Some(Ended::Signal(15)),
        results: [Written { write: WRITE, bytes: 42 }].into_iter().collect(),
        segments: [1 << 20, 512].into_iter().collect(),
        snapshots: [2_048].into_iter().collect(),
    };
    let taken = |sequence, outcome| FromHolder::Taken(Taken { sequence, outcome });
    from_holder("attached", &FromHolder::Attached(Box::new(attached)));
    from_holder("failed", &FromHolder::Failed(Failed { stage: Stage::Program, errno: 2 }));
    from_holder("taken", &taken(7, Outcome::Bytes(3)));
    from_holder("taken_ended", &taken(8, Outcome::Ended));
    from_holder("taken_refused", &taken(9, Outcome::Refused));
    from_holder("writable", &FromHolder::Writable);
    from_holder("exited", &FromHolder::Exited { ended: Ended::Code(7), head: 4_096 });
    from_holder("note_to_daemon", &FromHolder::Note(Note { slot: 0, bytes: b"hi" }));
}
