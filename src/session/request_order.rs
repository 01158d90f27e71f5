//! Makes the requests of one connection take effect in order of arrival.
//!
//! Requests run concurrently. Without turns, two keystrokes could reach the terminal in the wrong order. Starting a
//! program takes long and disturbs no other start, so starts that follow one another run side by side.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Issues turns in order of arrival, for one connection.
///
/// Its size is bounded by the requests in flight: one small entry per turn that is unfinished or behind an unfinished
/// one.
#[derive(Clone, Debug, Default)]
pub struct Turnstile(Arc<Mutex<TurnQueue>>);

impl Turnstile {
    /// Issues the next turn.
    pub fn turn(&self) -> RequestTurn {
        let ticket = self.lock().enter();
        RequestTurn { turnstile: self.clone(), ticket }
    }

    fn lock(&self) -> MutexGuard<'_, TurnQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of one request to take effect after all earlier requests of its connection.
///
/// It may move to another task, such as a session's, which passes it once the call is accepted. Dropping it passes it,
/// too.
#[derive(Debug)]
#[must_use = "a turn that is dropped lets the next request go ahead"]
pub struct RequestTurn {
    turnstile: Turnstile,
    ticket: u64,
}

impl RequestTurn {
    /// Waits until every earlier turn of the connection is finished.
    ///
    /// Only one task at a time may wait for a turn. Cancel-safe.
    pub async fn wait(&self) {
        self.wait_for(Before::Finished).await;
    }

    /// The same for a start, which need not wait for the end of other starts that have begun.
    pub async fn wait_beside(&self) {
        self.wait_for(Before::Begun).await;
    }

    async fn wait_for(&self, before: Before) {
        poll_fn(|context| self.turnstile.lock().poll(self.ticket, before, context)).await;
    }

    /// Notes that a start has come so far that the next one may begin. Other requests keep waiting.
    pub fn begin(&self) {
        self.change(QueuedTurn::Begun);
    }

    fn change(&self, to: QueuedTurn) {
        let next = self.turnstile.lock().change(self.ticket, to);
        // Wake outside the lock, because the woken task takes it at once.
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Finishes the turn: the next request may take effect.
    pub fn pass(self) {}
}

impl Drop for RequestTurn {
    fn drop(&mut self) {
        self.change(QueuedTurn::Finished);
    }
}

/// A turn inside request extensions, which must be cloneable.
///
/// The handler takes the turn out. Otherwise it passes with the last clone.
#[derive(Clone, Debug)]
pub struct TurnSlot(Arc<Mutex<Option<RequestTurn>>>);

impl TurnSlot {
    pub fn new(turn: RequestTurn) -> Self {
        Self(Arc::new(Mutex::new(Some(turn))))
    }

    /// Takes the turn out. `None` when it was taken before.
    pub fn take(&self) -> Option<RequestTurn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The unfinished turns, oldest first. `places[0]` belongs to the ticket `head`.
#[derive(Debug, Default)]
struct TurnQueue {
    head: u64,
    places: VecDeque<QueuedTurn>,
}

#[derive(Debug)]
enum QueuedTurn {
    Open,
    Waiting(Before, Waker),
    /// A start that lets others begin.
    Begun,
    Finished,
}

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// All turns before it are finished.
    Finished,
    /// They are finished, or starts that have begun.
    Begun,
}

impl TurnQueue {
    fn enter(&mut self) -> u64 {
        let ticket = self.head + self.places.len() as u64;
        self.places.push_back(QueuedTurn::Open);
        ticket
    }

    fn poll(&mut self, ticket: u64, before: Before, context: &mut Context<'_>) -> Poll<()> {
        if self.has_come((ticket - self.head) as usize, before) {
            return Poll::Ready(());
        }
        self.put(ticket, QueuedTurn::Waiting(before, context.waker().clone()));
        Poll::Pending
    }

    fn has_come(&self, place: usize, before: Before) -> bool {
        match before {
            Before::Finished => place == 0,
            Before::Begun => self.places.iter().take(place).all(QueuedTurn::lets_begin),
        }
    }

    /// Changes one turn and returns the waker of the turn that has come by that.
    fn change(&mut self, ticket: u64, to: QueuedTurn) -> Option<Waker> {
        self.put(ticket, to);
        while let Some(QueuedTurn::Finished) = self.places.front() {
            self.places.pop_front();
            self.head += 1;
        }
        let next = self.places.iter().position(|place| !place.lets_begin())?;
        match &self.places[next] {
            QueuedTurn::Waiting(before, waker) if self.has_come(next, *before) => {
                Some(waker.clone())
            }
            QueuedTurn::Waiting(..)
            | QueuedTurn::Open
            | QueuedTurn::Begun
            | QueuedTurn::Finished => None,
        }
    }

