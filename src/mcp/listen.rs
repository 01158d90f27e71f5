//! Subscriptions of both eras: `resources/subscribe` by URI, `subscriptions/listen` by filter.
//!
//! A subscription is a task. It ends with its connection, on unsubscribe, or with the listen request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio::task::{AbortHandle, JoinSet};

use crate::core::mount::naming::mount_of_address;
use crate::core::policy::Standing;
use crate::mcp::connection::Connection;
use crate::mcp::notifications::{
    ChangeNotices, NoticeLane, resource_changes, tool_changes, updates,
};
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
        let tools = tool_changes(Arc::clone(daemon), standing.clone());
        let resources = resource_changes(Arc::clone(daemon), standing.clone());
        tasks.running.spawn(tools.send_to(wire.clone()));
        tasks.running.spawn(resources.send_to(wire));
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
        if mount_of_address(uri).is_some() {
            let problem = "is of a mounted server, of which changes are not known: read it again";
            return Err(SurfaceError::argument("uri", problem));
        }
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
        let updates = updates(Arc::clone(daemon), standing.clone(), watched, uri.to_owned());
        let task = tasks.running.spawn(async move {
            updates.send_to(wire).await;
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
/// acknowledged exactly what it gets, and its changes count from then on.
#[derive(Debug, Default)]
pub struct Acknowledged(Mutex<Vec<ListenRequest>>);

#[derive(Debug)]
struct ListenRequest {
    requested: SubscriptionFilter,
    lists: Vec<ChangeNotices>,
    resources: Vec<Promised>,
}

#[derive(Debug)]
struct Promised {
    uri: String,
    updates: ChangeNotices,
    place: SubscriptionPlace,
}

impl Acknowledged {
    /// The part of a filter that this daemon serves to the caller. Empty when the quota is too small for its resources.
    pub fn accept(
        &self,
        daemon: &Arc<Daemon>,
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
        let now = || (Arc::clone(daemon), standing.clone());
        let mut lists = Vec::new();
        if filter.tools_list_changed == Some(true) {
            let (daemon, standing) = now();
            lists.push(tool_changes(daemon, standing));
        }
        if filter.resources_list_changed == Some(true) {
            let (daemon, standing) = now();
            lists.push(resource_changes(daemon, standing));
        }
        let resources = watched.into_iter().zip(places).map(|((uri, watched), place)| {
            let (daemon, standing) = now();
            let updates = updates(daemon, standing, watched, uri.clone());
            Promised { uri, updates, place }
        });
        let resources = resources.collect();
        self.lock().push(ListenRequest { requested: requested.clone(), lists, resources });
        filter
    }

    /// Sends the notifications that the filter selects until the request is cancelled.
    ///
    /// # Errors
    /// Returns [`SurfaceError::Quota`] when the quota is too small for all resources. Then nothing is sent.
    pub async fn listen(
        &self,
        wire: NoticeLane,
        context: &SubscriptionContext,
    ) -> Result<(), SurfaceError> {
        let request = self.take(context.requested(), context.accepted());
        let request = request.ok_or(SurfaceError::Quota("subscriptions"))?;
        let mut telling = JoinSet::new();
        for list in request.lists {
            telling.spawn(list.send_to(wire.clone()));
        }
        for Promised { updates, place, .. } in request.resources {
            let wire = wire.clone();
            telling.spawn(async move {
                updates.send_to(wire).await;
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
    ) -> Option<ListenRequest> {
        let mut open = self.lock();
        let mine = open.iter().position(|request| {
            let uris = request.resources.iter().map(|promised| &promised.uri);
            request.requested == *requested
                && uris.eq(acknowledged.resource_subscriptions.iter().flatten())
        })?;
        Some(open.remove(mine))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ListenRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a subscription to this URI waits for. `None` if the caller sees no such resource.
fn watched(daemon: &Daemon, standing: &Standing, uri: &str) -> Option<Watched> {
    Resource::parse(uri).ok()??.watched(daemon, standing).ok()
}

#[cfg(test)]
mod tests;
