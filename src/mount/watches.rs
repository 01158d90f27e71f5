//! The resources of a server whose changes clients are told.
//!
//! What clients want is here. The task of the server has it be so, and again after each start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::mount::error::MountError;
use crate::mount::shares::{ClientShare, ClientShares, MountClient};

/// How many resources of one server are watched, and how many by one client.
pub const WATCHED_MAX: usize = 64;
pub const WATCHED_BY_CLIENT_MAX: usize = WATCHED_MAX / 2;

/// How it stands with a resource that clients watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// The server has not said yet that it tells its changes.
    #[default]
    Asked,
    /// How often it has changed, or may have changed while the server did not run.
    Told { changes: u64 },
    /// Its changes are not told, and will not be.
    Ended(MountError),
}

/// The resources of one server that are watched, by its own addresses for them. None of them has ended.
#[derive(Debug, Default)]
pub struct ResourceWatches {
    watched: Mutex<BTreeMap<Arc<str>, WatchedResource>>,
    changed: Notify,
}

/// A resource that is watched.
#[derive(Debug, Default)]
struct WatchedResource {
    state: watch::Sender<WatchState>,
    /// Who watches it.
    clients: Arc<ClientShares>,
}

impl ResourceWatches {
    /// Watches a resource for this client, together with all others who do; `None` if too many are watched, by all or by
    /// this client.
    pub fn watch(self: &Arc<Self>, client: &MountClient, uri: &str) -> Option<ResourceWatch> {
        let mut watched = self.lock();
        let has = |uri: &str| watched.get(uri).is_some_and(|it| it.clients.has(client));
        let of_client = watched.values().filter(|it| it.clients.has(client)).count();
        if !has(uri) && of_client >= WATCHED_BY_CLIENT_MAX
            || !watched.contains_key(uri) && watched.len() == WATCHED_MAX
        {
            return None;
        }
        let resource = watched.entry(Arc::from(uri)).or_default();
        let share = resource.clients.take(client, usize::MAX)?;
        let state = resource.state.subscribe();
        drop(watched);
        self.changed.notify_one();
        Some(ResourceWatch { state, _share: share, _leaving: Leaving(Arc::clone(self)) })
    }

