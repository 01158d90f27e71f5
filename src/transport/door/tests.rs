//! What the sessions of a client are told when it goes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use uuid::Uuid;

use super::*;
use crate::config::Config;
use crate::core::frame::Size;
use crate::core::ids::LeaseId;
use crate::core::lease::request::AcquireRequest;
use crate::core::policy::PermittedAct;
use crate::session::clock::Clock;
use crate::session::command::Accepted;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::ClientEnvironment;
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::registry::creating::Creation;
use crate::store::index::writer::SearchIndex;
use crate::store::journal::writer::Journal;
use crate::transport::daemon::Assembly;
use crate::transport::daemon::journal::journal_limits;
use crate::transport::daemon::places::Places;

fn standing_of(number: u64) -> Standing {
    let peer =
        Peer { uid: 1_000, gid: 1_000, groups: Vec::new(), pid: None, place: Place::Outside };
    standing(&peer, Door::Gateway, Party::User(1_000), number)
}

fn agent(number: u64) -> Caller {
    standing_of(number).caller
}

fn asking(fresh: u128) -> AcquireRequest {
    AcquireRequest {
        fresh: LeaseId(Uuid::from_u128(fresh)),
        presented: None,
        ttl: None,
        on_disconnect: None,
        reason: None,
        wait_until: None,
        waiters_max: None,
    }
}

#[tokio::test]
async fn what_a_client_took_after_its_right_had_ended_ends_with_its_connection() {
    let places = Places {
        recordings: PathBuf::from("/nonexistent"),
        accepted: PathBuf::from("/nonexistent"),
        environment: BTreeMap::new(),
        default_cwd: "/".into(),
        index: SearchIndex::off(),
        holding: None,
        sandbox: SandboxPlaces::default(),
        scripts: None,
        servers: None,
        state: None,
    };
    let config = Config { allow_write: true, ..Config::built_in() };
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::at(directory.path().to_owned(), journal_limits(&config));
    let Assembly { registry, doors, listening, .. } =
        Assembly::new(&config, places, &journal, Clock::boot().unwrap());
    drop(listening);
    let shared = doors.shared;
    let daemon = Arc::clone(shared.gateway.daemon());
    let standing = standing_of(1);
    let permit = daemon.switchboard.decide_create(&standing, daemon.now()).unwrap();
    let creation = Creation {
        id: registry.fresh_id(),
        tenant: standing.caller.tenant.clone(),
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
        first: Some((agent(1), asking(1))),
    };
    let tell = Arc::clone(&daemon);
    let listed = move |session: &_| tell.switchboard.tell_one(session);
    let (session, grant) =
        registry.create(&permit, creation, Accepted::nothing(), listed).await.unwrap();
    assert!(grant.is_some());

    daemon.principals.enter(&agent(1));
    let unsent = doors.limits.borrow().connection.unsent;
    let connection = Connection::new(ConnectionId(1), unsent).with_right(|| false);
    drop(Visit {
        shared,
        caller: agent(1),
        touched: Arc::new(Mutex::new([session.id()].into())),
        hanging_up: CancellationToken::new(),
        connection: Arc::new(connection),
    });
    let (act, now) = (PermittedAct::Lease, daemon.now());
    let permit = daemon.switchboard.decide(&standing_of(2), act, Some(&session), now).unwrap();
    let acquiring = session.acquire(&permit, agent(2), asking(2), None, Accepted::nothing());
    acquiring.await.expect("nobody may take it back");
}
