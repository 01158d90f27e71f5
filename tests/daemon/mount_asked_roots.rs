//! The roots that mounted servers have asked for, when they change.

use serde_json::{Value, json};
use termgate::core::mount::MountMode;

use crate::daemon::harness::Era;
use crate::daemon::mount_asks::{Asking, Client, ROOTS, all, asking};
use crate::daemon::mounts::{view, wait_for};
use crate::harness::waiting::until;

const CHANGED: &str = "notifications/roots/list_changed";

fn tells_roots() -> Value {
    json!({"roots": {"listChanged": true}})
}

/// Has the client asked for its roots.
async fn asks_roots(client: &mut Client) {
    let call = client.send("tools/call", asking(json!([{"method": ROOTS}]))).await;
    let asked = client.asked(ROOTS).await;
    client.answers(&asked.id, &json!({"roots": []})).await;
    client.wire.answer(call).await;
}

#[tokio::test]
async fn a_server_that_has_asked_for_roots_hears_that_they_have_changed() {
    for kind in ["lines", "http"] {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        let mut ada = Client::new(&daemon, Era::Legacy, tells_roots()).await;
        let mut bob = Client::new(&daemon, Era::Legacy, tells_roots()).await;
        asks_roots(&mut ada).await;
        let told = || server.heard().matches("roots changed").count();
        // Nobody has asked for these.
        bob.wire.sender.notify(CHANGED, json!({})).await;
        bob.wire.structured("fake__echo", json!({})).await;
        assert_eq!(told(), 0, "{kind}");
        for _ in 0..20 {
            ada.wire.sender.notify(CHANGED, json!({})).await;
        }
        until("the server to hear of it", || told() == 1).await;
        ada.wire.structured("fake__echo", json!({})).await;
        until("the last change to be told", || told() == 2).await;
        // What is started again has asked for nothing.
        let mut operator = daemon.operator().await;
        let before = view(&mut operator).await["generation"].clone();
        operator.structured("manage_mounts", json!({"action": "restart", "mount": "fake"})).await;
        wait_for(&mut operator, |mount| mount["generation"] != before).await;
        asks_roots(&mut bob).await;
        ada.wire.sender.notify(CHANGED, json!({})).await;
        ada.wire.structured("fake__echo", json!({})).await;
        bob.wire.sender.notify(CHANGED, json!({})).await;
        until("the news of the other client", || told() == 3).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_server_of_one_client_may_ask_for_roots_when_it_hears_that_they_have_changed() {
    for mode in [MountMode::PerClient, MountMode::Shared] {
        let mut server = Asking::start("lines").await;
        server.settings.mode = mode;
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, tells_roots()).await;
        asks_roots(&mut client).await;
        for uri in ["file:///a", "file:///b"] {
            client.wire.sender.notify(CHANGED, json!({})).await;
            if mode == MountMode::Shared {
                server.hears("no call is open, so there is nobody to ask").await;
                continue;
            }
            let asked = client.asked(ROOTS).await;
            client.answers(&asked.id, &json!({"roots": [{"uri": uri}]})).await;
            server.hears(uri).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_server_of_one_client_is_told_whether_that_tells_changes_of_its_roots() {
    let mut server = Asking::start("lines").await;
    server.settings.mode = MountMode::PerClient;
    let daemon = server.mounted().await;
    let declared = r#""roots": {"listChanged": true}"#;
    for (capabilities, count) in [(all(), 0), (tells_roots(), 1)] {
        let mut client = Client::new(&daemon, Era::Legacy, capabilities).await;
        client.wire.structured("fake__echo", json!({})).await;
        assert_eq!(server.heard().matches(declared).count(), count, "{}", server.heard());
    }
    daemon.stop().await;
}
