//! How often something may happen: some at once, and then one after a while each.

use std::time::Duration;

use crate::core::moment::Moment;

/// A bucket of places, stored as the moment at which it is full again.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    at_once: u32,
    one_more_after: Duration,
    full_at: Moment,
}

impl Burst {
    /// Full at first. `at_once` is at least 1.
    pub const fn new(at_once: u32, one_more_after: Duration) -> Self {
        Self { at_once, one_more_after, full_at: Moment::from_boot(Duration::ZERO) }
    }

    /// When the next place is free.
    pub fn free_at(&self) -> Moment {
        let others = self.one_more_after * self.at_once.saturating_sub(1);
        Moment::from_boot(self.full_at.since_boot().saturating_sub(others))
    }

    /// Whether all places are free.
    pub fn is_full(&self, now: Moment) -> bool {
        now >= self.full_at
    }

    /// Takes a place if one is free.
    pub fn take(&mut self, now: Moment) -> bool {
        let is_free = now >= self.free_at();
        if is_free {
            self.full_at = self.full_at.max(now) + self.one_more_after;
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are_places_and_then_one_after_each_while() {
        let second = Duration::from_secs(1);
        let (mut burst, now) = (Burst::new(10, second), Moment::from_boot(second * 100));
        assert_eq!((0..20).filter(|_| burst.take(now)).count(), 10);
        assert_eq!(burst.free_at(), now + second);
        assert!(!burst.take(now + Duration::from_millis(999)));
        assert!(burst.take(now + second) && !burst.take(now + second));
        assert_eq!((0..20).filter(|_| burst.take(now + second * 60)).count(), 10);
    }
}
