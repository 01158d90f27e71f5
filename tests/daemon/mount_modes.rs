//! Mounts with a server for each client, and with a pool of servers.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use termgate::config::{Config, Toolsets};
use termgate::core::mount::{MountMode, MountTrust};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::daemon::mounts::{Fake, table_of, view, wait_for};
use crate::harness::processes::dies;
use crate::harness::waiting::{soon, until};

fn with_mode(mode: MountMode) -> Fake {
    let mut fake = Fake::new(MountTrust::Trusted);
    fake.settings.mode = mode;
    fake
}

async fn pid(client: &mut Wire) -> i32 {
    let answer = client.structured("fake__pid", json!({})).await;
    i32::try_from(answer["pid"].as_i64().unwrap()).unwrap()
}

#[tokio::test]
async fn each_client_has_a_server_of_its_own_which_ends_with_it() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let (of_ada, of_bob) = (pid(&mut ada).await, pid(&mut bob).await);
    assert_ne!(of_ada, of_bob);
    assert_eq!((pid(&mut ada).await, pid(&mut bob).await), (of_ada, of_bob));
    let mount = view(&mut operator).await;
    // With the one that listed the tools.
    assert_eq!((&mount["mode"], &mount["servers"]), (&json!("per_client"), &json!(3)));
    drop(bob);
    dies(of_bob).await;
    wait_for(&mut operator, |mount| mount["servers"] == 2).await;
    assert_eq!(pid(&mut ada).await, of_ada);
    daemon.stop().await;
    dies(of_ada).await;
}

#[tokio::test]
async fn a_client_whose_server_ended_is_told_once_that_its_state_is_gone() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let before = pid(&mut client).await;
    let restart = json!({"action": "restart", "mount": "fake"});
    operator.structured("manage_mounts", restart).await;
    dies(before).await;
    assert_eq!(client.error_code("fake__pid", json!({})).await, "upstream_restarted");
    assert_ne!(pid(&mut client).await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn no_more_clients_than_may_have_servers_have_one() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, _) = fake.known(true).await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = daemon.client(Era::Legacy).await;
        pid(&mut client).await;
        clients.push(client);
    }
    let mut late = daemon.client(Era::Legacy).await;
    let refused = late.call("fake__pid", json!({})).await["structuredContent"].clone();
    assert_eq!(refused["error_code"], "quota_exceeded", "{refused}");
    assert!(refused["message"].as_str().unwrap().starts_with("16 clients use"), "{refused}");
    assert_eq!(refused.get("retry_after_ms"), None, "{refused}");
    clients.pop();
    let has_room = async { while late.call("fake__pid", json!({})).await["isError"] == true {} };
    soon("room for another", has_room).await;
    daemon.stop().await;
}

#[tokio::test]
async fn calls_go_to_the_server_of_a_pool_that_has_the_least_to_do() {
    let fake = with_mode(MountMode::Pool(2));
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let first = pid(&mut client).await;
    assert_eq!(pid(&mut client).await, first);
    assert_eq!(fake.starts(), 1);
    client.send_call("fake__slow", json!({})).await;
    until("the server to be asked", || fake.heard().contains("slow")).await;
    let second = pid(&mut client).await;
    assert_ne!(second, first);
    client.send_call("fake__slow", json!({})).await;
    until("both to be asked", || fake.heard().matches("slow").count() == 2).await;
    let third = pid(&mut client).await;
    assert!([first, second].contains(&third) && fake.starts() == 2);
    assert_eq!(view(&mut operator).await["servers"], 2);
    daemon.stop().await;
}

/// Has the first server of a pool work on a call. Returns its process and the call.
async fn busy(client: &mut Wire, fake: &Fake) -> (i32, u64) {
    let first = pid(client).await;
    let slow = client.send_call("fake__slow", json!({})).await;
    until("the server to be asked", || fake.heard().contains("slow")).await;
    (first, slow)
}

/// Gives up the call of a server, and waits until the server has heard of it.
async fn idle_again(client: &mut Wire, fake: &Fake, slow: u64) {
    client.sender.cancel(slow).await;
    until("the server to be idle", || fake.heard().contains("stopped")).await;
}

