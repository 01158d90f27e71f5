//! What waits for a client that does not read.

use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::*;
use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{Epoch, PrincipalId, SessionId, TenantId};
use crate::mcp::outbox::UnsentLimits;

fn session(number: u128) -> SessionId {
    SessionId::from_random(Uuid::from_u128(number << 80))
}

fn event(epoch: u64, change: LeaseChange) -> LeaseEvent {
    let holder = Caller {
        principal: PrincipalId::Connection(1),
        connection: ConnectionId(1),
        tenant: TenantId::of_uid(1_000),
        kind: Kind::Agent,
        label: Arc::from("agent"),
    };
    LeaseEvent { holder, epoch: Epoch(epoch), change }
}

fn person() -> PrincipalName {
    event(0, LeaseChange::Granted).holder.name()
}

fn connected() -> (LeaseNotices, Arc<Connection>) {
    let connection = Arc::new(Connection::new(ConnectionId(1), UnsentLimits::default()));
    let notices = LeaseNotices::default();
    notices.add(&connection);
    (notices, connection)
}

/// All that the client finds when it reads at last.
async fn read_all(connection: &Connection) -> Vec<serde_json::Value> {
    let (near, mut far) = tokio::io::duplex(1 << 22);
    connection.outbox.close();
    connection.outbox.write_to(near).await.unwrap();
    let mut text = String::new();
    far.read_to_string(&mut text).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn of_each_lease_the_newest_notice_waits_for_a_client_that_does_not_read() {
    let (notices, connection) = connected();
    notices.tell(&LeaseOf::Session(session(2)), &event(7, LeaseChange::Ended(EndCause::Expired)));
    for epoch in 0..1_000 {
        notices.tell(
            &LeaseOf::Session(session(1)),
            &event(epoch, LeaseChange::Suspended { by: person() }),
        );
        notices.tell(&LeaseOf::Session(session(1)), &event(epoch + 1, LeaseChange::Resumed));
    }
    let told = read_all(&connection).await;
    let data = |told: &serde_json::Value| {
        let data = &told["params"]["data"];
        (data["session"].clone(), data["event"].clone(), data["epoch"].clone())
    };
    let expected = [(session(2), "lease_lost", 7), (session(1), "lease_resumed", 1_000)]
        .map(|(session, word, epoch)| (json!(session.to_string()), json!(word), json!(epoch)));
    assert_eq!(told.iter().map(data).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_notices_of_one_client_are_bounded_however_many_leases_it_loses() {
    let (notices, connection) = connected();
    for number in 0..10_000 {
        notices.tell(
            &LeaseOf::Session(session(number)),
            &event(1, LeaseChange::Ended(EndCause::Expired)),
        );
    }
    assert!(connection.outbox.unsent_bytes() <= UnsentLimits::default().pushes_max);
    let told = read_all(&connection).await;
    let newest = told.last().map(|told| told["params"]["data"]["session"].clone());
    assert_eq!(newest, Some(json!(session(9_999).to_string())));
}
