//! Version 2 of the protocol, byte for byte. The files were written by hand from the document and, once
//! released, never change.

use std::fs;
use std::path::PathBuf;

use termgate::shim::wire::from_shim::{
    Attached, FromShim, ProcessIdentity, StartFailure, StartStage, WriteProgress,
};
use termgate::shim::wire::to_shim::{Commit, Start, ToShim, Unread};
use termgate::shim::wire::{FRAME_MAX, NoteFrame, ProgramEnd, Window};

const WRITE: [u8; 16] = [
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
];

/// Reads a file of hexadecimal bytes with comments.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = format!("tests/shim/golden/{name}.hex");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = fs::read_to_string(path).unwrap();
    let data = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let bytes = data.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn to_shim(name: &str, frame: ToShim<'_>) {
    let bytes = golden(name);
    assert_eq!(ToShim::decode(&bytes), Ok(Some(frame)), "{name}");
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(room[..length], bytes, "{name}");
}

fn from_shim(name: &str, frame: &FromShim<'_>) {
    let bytes = golden(name);
    assert_eq!(FromShim::decode(&bytes).as_ref(), Ok(&Some(frame.clone())), "{name}");
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(room[..length], bytes, "{name}");
}

#[test]
fn what_daemons_of_version_2_say_is_understood() {
    let start = Start {
        window: Window { rows: 24, cols: 80 },
        ring_bytes: 1 << 20,
        unread: Unread::Overwrite,
        orphan_ttl_ms: 300_000,
        descriptors: 1_024,
    };
    let commit = Commit {
        offset: 1 << 32,
        segment_bytes: 512,
        segments_dropped: 2,
        snapshot: true,
        segment: true,
        quiet: true,
    };
    to_shim("start", ToShim::Start(start));
    to_shim("attach", ToShim::Attach { version: 2 });
    to_shim("commit", ToShim::Commit(commit));
    to_shim("note_to_shim", ToShim::Note(NoteFrame { slot: 2, bytes: b"hello" }));
    to_shim("end", ToShim::End);
}

#[test]
fn what_shims_of_version_2_say_is_understood() {
    let attached = Attached {
        version: 2,
        generation: 2,
        shim: ProcessIdentity { pid: 1_001, started: 10 },
        leader: ProcessIdentity { pid: 1_002, started: 11 },
        terminal: 5,
        window: Window { rows: 24, cols: 80 },
        ring_bytes: 1 << 20,
        notes: 3,
        head: 4_096,
        committed: 2_048,
        tail: 2_304,
        answered: 128,
        epoch: 9,
        ended: Some(ProgramEnd::Signal(15)),
        results: [WriteProgress { write: WRITE, bytes: 42 }].into_iter().collect(),
        segments: [1 << 20, 512].into_iter().collect(),
        snapshots: [2_048].into_iter().collect(),
        typed: None,
    };
    from_shim("attached", &FromShim::Attached(Box::new(attached)));
    from_shim("failed", &FromShim::Failed(StartFailure { stage: StartStage::Program, errno: 2 }));
    from_shim("exited", &FromShim::Exited { ended: ProgramEnd::Code(7), head: 4_096 });
    from_shim("note_to_daemon", &FromShim::Note(NoteFrame { slot: 0, bytes: b"hi" }));
}
