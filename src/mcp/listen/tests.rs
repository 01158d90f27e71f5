//! What listen requests get, between their acknowledgement and their end.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncBufReadExt, BufReader};
use uuid::Uuid;

use super::*;
use crate::config::Toolsets;
use crate::core::ids::{ConnectionId, SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::policy::Door;
use crate::core::policy::switches::{Scope, Switches};
use crate::core::quota::Quota;
use crate::mcp::outbox::UnsentLimits;
use crate::mcp::subscription_quota::tests::{agent, standing};
use crate::mount::epochs::EpochFiles;
use crate::mount::registry::{MountPlaces, Mounts};
use crate::session::drain::Departure;
use crate::session::recover::tests::registry;
use crate::store::index::writer::SearchIndex;
use crate::store::journal::writer::{Journal, JournalLimits};
use crate::surface::call::Principals;
use crate::surface::judge::Judge;
use crate::surface::mount_leases::MountLeases;
use crate::surface::switchboard::Switchboard;
use crate::surface::turns::Turns;

fn of_resources(uris: &[&str]) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::default();
    filter.resource_subscriptions = Some(uris.iter().map(|uri| (*uri).to_owned()).collect());
    filter
}

/// A daemon without sessions, where writing is on in one session that has ended.
fn daemon() -> Arc<Daemon> {
    let sessions = registry();
    let mut switches = Switches::default();
    let ended = SessionId::from_random(Uuid::nil());
    switches.set(Scope::Session(ended), WriteWindow::Open);
    let limits = JournalLimits { bytes_max: 0, keep_input: true };
    let epochs = EpochFiles::at(PathBuf::from("/nowhere"));
    Arc::new(Daemon {
        started: sessions.clock().now(),
        mount_leases: Arc::new(MountLeases::new(sessions.clone(), epochs)),
        sessions,
        switchboard: Switchboard::new(switches),
        toolsets: Toolsets { core: true, mounts: true },
        lease_auto: AtomicBool::new(true),
        principals: Principals::default(),
        departure: Departure::default(),
        index: SearchIndex::off(),
        judge: Judge::new(Arc::default()),
        mounts: Mounts::new(MountPlaces::default()),
        turns: Turns::default(),
        journal: Journal::at(PathBuf::from("/nowhere"), limits),
    })
}

fn quota() -> SubscriptionQuota {
    SubscriptionQuota::new(TenantId::of_uid(1), Quota::new(10, 0))
}

#[tokio::test]
async fn what_changes_between_the_acknowledgement_and_the_listening_is_told() {
    let (daemon, open) = (daemon(), Acknowledged::default());
    let operator = standing(TenantId::of_uid(1), Door::Operator);
    let mut requested = SubscriptionFilter::default();
    requested.tools_list_changed = Some(true);
    let accepted = open.accept(&daemon, &operator, &quota(), &requested);
    daemon.switchboard.keep_sessions(|_| false);

    let connection = Arc::new(Connection::new(ConnectionId(1), UnsentLimits::default()));
    let request = open.take(&requested, &accepted).expect("it was acknowledged");
    let mut telling = JoinSet::new();
    for list in request.lists {
        telling.spawn(list.send_to(wire(&connection)));
    }
    let (near, far) = tokio::io::duplex(1_000);
    let outbox = connection.outbox.clone();
    telling.spawn(async move { outbox.write_to(near).await.unwrap() });
    let mut line = String::new();
    BufReader::new(far).read_line(&mut line).await.unwrap();
    assert!(line.contains("notifications/tools/list_changed"), "{line}");
}

#[test]
fn equal_requests_get_what_each_was_acknowledged() {
    let (daemon, quota, open) = (daemon(), quota(), Acknowledged::default());
    let requested = of_resources(&["a", "b"]);
    for uris in [&["a", "b"][..], &["b"], &[]] {
        let resources = uris.iter().map(|uri| Promised {
            uri: (*uri).to_owned(),
            updates: Some(tool_changes(Arc::clone(&daemon), agent(1))),
            place: quota.enter(&agent(1)).expect("ten are free"),
        });
        let resources = resources.collect();
        let requested = requested.clone();
        open.lock().push(ListenRequest { requested, lists: Vec::new(), resources });
    }
    for uris in [&[][..], &["b"], &["a", "b"]] {
        let taken = open.take(&requested, &of_resources(uris)).expect("it was acknowledged");
        let taken: Vec<&str> = taken.resources.iter().map(|it| it.uri.as_str()).collect();
        assert_eq!(taken, uris);
    }
    assert!(open.take(&requested, &of_resources(&["a", "b"])).is_none());
}
