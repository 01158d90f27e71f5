//! Subscriptions of both eras: `resources/subscribe` by URI, `subscriptions/listen` by filter.
//!
//! A subscription is a task. It ends with its connection, on unsubscribe, or with the listen request.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio::task::{AbortHandle, JoinSet};

use crate::core::ids::TenantId;
use crate::core::policy::Standing;
use crate::core::quota::Quota;
use crate::mcp::connection::Connection;
use crate::mcp::notifications::{Wire, tell_resources, tell_tools, tell_updates};
use crate::mcp::outbox::PushLane;
use crate::mcp::resource::{Resource, Watched};
use crate::surface::call::Daemon;
use crate::surface::error::SurfaceError;

/// The maximum of subscriptions for the programs inside one session.
const INSIDE_MAX: usize = 16;

/// Limits the subscriptions of each tenant and, separately, of its operators. Clones share the count.
#[derive(Clone, Debug)]
pub struct SubscriptionQuota {
    taken: Taken,
    own: TenantId,
    most: Arc<Mutex<Quota>>,
}

type Taken = Arc<Mutex<HashMap<Party, usize>>>;

/// A tenant, and whether its operators are meant.
type Party = (TenantId, bool);

/// The quota of one subscription, returned on drop.
#[derive(Debug)]
pub struct Place {
    taken: Taken,
    party: Party,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.party) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.party);
            }
        }
    }
}

impl SubscriptionQuota {
    /// Creates the quota for each tenant; `own` is the daemon's tenant.
    pub fn new(own: TenantId, most: Quota) -> Self {
        Self { taken: Arc::default(), own, most: Arc::new(Mutex::new(most)) }
    }

    /// Sets the limits. Existing subscriptions stay.
    pub fn set(&self, most: Quota) {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner) = most;
    }

    /// Takes one place. `None` when the caller's quota is used up.
    pub fn enter(&self, standing: &Standing) -> Option<Place> {
        self.enter_all(standing, 1)?.pop()
    }

    /// Takes `wanted` places. `None` when fewer are left.
    pub fn enter_all(&self, standing: &Standing, wanted: usize) -> Option<Vec<Place>> {
        let party = party(standing);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if self.left(&taken, &party) < wanted {
            return None;
        }
        if wanted > 0 {
            *taken.entry(party.clone()).or_default() += wanted;
        }
        let place = || Place { taken: Arc::clone(&self.taken), party: party.clone() };
        Some(std::iter::repeat_with(place).take(wanted).collect())
    }

    /// Whether `wanted` places are left for the caller.
    pub fn has_room(&self, standing: &Standing, wanted: usize) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.left(&taken, &party(standing)) >= wanted
    }

    fn left(&self, taken: &HashMap<Party, usize>, party: &Party) -> usize {
        let (tenant, _) = party;
        let most = *self.most.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if tenant.is_inside() { INSIDE_MAX } else { most.of(tenant, &self.own) };
        most.saturating_sub(taken.get(party).copied().unwrap_or_default())
    }
}

fn party(standing: &Standing) -> Party {
    (standing.caller.tenant.clone(), standing.is_operator())
}

/// The subscriptions of one connection by URI, for clients of the older era.
#[derive(Debug)]
pub struct Subscriptions {
    quota: SubscriptionQuota,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    // Dropping the set aborts every task in it.
    running: JoinSet<()>,
    by_uri: BTreeMap<String, Told>,
    listening: bool,
}

#[derive(Debug)]
struct Told {
    task: AbortHandle,
    lane: PushLane,
}

impl Subscriptions {
    pub fn new(quota: SubscriptionQuota) -> Self {
        Self { quota, tasks: Mutex::default() }
    }

    /// Notifies the client of list changes from now on, without a subscription.
    pub fn tell_lists(
        &self,
        daemon: &Arc<Daemon>,
        standing: &Standing,
        connection: &Arc<Connection>,
    ) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut tasks.listening, true) {
            return;
        }
        let wire = wire(connection);
        tasks.running.spawn(tell_tools(Arc::clone(daemon), standing.clone(), wire.clone()));
        tasks.running.spawn(tell_resources(Arc::clone(daemon), standing.clone(), wire));
    }

    /// Notifies the client of changes to the resource from now on. Repeated calls have no effect.
    ///
    /// # Errors
    /// * [`SurfaceError::SessionNotFound`]: the caller sees no such resource.
    /// * [`SurfaceError::Argument`]: the query is invalid.
    /// * [`SurfaceError::Quota`]: the quota is used up.
    pub fn subscribe(
        &self,
        daemon: &Arc<Daemon>,
        standing: &Standing,
        connection: &Arc<Connection>,
        uri: &str,
    ) -> Result<(), SurfaceError> {
        let unknown = || SurfaceError::SessionNotFound(uri.to_owned());
        let resource = Resource::parse(uri)?.filter(|it| it.is_told_to(standing));
        let watched = resource.ok_or_else(unknown)?.watched(daemon, standing)?;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.running.try_join_next().is_some() {}
        tasks.by_uri.retain(|_, told| !told.task.is_finished());
        if tasks.by_uri.contains_key(uri) {
            return Ok(());
        }
        let place = self.quota.enter(standing).ok_or(SurfaceError::Quota("subscriptions"))?;
        let wire = wire(connection);
        let lane = wire.lane.clone();
        let (daemon, standing) = (Arc::clone(daemon), standing.clone());
        let telling = tell_updates(daemon, standing, watched, uri.to_owned(), wire);
        let task = tasks.running.spawn(async move {
            telling.await;
            drop(place);
        });
        tasks.by_uri.insert(uri.to_owned(), Told { task, lane });
        Ok(())
    }

    /// Ends the notifications for the resource.
    pub fn unsubscribe(&self, uri: &str) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = tasks.by_uri.remove(uri) {
            told.lane.close();
            told.task.abort();
        }
    }
}

