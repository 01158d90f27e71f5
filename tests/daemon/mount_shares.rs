//! What clients share of a mounted server: no client, and no other tenant, can have all of it.

use std::collections::BTreeMap;

use serde_json::json;
use termgate::core::mount::MountTrust;

use crate::daemon::counters::status;
use crate::daemon::harness::{Era, Wire};
use crate::daemon::mounts::{Fake, wait_for};
use crate::daemon::tenants::House;
use crate::harness::waiting::{soon, until};

/// How many calls a client has, and how many resources it watches at most.
const SHARE: usize = 32;

/// Two who are of one tenant.
const TENANTS: &str = r#"
    [tenant.web]
    tokens = ["ci", "clerk"]
    tools = ["fake__*"]
"#;

/// Begins this many calls that are not answered, after `before` of all clients.
async fn hang(client: &mut Wire, fake: &Fake, (before, calls): (usize, usize)) -> Vec<u64> {
    let mut sent = Vec::new();
    for _ in 0..calls {
        sent.push(client.send_call("fake__hang", json!({})).await);
    }
    let heard = || fake.heard().lines().filter(|line| *line == "hang").count();
    until("the calls", || heard() == before + calls).await;
    sent
}

async fn is_refused(client: &mut Wire) {
    let refused = client.call("fake__echo", json!({})).await;
    assert_eq!(refused["structuredContent"]["error_code"], "busy", "{refused}");
    assert_eq!(refused["structuredContent"]["retry_after_ms"], 1_000, "{refused}");
    assert!(refused.to_string().contains("32 calls of this client"), "{refused}");
}

#[tokio::test]
async fn a_client_has_half_of_the_calls_of_a_server_at_most() {
    let fake = Fake::new(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    let mut greedy = daemon.client(Era::Legacy).await;
    let sent = hang(&mut greedy, &fake, (0, SHARE)).await;
    is_refused(&mut greedy).await;
    daemon.client(Era::Legacy).await.structured("fake__echo", json!({})).await;
    // A call that was given up makes room.
    greedy.sender.cancel(sent[0]).await;
    until("the server to hear of it", || fake.heard().contains("cancelled")).await;
    greedy.structured("fake__echo", json!({})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn the_clients_of_another_tenant_have_one_share() {
    let fake = Fake::new(MountTrust::Trusted);
    let mounts = BTreeMap::from([("fake".parse().unwrap(), fake.settings.clone())]);
    let house = House::with_mounts(TENANTS, "", mounts).await;
    wait_for(&mut house.enter("operator").await, |mount| mount["accepted"].is_u64()).await;
    let (mut one, mut two) = (house.enter("ci").await, house.enter("clerk").await);
    hang(&mut one, &fake, (0, SHARE / 2)).await;
    hang(&mut two, &fake, (SHARE / 2, SHARE / 2)).await;
    is_refused(&mut one).await;
    is_refused(&mut two).await;
    house.enter("self").await.structured("fake__echo", json!({})).await;
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_client_watches_half_of_the_resources_of_a_server_at_most() {
    let fake = Fake::new(MountTrust::Trusted).with_mode("news");
    let (daemon, _) = fake.known(true).await;
    let (mut greedy, mut other) =
        (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let watch = async |client: &mut Wire, number: usize| {
        let uri = format!("termgate://mount/fake/{number}");
        client.request("resources/subscribe", json!({"uri": uri})).await
    };
    for number in 0..SHARE {
        watch(&mut greedy, number).await.unwrap();
    }
    let refused = watch(&mut greedy, SHARE).await.unwrap_err();
    assert!(refused.to_string().contains("too many resources"), "{refused}");
    // Also what another watches already.
    watch(&mut other, SHARE).await.unwrap();
    watch(&mut greedy, SHARE).await.unwrap_err();
    watch(&mut other, 0).await.unwrap();
    daemon.stop().await;
}

#[tokio::test]
async fn answers_that_a_client_does_not_read_are_bounded_and_none_is_lost_without_a_word() {
    let fake = Fake::new(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    let (mut silent, mut other) =
        (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let long = json!({"bytes": 7 << 20});
    let mut sent = Vec::new();
    for _ in 0..12 {
        sent.push(silent.send_call("fake__long", long.clone()).await);
    }
    let counts = soon("all answers", async {
        loop {
            let counts = status(&daemon).await["calls"]["fake__long"].clone();
            let all: u64 =
                counts.as_object().into_iter().flatten().filter_map(|(_, it)| it.as_u64()).sum();
            if all == 12 {
                return counts;
            }
        }
    })
    .await;
    assert_eq!(counts, json!({"ok": 9, "quota_exceeded": 3}));
    other.structured("fake__long", long.clone()).await;
    for (number, id) in sent.into_iter().enumerate() {
        let answer = silent.answer(id).await;
        if number < 9 {
            assert_eq!(answer["content"][0]["text"].as_str().unwrap().len(), 7 << 20);
        } else {
            let refused = &answer["structuredContent"];
            assert_eq!(refused["error_code"], "quota_exceeded", "{refused}");
            assert_eq!(refused["retry_after_ms"], 1_000, "{refused}");
        }
    }
    // What is read leaves room.
    silent.structured("fake__long", long).await;
    daemon.stop().await;
}
