//! What was handed over is found again, and no more of it is kept than history has.

use super::*;

fn checkpoint(rows: &[u8], first_row: u64, end_row: u64) -> TerminalCheckpoint {
    TerminalCheckpoint {
        offset: 10,
        snapshot: b"screen".to_vec(),
        rows: rows.to_vec(),
        first_row: RowNumber(first_row),
        whole: false,
        end_row: RowNumber(end_row),
        quiet: false,
    }
}

fn session() -> SessionId {
    SessionId::from_random(uuid::Uuid::from_u128(1))
}

fn read_segment(file: &File, bytes: u64, most: usize) -> io::Result<Vec<HistorySegment>> {
    let content = read(file, 0, bytes.min(file.metadata()?.len()))?;
    read_records(&content, most)
}

fn found(file: &File, bytes: u64) -> Vec<(u64, Vec<u8>)> {
    let segments = read_segment(file, bytes, ROWS_BYTES_MAX).unwrap();
    segments.into_iter().map(|segment| (segment.end_row.0, segment.rows)).collect()
}

/// Bytes that take as much room packed.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn rows_of_several_checkpoints_share_a_segment() {
    let mut store = Store::default();
    let first = store.hand_over(&checkpoint(b"one", 0, 1), Hurry::Unhurried).unwrap();
    let second = store.hand_over(&checkpoint(b"two", 0, 2), Hurry::Unhurried).unwrap();
    assert!(first.commit.segment && !second.commit.segment);
    let expected = [(1, b"one".to_vec()), (2, b"two".to_vec())];
    assert_eq!(found(&first.segment.unwrap(), second.commit.segment_bytes), expected);
}

#[test]
fn what_was_written_after_the_last_commit_does_not_count() {
    let mut store = Store::default();
    let first = store.hand_over(&checkpoint(b"one", 0, 1), Hurry::Unhurried).unwrap();
    store.hand_over(&checkpoint(b"two", 0, 2), Hurry::Unhurried).unwrap();
    let segment = first.segment.unwrap();
    assert_eq!(found(&segment, first.commit.segment_bytes), [(1, b"one".to_vec())]);
}

#[test]
fn a_snapshot_is_found_as_it_was_and_cannot_change() {
    let handover = Store::default().hand_over(&checkpoint(b"", 0, 0), Hurry::Unhurried).unwrap();
    let snapshot = handover.snapshot.unwrap();
    assert!(snapshot.write_all_at(b"x", 0).is_err());
    assert_eq!(read_snapshot(session(), &snapshot).unwrap(), b"screen");
    assert!(handover.segment.is_none());
}

#[test]
fn a_segment_of_which_history_has_nothing_left_is_dropped() {
    let mut store = Store::default();
    let long = noise(SEGMENT_BYTES as usize);
    store.hand_over(&checkpoint(&long, 0, 10), Hurry::Unhurried).unwrap();
    let second = store.hand_over(&checkpoint(&long, 0, 20), Hurry::Unhurried).unwrap();
    assert!(second.commit.segment);
    assert_eq!(
        store.hand_over(&checkpoint(b"", 9, 20), Hurry::Unhurried).unwrap().commit.segments_dropped,
        0
    );
    let third = store.hand_over(&checkpoint(b"new", 10, 30), Hurry::Unhurried).unwrap();
    assert_eq!((third.commit.segments_dropped, third.commit.segment), (1, true));
}

#[test]
fn a_cleared_history_leaves_no_segment_and_the_next_rows_begin_one() {
    let mut store = Store::default();
    store.hand_over(&checkpoint(b"one", 0, 5), Hurry::Unhurried).unwrap();
    let cleared = store.hand_over(&checkpoint(b"", 5, 5), Hurry::Unhurried).unwrap();
    assert_eq!((cleared.commit.segments_dropped, cleared.commit.segment_bytes), (1, 0));
    let next = store.hand_over(&checkpoint(b"two", 5, 6), Hurry::Unhurried).unwrap();
    assert_eq!(found(&next.segment.unwrap(), next.commit.segment_bytes), [(6, b"two".to_vec())]);
}