fn wire(connection: &Arc<Connection>) -> Wire {
    let lane = connection.outbox.lane();
    Wire { connection: Arc::clone(connection), lane, subscription: None }
}

/// The part of a filter that this daemon serves to the caller. Empty when the quota is too small for its resources.
pub fn accepted(
    daemon: &Daemon,
    standing: &Standing,
    quota: &SubscriptionQuota,
    requested: &SubscriptionFilter,
) -> SubscriptionFilter {
    let known = |uri: &&String| watched(daemon, standing, uri).is_some();
    let uris = requested.resource_subscriptions.as_ref();
    let uris: Option<Vec<String>> = uris.map(|uris| uris.iter().filter(known).cloned().collect());
    let mut filter = SubscriptionFilter::default();
    if quota.has_room(standing, uris.as_ref().map_or(0, Vec::len)) {
        filter.tools_list_changed = requested.tools_list_changed;
        filter.resources_list_changed = requested.resources_list_changed;
        filter.resource_subscriptions = uris;
    }
    filter
}

/// Sends the notifications that the filter selects until the request is cancelled.
///
/// # Errors
/// Returns [`SurfaceError::Quota`] when the quota is too small for all resources. Then nothing is sent.
pub async fn listen(
    daemon: &Arc<Daemon>,
    standing: &Standing,
    wire: Wire,
    quota: &SubscriptionQuota,
    context: &SubscriptionContext,
) -> Result<(), SurfaceError> {
    // The acknowledged filter names no resources when the quota is used up.
    let uris = context.requested().resource_subscriptions.iter().flatten();
    let watched: Vec<(String, Watched)> =
        uris.filter_map(|uri| Some((uri.clone(), watched(daemon, standing, uri)?))).collect();
    let places =
        quota.enter_all(standing, watched.len()).ok_or(SurfaceError::Quota("subscriptions"))?;
    let filter = context.accepted();
    let mut telling = JoinSet::new();
    if filter.tools_list_changed == Some(true) {
        telling.spawn(tell_tools(Arc::clone(daemon), standing.clone(), wire.clone()));
    }
    if filter.resources_list_changed == Some(true) {
        telling.spawn(tell_resources(Arc::clone(daemon), standing.clone(), wire.clone()));
    }
    for ((uri, watched), place) in watched.into_iter().zip(places) {
        let (daemon, standing) = (Arc::clone(daemon), standing.clone());
        let updates = tell_updates(daemon, standing, watched, uri, wire.clone());
        telling.spawn(async move {
            updates.await;
            drop(place);
        });
    }
    context.cancelled().await;
    wire.lane.close();
    Ok(())
}

/// What a subscription to this URI waits for. `None` if the caller sees no such resource.
fn watched(daemon: &Daemon, standing: &Standing, uri: &str) -> Option<Watched> {
    Resource::parse(uri).ok()??.watched(daemon, standing).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::caller::{Caller, Kind};
    use crate::core::ids::{ConnectionId, PrincipalId};
    use crate::core::policy::{Door, Reach};

    fn standing(tenant: TenantId, door: Door) -> Standing {
        let kind = if door == Door::Operator { Kind::Operator } else { Kind::Agent };
        let caller = Caller {
            principal: PrincipalId::Connection(1),
            connection: ConnectionId(1),
            tenant,
            kind,
            label: Arc::from("someone"),
        };
        Standing { caller, door, reach: Reach::Tenant, token: None, managed: false }
    }

    fn agent(uid: u32) -> Standing {
        standing(TenantId::of_uid(uid), Door::Gateway)
    }

    #[test]
    fn each_tenant_has_places_of_its_own_and_gets_them_back() {
        let (own, other) = (agent(1), agent(2));
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota { own: 1, others: 3 });
        let place = quota.enter(&own).expect("free");
        assert!(quota.enter(&own).is_none());
        let others: Vec<Place> = std::iter::from_fn(|| quota.enter(&other)).collect();
        assert_eq!(others.len(), 3);
        drop(place);
        assert!(quota.enter(&own).is_some());
    }

    #[test]
    fn places_are_taken_all_at_once_or_not_at_all() {
        let own = agent(1);
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota { own: 3, others: 0 });
        let places = quota.enter_all(&own, 2).expect("three are free");
        assert_eq!(places.len(), 2);
        assert!(quota.enter_all(&own, 2).is_none());
        assert!(quota.has_room(&own, 1) && !quota.has_room(&own, 2));
        assert!(quota.enter(&own).is_some());
    }

    #[test]
    fn operators_and_programs_inside_sessions_have_places_of_their_own() {
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota { own: 100, others: 100 });
        let all = |standing: &Standing| -> Vec<Place> {
            std::iter::from_fn(|| quota.enter(standing)).collect()
        };
        let inside = |number| standing(TenantId::inside(number), Door::Gateway);
        let (first, second) = (all(&inside(1)), all(&inside(2)));
        assert_eq!((first.len(), second.len()), (INSIDE_MAX, INSIDE_MAX));
        let agents = all(&agent(1));
        assert_eq!(agents.len(), 100);
        assert_eq!(all(&standing(TenantId::of_uid(1), Door::Operator)).len(), 100);
    }
}
