//! Frames come back as they were written, and nothing that comes from outside does harm.

use proptest::prelude::*;

use super::from_shim::{
    Attached, FromShim, ProcessIdentity, StartFailure, StartStage, WriteProgress,
};
use super::to_shim::{Commit, Start, ToShim, Unread};
use super::*;
use crate::shim::bounded::Bounded;

fn sent_to_shim(frame: ToShim<'_>) {
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(ToShim::decode(&room[..length]), Ok(Some(frame)));
    for cut in 0..length {
        let short = ToShim::decode(&room[..cut]);
        assert!(!matches!(short, Ok(Some(_))), "{cut} of {length} bytes are {short:?}");
    }
}

fn sent_from_shim(frame: &FromShim<'_>) {
    let mut room = [0; FRAME_MAX];
    let length = frame.encode(&mut room);
    assert_eq!(FromShim::decode(&room[..length]).as_ref(), Ok(&Some(frame.clone())));
    let before_typed = match frame {
        FromShim::Attached(attached) => attached.typed.map(|_| length - 8),
        FromShim::Failed(_) | FromShim::Exited { .. } | FromShim::Note(_) => None,
    };
    // Without its last field it is the frame of an older shim.
    for cut in (0..length).filter(|cut| Some(*cut) != before_typed) {
        let short = FromShim::decode(&room[..cut]);
        assert!(!matches!(short, Ok(Some(_))), "{cut} of {length} bytes are {short:?}");
    }
}

fn ended() -> impl Strategy<Value = ProgramEnd> {
    let code = any::<i32>().prop_map(ProgramEnd::Code);
    prop_oneof![code, any::<i32>().prop_map(ProgramEnd::Signal), Just(ProgramEnd::Unknown)]
}

fn window() -> impl Strategy<Value = Window> {
    any::<(u16, u16)>().prop_map(|(rows, cols)| Window { rows, cols })
}

fn attached() -> impl Strategy<Value = Attached> {
    let results = prop::collection::vec(any::<(WriteName, u64)>(), 0..=RESULTS_MAX);
    let segments = prop::collection::vec(any::<u64>(), 0..=SEGMENTS_MAX);
    let snapshots = prop::collection::vec(any::<u64>(), 0..=SNAPSHOTS_MAX);
    let numbers = any::<([u64; 8], [u32; 2], [i32; 2], u16, u16)>();
    let lists = (results, segments, snapshots);
    let ends = (prop::option::of(ended()), prop::option::of(any::<u64>()));
    (numbers, lists, ends, window()).prop_map(
        |(
            (long, middle, pids, version, notes),
            (results, segments, snapshots),
            (ended, typed),
            window,
        )| {
            let process = |index: usize| ProcessIdentity { pid: pids[index], started: long[index] };
            let result = |(write, bytes)| WriteProgress { write, bytes };
            Attached {
                version,
                generation: long[2],
                shim: process(0),
                leader: process(1),
                terminal: middle[0],
                window,
                ring_bytes: middle[1],
                notes,
                head: long[3],
                committed: long[4],
                tail: long[5],
                answered: long[6],
                epoch: long[7],
                ended,
                results: results.into_iter().map(result).collect(),
                segments: segments.into_iter().collect(),
                snapshots: snapshots.into_iter().collect::<Bounded<_, _>>(),
                typed,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_start_comes_back_as_it_was_written(
        window in window(),
        (ring_bytes, orphan_ttl_ms, descriptors) in any::<(u32, u64, u64)>(),
        overwrite: bool,
    ) {
        let unread = if overwrite { Unread::Overwrite } else { Unread::Block };
        let start = Start { window, ring_bytes, unread, orphan_ttl_ms, descriptors };
        sent_to_shim(ToShim::Start(start));
    }

    #[test]
    fn a_commit_comes_back_as_it_was_written(
        (offset, segment_bytes, segments_dropped) in any::<(u64, u64, u16)>(),
        (snapshot, segment, quiet) in any::<(bool, bool, bool)>(),
    ) {
        let commit =
            Commit { offset, segment_bytes, segments_dropped, snapshot, segment, quiet };
        sent_to_shim(ToShim::Commit(commit));
    }

    #[test]
    fn a_note_comes_back_as_it_was_written(
        slot in 0..NOTES as u16,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        sent_to_shim(ToShim::Note(NoteFrame { slot, bytes: &bytes }));
        sent_from_shim(&FromShim::Note(NoteFrame { slot, bytes: &bytes }));
    }

    #[test]
    fn an_attachment_comes_back_as_it_was_written(attached in attached()) {
        sent_from_shim(&FromShim::Attached(Box::new(attached)));
    }

    #[test]
    fn an_exit_comes_back_as_it_was_written(ended in ended(), head: u64) {
        sent_from_shim(&FromShim::Exited { ended, head });
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ToShim::decode(&bytes);
        let _ = FromShim::decode(&bytes);
    }

    #[test]
    fn any_fields_of_a_known_kind_are_read_without_harm(
        kind in prop_oneof![1_u16..=8, 65_u16..=70],
        fields in prop::collection::vec(prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..4_000),
    ) {
        let mut frame = kind.to_le_bytes().to_vec();
        frame.extend([0, 0]);
        frame.extend(fields);
        let _ = ToShim::decode(&frame);
        let _ = FromShim::decode(&frame);
    }
}

#[test]
fn frames_without_variety_come_back_as_they_were_written() {
    sent_to_shim(ToShim::Attach { version: VERSION });
    sent_to_shim(ToShim::End);
    for stage in [StartStage::Shim, StartStage::Terminal, StartStage::Program, StartStage::Sandbox]
    {
        sent_from_shim(&FromShim::Failed(StartFailure { stage, errno: 2 }));
    }
}

#[test]
fn a_kind_that_is_not_known_is_skipped() {
    assert_eq!(ToShim::decode(&[99, 0, 0, 0, 1, 2, 3]), Ok(None));
    assert_eq!(FromShim::decode(&[99, 0, 0, 0, 1, 2, 3]), Ok(None));
}

#[test]
fn what_follows_the_known_fields_is_ignored() {
    let mut room = [0; FRAME_MAX];
    let attach = ToShim::Attach { version: VERSION };
    let length = attach.encode(&mut room);
    assert_eq!(ToShim::decode(&room[..length + 10]), Ok(Some(attach)));
}

#[test]
fn a_stranger_is_recognised_by_its_first_frame() {
    let mut room = [0; FRAME_MAX];
    let length = ToShim::Attach { version: VERSION }.encode(&mut room);
    room[4] ^= 1;
    assert_eq!(ToShim::decode(&room[..length]), Err(Malformed::Magic));
}

#[test]
fn notes_beyond_their_bounds_are_refused() {
    let mut room = [0; FRAME_MAX];
    ToShim::Note(NoteFrame { slot: 0, bytes: &[0; 10] }).encode(&mut room);
    room[4..6].copy_from_slice(&(NOTES as u16).to_le_bytes());
    assert_eq!(ToShim::decode(&room), Err(Malformed::Value));
    room[4..8].copy_from_slice(&[0, 0, 0xff, 0xff]);
    assert_eq!(ToShim::decode(&room), Err(Malformed::Value));
}