    fn put(&mut self, ticket: u64, place: QueuedTurn) {
        let index = (ticket - self.head) as usize;
        if let Some(slot) = self.places.get_mut(index) {
            *slot = place;
        }
    }
}

impl QueuedTurn {
    fn lets_begin(&self) -> bool {
        matches!(self, Self::Begun | Self::Finished)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn is_first(turn: &RequestTurn) -> bool {
        let waiting = std::pin::pin!(turn.wait());
        waiting.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn may_start(turn: &RequestTurn) -> bool {
        let waiting = std::pin::pin!(turn.wait_beside());
        waiting.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_start_waits_only_until_the_one_before_has_begun() {
        let turnstile = Turnstile::default();
        let (first, second, other) = (turnstile.turn(), turnstile.turn(), turnstile.turn());
        assert!(may_start(&first) && !may_start(&second));
        first.begin();
        assert!(may_start(&second));
        second.begin();
        assert!(!is_first(&other), "all else waits for the end of starts");
        second.pass();
        assert!(!is_first(&other));
        first.pass();
        assert!(is_first(&other));
        assert_eq!(turnstile.lock().places.len(), 1);
    }

    #[test]
    fn a_start_overtakes_nothing_that_waits_for_the_end_of_another() {
        let turnstile = Turnstile::default();
        let (start, between, later) = (turnstile.turn(), turnstile.turn(), turnstile.turn());
        start.begin();
        assert!(!is_first(&between) && !may_start(&later));
        between.pass();
        assert!(may_start(&later), "nothing is between them any more");
    }

    #[tokio::test]
    async fn a_start_that_waits_is_woken_when_the_one_before_begins() {
        let turnstile = Turnstile::default();
        let (first, second) = (turnstile.turn(), turnstile.turn());
        let waiting = tokio::spawn(async move { second.wait_beside().await });
        tokio::task::yield_now().await;
        first.begin();
        timeout(Duration::from_secs(10), waiting).await.expect("it is woken").unwrap();
        first.pass();
        assert_eq!(turnstile.lock().places.len(), 0);
    }

    #[test]
    fn the_first_turn_need_not_wait() {
        let turnstile = Turnstile::default();
        assert!(is_first(&turnstile.turn()));
    }

    #[test]
    fn a_turn_comes_when_all_earlier_ones_are_finished() {
        let turnstile = Turnstile::default();
        let (first, second, third) = (turnstile.turn(), turnstile.turn(), turnstile.turn());
        assert!(!is_first(&second));
        first.pass();
        assert!(is_first(&second));
        assert!(!is_first(&third));
        drop(second);
        assert!(is_first(&third));
    }

    #[test]
    fn a_turn_finished_early_lets_nobody_overtake() {
        let turnstile = Turnstile::default();
        let (first, second, third) = (turnstile.turn(), turnstile.turn(), turnstile.turn());
        second.pass();
        assert!(!is_first(&third));
        assert_eq!(turnstile.lock().places.len(), 3);
        first.pass();
        assert!(is_first(&third));
        assert_eq!(turnstile.lock().places.len(), 1);
    }

    #[test]
    fn a_turn_nobody_takes_passes_with_the_last_copy_of_its_slot() {
        let turnstile = Turnstile::default();
        let slot = TurnSlot::new(turnstile.turn());
        let copy = slot.clone();
        let next = turnstile.turn();
        drop(slot);
        assert!(!is_first(&next));
        drop(copy);
        assert!(is_first(&next));
    }

    #[test]
    fn a_turn_can_be_taken_once() {
        let slot = TurnSlot::new(Turnstile::default().turn());
        assert!(slot.take().is_some());
        assert!(slot.take().is_none());
    }

    #[tokio::test]
    async fn a_waiting_task_is_woken_by_the_turn_before_it() {
        let turnstile = Turnstile::default();
        let (first, second) = (turnstile.turn(), turnstile.turn());
        let waiting = tokio::spawn(async move { second.wait().await });
        tokio::task::yield_now().await;
        first.pass();
        timeout(Duration::from_secs(10), waiting).await.expect("it is woken").unwrap();
        assert_eq!(turnstile.lock().places.len(), 0);
    }
}
