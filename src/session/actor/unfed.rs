//! Output that was read and is not on the screen yet, and how much of it is fed at once.
//!
//! Between two slices everybody else who asks the session's task for something has a turn, and so have
//! other tasks; so a slice is made as long as may be fed within a moment.

use std::time::Duration;

use crate::core::moment::Moment;

/// How long feeding a slice may take; much less, and the next one is longer.
const SLICE_TIME: Duration = Duration::from_micros(500);

/// The shortest slice, and the one that a session begins with, in bytes.
const SLICE_MIN: usize = 1024;
const SLICE_FIRST: usize = 16 * 1024;

/// Output on its way to the screen.
#[derive(Debug)]
pub(super) struct Unfed {
    /// How much output was fed, in bytes.
    pub(super) offset: u64,
    /// The queries in the output before this offset were answered by a daemon before.
    pub(super) answered: u64,
    /// All of it is output; what was fed of it stays until the rest is.
    pub(super) bytes: Vec<u8>,
    fed: usize,
    /// When it was read.
    since: Moment,
    slice: usize,
}

impl Unfed {
    /// Nothing was read yet.
    pub(super) fn new(now: Moment, offset: u64, answered: u64) -> Self {
        Self { offset, answered, bytes: Vec::new(), fed: 0, since: now, slice: SLICE_FIRST }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.fed == self.bytes.len()
    }

    /// When the oldest of it was read; none when there is none.
    pub(super) fn since(&self) -> Option<Moment> {
        (!self.is_empty()).then_some(self.since)
    }

    /// Notes that more was read just now, after all before it was fed.
    pub(super) fn on_read(&mut self, now: Moment) {
        self.since = now;
    }

    /// Forgets what was not fed.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fed = 0;
    }

    /// Takes the next slice out, of so many bytes at most, to be given back with [`Unfed::put_back`].
    pub(super) fn take(&mut self, most: usize) -> Slice {
        let length = self.slice.min(most).min(self.bytes.len() - self.fed);
        let from = self.fed;
        self.fed += length;
        Slice { bytes: std::mem::take(&mut self.bytes), from, length }
    }

    /// Gives a slice back that was fed, which took so long.
    pub(super) fn put_back(&mut self, slice: Slice, took: Duration) {
        let Slice { bytes, length, .. } = slice;
        self.bytes = bytes;
        if self.is_empty() {
            self.clear();
        }
        if took > SLICE_TIME {
            self.slice = (length / 2).max(SLICE_MIN);
        } else if took < SLICE_TIME / 4 && length == self.slice {
            self.slice = self.slice.saturating_mul(2).min(SLICE_FIRST * 4);
        }
    }
}

/// A piece of output, while it is fed.
#[derive(Debug)]
pub(super) struct Slice {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Slice {
    /// The piece.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfed(count: usize) -> Unfed {
        let mut unfed = Unfed::new(Moment::default(), 0, 0);
        unfed.bytes = vec![b'x'; count];
        unfed
    }

    /// The length of the next slice, if the one before took so long.
    fn next(unfed: &mut Unfed, took: Duration) -> usize {
        let slice = unfed.take(usize::MAX);
        let length = slice.bytes().len();
        unfed.put_back(slice, took);
        length
    }

    #[test]
    fn all_of_it_is_fed_once_and_in_its_order() {
        let mut unfed = Unfed::new(Moment::default(), 0, 0);
        unfed.bytes = (0..100_000_u32).map(|byte| byte as u8).collect();
        let expected = unfed.bytes.clone();
        let mut fed = Vec::new();
        while !unfed.is_empty() {
            let slice = unfed.take(7_000);
            assert!(slice.bytes().len() <= 7_000);
            fed.extend_from_slice(slice.bytes());
            unfed.put_back(slice, Duration::ZERO);
        }
        assert!(fed == expected && unfed.bytes.is_empty());
    }

    #[test]
    fn a_slice_that_takes_long_is_followed_by_shorter_ones_and_a_quick_one_by_longer_ones() {
        let mut unfed = unfed(10_000_000);
        let slow = [(); 8].map(|()| next(&mut unfed, Duration::from_millis(20)));
        assert!(slow.is_sorted_by(|one, other| one >= other), "{slow:?}");
        assert_eq!(slow.last(), Some(&SLICE_MIN));
        let quick = [(); 9].map(|()| next(&mut unfed, Duration::ZERO));
        assert!(quick.is_sorted(), "{quick:?}");
        assert_eq!(quick.last(), Some(&(4 * SLICE_FIRST)));
        assert_eq!(next(&mut unfed, SLICE_TIME / 2), 4 * SLICE_FIRST);
        assert_eq!(next(&mut unfed, SLICE_TIME / 2), 4 * SLICE_FIRST);
    }
}
