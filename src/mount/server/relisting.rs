//! When a running server is asked for its tools again.
//!
//! A server that says that they have changed is asked at most once a second, and never while it still answers. One that does
//! not answer well is asked again later, and keeps its state and its calls.

use std::time::Duration;

use tokio::time::Instant;

use crate::mount::server::greeting::Listing;

/// The time between two lists.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest time until the next attempt after failures.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a page of a list may take.
const PAGE_MAX: Duration = Duration::from_secs(30);

/// The lists of tools of one start of a server after the first.
///
/// `on_*` says what happened; [`Relisting::deadline`] when to ask [`Relisting::on_time`] what to do.
#[derive(Debug)]
pub(super) struct Relisting {
    /// A list that is being asked for, and when it has taken too long.
    open: Option<(Listing, Instant)>,
    /// When the server is to be asked again.
    due: Option<Instant>,
    not_before: Instant,
    failures: u32,
    /// The list before the one that is due or open failed, or there was news during it. What waited for it waits no more.
    has_followed: bool,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelistingDue {
    /// To ask for the tools.
    List,
    /// To give up a list that takes too long.
    Late,
}

impl Relisting {
    pub(super) fn new(now: Instant) -> Self {
        Self { open: None, due: None, not_before: now, failures: 0, has_followed: false }
    }

    /// The server says that its tools have changed. A list that is on its way may be the one before.
    pub(super) fn on_changed(&mut self, now: Instant) {
        self.due.get_or_insert(now.max(self.not_before));
    }

    /// A page was asked for.
    pub(super) fn on_asked(&mut self, page: Listing, now: Instant) {
        self.open = Some((page, now + PAGE_MAX));
    }

    /// Takes the list whose page has this number.
    pub(super) fn take(&mut self, id: u64) -> Option<Listing> {
        self.open.take_if(|(listing, _)| listing.id == id).map(|(listing, _)| listing)
    }

    /// A list was read whole.
    pub(super) fn on_done(&mut self, now: Instant) {
        self.failures = 0;
        self.has_followed = self.due.is_some();
        self.rest(now, PAUSE);
    }

    /// A list failed.
    pub(super) fn on_failed(&mut self, now: Instant) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures += 1;
        self.has_followed = true;
        self.due.get_or_insert(now);
        self.rest(now, pause);
    }

    fn rest(&mut self, now: Instant, pause: Duration) {
        self.not_before = now + pause;
        self.due = self.due.map(|due| due.max(self.not_before));
    }

    /// Whether calls may wait for a list: for one each, however often the server says that its tools have changed.
    pub(super) fn is_awaited(&self) -> bool {
        !self.has_followed && self.deadline().is_some()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.open {
            Some((_, late)) => Some(*late),
            None => self.due,
        }
    }

    /// What is due by now.
    pub(super) fn on_time(&mut self, now: Instant) -> Option<RelistingDue> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        match self.open.take() {
            Some(_) => Some(RelistingDue::Late),
            None => {
                self.due = None;
                Some(RelistingDue::List)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::eras::ServerEra;

    fn listing(id: u64) -> Listing {
        Listing::new(id, ServerEra::Older)
    }

    #[test]
    fn news_during_a_list_has_another_one_follow_after_a_pause() {
        let begin = Instant::now();
        let mut lists = Relisting::new(begin);
        assert_eq!((lists.deadline(), lists.on_time(begin)), (None, None));
        lists.on_changed(begin);
        assert_eq!(lists.on_time(begin), Some(RelistingDue::List));
        lists.on_asked(listing(1), begin);
        let news = begin + Duration::from_millis(500);
        lists.on_changed(news);
        lists.on_changed(news);
        assert_eq!(lists.on_time(news), None);
        assert!(lists.take(2).is_none() && lists.take(1).is_some());
        lists.on_done(news);
        assert_eq!(lists.deadline(), Some(news + PAUSE));
        assert_eq!(lists.on_time(news + PAUSE), Some(RelistingDue::List));
        lists.on_done(news + PAUSE);
        assert_eq!(lists.deadline(), None);
    }

    #[test]
    fn calls_wait_for_a_list_and_not_for_the_one_that_follows_it() {
        let now = Instant::now();
        let mut lists = Relisting::new(now);
        assert!(!lists.is_awaited());
        for news_meanwhile in [false, true] {
            lists.on_changed(now);
            assert!(lists.is_awaited());
            let due = lists.deadline().unwrap();
            assert_eq!(lists.on_time(due), Some(RelistingDue::List));
            lists.on_asked(listing(1), due);
            assert!(lists.is_awaited());
            if news_meanwhile {
                lists.on_changed(due);
            }
            assert!(lists.take(1).is_some());
            lists.on_done(due);
            assert!(!lists.is_awaited());
        }
        // Once there was no news during a list, the next one is awaited again.
        let due = lists.deadline().unwrap();
        lists.on_time(due);
        lists.on_asked(listing(2), due);
        assert!(!lists.is_awaited() && lists.take(2).is_some());
        lists.on_done(due);
        lists.on_changed(due);
        assert!(lists.is_awaited());
        lists.on_failed(due);
        assert!(!lists.is_awaited());
    }

    #[test]
    fn a_list_that_fails_or_takes_too_long_is_asked_for_later_and_later() {
        let mut now = Instant::now();
        let mut lists = Relisting::new(now);
        lists.on_changed(now);
        let mut pauses = Vec::new();
        for number in 0..9 {
            assert_eq!(lists.on_time(now), Some(RelistingDue::List));
            lists.on_asked(listing(number), now);
            now += PAGE_MAX;
            assert_eq!(lists.on_time(now), Some(RelistingDue::Late));
            lists.on_failed(now);
            let next = lists.deadline().unwrap();
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
