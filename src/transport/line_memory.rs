//! Memory for long lines: a quota per user for input, and one for parsing.
//!
//! When a user's quota is full, the oldest incomplete line is discarded. A complete line waits only until others are
//! parsed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The part of the parsing memory that each line takes at least. The limit keeps a processor free for answers.
const AT_ONCE: usize = 8;

/// The memory of one user for long lines. Clones share it.
#[derive(Clone, Debug)]
pub struct LineMemory(Arc<Mutex<UserLines>>);

#[derive(Debug)]
struct UserLines {
    bytes_max: usize,
    /// The bytes of incomplete lines and of complete ones that are still kept.
    used: usize,
    last: u64,
    /// The incomplete lines, in the order in which they began.
    begun: BTreeMap<u64, BytesMut>,
}

impl LineMemory {
    pub fn of_bytes(bytes_max: usize) -> Self {
        let begun = BTreeMap::new();
        Self(Arc::new(Mutex::new(UserLines { bytes_max, used: 0, last: 0, begun })))
    }

    /// Changes the size. Existing lines stay.
    pub fn resize(&self, bytes_max: usize) {
        self.lock().bytes_max = bytes_max;
    }

    pub fn begin(&self) -> Begun {
        let mut incoming = self.lock();
        incoming.last += 1;
        let number = incoming.last;
        incoming.begun.insert(number, BytesMut::new());
        Begun { share: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, UserLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserLines {
    /// Discards an incomplete line.
    fn give_way(&mut self, number: u64) {
        self.used -= self.begun.remove(&number).map_or(0, |line| line.len());
    }
}

/// An incomplete line; later lines may displace it.
#[derive(Debug)]
pub struct Begun {
    share: LineMemory,
    number: u64,
}

impl Begun {
    /// The length so far. `None` when it was discarded.
    pub fn so_far(&self) -> Option<usize> {
        self.share.lock().begun.get(&self.number).map(BytesMut::len)
    }

    /// Adds bytes to the line and discards older incomplete lines to make space.
    ///
    /// Returns `false` when this line was discarded, because complete lines use the rest.
    pub fn add(&self, bytes: &[u8]) -> bool {
        let mut incoming = self.share.lock();
        while incoming.used + bytes.len() > incoming.bytes_max {
            let Some(oldest) = incoming.begun.keys().copied().find(|it| *it != self.number) else {
                incoming.give_way(self.number);
                return false;
            };
            incoming.give_way(oldest);
        }
        let incoming = &mut *incoming;
        let Some(line) = incoming.begun.get_mut(&self.number) else { return false };
        line.extend_from_slice(bytes);
        incoming.used += bytes.len();
        true
    }

    /// Completes the line. `None` when it was discarded.
    pub fn end(self) -> Option<(BytesMut, KeptMemory)> {
        let line = self.share.lock().begun.remove(&self.number)?;
        let kept = KeptMemory { share: self.share.clone(), bytes: line.len() };
        Some((line, kept))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.share.lock().give_way(self.number);
    }
}

/// The memory of a complete line, until it is dropped.
#[derive(Debug)]
pub struct KeptMemory {
    share: LineMemory,
    bytes: usize,
}

impl Drop for KeptMemory {
    fn drop(&mut self) {
        self.share.lock().used -= self.bytes;
    }
}

/// Parses long lines on blocking threads within a memory limit. Clones share the limit.
#[derive(Clone, Debug)]
pub struct ReadingRoom {
    /// In permits of one KiB.
    memory: Arc<Semaphore>,
    size: usize,
}

impl ReadingRoom {
    pub fn of_bytes(bytes: usize) -> Self {
        let size = bytes / 1024;
        Self { memory: Arc::new(Semaphore::new(size)), size }
    }

    /// Calls `read` for a line of `bytes` bytes as soon as memory is free. `None` when it panicked.
    pub async fn read<T, F>(self, bytes: usize, read: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let wanted = bytes.div_ceil(1024).max(self.size / AT_ONCE).min(self.size);
        let room = self.memory.acquire_many_owned(u32::try_from(wanted).ok()?).await.ok()?;
        let reading = spawn_blocking(move || {
            let read = read();
            drop(room);
            read
        });
        reading.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(share: &LineMemory, bytes: usize) -> Begun {
        let line = share.begin();
        assert!(line.add(&vec![b'x'; bytes]));
        line
    }

    #[test]
    fn whoever_began_first_gives_way() {
        let share = LineMemory::of_bytes(100);
        let (first, second) = (begun(&share, 40), begun(&share, 40));
        let third = begun(&share, 40);
        assert_eq!((first.so_far(), second.so_far(), third.so_far()), (None, Some(40), Some(40)));
        assert!(!first.add(b"more") && first.end().is_none());
        assert_eq!(second.end().unwrap().0.len(), 40);
    }

    #[test]
    fn a_line_that_goes_on_takes_the_room_of_those_before_it() {
        let share = LineMemory::of_bytes(100);
        let (first, second) = (begun(&share, 40), begun(&share, 10));
        assert!(second.add(&[b'y'; 90]));
        assert_eq!((first.so_far(), second.so_far()), (None, Some(100)));
    }

    #[test]
    fn a_whole_line_gives_way_to_nobody() {
        let share = LineMemory::of_bytes(100);
        let (_, kept) = begun(&share, 80).end().unwrap();
        let other = begun(&share, 20);
        assert!(!other.add(b"x"));
        drop(kept);
        drop(begun(&share, 100));
    }

    #[test]
    fn all_is_given_back() {
        let share = LineMemory::of_bytes(100);
        for _ in 0..3 {
            let (first, second) = (begun(&share, 50), begun(&share, 50));
            let third = begun(&share, 50);
            drop((first, second.end(), third));
            assert_eq!(share.lock().used, 0);
            assert!(share.lock().begun.is_empty());
        }
    }

    #[test]
    fn a_line_larger_than_all_room_gives_way_at_once() {
        let share = LineMemory::of_bytes(100);
        let line = begun(&share, 100);
        assert!(!line.add(b"x"));
        assert_eq!((line.so_far(), share.lock().used), (None, 0));
    }

    #[tokio::test]
    async fn what_fails_in_the_reading_room_leaves_room_for_the_next() {
        let room = ReadingRoom::of_bytes(1024);
        for _ in 0..3 {
            let failed = room.clone().read(1024, || panic!("as if")).await;
            assert_eq!(failed, None::<()>);
        }
        // Longer than all of it, which is for one line then.
        assert_eq!(room.read(10_000, || 7).await, Some(7));
    }
}
