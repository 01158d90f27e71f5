//! Change notifications: each names what changed but not the new content.
//!
//! Each client has at most one unsent notification per subscription. Later changes are combined in the next one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::mount::MountName;
use crate::core::mount::naming::mount_of_address;
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::outbox::PushLane;
use crate::mcp::resource::work::State;
use crate::mcp::resource::{SessionPart, Watched, seen};
use crate::mount::handle::ListChanges;
use crate::mount::servers::Mount;
use crate::mount::watches::ResourceWatch;
use crate::session::handle::Session;
use crate::session::registry::silent::Known;
use crate::store::journal::writer::Audience;
use crate::surface::call::{Daemon, seen_known};
use crate::surface::control::approvals::waiting;
use crate::surface::control::list_events::sees;
use crate::surface::mounted::{content_mount, content_mounts, seen_mounts};
use crate::surface::tool::relay::MountRequest;

/// The shortest time between two notifications of one resource to one client.
const PAUSE: Duration = Duration::from_millis(50);

/// The same of the lists of mounts, for which clients ask their servers.
const MOUNTS_PAUSE: Duration = Duration::from_secs(1);

/// A task that sends notifications until its resource is gone.
type Telling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The changes since this was made, for a destination that is named later.
pub struct ChangeNotices(Box<dyn FnOnce(NoticeLane) -> Telling + Send>);

impl ChangeNotices {
    fn new<T>(tell: impl FnOnce(NoticeLane) -> T + Send + 'static) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        Self(Box::new(|wire| Box::pin(tell(wire))))
    }

    /// Sends them until the resource is gone.
    pub async fn send_to(self, wire: NoticeLane) {
        (self.0)(wire).await;
    }
}

impl fmt::Debug for ChangeNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeNotices")
    }
}

/// The destination of notifications.
#[derive(Clone, Debug)]
pub struct NoticeLane {
    pub connection: Arc<Connection>,
    pub lane: PushLane,
    /// The request that opened the subscription, which newer clients find in each notification.
    pub subscription: Option<RequestId>,
}

