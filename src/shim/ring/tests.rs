//! What a reader finds in a ring, also where the data begins anew.

use std::io::Write;

use super::*;

/// Writes through a pipe, as a terminal would.
fn write(ring: &mut Ring, bytes: &[u8]) -> usize {
    let (from, mut into) = std::io::pipe().unwrap();
    into.write_all(bytes).unwrap();
    let mut taken = 0;
    while taken < bytes.len() && ring.room() > 0 {
        taken += ring.fill(from.as_fd(), bytes.len() - taken).unwrap();
    }
    taken
}

fn pair(bytes: usize) -> (Ring, RingReader) {
    let ring = Ring::create(bytes).unwrap();
    let reader = RingReader::open(memory::read_only(ring.file()).unwrap(), bytes).unwrap();
    (ring, reader)
}

fn read(reader: &RingReader, offset: u64) -> Result<Vec<u8>, RingError> {
    let mut bytes = Vec::new();
    reader.copy(offset, usize::MAX, &mut bytes).map(|count| {
        assert_eq!(count, bytes.len());
        bytes
    })
}

#[test]
fn what_is_written_is_read_from_any_offset() {
    let (mut ring, reader) = pair(4_096);
    assert_eq!(write(&mut ring, b"hello"), 5);
    assert_eq!(reader.head(), 5);
    assert_eq!(read(&reader, 0), Ok(b"hello".to_vec()));
    assert_eq!(read(&reader, 3), Ok(b"lo".to_vec()));
    assert_eq!(read(&reader, 5), Ok(Vec::new()));
    assert_eq!(read(&reader, 6), Err(RingError::NotThere));
}

#[test]
fn a_full_ring_takes_nothing_until_something_is_released() {
    let (mut ring, reader) = pair(4_096);
    let first = [b'a'; 5_000];
    assert_eq!(write(&mut ring, &first), 4_096);
    assert_eq!(ring.room(), 0);
    ring.release(1_000);
    assert_eq!(write(&mut ring, &[b'b'; 1_000]), 1_000);
    assert_eq!(read(&reader, 999), Err(RingError::NotThere));
    let all = read(&reader, 1_000).unwrap();
    assert_eq!(all, [[b'a'; 3_096].as_slice(), [b'b'; 1_000].as_slice()].concat());
}

#[test]
fn no_more_is_released_than_was_written() {
    let (mut ring, _) = pair(4_096);
    write(&mut ring, b"abc");
    ring.release(100);
    assert_eq!((ring.tail(), ring.room()), (3, 4_096));
    ring.release(1);
    assert_eq!(ring.tail(), 3);
}

#[test]
fn the_oldest_output_makes_room_for_the_newest() {
    let (mut ring, reader) = pair(4_096);
    write(&mut ring, &[b'a'; 4_096]);
    ring.make_room(10);
    assert_eq!(ring.tail(), 10);
    assert_eq!(write(&mut ring, &[b'b'; 10]), 10);
    assert_eq!(read(&reader, 0), Err(RingError::NotThere));
    assert!(read(&reader, 10).unwrap().ends_with(&[b'b'; 10]));
    assert_eq!(ring.room(), 0);
}

#[test]
fn memory_is_given_back_and_what_is_there_stays() {
    let (mut ring, reader) = pair(1 << 20);
    let bytes = vec![b'x'; 60_000];
    for _ in 0..10 {
        write(&mut ring, &bytes);
    }
    let pages = || nix::sys::stat::fstat(ring.file()).unwrap().st_blocks;
    let before = pages();
    ring.release(ring.head() - 5_000);
    ring.give_back();
    let after = nix::sys::stat::fstat(ring.file()).unwrap().st_blocks;
    assert!(after < before / 10, "{after} of {before}");
    assert_eq!(read(&reader, ring.head() - 5_000), Ok(vec![b'x'; 5_000]));
}

/// Writes marks of its own, as a stranger would who has the memory open.
fn forge(ring: &Ring, head: u64, tail: u64) {
    use std::os::unix::fs::FileExt;

    let marks = [head.to_ne_bytes(), tail.to_ne_bytes()].concat();
    ring.file.write_all_at(&marks, MARKS_AT as u64).unwrap();
}

#[test]
fn marks_that_no_writer_makes_are_an_error_and_no_output() {
    let (mut ring, reader) = pair(4_096);
    write(&mut ring, b"hello");
    for (head, tail) in [
        (u64::MAX, 0),
        (5 + 4_097, 0),
        (u64::MAX, u64::MAX),
        (5, 6),
        (5 + 4_097, 5),
        (5 + 4_097, 5 + 4_098),
    ] {
        forge(&ring, head, tail);
        assert_eq!(read(&reader, 5), Err(RingError::Damaged), "{head} {tail}");
        assert!(reader.tail() <= reader.head(), "{head} {tail}");
    }
    forge(&ring, 5, 0);
    assert_eq!(read(&reader, 5), Ok(Vec::new()));
}

#[test]
fn memory_that_is_no_ring_of_this_size_is_refused() {
    let (ring, _) = pair(4_096);
    assert!(RingReader::open(ring.file(), 4_097).is_err());
    assert!(RingReader::open(ring.file(), 0).is_err());
}
