//! What the configuration settles, and the refusals that only a program or a setting brings about.

use std::time::Duration;

use serde_json::json;

use crate::daemon::harness::{Era, TestDaemon};
use crate::harness::waiting::soon;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_automatic_leases_a_write_takes_a_free_lease_and_keeps_it() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.lease.auto = true;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = client.start("exec cat").await;
    let typing = json!({"session": session, "text": "x"});
    let written = client.structured("send_text", typing.clone()).await;
    let mut other = daemon.client(Era::Modern).await;
    assert_eq!(other.error_code("send_text", typing.clone()).await, "lease_held");
    let given = json!({"lease_id": written["lease"]["lease_id"]});
    assert_eq!(client.structured("release_lease", given).await["outcome"], "freed");
    other.structured("send_text", typing).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_has_as_many_sessions_and_subscriptions_as_it_may() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.sessions.own = 1;
        config.subscriptions.own = 1;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = client.start("exec cat").await;
    let another = json!({"command": "exec cat"});
    assert_eq!(client.error_code("create_session", another).await, "quota_exceeded");
    let uri = |part: &str| json!({"uri": format!("termgate://session/{session}/{part}")});
    client.request("resources/subscribe", uri("grid")).await.unwrap();
    let refused = client.request("resources/subscribe", uri("lease")).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "quota_exceeded");
    client.structured("manage_session", json!({"session": session, "action": "kill"})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_beyond_the_quota_is_refused_whole_and_leaves_the_places_to_others() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.subscriptions.own = 1;
    })
    .await;
    let mut client = daemon.client(Era::Modern).await;
    let session = client.start("exec cat").await;
    let uri = |part: &str| format!("termgate://session/{session}/{part}");
    let filter = |uris: &[String]| json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": uris}});
    let acknowledged = "notifications/subscriptions/acknowledged";

    let two = filter(&[uri("grid"), uri("lease")]);
    let refused = client.request("subscriptions/listen", two).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "quota_exceeded", "{refused}");
    let told = client.receiver.notification(acknowledged).await;
    assert_eq!(told["notifications"], json!({}), "{told}");

    let one = filter(&[uri("lease"), uri("nothing")]);
    let served = json!({"toolsListChanged": true, "resourceSubscriptions": [uri("lease")]});
    let one = client.send("subscriptions/listen", one).await;
    let told = client.receiver.notification(acknowledged).await;
    assert_eq!(told["notifications"], served, "{told}");
    let refused = client.request("subscriptions/listen", filter(&[uri("grid")])).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "quota_exceeded", "{refused}");

    client.sender.cancel(one).await;
    client.receiver.notification(acknowledged).await;
    soon("the place to be free again", async {
        loop {
            client.send("subscriptions/listen", filter(&[uri("grid")])).await;
            let told = client.receiver.notification(acknowledged).await;
            if told["notifications"]["resourceSubscriptions"] == json!([uri("grid")]) {
                break;
            }
        }
    })
    .await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_listeners_at_once_those_are_acknowledged_with_resources_that_are_served() {
    const LISTENERS: usize = 50;
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.subscriptions.own = 1;
    })
    .await;
    let mut client = daemon.client(Era::Modern).await;
    let session = client.start("exec cat").await;
    let uris = json!([format!("termgate://session/{session}/grid")]);
    let filter = json!({"notifications": {"resourceSubscriptions": uris}});
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        listeners.push(client.send("subscriptions/listen", filter.clone()).await);
    }
    let mut served = Vec::new();
    for _ in 0..LISTENERS {
        let told = client.receiver.notification("notifications/subscriptions/acknowledged").await;
        if told["notifications"]["resourceSubscriptions"] == uris {
            served.push(told["_meta"]["io.modelcontextprotocol/subscriptionId"].clone());
        }
    }
    assert_eq!(served.len(), 1, "{served:?}");
    for listener in listeners.into_iter().filter(|id| served[0] != json!(id)) {
        let refused = client.receiver.answer(listener).await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "quota_exceeded", "{refused}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_session_is_kept_no_longer_than_configured() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.keep_ended = Duration::from_millis(1);
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = client.start("exit 3").await;
    let listed = json!({"session": session});
    soon("the session to be forgotten", async {
        while client.call("list_sessions", listed.clone()).await["isError"] != true {}
    })
    .await;
    assert_eq!(client.error_code("list_sessions", listed).await, "session_not_found");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holding_ends_for_those_who_wait_however_much_it_is_used() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.lease.max_hold = Duration::from_millis(300);
    })
    .await;
    let mut holder = daemon.client(Era::Legacy).await;
    let session = holder.start("exec cat").await;
    holder.acquire(&session).await;
    let mut waiter = daemon.client(Era::Legacy).await;
    waiter.acquire(&session).await;
    let typing = json!({"session": session, "text": "x"});
    let refused = holder.call("send_text", typing).await["structuredContent"].clone();
    assert_eq!(refused["error_code"], "lease_lost");
    assert_eq!(refused["details"]["cause"], "held_too_long");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_program_or_the_screen_does_not_allow_is_refused_by_its_code() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("printf ready; exec cat").await;
        let ready = json!({"session": session, "text": "ready", "since": 0});
        client.wait_for(ready).await;
        client.acquire(&session).await;

        let expecting = json!({"session": session, "text": "y", "expect_text": "not there"});
        assert_eq!(client.error_code("send_text", expecting).await, "screen_changed");
        let seen = json!({"session": session, "text": "y", "expect_watermark": 0});
        assert_eq!(client.error_code("send_text", seen).await, "screen_changed");
        let click = json!({"session": session, "action": "click", "row": 0, "col": 0});
        assert_eq!(client.error_code("send_mouse", click).await, "not_supported");
        let long = json!({"session": session, "text": "x".repeat(4_096)});
        assert_eq!(client.error_code("send_text", long).await, "too_large");
        let unknown = json!({"lease_id": "00000000-0000-4000-8000-000000000000"});
        assert_eq!(client.error_code("renew_lease", unknown).await, "lease_superseded");
        daemon.stop().await;
    }
}