#[tokio::test]
async fn a_server_of_a_pool_that_does_not_start_takes_no_calls_from_the_others() {
    let fake = with_mode(MountMode::Pool(2));
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let (first, slow) = busy(&mut client, &fake).await;
    // The other one fails when it is to list its tools.
    fs::remove_file(fake.ground.path("tools.json")).unwrap();
    assert_eq!(client.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    // In its pauses, calls go to the one that works.
    let is_served = async { while client.call("fake__pid", json!({})).await["isError"] == true {} };
    soon("a call", is_served).await;
    let mount = view(&mut operator).await;
    let problem = mount["problem"].as_str().unwrap();
    assert!(problem.starts_with("one of its servers failed: "), "{mount}");
    assert_eq!(mount["status"], "running");
    idle_again(&mut client, &fake, slow).await;
    for _ in 0..5 {
        assert_eq!(pid(&mut client).await, first);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_of_a_pool_with_other_tools_takes_no_calls_from_the_others() {
    let fake = with_mode(MountMode::Pool(2));
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let (first, slow) = busy(&mut client, &fake).await;
    fake.lists(|name| format!("now {name}"));
    assert_eq!(client.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    assert_eq!(pid(&mut client).await, first);
    idle_again(&mut client, &fake, slow).await;
    assert_eq!(pid(&mut client).await, first);
    assert_eq!(view(&mut operator).await["changed"], true);
    daemon.stop().await;
}

#[tokio::test]
async fn what_the_servers_of_clients_do_and_say_is_seen() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, _) = fake.known(true).await;
    // Its tools are known, so that the first server does not start.
    let table = table_of(&fake.settings);
    let change = |config: &mut Config| (config.allow_write, config.mounts) = (true, table);
    let daemon = daemon.restarted(change).await;
    let (mut operator, mut client) = (daemon.operator().await, daemon.client(Era::Legacy).await);
    fs::remove_file(fake.ground.path("tools.json")).unwrap();
    assert_eq!(client.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    let mount = view(&mut operator).await;
    let problem = mount["problem"].as_str().unwrap();
    assert!(!problem.contains("one of") && problem.contains("FileNotFoundError"), "{mount}");
    fake.lists(|name| format!("does {name}"));
    let runs = async { while client.call("fake__pid", json!({})).await["isError"] == true {} };
    soon("the server of the client", runs).await;
    let mount = view(&mut operator).await;
    let expected = (&json!(null), &json!("running"), &json!("Be\\u{200b} kind."));
    assert_eq!((&mount["problem"], &mount["status"], &mount["instructions"]), expected);
    let read = client.request("resources/read", json!({"uri": "termgate://mounts"})).await.unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    let seen: Value = serde_json::from_str(text).unwrap();
    let expected = (&json!("running"), &json!("Be\u{200b} kind."));
    let seen = &seen["mounts"][0];
    assert_eq!((&seen["status"], &seen["instructions"]), expected);
    daemon.stop().await;
}

/// Accepts the tools that a server of the mount lists, once it does.
async fn accept(operator: &mut Wire) {
    wait_for(operator, |mount| mount["changed"] == true).await;
    operator.structured("manage_mounts", json!({"action": "accept", "mount": "fake"})).await;
}

#[tokio::test]
async fn a_server_with_the_former_tools_starts_again_once_others_are_accepted() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let before = pid(&mut ada).await;
    fake.lists(|name| format!("now {name}"));
    assert_eq!(bob.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    assert_eq!(pid(&mut ada).await, before);
    // Its call is not cut off, and what comes after it waits.
    let held = ada.send_call("fake__held", json!({})).await;
    until("the server to be asked", || fake.heard().contains("held")).await;
    accept(&mut operator).await;
    pid(&mut bob).await;
    let next = ada.send_call("fake__pid", json!({})).await;
    fs::write(fake.ground.path("starts.go"), "").unwrap();
    assert_eq!(ada.answer(held).await, json!({"content": []}));
    assert_eq!(error_code(&ada.answer(next).await), "upstream_restarted");
    assert_ne!(pid(&mut ada).await, before);
    let mount = view(&mut operator).await;
    assert_eq!((&mount["changed"], &mount["problem"]), (&json!(false), &json!(null)));
    daemon.stop().await;
}

#[tokio::test]
async fn tools_can_be_accepted_when_the_client_has_gone_whose_server_listed_them() {
    let fake = with_mode(MountMode::PerClient);
    let (daemon, mut operator) = fake.known(true).await;
    let mut ada = daemon.client(Era::Legacy).await;
    fake.lists(|name| format!("now {name}"));
    assert_eq!(ada.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    drop(ada);
    wait_for(&mut operator, |mount| mount["servers"] == 1).await;
    accept(&mut operator).await;
    pid(&mut daemon.client(Era::Legacy).await).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_pool_whose_servers_list_what_was_accepted_has_no_changed_tools() {
    let fake = with_mode(MountMode::Pool(2));
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let first = pid(&mut client).await;
    client.send_call("fake__slow", json!({})).await;
    until("the server to be asked", || fake.heard().contains("slow")).await;
    fake.lists(|name| format!("now {name}"));
    assert_eq!(client.error_code("fake__pid", json!({})).await, "upstream_unavailable");
    wait_for(&mut operator, |mount| mount["changed"] == true).await;
    fake.lists(|name| format!("does {name}"));
    operator.structured("manage_mounts", json!({"action": "restart", "mount": "fake"})).await;
    dies(first).await;
    wait_for(&mut operator, |mount| mount["changed"] == false).await;
    pid(&mut client).await;
    let nothing = json!({"action": "accept", "mount": "fake"});
    assert_eq!(operator.error_code("manage_mounts", nothing).await, "invalid_argument");
    daemon.stop().await;
}

#[tokio::test]
async fn clients_have_the_sets_of_tools_that_the_daemon_was_started_with() {
    let fake = with_mode(MountMode::Leased).with_mode("content");
    let table = BTreeMap::from([("fake".parse().unwrap(), fake.settings.clone())]);
    let table = Arc::new(table);
    for (core, mounts) in [(false, true), (true, false)] {
        let table = Arc::clone(&table);
        let daemon = TestDaemon::configured(move |config| {
            config.allow_write = true;
            config.toolsets = Toolsets { core, mounts };
            config.mounts = table;
        })
        .await;
        let mut operator = daemon.operator().await;
        wait_for(&mut operator, |mount| mount["accepted"].is_u64()).await;
        let mut client = daemon.client(Era::Legacy).await;
        let listed = client.tools().await;
        let has = |name: &str| listed.iter().any(|it| it == name);
        assert_eq!((has("run"), has("fake__echo")), (core, mounts), "{listed:?}");
        assert!(has("acquire_lease") && has("renew_lease") && has("release_lease") && has("why"));
        let call = json!({"name": "list_sessions", "arguments": {}});
        assert_eq!(client.request("tools/call", call).await.is_ok(), core);
        let asked = client.call("acquire_lease", json!({"surface": "fake"})).await;
        assert_eq!(asked["isError"] == true, !mounts, "{asked}");
        let created = operator.structured("create_session", json!({"command": "cat"})).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            has_what_is_of(&mut client, &session, (core, mounts)).await;
        }
        operator.structured("list_sessions", json!({})).await;
        daemon.stop().await;
    }
}

/// Checks that a client has the resources, templates and prompts of sessions and of mounts, or has not.
async fn has_what_is_of(client: &mut Wire, session: &str, sets: (bool, bool)) {
    for (method, own) in [
        ("resources/list", "termgate://sessions"),
        ("resources/list", session),
        ("resources/list", "termgate://skills"),
        ("resources/templates/list", "termgate://session"),
        ("prompts/list", "session"),
    ] {
        let listed = client.request(method, json!({})).await.unwrap().to_string();
        let of_mount = if method == "prompts/list" { "fake__" } else { "termgate://mount/fake/" };
        assert_eq!((listed.contains(own), listed.contains(of_mount)), sets, "{method}: {listed}");
    }
    let grid = format!("termgate://session/{session}/grid");
    for uri in [&grid, "termgate://sessions", "termgate://leases", "termgate://events"] {
        let read = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read.is_ok(), sets.0, "{uri}: {read:?}");
    }
    let read = client.request("resources/read", json!({"uri": "termgate://mounts"})).await;
    assert!(read.is_ok());
    let two = json!({"uri": "termgate://mount/fake/two"});
    assert_eq!(client.request("resources/read", two).await.is_ok(), sets.1);
    let observed = client.request("termgate/observe", json!({"session": session}));
    if !sets.0 {
        let refused = observed.await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "session_not_found", "{refused}");
        let leased = client.error_code("acquire_lease", json!({"session": session})).await;
        assert_eq!(leased, "session_not_found");
    }
}
