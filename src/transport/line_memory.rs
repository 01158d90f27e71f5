//! Memory for long lines: what one user may have coming in, and what is read at once of all.
//!
//! It must not know what a line says. Nobody waits for a line that somebody else has begun: whoever
//! began first gives way. What is whole waits only for what is being read, which is soon over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The part of the memory for reading that one line takes at least: so few are read at once that
/// those who answer keep a processor.
const AT_ONCE: usize = 8;

/// The memory of one user for long lines; clones share it.
#[derive(Clone, Debug)]
pub struct Share(Arc<Mutex<Incoming>>);

#[derive(Debug)]
struct Incoming {
    bytes_max: usize,
    /// Of begun lines and of whole ones that are still kept.
    used: usize,
    last: u64,
    /// The lines that are not whole, in the order in which they began.
    begun: BTreeMap<u64, BytesMut>,
}

impl Share {
    /// Memory for so many bytes.
    pub fn of_bytes(bytes_max: usize) -> Self {
        let begun = BTreeMap::new();
        Self(Arc::new(Mutex::new(Incoming { bytes_max, used: 0, last: 0, begun })))
    }

    /// Holds so many bytes from now on; what is there already stays.
    pub fn resize(&self, bytes_max: usize) {
        self.lock().bytes_max = bytes_max;
    }

    /// Begins a line, of which nothing is there yet.
    pub fn begin(&self) -> Begun {
        let mut incoming = self.lock();
        incoming.last += 1;
        let number = incoming.last;
        incoming.begun.insert(number, BytesMut::new());
        Begun { share: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming {
    /// Drops a line that is not whole.
    fn give_way(&mut self, number: u64) {
        self.used -= self.begun.remove(&number).map_or(0, |line| line.len());
    }
}

/// A line that is not whole; it may have to give way to later ones.
#[derive(Debug)]
pub struct Begun {
    share: Share,
    number: u64,
}

impl Begun {
    /// How much of the line is there; none when it gave way.
    pub fn so_far(&self) -> Option<usize> {
        self.share.lock().begun.get(&self.number).map(BytesMut::len)
    }

    /// Adds what came of the line, for which those that began before it give way.
    ///
    /// `false` when it gave way itself, because whole lines have taken the rest.
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

    /// The line, which is whole now; none when it gave way.
    pub fn end(self) -> Option<(BytesMut, Kept)> {
        let line = self.share.lock().begun.remove(&self.number)?;
        let kept = Kept { share: self.share.clone(), bytes: line.len() };
        Some((line, kept))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.share.lock().give_way(self.number);
    }
}

/// A whole line's part of its user's memory, until it is dropped.
#[derive(Debug)]
pub struct Kept {
    share: Share,
    bytes: usize,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.share.lock().used -= self.bytes;
    }
}

/// Where long lines are read, on threads that nobody else waits for; clones share it.
#[derive(Clone, Debug)]
pub struct ReadingRoom {
    /// In permits of one KiB.
    memory: Arc<Semaphore>,
    size: usize,
}

impl ReadingRoom {
    /// Room for lines of so many bytes at once.
    pub fn of_bytes(bytes: usize) -> Self {
        let size = bytes / 1024;
        Self { memory: Arc::new(Semaphore::new(size)), size }
    }

    /// Has a line of so many bytes read by `read` as soon as there is room; none when that failed.
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

    fn begun(share: &Share, bytes: usize) -> Begun {
        let line = share.begin();
        assert!(line.add(&vec![b'x'; bytes]));
        line
    }

    #[test]
    fn whoever_began_first_gives_way() {
        let share = Share::of_bytes(100);
        let (first, second) = (begun(&share, 40), begun(&share, 40));
        let third = begun(&share, 40);
        assert_eq!((first.so_far(), second.so_far(), third.so_far()), (None, Some(40), Some(40)));
        assert!(!first.add(b"more") && first.end().is_none());
        assert_eq!(second.end().unwrap().0.len(), 40);
    }

    #[test]
    fn a_line_that_goes_on_takes_the_room_of_those_before_it() {
        let share = Share::of_bytes(100);
        let (first, second) = (begun(&share, 40), begun(&share, 10));
        assert!(second.add(&[b'y'; 90]));
        assert_eq!((first.so_far(), second.so_far()), (None, Some(100)));
    }

    #[test]
    fn a_whole_line_gives_way_to_nobody() {
        let share = Share::of_bytes(100);
        let (_, kept) = begun(&share, 80).end().unwrap();
        let other = begun(&share, 20);
        assert!(!other.add(b"x"));
        drop(kept);
        drop(begun(&share, 100));
    }

    #[test]
    fn all_is_given_back() {
        let share = Share::of_bytes(100);
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
        let share = Share::of_bytes(100);
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
