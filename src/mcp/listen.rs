//! Subscriptions of both eras: `resources/subscribe` by URI, `subscriptions/listen` by filter.
//!
//! A subscription is a task. It ends with its connection, on unsubscribe, or with the listen request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio::task::{AbortHandle, JoinSet};

use crate::core::policy::Standing;
use crate::mcp::connection::Connection;
use crate::mcp::notifications::{NoticeLane, tell_resources, tell_tools, tell_updates};
use crate::mcp::outbox::PushLane;
use crate::mcp::resource::{Resource, Watched};
use crate::mcp::subscription_quota::{SubscriptionPlace, SubscriptionQuota};
use crate::surface::call::Daemon;
use crate::surface::error::SurfaceError;

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
    by_uri: BTreeMap<String, Subscription>,
    listening: bool,
}

#[derive(Debug)]
struct Subscription {
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
        let unknown = || SurfaceError::no_session(uri);
        let resource = Resource::parse(uri)?.filter(|it| it.is_told_to(standing));
        let watched = resource.ok_or_else(unknown)?.watched(daemon, standing)?;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.running.try_join_next().is_some() {}
        tasks.by_uri.retain(|_, told| !told.task.is_finished());
        if tasks.by_uri.contains_key(uri) {
            return Ok(());
        }
        let place = self.quota.enter(standing)?;
        let wire = wire(connection);
        let lane = wire.lane.clone();
        let (daemon, standing) = (Arc::clone(daemon), standing.clone());
        let telling = tell_updates(daemon, standing, watched, uri.to_owned(), wire);
        let task = tasks.running.spawn(async move {
            telling.await;
            drop(place);
        });
        tasks.by_uri.insert(uri.to_owned(), Subscription { task, lane });
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

fn wire(connection: &Arc<Connection>) -> NoticeLane {
    let lane = connection.outbox.lane();
    NoticeLane { connection: Arc::clone(connection), lane, subscription: None }
}

/// What the listen requests of one connection are acknowledged to get, until each is served.
///
/// The protocol library acknowledges a request between the two calls. Its places are taken before, so that it is
/// acknowledged exactly what it gets.
#[derive(Debug, Default)]
pub struct Acknowledged(Mutex<Vec<(SubscriptionFilter, Vec<Promised>)>>);

#[derive(Debug)]
struct Promised {
    uri: String,
    watched: Watched,
    place: SubscriptionPlace,
}

impl Acknowledged {
    /// The part of a filter that this daemon serves to the caller. Empty when the quota is too small for its resources.
    pub fn accept(
        &self,
        daemon: &Daemon,
        standing: &Standing,
        quota: &SubscriptionQuota,
        requested: &SubscriptionFilter,
    ) -> SubscriptionFilter {
        let uris = requested.resource_subscriptions.iter().flatten();
        let watched: Vec<(String, Watched)> =
            uris.filter_map(|uri| Some((uri.clone(), watched(daemon, standing, uri)?))).collect();
        let Ok(places) = quota.enter_all(standing, watched.len()) else {
            return SubscriptionFilter::default();
        };
        let mut filter = requested.clone();
        if let Some(uris) = &mut filter.resource_subscriptions {
            *uris = watched.iter().map(|(uri, _)| uri.clone()).collect();
        }
        let promised = watched.into_iter().zip(places);
        let promised = promised.map(|((uri, watched), place)| Promised { uri, watched, place });
        self.lock().push((requested.clone(), promised.collect()));
        filter
    }

    /// Sends the notifications that the filter selects until the request is cancelled.
    ///
    /// # Errors
    /// Returns [`SurfaceError::Quota`] when the quota is too small for all resources. Then nothing is sent.
    pub async fn listen(
        &self,
        daemon: &Arc<Daemon>,
        standing: &Standing,
        wire: NoticeLane,
        context: &SubscriptionContext,
    ) -> Result<(), SurfaceError> {
        let filter = context.accepted();
        let promised = self.take(context.requested(), filter);
        let promised = promised.ok_or(SurfaceError::Quota("subscriptions"))?;
        let mut telling = JoinSet::new();
        if filter.tools_list_changed == Some(true) {
            telling.spawn(tell_tools(Arc::clone(daemon), standing.clone(), wire.clone()));
        }
        if filter.resources_list_changed == Some(true) {
            telling.spawn(tell_resources(Arc::clone(daemon), standing.clone(), wire.clone()));
        }
        for Promised { uri, watched, place } in promised {
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

    /// Takes what a request was acknowledged. Equal requests with equal acknowledgements may swap it.
    fn take(
        &self,
        requested: &SubscriptionFilter,
        acknowledged: &SubscriptionFilter,
    ) -> Option<Vec<Promised>> {
        let mut open = self.lock();
        let mine = open.iter().position(|(of, promised)| {
            let uris = promised.iter().map(|promised| &promised.uri);
            of == requested && uris.eq(acknowledged.resource_subscriptions.iter().flatten())
        })?;
        Some(open.remove(mine).1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(SubscriptionFilter, Vec<Promised>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a subscription to this URI waits for. `None` if the caller sees no such resource.
fn watched(daemon: &Daemon, standing: &Standing, uri: &str) -> Option<Watched> {
    Resource::parse(uri).ok()??.watched(daemon, standing).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::TenantId;
    use crate::core::quota::Quota;
    use crate::mcp::subscription_quota::tests::agent;

    fn of_resources(uris: &[&str]) -> SubscriptionFilter {
        let mut filter = SubscriptionFilter::default();
        filter.resource_subscriptions = Some(uris.iter().map(|uri| (*uri).to_owned()).collect());
        filter
    }

    #[test]
    fn equal_requests_get_what_each_was_acknowledged() {
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota { own: 10, others: 0 });
        let open = Acknowledged::default();
        let requested = of_resources(&["a", "b"]);
        for uris in [&["a", "b"][..], &["b"], &[]] {
            let promised = uris.iter().map(|uri| Promised {
                uri: (*uri).to_owned(),
                watched: Watched::Sessions,
                place: quota.enter(&agent(1)).expect("ten are free"),
            });
            open.lock().push((requested.clone(), promised.collect()));
        }
        for uris in [&[][..], &["b"], &["a", "b"]] {
            let taken = open.take(&requested, &of_resources(uris)).expect("it was acknowledged");
            let taken: Vec<&str> = taken.iter().map(|promised| promised.uri.as_str()).collect();
            assert_eq!(taken, uris);
        }
        assert!(open.take(&requested, &of_resources(&["a", "b"])).is_none());
    }
}
