//! Events in sessions that upper layers must learn at once.
//! Each is kept as a state until it is read. So no event is lost, no sender waits, and the size is bounded by
//! sessions and connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::core::event::LeaseOf;
use crate::core::ids::{ConnectionId, SessionId};
use crate::core::lease::error::EndCause;
use crate::core::lease::view::{LeaseChange, LeaseEvent};

#[derive(Debug, Default)]
pub struct SessionNews {
    /// The last change of each connection's lease of a session or mount, except changes that its holder made.
    pub leases: BTreeMap<(LeaseOf, ConnectionId), LeaseEvent>,
    /// Sessions that were created, renamed or removed.
    pub listed: BTreeSet<SessionId>,
    /// Another daemon owns a terminal, and so has replaced this one.
    pub superseded: bool,
}

impl SessionNews {
    fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.listed.is_empty() && !self.superseded
    }
}

/// Collects the events of all sessions. Clones share one board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<BoardState>);

#[derive(Debug, Default)]
struct BoardState {
    news: Mutex<SessionNews>,
    told: Notify,
}

impl Board {
    /// Records a change of a lease. Only the newest per lease and connection is kept.
    pub fn tell_lease(&self, lease: LeaseOf, event: LeaseEvent) {
        let of = (lease, event.holder.connection);
        match &event.change {
            // The holder caused this change and has its answer.
            LeaseChange::Granted | LeaseChange::Revived | LeaseChange::Renewed => {}
            LeaseChange::Ended(EndCause::Released) => {
                self.lock().leases.remove(&of);
            }
            LeaseChange::Ended(_) | LeaseChange::Suspended { .. } | LeaseChange::Resumed => {
                self.change(|news| {
                    news.leases.insert(of, event);
                });
            }
        }
    }

    pub fn tell_listed(&self, session: SessionId) {
        self.change(|news| {
            news.listed.insert(session);
        });
    }

    pub fn tell_superseded(&self) {
        self.change(|news| news.superseded = true);
    }

    /// Waits until there is an event, and takes all events.
    pub async fn next(&self) -> SessionNews {
        loop {
            let told = self.0.told.notified();
            let news = self.take();
            if !news.is_empty() {
                return news;
            }
            told.await;
        }
    }

    pub fn take(&self) -> SessionNews {
        std::mem::take(&mut *self.lock())
    }

    fn change(&self, change: impl FnOnce(&mut SessionNews)) {
        change(&mut self.lock());
        self.0.told.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, SessionNews> {
        // Each change is a single step, so a panic elsewhere leaves nothing half done.
        self.0.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::core::caller::{Caller, Kind};
    use crate::core::ids::{Epoch, PrincipalId, TenantId};

    fn event(connection: u64, epoch: u64, change: LeaseChange) -> LeaseEvent {
        let holder = Caller {
            principal: PrincipalId::Connection(connection),
            connection: ConnectionId(connection),
            tenant: TenantId::of_uid(1_000),
            kind: Kind::Agent,
            label: Arc::from("agent"),
        };
        LeaseEvent { holder, epoch: Epoch(epoch), change }
    }

    fn session(number: u128) -> SessionId {
        SessionId::from_random(Uuid::from_u128(number << 80))
    }

    #[tokio::test]
    async fn a_lease_that_was_lost_is_told_however_much_happens_before_anybody_looks() {
        let board = Board::default();
        let lost = event(1, 1, LeaseChange::Ended(EndCause::Expired));
        board.tell_lease(LeaseOf::Session(session(1)), lost.clone());
        for epoch in 2..10_000 {
            board.tell_listed(session(2));
            board.tell_lease(LeaseOf::Session(session(1)), event(2, epoch, LeaseChange::Granted));
            board.tell_lease(
                LeaseOf::Session(session(1)),
                event(2, epoch, LeaseChange::Ended(EndCause::Expired)),
            );
        }
        board.tell_superseded();
        let news = board.next().await;
        let newest = event(2, 9_999, LeaseChange::Ended(EndCause::Expired));
        assert_eq!(news.leases.into_values().collect::<Vec<_>>(), [lost, newest]);
        assert_eq!(news.listed, BTreeSet::from([session(2)]));
        assert!(news.superseded && board.take().is_empty());
    }

    #[tokio::test]
    async fn what_its_holder_does_itself_is_no_news() {
        let board = Board::default();
        board.tell_lease(LeaseOf::Session(session(1)), event(1, 1, LeaseChange::Granted));
        board.tell_lease(LeaseOf::Session(session(1)), event(1, 2, LeaseChange::Resumed));
        board.tell_lease(
            LeaseOf::Session(session(1)),
            event(1, 2, LeaseChange::Ended(EndCause::Released)),
        );
        assert!(board.take().is_empty());
    }
}
