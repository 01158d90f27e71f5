//! The memory through which a daemon hands input to its shim. See `docs/SHIM.md`.
//! Each daemon gets a new one. What is in it outlives the daemon, so input counts as written once it is there.

pub mod ends;
pub mod log;
pub mod relay;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use crate::shim::input::ends::{InputMemory, InputWords};
use crate::shim::memory::{self, Access, Mapping};
use crate::shim::wire::WriteName;

/// One page before the records. Only the words use it.
const WORDS_BYTES: usize = 4096;
/// The offset of the words.
const WORDS_AT: usize = 64;
/// How many bytes of records fit. A key of a person is a record, and many may come before the shim has its turn.
const RECORDS_BYTES: usize = 32 * 1024;
/// How many bytes of input may wait for the shim.
pub const WAITING_MAX: usize = 4096;

/// The mapping of an input memory.
#[derive(Debug)]
pub struct InputMap {
    view: Mapping,
}

#[allow(unsafe_code)]
impl InputMap {
    /// Makes a memory, with the file that others map it by.
    pub fn create() -> io::Result<(File, Self)> {
        let file = memory::create(c"termgate-input", (WORDS_BYTES + RECORDS_BYTES) as u64)?;
        memory::seal_size(&file)?;
        let map = Self::open(&file)?;
        Ok((file, map))
    }

    /// # Errors
    /// `InvalidData` if the file is not such a memory; otherwise the kernel's error.
    pub fn open(file: impl AsFd) -> io::Result<Self> {
        Ok(Self { view: Mapping::new(file, WORDS_BYTES + RECORDS_BYTES, Access::Write)? })
    }

    /// The address of `count` bytes of records at position `at`.
    fn records(&self, at: usize, count: usize) -> *mut u8 {
        assert!(
            at <= RECORDS_BYTES && count <= RECORDS_BYTES - at,
            "the ends know how much there is"
        );
        // SAFETY: the sum lies in the view, as was just checked.
        unsafe { self.view.start().add(WORDS_BYTES + at).as_ptr() }
    }
}

#[allow(unsafe_code)]
impl InputMemory for InputMap {
    type Word = AtomicU64;

    fn words(&self) -> &InputWords<AtomicU64> {
        // SAFETY: the words are atomic numbers, for which any bytes are valid. They lie aligned in the first page
        // of a view that `self` owns, and no other code accesses them.
        unsafe { self.view.start().add(WORDS_AT).cast::<InputWords<AtomicU64>>().as_ref() }
    }

    fn bytes(&self) -> usize {
        RECORDS_BYTES
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        let into = self.records(at, bytes.len());
        // SAFETY: the target lies in a view that `self` owns, and no slice covers it.
        unsafe { into.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    fn get(&self, at: usize, into: &mut [u8]) {
        let from = self.records(at, into.len());
        // SAFETY: the source lies in a view that `self` owns, and no slice covers it. The caller accepts any bytes.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }
}

/// What precedes the bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputHeader {
    /// How many bytes follow.
    pub length: u32,
    /// The epoch of the lease; 0 for input that needs no lease.
    pub epoch: u64,
    /// Once the shim has this record, all queries in the output before this offset are answered.
    pub answered: u64,
    pub write: WriteName,
}

impl InputHeader {
    pub const BYTES: usize = 40;

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.answered.to_le_bytes());
        bytes[24..].copy_from_slice(&self.write);
        bytes
    }

    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (length, rest) = bytes.split_first_chunk().expect("a header is longer");
        let (_, rest) = rest.split_first_chunk::<4>().expect("a header is longer");
        let (epoch, rest) = rest.split_first_chunk().expect("a header is longer");
        let (answered, write) = rest.split_first_chunk().expect("a header is longer");
        Self {
            length: u32::from_le_bytes(*length),
            epoch: u64::from_le_bytes(*epoch),
            answered: u64::from_le_bytes(*answered),
            write: write.try_into().expect("a header ends with the name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_and_records_lie_where_the_document_says() {
        use std::os::unix::fs::FileExt;

        use crate::shim::input::ends::{AnsweredQuestion, InputReceiver, InputSender, Wake};

        let (file, theirs) = InputMap::create().unwrap();
        let mut sender = InputSender::new(InputMap::open(&file).unwrap());
        let mut receiver = InputReceiver::new(theirs, true);
        receiver.sleep();
        let header = InputHeader { length: 2, epoch: 258, answered: 7, write: [0xa0; 16] };
        assert_eq!(sender.append([&header.encode(), b"ab"]), Ok(Wake::Ring));
        sender.wait_for_room();
        assert_eq!(sender.ask(), (1, Wake::Ring));
        let word = |at: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).unwrap();
            u64::from_le_bytes(bytes)
        };
        let words = || [64, 72, 80, 88, 96, 104, 112].map(word);
        assert_eq!(words(), [42, 0, 1, 1, 1, 0, 1]);
        let mut record = [0; 42];
        file.read_exact_at(&mut record, 4096).unwrap();
        let expected = [
            &[2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0][..],
            &[0xa0; 16],
            b"ab",
        ];
        assert_eq!(record.as_slice(), expected.concat());
        receiver.wake();
        receiver.read(&mut [0; 42]);
        assert_eq!(receiver.publish(false), Wake::Ring);
        receiver.answer(AnsweredQuestion { question: 1, all_is_there: true });
        assert_eq!(words(), [42, 42, 0, 0, 1, 1, 0]);
        receiver.answer(AnsweredQuestion { question: 1, all_is_there: false });
        assert_eq!(word(104), 0x8000_0000_0000_0001);
        assert!(!sender.is_closed());
        receiver.close(true).unwrap();
        receiver.close(false).unwrap();
        assert!(sender.is_closed());
        assert_eq!(word(64), 0xc000_0000_0000_002a);
    }

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let write = std::array::from_fn(|at| at as u8);
        let header = InputHeader { length: 1 << 30, epoch: 1 << 60, answered: 3, write };
        assert_eq!(InputHeader::decode(&header.encode()), header);
    }

    #[test]
    fn memory_that_could_shrink_is_refused() {
        let file = memory::create(c"test", 36_864).unwrap();
        assert!(InputMap::open(&file).is_err());
        memory::seal_size(&file).unwrap();
        assert!(InputMap::open(&file).is_ok());
        let short = memory::create(c"test", 36_863).unwrap();
        memory::seal_size(&short).unwrap();
        assert!(InputMap::open(&short).is_err());
    }
}