    /// The addresses of all that are watched.
    pub fn addresses(&self) -> BTreeSet<Arc<str>> {
        self.lock().keys().cloned().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether the server has yet to say of one that it tells its changes.
    pub fn has_asked(&self) -> bool {
        self.lock().values().any(|it| *it.state.borrow() == WatchState::Asked)
    }

    /// Waits until another resource is watched, or one no longer.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The server tells the changes of this one from now on. If it did so before it was started again, it may have
    /// changed in between.
    pub fn on_told(&self, uri: &str) {
        self.modify(uri, |state| match state {
            WatchState::Asked => *state = WatchState::Told { changes: 0 },
            WatchState::Told { changes } => *changes += 1,
            WatchState::Ended(_) => {}
        });
    }

    /// The server tells the changes of this one already, from those who watched it a moment ago.
    pub fn on_known(&self, uri: &str) {
        if let Some(WatchedResource { state, .. }) = self.lock().get(uri) {
            state.send_if_modified(|state| {
                let is_asked = *state == WatchState::Asked;
                if is_asked {
                    *state = WatchState::Told { changes: 0 };
                }
                is_asked
            });
        }
    }

    /// The server says that this one has changed.
    pub fn on_changed(&self, uri: &str) {
        self.modify(uri, |state| match state {
            WatchState::Told { changes } => *changes += 1,
            WatchState::Asked | WatchState::Ended(_) => {}
        });
    }

    /// Ends the watches of this one.
    pub fn end(&self, uri: &str, error: MountError) {
        if let Some(WatchedResource { state, .. }) = self.lock().remove(uri) {
            state.send_replace(WatchState::Ended(error));
        }
    }

    /// Ends the watches of those of these that the server has not said yet to tell of.
    pub fn end_asked(&self, error: &MountError, of: impl Fn(&str) -> bool) {
        self.end_if(error, |uri, state| *state == WatchState::Asked && of(uri));
    }

    /// Ends all watches.
    pub fn end_all(&self, error: &MountError) {
        self.end_if(error, |_, _| true);
    }

    fn end_if(&self, error: &MountError, ends: impl Fn(&str, &WatchState) -> bool) {
        self.lock().retain(|uri, WatchedResource { state, .. }| {
            let stays = !ends(uri, &state.borrow());
            if !stays {
                state.send_replace(WatchState::Ended(error.clone()));
            }
            stays
        });
    }

    fn modify(&self, uri: &str, change: impl FnOnce(&mut WatchState)) {
        if let Some(WatchedResource { state, .. }) = self.lock().get(uri) {
            state.send_modify(change);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, WatchedResource>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's watch of a resource. The server is asked to tell no more when the last one is dropped.
#[derive(Debug)]
pub struct ResourceWatch {
    // Dropped before the next member looks who is left.
    state: watch::Receiver<WatchState>,
    _share: ClientShare,
    _leaving: Leaving,
}

impl ResourceWatch {
    /// Waits until the server tells its changes, or will not.
    pub async fn begun(&mut self) -> WatchState {
        let begun = self.state.wait_for(|state| *state != WatchState::Asked).await;
        begun.map_or(WatchState::Asked, |state| state.clone())
    }

    /// Waits for the next change; `false` if no more are told.
    pub async fn changed(&mut self) -> bool {
        let is_told = self.state.changed().await.is_ok();
        is_told && matches!(*self.state.borrow_and_update(), WatchState::Told { .. })
    }
}

/// Forgets what nobody watches any longer.
#[derive(Debug)]
struct Leaving(Arc<ResourceWatches>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut watched = self.0.lock();
        let before = watched.len();
        watched.retain(|_, resource| resource.state.receiver_count() > 0);
        let is_changed = watched.len() != before;
        drop(watched);
        if is_changed {
            self.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::core::ids::PrincipalId;

    /// A client of its own for each number.
    fn client(number: u64) -> MountClient {
        MountClient::One(PrincipalId::Connection(number))
    }

    fn ended() -> MountError {
        MountError::Restarted { mount: "fake".parse().unwrap() }
    }

    async fn is_still(watch: &mut ResourceWatch) -> bool {
        timeout(Duration::ZERO, watch.changed()).await.is_err()
    }

    #[tokio::test]
    async fn all_who_watch_a_resource_hear_of_its_changes_and_of_no_other() {
        let watches = Arc::new(ResourceWatches::default());
        let [mut one, mut two] = [1, 2].map(|number| watches.watch(&client(number), "a").unwrap());
        let mut other = watches.watch(&client(1), "b").unwrap();
        watches.on_changed("a");
        assert!(watches.has_asked());
        watches.on_told("a");
        watches.on_known("b");
        assert!(!watches.has_asked());
        watches.on_known("a");
        for watch in [&mut one, &mut two, &mut other] {
            assert_eq!(watch.begun().await, WatchState::Told { changes: 0 });
        }
        watches.on_changed("a");
        assert!(one.changed().await && two.changed().await && is_still(&mut other).await);
        // It was started again.
        watches.on_told("a");
        assert!(one.changed().await);
        watches.on_changed("c");
        drop(one);
        assert_eq!(watches.addresses().len(), 2);
        drop(two);
        assert_eq!(watches.addresses(), BTreeSet::from([Arc::from("b")]));
        timeout(Duration::ZERO, watches.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_watch_that_ended_is_begun_anew_by_the_next_client() {
        let watches = Arc::new(ResourceWatches::default());
        let watch = |uri| watches.watch(&client(1), uri).unwrap();
        let (mut one, mut two) = (watch("a"), watch("b"));
        watches.on_told("b");
        two.begun().await;
        watches.end_asked(&ended(), |uri| uri == "a");
        assert_eq!(one.begun().await, WatchState::Ended(ended()));
        assert!(is_still(&mut two).await);
        let mut again = watch("a");
        watches.on_told("a");
        assert_eq!(again.begun().await, WatchState::Told { changes: 0 });
        watches.end_all(&ended());
        assert!(!two.changed().await && !again.changed().await && watches.is_empty());
        drop(one);
        assert!(watches.is_empty());
    }

    #[test]
    fn no_more_resources_are_watched_than_may_be() {
        let watches = Arc::new(ResourceWatches::default());
        let watch = |number, uri: usize| watches.watch(&client(number), &uri.to_string());
        let half: Vec<_> = (0..32).map(|uri| watch(1, uri).unwrap()).collect();
        assert!(watch(1, 32).is_none(), "one client has no more than half");
        // What it watches already takes no other place, and what another watches is one of it.
        assert!(watch(1, 0).is_some() && watch(2, 0).is_some());
        let other: Vec<_> = (32..64).map(|uri| watch(2, uri).unwrap()).collect();
        assert!(watch(1, 32).is_none() && watch(3, 64).is_none() && watch(3, 0).is_some());
        drop(half);
        assert!(watch(1, 32).is_some() && watch(3, 64).is_some());
        drop(other);
        assert!(watches.is_empty());
    }
}