#[test]
fn there_are_never_more_segments_than_a_shim_keeps() {
    let mut store = Store::default();
    let long = noise(SEGMENT_BYTES as usize);
    let mut kept = 0;
    for number in 1..=SEGMENTS_MAX as u64 + 3 {
        let commit =
            store.hand_over(&checkpoint(&long, 0, number), Hurry::Unhurried).unwrap().commit;
        kept = kept + usize::from(commit.segment) - usize::from(commit.segments_dropped);
        assert!(kept <= SEGMENTS_MAX);
    }
    assert_eq!(kept, SEGMENTS_MAX);
}

#[test]
fn nothing_is_added_to_a_segment_that_was_found() {
    let mut store = Store::behind([Extent::found(RowNumber(5), 100, 0)].into_iter());
    let next = store.hand_over(&checkpoint(b"one", 0, 6), Hurry::Unhurried).unwrap();
    assert_eq!((next.commit.segment, next.commit.segments_dropped), (true, 0));
    let trimmed = store.hand_over(&checkpoint(b"", 5, 6), Hurry::Unhurried).unwrap();
    assert_eq!(trimmed.commit.segments_dropped, 1);
}

#[test]
fn a_segment_that_cannot_be_read_costs_the_history_up_to_it() {
    let session = session();
    let mut store = Store::default();
    let mut found = FoundSegments::default();
    let garbage = memory::create(c"test", 0).unwrap();
    garbage.write_all_at(&[9; 30], 0).unwrap();
    for (number, damaged) in [(1, false), (2, true), (3, false)] {
        let long = noise(SEGMENT_BYTES as usize);
        let handover = store.hand_over(&checkpoint(&long, 0, number), Hurry::Unhurried).unwrap();
        let file = handover.segment.expect("each fills one");
        let bytes = handover.commit.segment_bytes;
        match damaged {
            true => found.read(session, garbage.try_clone().unwrap().into(), 30).unwrap(),
            false => found.read(session, file.into(), bytes).unwrap(),
        }
    }
    let rows: Vec<RowNumber> = found.segments.iter().map(|one| one.end_row).collect();
    assert_eq!((found.extents.len(), rows, found.damaged), (3, vec![RowNumber(3)], true));
}

#[test]
fn what_no_daemon_wrote_is_refused() {
    let file = memory::create(c"test", 0).unwrap();
    file.write_all_at(&[9; 30], 0).unwrap();
    let refused = read_segment(&file, 30, ROWS_BYTES_MAX).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_file_that_says_it_is_larger_than_it_is_takes_no_memory_and_is_refused() {
    for bytes in [5_000, SNAPSHOT_MAX + 1, 1 << 46] {
        let empty = memory::create(c"nothing", bytes).unwrap();
        let nothing = read_snapshot(session(), &empty).unwrap();
        assert_eq!(nothing, b"", "{bytes}");
        let refused = read_segment(&empty, bytes, ROWS_BYTES_MAX).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{bytes}");
    }
}

#[test]
fn one_file_that_is_handed_over_again_and_again_is_not_read_as_often() {
    let rows = vec![0; ROWS_BYTES_MAX / 4];
    let file = memory::create(c"test", 0).unwrap();
    let record = record(&rows, RowNumber(1), Hurry::Unhurried).unwrap();
    drop(rows);
    file.write_all_at(&record, 0).unwrap();
    let mut found = FoundSegments::default();
    for (time, damaged) in [(1, false), (2, false), (3, false), (4, false), (5, true), (6, true)] {
        let file = file.try_clone().unwrap().into();
        found.read(session(), file, record.len() as u64).unwrap();
        // The memory of a test has an end as well.
        found.segments.clear();
        assert_eq!((found.extents.len(), found.damaged), (time, damaged));
    }
}

#[test]
fn rows_that_are_not_as_long_as_they_say_are_refused() {
    for length in [0, 99, 101, u32::MAX] {
        let mut record = record(&[b'x'; 100], RowNumber(1), Hurry::Unhurried).unwrap();
        record[12..16].copy_from_slice(&length.to_le_bytes());
        let file = memory::create(c"test", 0).unwrap();
        file.write_all_at(&record, 0).unwrap();
        let error = read_segment(&file, record.len() as u64, 100).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}");
    }
}