impl NoticeLane {
    /// Sends one notification and waits until it is written or dropped. After the end of input it is dropped.
    pub async fn send(&self, method: &str, mut params: Value) {
        if let Some(id) = &self.subscription {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        self.send_text(method, &params).await;
    }

    /// The same with parameters that are JSON as text.
    pub async fn send_text(&self, method: &str, params: &impl fmt::Display) {
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", json!(method));
        let room = self.connection.outbox.push_room(line.len()).await;
        if self.connection.ended.is_cancelled() {
            // The client is leaving, and some fail on what they did not ask for.
            return;
        }
        let segments = [Bytes::from(line), Bytes::new(), Bytes::new()];
        self.connection.outbox.push(&self.lane, Some(room), segments).await;
    }
}

/// The changes to the resource at `uri` from the return of this call on, until the session ends.
pub fn updates(
    daemon: Arc<Daemon>,
    standing: Standing,
    watched: Watched,
    uri: String,
) -> ChangeNotices {
    match watched {
        Watched::Part(session, part) => {
            let (frames, told) = WatchedPart::of(session, part);
            ChangeNotices::new(async move |wire| {
                tell_part(&daemon, frames, told, &uri, &wire).await;
            })
        }
        Watched::Silent(id, part) => ChangeNotices::new(async move |wire| {
            let session = daemon.sessions.once_here(id).await;
            let seen = |session: &Session| standing.sees(session);
            let Some(session) = session.filter(seen) else { return };
            let (frames, told) = WatchedPart::of(session, part);
            // The whole resource is new.
            updated(&daemon, &uri, &wire).await;
            tell_part(&daemon, frames, told, &uri, &wire).await;
        }),
        Watched::Sessions => list_changes(daemon, standing, listed, of_resource(&uri)),
        Watched::Leases => list_changes(daemon, standing, leased, of_resource(&uri)),
        Watched::Mounts => list_changes(daemon, standing, mounted, of_resource(&uri)),
        Watched::Approvals => approval_news(daemon, standing, uri),
        Watched::Events => event_news(daemon, standing, uri),
    }
}

/// The approvals that are asked for or decided from the return of this call on, and that the caller may give.
fn approval_news(daemon: Arc<Daemon>, standing: Standing, uri: String) -> ChangeNotices {
    let mut changes = daemon.judge.changes();
    let mut told = waiting_ids(&daemon, &standing);
    ChangeNotices::new(async move |wire: NoticeLane| {
        while changes.changed().await.is_ok() {
            let before = std::mem::replace(&mut told, waiting_ids(&daemon, &standing));
            if before != told {
                updated(&daemon, &uri, &wire).await;
            }
        }
    })
}

fn waiting_ids(daemon: &Daemon, standing: &Standing) -> Vec<String> {
    waiting(daemon, standing).approvals.into_iter().map(|call| call.approval_id).collect()
}

/// The events that the caller may see and that are recorded from the return of this call on.
fn event_news(daemon: Arc<Daemon>, standing: Standing, uri: String) -> ChangeNotices {
    let mut newest = daemon.journal.newest_event();
    let mut told = *newest.borrow_and_update();
    ChangeNotices::new(async move |wire: NoticeLane| {
        while newest.changed().await.is_ok() {
            let after = std::mem::replace(&mut told, *newest.borrow_and_update());
            let seen = |it: &Audience| sees(&daemon.sessions, &standing, &it.tenant, it.session);
            if daemon.journal.any_event_after(after, seen) {
                updated(&daemon, &uri, &wire).await;
            }
        }
    })
}

/// The state of the session list that the caller may see. Notifications compare it, so they reveal nothing else.
fn listed(daemon: &Daemon, standing: &Standing) -> Vec<String> {
    let state = |session: &Known| {
        let exited = session.here().map(|session| session.frame().exit.value.is_some());
        format!("{} {} {exited:?}", session.id(), session.name())
    };
    seen_known(&daemon.sessions, standing).iter().map(state).collect()
}

/// The state of the lease list that the caller may see, except expiry times.
fn leased(daemon: &Daemon, standing: &Standing) -> Vec<String> {
    let state = |session: &Session| format!("{} {:?}", session.id(), session.frame().lease.value);
    let of_mount = |(mount, _): (Mount, _)| {
        Some(format!("{} {:?}", mount.name(), daemon.mount_leases.of(mount.name())?.view().0))
    };
    let of_mounts = seen_mounts(daemon, standing).into_iter().filter_map(of_mount);
    of_mounts.chain(seen(daemon, standing).iter().map(state)).collect()
}

/// The state of the list of mounts that the caller may see, except whether servers run and when leases expire.
fn mounted(daemon: &Daemon, standing: &Standing) -> Vec<String> {
    let state = |(mount, tools): &(Mount, Vec<Arc<str>>)| {
        let lease = daemon.mount_leases.of(mount.name()).map(|lease| lease.view().0);
        format!("{} {tools:?} {lease:?}", mount.name())
    };
    seen_mounts(daemon, standing).iter().map(state).collect()
}

fn list_changes(
    daemon: Arc<Daemon>,
    standing: Standing,
    state: fn(&Daemon, &Standing) -> Vec<String>,
    (method, params): (&'static str, Value),
) -> ChangeNotices {
    let mut changes = daemon.sessions.changes();
    let mut mounts = daemon.mounts.changes();
    let mut known = state(&daemon, &standing);
    ChangeNotices::new(async move |wire: NoticeLane| {
        loop {
            let changed = tokio::select! {
                changed = changes.changed() => changed,
                changed = mounts.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
            let now = state(&daemon, &standing);
            if now != known {
                known = now;
                wire.send(method, params.clone()).await;
                pause(&daemon, PAUSE).await;
            }
        }
    })
}

/// A part of a session and its last reported state.
struct WatchedPart {
    session: Session,
    part: SessionPart,
    state: State,
}

impl WatchedPart {
    /// The current state of a part, and a receiver of later frames.
    fn of(session: Session, part: SessionPart) -> (watch::Receiver<Arc<Frame>>, Self) {
        let mut frames = session.frames();
        let state = part.state(&session, &frames.borrow_and_update());
        (frames, Self { session, part, state })
    }
}

async fn tell_part(
    daemon: &Daemon,
    mut frames: watch::Receiver<Arc<Frame>>,
    mut told: WatchedPart,
    uri: &str,
    wire: &NoticeLane,
) {
    while frames.changed().await.is_ok() {
        let newest = told.part.state(&told.session, &frames.borrow_and_update());
        if newest != told.state {
            told.state = newest;
            updated(daemon, uri, wire).await;
        }
    }
}

async fn updated(daemon: &Daemon, uri: &str, wire: &NoticeLane) {
    let (method, params) = of_resource(uri);
    wire.send(method, params).await;
    pause(daemon, PAUSE).await;
}

fn of_resource(uri: &str) -> (&'static str, Value) {
    ("notifications/resources/updated", json!({"uri": uri}))
}

/// The changes to a client's tool list from the return of this call on. People at the command line are notified of
/// each switch: one of a single session changes what they may do there, and no list.
pub fn tool_changes(daemon: Arc<Daemon>, standing: Standing) -> ChangeNotices {
    let mut changes = daemon.switchboard.changes();
    let mut mounts = daemon.mounts.changes();
    let mut writable = could_write(&daemon, &standing);
    ChangeNotices::new(async move |wire: NoticeLane| {
        loop {
            let (changed, of_mounts) = tokio::select! {
                changed = changes.changed() => (changed, false),
                // Nobody at the door of one session sees mounts.
                changed = mounts.changed() => (changed, standing.reach == Reach::Tenant),
            };
            if changed.is_err() {
                return;
            }
            let before = std::mem::replace(&mut writable, could_write(&daemon, &standing));
            if before != writable || standing.door == Door::Operator || of_mounts {
                wire.send("notifications/tools/list_changed", json!({})).await;
            }
        }
    })
}

fn could_write(daemon: &Daemon, standing: &Standing) -> bool {
    daemon.switchboard.could_write(&daemon.sessions, standing, daemon.now())
}

/// The visible sessions that are added or removed from the return of this call on.
pub fn resource_changes(daemon: Arc<Daemon>, standing: Standing) -> ChangeNotices {
    let changed = ("notifications/resources/list_changed", json!({}));
    list_changes(daemon, standing, listed, changed)
}

/// The changes of the resources and templates of mounts that the caller sees.
pub fn mounted_resource_changes(daemon: Arc<Daemon>, standing: Standing) -> ChangeNotices {
    let method = "notifications/resources/list_changed";
    mounted_changes(daemon, standing, (MountRequest::Resource, method), |it| it.resources)
}

/// The changes of the prompts of mounts that the caller sees. The daemon's own never change.
pub fn prompt_changes(daemon: Arc<Daemon>, standing: Standing) -> ChangeNotices {
    let method = "notifications/prompts/list_changed";
    mounted_changes(daemon, standing, (MountRequest::Prompt, method), |it| it.prompts)
}

fn mounted_changes(
    daemon: Arc<Daemon>,
    standing: Standing,
    (request, method): (MountRequest, &'static str),
    count: fn(ListChanges) -> u64,
) -> ChangeNotices {
    let state = move |daemon: &Daemon| -> Vec<(MountName, u64)> {
        let seen = content_mounts(daemon, &standing, request).into_iter();
        let client = standing.caller.principal;
        seen.map(|it| (it.name().clone(), count(it.list_changes(client)))).collect()
    };
    let mut changes = daemon.mounts.content_changes();
    let mut known = state(&daemon);
    ChangeNotices::new(async move |wire: NoticeLane| {
        while changes.changed().await.is_ok() {
            let now = state(&daemon);
            if now != known {
                known = now;
                wire.send(method, json!({})).await;
            }
            // A server that tells without end costs no more than this.
            pause(&daemon, MOUNTS_PAUSE).await;
        }
    })
}

/// The changes of a resource of a mount, until its server tells no more or the caller does not see the mount any longer.
pub fn mounted_updates(
    daemon: Arc<Daemon>,
    standing: Standing,
    mut watch: ResourceWatch,
    uri: String,
) -> ChangeNotices {
    let mut mounts = daemon.mounts.changes();
    ChangeNotices::new(async move |wire: NoticeLane| {
        let sees = || {
            let mount = mount_of_address(&uri).map(|(mount, _)| mount).unwrap_or_default();
            content_mount(&daemon, &standing, mount, MountRequest::Watch).is_some()
        };
        while sees() {
            let is_told = tokio::select! {
                is_told = watch.changed() => is_told,
                changed = mounts.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            // The last news is that it may change without being told.
            updated(&daemon, &uri, &wire).await;
            if !is_told {
                return;
            }
        }
    })
}

async fn pause(daemon: &Daemon, least: Duration) {
    let clock = daemon.sessions.clock();
    clock.sleep_until(clock.now() + least).await;
}
