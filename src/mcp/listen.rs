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
    ChangeNotices, NoticeLane, mounted_resource_changes, prompt_changes, resource_changes,
    tool_changes, updates,
};
use crate::mcp::outbox::PushLane;
use crate::mcp::resource::{Resource, Watched};
use crate::mcp::subscription_quota::{SubscriptionPlace, SubscriptionQuota};
use crate::mount::declared::ServerNews;
use crate::surface::call::Daemon;
use crate::surface::error::SurfaceError;
use crate::surface::mounted::content_mount;
use crate::surface::tool::relay::MountRequest;

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
        tasks.running.spawn(resources.send_to(wire.clone()));
        let resources = mounted_resource_changes(Arc::clone(daemon), standing.clone());
        let prompts = prompt_changes(Arc::clone(daemon), standing.clone());
        tasks.running.spawn(resources.send_to(wire.clone()));
        tasks.running.spawn(prompts.send_to(wire));
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
        if !self.has(uri) {
            let place = self.quota.enter(standing)?;
            let updates = updates(Arc::clone(daemon), standing.clone(), watched, uri.to_owned());
            self.add(connection, uri, (updates, place));
        }
        Ok(())
    }

    /// The same for a resource of a mount, once its server tells its changes.
    ///
    /// # Errors
    /// Those of `watching`, and [`SurfaceError::Quota`] if the quota is used up.
    pub async fn watch(
        &self,
        standing: &Standing,
        connection: &Arc<Connection>,
        uri: &str,
        watching: impl Future<Output = Result<ChangeNotices, SurfaceError>>,
    ) -> Result<(), SurfaceError> {
        if !self.has(uri) {
            let place = self.quota.enter(standing)?;
            self.add(connection, uri, (watching.await?, place));
        }
        Ok(())
    }

    /// Whether the client has subscribed to the resource.
    fn has(&self, uri: &str) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.running.try_join_next().is_some() {}
        tasks.by_uri.retain(|_, told| !told.task.is_finished());
        tasks.by_uri.contains_key(uri)
    }

    fn add(
        &self,
        connection: &Arc<Connection>,
        uri: &str,
        (updates, place): (ChangeNotices, SubscriptionPlace),
    ) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.by_uri.contains_key(uri) {
            // Two requests of one client at the same time.
            return;
        }
        let wire = wire(connection);
        let lane = wire.lane.clone();
        let task = tasks.running.spawn(async move {
            updates.send_to(wire).await;
            drop(place);
        });
        tasks.by_uri.insert(uri.to_owned(), Subscription { task, lane });
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
    /// `None` for a resource of a mount, whose server is asked first.
    updates: Option<ChangeNotices>,
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
        let watched: Vec<(String, WatchedBy)> =
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
            lists.push(resource_changes(Arc::clone(&daemon), standing.clone()));
            lists.push(mounted_resource_changes(daemon, standing));
        }
        if filter.prompts_list_changed == Some(true) {
            let (daemon, standing) = now();
            lists.push(prompt_changes(daemon, standing));
        }
        let resources = watched.into_iter().zip(places).map(|((uri, watched), place)| {
            let (daemon, standing) = now();
            let updates = match watched {
                WatchedBy::Daemon(it) => Some(updates(daemon, standing, it, uri.clone())),
                WatchedBy::Mount => None,
            };
            Promised { uri, updates, place }
        });
        let resources = resources.collect();
        self.lock().push(ListenRequest { requested: requested.clone(), lists, resources });
        filter
    }

    /// Sends the notifications that the filter selects until the request is cancelled.
    ///
    /// # Errors
    /// Returns [`SurfaceError::Quota`] when the quota is too small for all resources. Then nothing is sent. Those of
    /// `watching` end all, so that the client knows that it is not told what it was acknowledged.
    pub async fn listen<T>(
        &self,
        wire: NoticeLane,
        context: &SubscriptionContext,
        watching: impl Fn(&str) -> Option<T>,
    ) -> Result<(), SurfaceError>
    where
        T: Future<Output = Result<ChangeNotices, SurfaceError>> + Send + 'static,
    {
        let request = self.take(context.requested(), context.accepted());
        let request = request.ok_or(SurfaceError::Quota("subscriptions"))?;
        let mut telling: JoinSet<Result<(), SurfaceError>> = JoinSet::new();
        for list in request.lists {
            let wire = wire.clone();
            telling.spawn(async move {
                list.send_to(wire).await;
                Ok(())
            });
        }
        for Promised { uri, updates, place } in request.resources {
            let (wire, watching) = (wire.clone(), watching(&uri));
            telling.spawn(async move {
                let updates = match (updates, watching) {
                    (Some(updates), _) => updates,
                    (None, Some(watching)) => watching.await?,
                    (None, None) => return Err(SurfaceError::no_session(&uri)),
                };
                updates.send_to(wire).await;
                drop(place);
                Ok(())
            });
        }
        let ended = loop {
            tokio::select! {
                () = context.cancelled() => break Ok(()),
                ended = telling.join_next(), if !telling.is_empty() => {
                    if let Some(Ok(Err(error))) = ended {
                        break Err(error);
                    }
                }
            }
        };
        wire.lane.close();
        ended
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

/// Who knows when a resource changes.
#[derive(Debug)]
enum WatchedBy {
    Daemon(Watched),
    Mount,
}

/// What a subscription to this URI waits for. `None` if the caller sees no such resource, or its changes are not told.
fn watched(daemon: &Daemon, standing: &Standing, uri: &str) -> Option<WatchedBy> {
    if let Some((mount, _)) = mount_of_address(uri) {
        let mount = content_mount(daemon, standing, mount, MountRequest::Watch)?;
        let declared = mount.tools().declared;
        let tells = declared.is_none_or(|it| it.tells(ServerNews::Updates));
        return tells.then_some(WatchedBy::Mount);
    }
    let resource = Resource::parse(uri).ok()?.filter(|it| it.is_told_to(standing))?;
    resource.watched(daemon, standing).ok().map(WatchedBy::Daemon)
}

#[cfg(test)]
mod tests;