#[test]
fn a_row_that_no_history_reaches_is_not_believed() {
    let of_row = |row| {
        let file = memory::create(c"test", 0).unwrap();
        file.write_all_at(&record(b"rows", RowNumber(row), Hurry::Unhurried).unwrap(), 0).unwrap();
        file
    };
    let bytes = record(b"rows", RowNumber(0), Hurry::Unhurried).unwrap().len() as u64;
    assert_eq!(found(&of_row(NUMBER_MAX), bytes).len(), 1);
    let refused = read_segment(&of_row(NUMBER_MAX + 1), bytes, 4).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn rows_that_a_program_waits_for_are_packed_once_most_are_of_that_kind() {
    let text = "a row that says what many rows say\n".repeat(1_000);
    let of = |rows: &str, first, end| checkpoint(rows.as_bytes(), first, end);
    let mut store = Store::default();
    let packed = store.hand_over(&of(&text, 0, 1), Hurry::Unhurried).unwrap();
    assert!(packed.commit.segment_bytes < text.len() as u64 / 10);
    assert!(!store.is_loose());
    store.hand_over(&of(&text, 0, 2), Hurry::Hurried).unwrap();
    assert!(!store.is_loose(), "as many are packed");
    let both = store.hand_over(&of(&text, 0, 3), Hurry::Hurried).unwrap();
    assert!(both.commit.segment_bytes > 2 * text.len() as u64);
    assert!(store.is_loose());
    let bytes = || text.clone().into_bytes();
    let expected = [(1, bytes()), (2, bytes()), (3, bytes())];
    assert_eq!(found(&packed.segment.unwrap(), both.commit.segment_bytes), expected);

    let all = TerminalCheckpoint { whole: true, ..of(&text, 0, 3) };
    let again = store.hand_over(&all, Hurry::Unhurried).unwrap();
    assert_eq!(again.commit.segments_dropped, 1);
    assert!(again.commit.segment_bytes < text.len() as u64 / 10);
    assert!(!store.is_loose());
}

#[test]
fn rows_of_a_long_history_are_packed_in_any_case() {
    let mut store = Store::default();
    let long = noise(SEGMENT_BYTES as usize);
    for number in 1..=HURRIED_MAX as u64 {
        store.hand_over(&checkpoint(&long, 0, number), Hurry::Hurried).unwrap();
    }
    assert!(store.is_loose());
    let rows = vec![b'x'; 100_000];
    let next = checkpoint(&rows, 0, HURRIED_MAX as u64 + 1);
    assert!(store.hand_over(&next, Hurry::Hurried).unwrap().commit.segment_bytes < 10_000);
    assert!(!store.is_loose(), "handing all over again would take long");
}

#[test]
fn rows_of_another_daemon_that_are_not_packed_are_handed_over_again() {
    let text = "a row that says what many rows say\n".repeat(1_000);
    for (hurry, loose) in [(Hurry::Hurried, true), (Hurry::Unhurried, false)] {
        let mut store = Store::default();
        let written = store.hand_over(&checkpoint(text.as_bytes(), 0, 5), hurry).unwrap();
        let mut found = FoundSegments::default();
        let segment = written.segment.unwrap();
        found.read(session(), segment.into(), written.commit.segment_bytes).unwrap();
        assert_eq!(Store::behind(found.extents.into_iter()).is_loose(), loose);
    }
}
