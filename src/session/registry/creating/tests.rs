//! The first lease of a session that is created.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{ConnectionId, LeaseId, PrincipalId};
use crate::core::input::WriteWindow;
use crate::core::input::request::WriteError;
use crate::core::lease::request::AcquireRequest;
use crate::core::policy::PermittedAct;
use crate::session::command::Accepted;
use crate::session::error::SessionError;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::ClientEnvironment;
use crate::session::recover::tests::{caller, registry};
use crate::session::request_order::Turnstile;
use crate::session::tests::permitted::permit;

const FIRST: LeaseId = LeaseId(Uuid::from_u128(1));

fn other() -> Caller {
    let (principal, connection) = (PrincipalId::Connection(2), ConnectionId(2));
    Caller { principal, connection, ..caller() }
}

fn asking(fresh: LeaseId) -> AcquireRequest {
    AcquireRequest {
        fresh,
        presented: None,
        ttl: None,
        on_disconnect: None,
        reason: None,
        wait_until: None,
        waiters_max: None,
    }
}

/// A session whose first lease the caller asks for.
fn creation() -> Creation {
    Creation {
        id: SessionId::from_random(Uuid::new_v4()),
        tenant: caller().tenant,
        name: None,
        launch: Launch::Program { name: "/bin/cat".to_owned(), args: Vec::new() },
        cwd: None,
        run_as: None,
        sandbox: false,
        client: ClientEnvironment::of(std::iter::empty()),
        env: BTreeMap::new(),
        size: Size { rows: 5, cols: 20 },
        tags: Vec::new(),
        is_listed: false,
        record: false,
        first: Some((caller(), asking(FIRST))),
    }
}

async fn create(
    registry: &Registry,
    accepted: Accepted,
    listed: impl FnOnce(&Session) + Send + 'static,
) -> Result<(Session, Option<Grant>), CreateError> {
    let permit = permit(&caller(), PermittedAct::Create, None);
    registry.create(&permit, creation(), accepted, listed).await
}

fn open(session: &Session) {
    session.set_window(WriteWindow::Open);
}

async fn acquire(session: &Session, caller: Caller) -> Result<LeaseId, SessionError> {
    let request = asking(LeaseId(Uuid::from_u128(9)));
    let granted = session.permitted_acquire(caller, request, None, Accepted::nothing()).await;
    granted.map(|grant| grant.lease)
}

#[tokio::test]
async fn who_creates_a_session_has_its_first_lease_before_all_others() {
    let registry = registry();
    let (taken, asked) = oneshot::channel();
    let listed = |session: &Session| {
        open(session);
        let session = session.clone();
        tokio::spawn(async move { taken.send(acquire(&session, other()).await) });
    };
    let (session, grant) = create(&registry, Accepted::nothing(), listed).await.unwrap();
    assert_eq!(grant.map(|grant| grant.lease), Some(FIRST));
    assert!(matches!(asked.await, Ok(Err(SessionError::Write(WriteError::Lease(_))))));
    assert_eq!(registry.of_lease(FIRST).map(|found| found.id()), Some(session.id()));
}

fn is_ready(waiting: impl Future<Output = ()>) -> bool {
    pin!(waiting).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn while_a_session_starts_the_next_may_start_and_all_else_waits_until_it_is_listed() {
    let turnstile = Turnstile::default();
    let (first, next, other) = (turnstile.turn(), turnstile.turn(), turnstile.turn());
    let listed = move |session: &Session| {
        open(session);
        assert!(is_ready(next.wait_beside()));
        assert!(!is_ready(next.wait()));
        next.pass();
    };
    create(&registry(), Accepted::guard(first), listed).await.unwrap();
    assert!(is_ready(other.wait()));
}

#[tokio::test]
async fn a_rename_is_finished_though_nobody_waits_for_it_any_more() {
    let registry = registry();
    let (session, _) = create(&registry, Accepted::nothing(), open).await.unwrap();
    let former = session.name();
    registry.known();
    let mut renames = registry.renames();
    let permit = session.permit(&caller(), PermittedAct::Manage);
    assert!(!is_ready(async { drop(registry.rename(&permit, &session, "other").await) }));
    timeout(Duration::from_secs(10), renames.changed()).await.expect("it is finished").unwrap();
    assert_eq!(*session.name(), *"other");
    assert!(registry.known_by_name(session.tenant(), &former).is_none());
    assert_eq!(
        registry.known().iter().map(|known| known.name()).collect::<Vec<_>>(),
        ["other".into()]
    );
}

#[tokio::test]
async fn a_session_whose_creator_has_gone_is_nobodys() {
    let registry = registry();
    let mut changes = registry.changes();
    let begun = std::future::ready(());
    tokio::select! {
        biased;
        created = create(&registry, Accepted::nothing(), open) => panic!("{created:?}"),
        () = begun => {}
    }
    while registry.is_empty() {
        changes.changed().await.unwrap();
    }
    let session = registry.all().remove(0);
    acquire(&session, other()).await.expect("nobody has its lease");
}

#[tokio::test]
async fn what_ends_while_a_session_is_created_leaves_nobody_its_lease() {
    let registry = registry();
    let closed = |session: &Session| session.set_window(WriteWindow::Closed);
    let (session, grant) = create(&registry, Accepted::nothing(), closed).await.unwrap();
    assert_eq!(grant, None);
    open(&session);
    acquire(&session, other()).await.expect("nobody has its lease");

    let left = |session: &Session| {
        open(session);
        session.connection_closed(caller().connection);
    };
    let (session, grant) = create(&registry, Accepted::nothing(), left).await.unwrap();
    assert_eq!(grant, None);
    acquire(&session, other()).await.expect("nobody has its lease");
}

#[tokio::test]
async fn a_lease_that_comes_after_the_end_of_its_session_is_not_remembered() {
    let registry = registry();
    let (session, _) = create(&registry, Accepted::nothing(), open).await.unwrap();
    session.part(Parting::End);
    registry.forgotten(session.id()).await;
    registry.remember_lease(LeaseId(Uuid::from_u128(7)), session.id());
    assert!(registry.0.entries.is_empty(), "an entry of a session that is gone");
    assert!(registry.index().leases.is_empty(), "a lease of a session that is gone");
}
