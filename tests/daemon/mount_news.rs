//! What mounted servers tell of changes: their lists, and the resources that clients subscribe to.

use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::{MountMode, MountTrust};
use tokio::time::Instant;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mounts::Fake;
use crate::daemon::policy::rules_of;
use crate::harness::waiting::until;

const ONE: &str = "termgate://mount/fake/file:///a b?c#d";
const OWN: &str = "file:///a b?c#d";
const UPDATED: &str = "notifications/resources/updated";
const RESOURCES: &str = "notifications/resources/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";

fn fake() -> Fake {
    Fake::new(MountTrust::Trusted).with_mode("news")
}

/// Has the server tell something.
async fn tell(client: &mut Wire, told: Value) {
    let answer = client.call("fake__tell", told).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

async fn tell_update(client: &mut Wire, uri: &str) {
    tell(client, json!({"what": "resources/updated", "uri": uri})).await;
}

/// Opens a subscription of the newer era, and waits for what is acknowledged.
async fn listen(client: &mut Wire, filter: Value) -> (u64, Value) {
    let id = client.send("subscriptions/listen", json!({"notifications": filter})).await;
    let acknowledged = "notifications/subscriptions/acknowledged";
    (id, client.receiver.notification(acknowledged).await["notifications"].take())
}

/// Subscribes to a resource as the client's era does, and waits until the server was asked.
async fn subscribe(client: &mut Wire, uri: &str) -> u64 {
    match client.sender.era() {
        Era::Legacy => {
            client.request("resources/subscribe", json!({"uri": uri})).await.unwrap();
            0
        }
        Era::Modern => listen(client, json!({"resourceSubscriptions": [uri]})).await.0,
    }
}

async fn unsubscribe(client: &mut Wire, uri: &str, listening: u64) {
    match client.sender.era() {
        Era::Legacy => {
            client.request("resources/unsubscribe", json!({"uri": uri})).await.unwrap();
        }
        Era::Modern => client.sender.cancel(listening).await,
    }
}

/// How often the server was asked this.
fn asked(fake: &Fake, what: &str) -> usize {
    fake.heard().lines().filter(|line| *line == format!("{what} {OWN}")).count()
}

/// How many messages of this kind were read and not taken.
fn kept(client: &Wire, method: &str) -> usize {
    client.receiver.kept().filter(|message| message["method"] == method).count()
}

async fn restart(daemon: &TestDaemon) {
    let asked = json!({"action": "restart", "mount": "fake"});
    daemon.operator().await.structured("manage_mounts", asked).await;
}

#[tokio::test]
async fn clients_of_both_eras_hear_that_lists_of_a_mount_have_changed() {
    let fake = fake();
    let (daemon, _) = fake.known(true).await;
    let mut caller = daemon.client(Era::Legacy).await;
    let mut other = daemon.client(Era::Legacy).await;
    let mut modern = daemon.client(Era::Modern).await;
    let filter = json!({"resourcesListChanged": true, "promptsListChanged": true});
    let (id, acknowledged) = listen(&mut modern, filter.clone()).await;
    assert_eq!(acknowledged, filter);
    let session = caller.start("sleep 60").await;
    for wire in [&mut other, &mut modern] {
        // Of the session.
        wire.receiver.notification(RESOURCES).await;
    }
    let mut inside = daemon.at_session(&session, Era::Legacy).await;
    for (what, method) in [("resources", RESOURCES), ("prompts", PROMPTS)] {
        tell(&mut caller, json!({"what": format!("{what}/list_changed")})).await;
        other.receiver.notification(method).await;
        let told = modern.receiver.notification(method).await;
        assert_eq!(told["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    }
    inside.request("ping", json!({})).await.unwrap();
    assert_eq!((kept(&inside, RESOURCES), kept(&inside, PROMPTS)), (0, 0));
    daemon.stop().await;
}

#[tokio::test]
async fn a_flood_of_news_costs_few_notifications() {
    let fake = fake();
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    client.request("resources/subscribe", json!({"uri": ONE})).await.unwrap();
    let begun = Instant::now();
    tell(&mut client, json!({"what": "prompts/list_changed", "times": 3000})).await;
    tell(&mut client, json!({"what": "resources/updated", "uri": OWN, "times": 3000})).await;
    // The last news is never lost.
    client.receiver.notification(PROMPTS).await;
    client.receiver.notification(PROMPTS).await;
    let took = begun.elapsed();
    let most = |pause: Duration| 2 + took.as_millis() / pause.as_millis();
    assert!(kept(&client, PROMPTS) as u128 <= most(Duration::from_secs(1)) - 2);
    let updates = kept(&client, UPDATED) as u128;
    assert!(updates > 0 && updates <= most(Duration::from_millis(50)), "{updates} in {took:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn one_subscription_of_the_server_serves_all_clients_and_ends_with_the_last() {
    let fake = fake();
    let (daemon, _) = fake.known(true).await;
    let mut caller = daemon.client(Era::Legacy).await;
    let mut one = daemon.client(Era::Legacy).await;
    let mut two = daemon.client(Era::Modern).await;
    subscribe(&mut one, ONE).await;
    subscribe(&mut one, ONE).await;
    let listening = subscribe(&mut two, ONE).await;
    tell_update(&mut caller, "two").await;
    tell_update(&mut caller, OWN).await;
    assert_eq!(one.receiver.notification(UPDATED).await, json!({"uri": ONE}));
    let told = two.receiver.notification(UPDATED).await;
    assert_eq!((&told["uri"], asked(&fake, "subscribe")), (&json!(ONE), 1));
    assert_eq!(told["_meta"]["io.modelcontextprotocol/subscriptionId"], listening);

    unsubscribe(&mut two, ONE, listening).await;
    tell_update(&mut caller, OWN).await;
    one.receiver.notification(UPDATED).await;
    assert_eq!(asked(&fake, "unsubscribe"), 0);
    unsubscribe(&mut one, ONE, 0).await;
    until("the server to hear of the end", || asked(&fake, "unsubscribe") == 1).await;
    tell_update(&mut caller, OWN).await;
    for wire in [&mut one, &mut two] {
        wire.request("tools/list", json!({})).await.unwrap();
        assert_eq!(kept(wire, UPDATED), 0);
    }
    // A client that hangs up subscribes to nothing.
    subscribe(&mut one, ONE).await;
    assert_eq!(asked(&fake, "subscribe"), 2);
    drop(one);
    until("the server to hear of the end", || asked(&fake, "unsubscribe") == 2).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_was_started_again_tells_on_and_clients_hear_that_they_missed_something() {
    let fake = fake();
    let (daemon, _) = fake.known(true).await;
    let mut caller = daemon.client(Era::Legacy).await;
    let mut wires = [daemon.client(Era::Legacy).await, daemon.client(Era::Modern).await];
    for wire in &mut wires {
        subscribe(wire, ONE).await;
    }
    until("the subscription", || asked(&fake, "subscribe") == 1).await;
    restart(&daemon).await;
    for wire in &mut wires {
        assert_eq!(wire.receiver.notification(UPDATED).await["uri"], ONE);
    }
    assert_eq!((asked(&fake, "subscribe"), fake.starts()), (2, 2));
    // It starts again by itself, since clients wait for news.
    assert_eq!(caller.error_code("fake__crash", json!({})).await, "upstream_restarted");
    for wire in &mut wires {
        assert_eq!(wire.receiver.notification(UPDATED).await["uri"], ONE);
    }
    assert_eq!((asked(&fake, "subscribe"), fake.starts()), (3, 3));
    tell_update(&mut caller, OWN).await;
    for wire in &mut wires {
        wire.receiver.notification(UPDATED).await;
        assert_eq!(kept(wire, UPDATED), 0);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscription_keeps_an_idle_server_running() {
    let mut fake = fake();
    fake.settings.idle_stop = Duration::from_millis(100);
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    subscribe(&mut client, ONE).await;
    let starts = fake.starts();
    tell(&mut client, json!({"what": "resources/updated", "uri": OWN, "after": 1})).await;
    client.receiver.notification(UPDATED).await;
    assert_eq!(fake.starts(), starts);
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscription_starts_the_server_as_a_call_does() {
    let mut fake = fake();
    fake.settings.idle_stop = Duration::from_millis(1);
    let (daemon, mut operator) = fake.known(true).await;
    crate::daemon::mounts::wait_for(&mut operator, |mount| mount["status"] == "stopped").await;
    let starts = fake.starts();
    let mut client = daemon.client(Era::Legacy).await;
    subscribe(&mut client, ONE).await;
    assert_eq!((fake.starts(), asked(&fake, "subscribe")), (starts + 1, 1));
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscription_that_the_server_refuses_says_so() {
    let fake = fake();
    let (daemon, _) = fake.known(true).await;
    let missing = json!({"uri": "termgate://mount/fake/missing"});
    let mut client = daemon.client(Era::Legacy).await;
    let refused = client.request("resources/subscribe", missing.clone()).await.unwrap_err();
    assert_eq!(refused, json!({"code": -32601, "message": "unknown"}));
    let mut client = daemon.client(Era::Modern).await;
    let (id, _) = listen(&mut client, json!({"resourceSubscriptions": [missing["uri"]]})).await;
    let refused = client.receiver.answer(id).await.unwrap_err();
    assert_eq!(refused, json!({"code": -32601, "message": "unknown"}));
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_tell_changes_is_not_acknowledged() {
    let fake = Fake::new(MountTrust::Trusted).with_mode("content");
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Modern).await;
    let (_, acknowledged) = listen(&mut client, json!({"resourceSubscriptions": [ONE]})).await;
    assert_eq!(acknowledged["resourceSubscriptions"], Value::Null);
    daemon.stop().await;
}

#[tokio::test]
async fn those_who_may_not_read_a_resource_may_not_subscribe_to_it() {
    let fake = fake();
    let text = "
        [[rule]]
        name = \"no-files\"
        effect = \"deny\"
        tool = \"fake__resources/read\"
        mount = \"fake/file:///*\"
        reason = \"not here\"
    ";
    let rules = rules_of(text);
    let (daemon, _) = fake.known_under(rules).await;
    let mut client = daemon.client(Era::Legacy).await;
    let refused = client.request("resources/subscribe", json!({"uri": ONE})).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "policy_denied", "{refused}");
    let mut modern = daemon.client(Era::Modern).await;
    let (id, _) = listen(&mut modern, json!({"resourceSubscriptions": [ONE]})).await;
    let refused = modern.receiver.answer(id).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "policy_denied", "{refused}");

    let session = client.start("sleep 60").await;
    let mut inside = daemon.at_session(&session, Era::Legacy).await;
    let two = json!({"uri": "termgate://mount/fake/two"});
    assert!(inside.request("resources/subscribe", two.clone()).await.is_err());
    let mut inside = daemon.at_session(&session, Era::Modern).await;
    let (_, acknowledged) =
        listen(&mut inside, json!({"resourceSubscriptions": [two["uri"]]})).await;
    assert_eq!(acknowledged["resourceSubscriptions"], Value::Null);
    assert!(!fake.heard().contains("subscribe"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_client_with_a_server_of_its_own_hears_of_no_other() {
    let mut fake = fake();
    fake.settings.mode = MountMode::PerClient;
    let (daemon, _) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    for wire in [&mut ada, &mut bob] {
        subscribe(wire, ONE).await;
        // Of its start.
        wire.receiver.notification(PROMPTS).await;
    }
    tell(&mut ada, json!({"what": "prompts/list_changed"})).await;
    tell_update(&mut ada, OWN).await;
    ada.receiver.notification(UPDATED).await;
    ada.receiver.notification(PROMPTS).await;
    tell_update(&mut bob, OWN).await;
    bob.receiver.notification(UPDATED).await;
    assert_eq!((kept(&bob, UPDATED), kept(&bob, PROMPTS)), (0, 0));
    daemon.stop().await;
}
