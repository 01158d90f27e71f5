//! Leases of mounted servers: one writer at a time, whoever else may look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::{MountMode, MountName, MountTrust};
use termgate::core::policy::rules::patterns::Patterns;

use crate::daemon::approvals::asked_once;
use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::mounts::{Fake, view, wait_for};
use crate::daemon::policy::rules_of;
use crate::daemon::resource_reader::UPDATED;
use crate::harness::waiting::{soon, until};

const LONG_MS: u64 = 600_000;

fn leased(trust: MountTrust) -> Fake {
    let mut fake = Fake::new(trust);
    fake.settings.mode = MountMode::Leased;
    fake
}

async fn acquire(client: &mut Wire) -> Value {
    let asked = json!({"surface": "fake", "ttl_ms": LONG_MS, "reason": "testing"});
    client.structured("acquire_lease", asked).await
}

async fn wait_in_line(client: &mut Wire, operator: &mut Wire, place: u64) -> u64 {
    let asked = json!({"surface": "fake", "ttl_ms": LONG_MS, "wait_ms": LONG_MS});
    let id = client.send_call("acquire_lease", asked).await;
    wait_for(operator, |mount| mount["lease"]["waiters"] == place).await;
    id
}

/// What a refused call is told.
fn refusal(answer: &Value) -> Value {
    assert_eq!(answer["isError"], true, "{answer}");
    answer["structuredContent"].clone()
}

async fn echo(client: &mut Wire) -> Value {
    client.call("fake__echo", json!({})).await
}

#[tokio::test]
async fn two_agents_never_mix() {
    for era in Era::BOTH {
        let fake = leased(MountTrust::Untrusted);
        let (daemon, mut operator) = fake.known(true).await;
        let (mut ada, mut bob) = (daemon.client(era).await, daemon.client(era).await);
        let refused = refusal(&echo(&mut ada).await);
        assert_eq!(refused["error_code"], "lease_required", "{refused}");
        let hint = "Call acquire_lease with surface `fake`, and then this again.";
        assert_eq!(refused["hint"], hint);
        let lease = acquire(&mut ada).await;
        assert_eq!((&lease["surface"], lease.get("session")), (&json!("fake"), None));
        let again = acquire(&mut ada).await;
        assert_eq!(again["lease_id"], lease["lease_id"]);
        ada.structured("fake__echo", json!({})).await;
        let refused = refusal(&echo(&mut bob).await);
        assert_eq!(refused["error_code"], "lease_held", "{refused}");
        let details = &refused["details"];
        assert_eq!((&details["surface"], &details["reason"]), (&json!("fake"), &json!("testing")));
        let hint =
            "Wait in line: call acquire_lease with surface `fake` and wait_ms, or ask the holder.";
        assert_eq!(refused["hint"], hint);
        let waiting = wait_in_line(&mut bob, &mut operator, 1).await;
        let given = json!({"lease_id": lease["lease_id"]});
        let released = ada.structured("release_lease", given).await;
        assert_eq!((&released["surface"], &released["outcome"]), (&json!("fake"), &json!("freed")));
        let next = structured(&bob.answer(waiting).await);
        assert!(next["epoch"].as_u64() > lease["epoch"].as_u64(), "{next} {lease}");
        bob.structured("fake__echo", json!({})).await;
        assert_eq!(ada.error_code("fake__echo", json!({})).await, "lease_held");
        let before = bob.structured("renew_lease", json!({"lease_id": next["lease_id"]})).await;
        assert_eq!(before["surface"], "fake");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_preempted_call_is_cancelled_and_over_before_the_next_holder_calls() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    acquire(&mut ada).await;
    let slow = ada.send_call("fake__slow", json!({})).await;
    until("the server to be asked", || fake.heard().contains("slow")).await;
    let waiting = wait_in_line(&mut bob, &mut operator, 1).await;
    let ended = operator.structured("preempt_lease", json!({"surface": "fake"})).await;
    assert_eq!(ended, json!({"surface": "fake", "ended": true}));
    let told = ada.receiver.notification("notifications/message").await;
    let data = &told["data"];
    assert_eq!(
        (&data["event"], &data["surface"]),
        (&json!("lease_lost"), &json!("fake")),
        "{told}"
    );
    let lost = ada.answer(slow).await["structuredContent"].clone();
    assert_eq!(lost["error_code"], "lease_lost", "{lost}");
    structured(&bob.answer(waiting).await);
    bob.structured("fake__echo", json!({})).await;
    let heard = fake.heard();
    let after: Vec<&str> = heard.lines().skip_while(|line| *line != "slow").collect();
    assert_eq!(after, ["slow", "cancelled", "stopped", "echo"]);
    assert_eq!(ada.error_code("fake__echo", json!({})).await, "lease_lost");
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_ignores_a_cancelled_call_delays_the_next_holder_only_briefly() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    acquire(&mut ada).await;
    ada.send_call("fake__hang", json!({})).await;
    until("the server to be asked", || fake.heard().contains("hang")).await;
    operator.structured("preempt_lease", json!({"surface": "fake"})).await;
    acquire(&mut bob).await;
    bob.structured("fake__echo", json!({})).await;
    assert!(fake.heard().ends_with("cancelled\necho\n"), "{}", fake.heard());
    daemon.stop().await;
}

#[tokio::test]
async fn the_holder_of_a_server_that_restarted_is_told_once_that_its_state_is_gone() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let mut ada = daemon.client(Era::Legacy).await;
    acquire(&mut ada).await;
    ada.structured("fake__echo", json!({})).await;
    let restart = json!({"action": "restart", "mount": "fake"});
    operator.structured("manage_mounts", restart).await;
    wait_for(&mut operator, |mount| mount["status"] == "running" && mount["generation"] == 2).await;
    let before = fake.heard();
    let lost = refusal(&echo(&mut ada).await);
    assert_eq!(lost["error_code"], "upstream_restarted", "{lost}");
    assert_eq!(fake.heard(), before);
    ada.structured("fake__echo", json!({})).await;
    // Whoever comes next has relied on nothing yet.
    let restart = json!({"action": "restart", "mount": "fake"});
    operator.structured("manage_mounts", restart).await;
    wait_for(&mut operator, |mount| mount["status"] == "running" && mount["generation"] == 3).await;
    operator.structured("preempt_lease", json!({"surface": "fake"})).await;
    let mut bob = daemon.client(Era::Legacy).await;
    acquire(&mut bob).await;
    bob.structured("fake__echo", json!({})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_lease_ends_with_its_time_its_connection_and_the_right_to_write() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let mut ada = daemon.client(Era::Legacy).await;
    ada.structured("acquire_lease", json!({"surface": "fake", "ttl_ms": 1_000})).await;
    let told = ada.receiver.notification("notifications/message").await;
    assert_eq!(told["data"]["cause"], "expired", "{told}");
    wait_for(&mut operator, |mount| mount["lease"]["held"] == false).await;
    // A call keeps it alive for as long as it lasts.
    ada.structured("acquire_lease", json!({"surface": "fake", "ttl_ms": 1_000})).await;
    let slow = ada.send_call("fake__slow", json!({})).await;
    until("the server to be asked", || fake.heard().contains("slow")).await;
    let renewed = tokio::time::Instant::now();
    wait_for(&mut operator, |mount| {
        assert_eq!(mount["lease"]["held"], true, "{mount}");
        renewed.elapsed() > Duration::from_millis(1_500)
    })
    .await;
    operator.structured("set_write", json!({"state": "off"})).await;
    let told = ada.receiver.notification("notifications/message").await;
    assert_eq!(told["data"]["cause"], "writing_switched_off", "{told}");
    assert_eq!(ada.answer(slow).await["structuredContent"]["error_code"], "lease_lost");
    let asked = json!({"surface": "fake"});
    assert_eq!(ada.error_code("acquire_lease", asked).await, "read_only");
    operator.structured("set_write", json!({"state": "on"})).await;
    acquire(&mut ada).await;
    let mut bob = daemon.client(Era::Legacy).await;
    let waiting = wait_in_line(&mut bob, &mut operator, 1).await;
    drop(ada);
    structured(&bob.answer(waiting).await);
    daemon.stop().await;
}

#[tokio::test]
async fn a_lease_is_handed_over_and_its_id_is_worth_nothing_to_others() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    let lease = acquire(&mut ada).await;
    let shown = json!({"lease_id": lease["lease_id"]});
    assert_eq!(bob.error_code("fake__echo", shown.clone()).await, "lease_held");
    // The id is for the daemon and not for the server.
    let answer = ada.structured("fake__echo", shown).await;
    assert_eq!(answer["got"], json!({}));
    let waiting = wait_in_line(&mut bob, &mut operator, 1).await;
    let mut cleo = daemon.client(Era::Legacy).await;
    acquire_from_other_session(&mut cleo, &daemon).await;
    let list = view(&mut operator).await;
    assert!(list["lease"]["by"].is_string() && !list.to_string().contains("lease_id"), "{list}");
    let given = json!({"lease_id": lease["lease_id"]});
    ada.structured("release_lease", given).await;
    let lease = structured(&bob.answer(waiting).await);
    let by = view(&mut operator).await["lease"]["by"].as_str().unwrap().to_owned();
    let own =
        bob.error_code("release_lease", json!({"lease_id": lease["lease_id"], "hand_to": by}));
    assert_eq!(own.await, "invalid_argument");
    daemon.stop().await;
}

/// Clients of one session see no mount, so none of its leases either.
async fn acquire_from_other_session(client: &mut Wire, daemon: &TestDaemon) {
    let session = client.start("sleep 60").await;
    let mut inside = daemon.at_session(&session, Era::Legacy).await;
    let mut answers = Vec::new();
    for surface in ["fake", "nope"] {
        let asked = inside.call("acquire_lease", json!({"surface": surface})).await;
        answers.push(asked["content"].to_string().replace(surface, ""));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn tools_that_only_read_need_no_lease() {
    let mut fake = leased(MountTrust::Untrusted);
    fake.settings.reads = Some(Arc::new(Patterns::new(vec!["ech*".to_owned()]).unwrap()));
    let (daemon, _) = fake.known(false).await;
    let mut client = daemon.client(Era::Legacy).await;
    client.structured("fake__echo", json!({})).await;
    assert_eq!(client.error_code("fake__look", json!({})).await, "read_only");
    daemon.stop().await;
    let fake = leased(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    client.structured("fake__look", json!({})).await;
    assert_eq!(client.error_code("fake__echo", json!({})).await, "lease_required");
    daemon.stop().await;
}

#[tokio::test]
async fn the_reads_of_a_mount_decide_alone_which_tools_need_no_lease() {
    let of_look = Patterns::new(vec!["look".to_owned()]).unwrap();
    for (reads, look) in [(Patterns::none(), "lease_required"), (of_look, "")] {
        let mut fake = leased(MountTrust::Trusted);
        fake.settings.reads = Some(Arc::new(reads));
        let (daemon, _) = fake.known(true).await;
        let (mut ada, mut bob) =
            (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
        let looked = ada.call("fake__look", json!({})).await;
        assert_eq!(looked["structuredContent"]["error_code"].as_str().unwrap_or(""), look);
        acquire(&mut ada).await;
        ada.structured("fake__look", json!({})).await;
        let looked = bob.call("fake__look", json!({})).await;
        assert_eq!(looked["isError"] == true, !look.is_empty(), "{looked}");
        assert_eq!(bob.error_code("fake__echo", json!({})).await, "lease_held");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_all_may_use_has_no_lease() {
    let fake = Fake::new(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    let asked = json!({"surface": "fake"});
    let refused = refusal(&client.call("acquire_lease", asked).await);
    assert!(refused["message"].as_str().unwrap().contains("needs no lease"), "{refused}");
    let both = json!({"surface": "fake", "session": "x"});
    assert_eq!(client.error_code("acquire_lease", both).await, "invalid_argument");
    daemon.stop().await;
}

#[tokio::test]
async fn the_list_of_mounts_and_the_events_tell_who_has_a_lease() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    for era in Era::BOTH {
        let mut client = daemon.client(era).await;
        let lease = acquire(&mut client).await;
        let asked = json!({"uri": "termgate://mounts"});
        let read = client.request("resources/read", asked).await.unwrap();
        let text = read["contents"][0]["text"].as_str().unwrap();
        let listed: Value = serde_json::from_str(text).unwrap();
        let mount = &listed["mounts"][0];
        assert_eq!(mount["name"], "fake", "{listed}");
        assert_eq!((&mount["mode"], &mount["lease"]["held"]), (&json!("leased"), &json!(true)));
        assert!(mount["tools"].to_string().contains("fake__echo"), "{listed}");
        client.structured("fake__echo", json!({})).await;
        let given = json!({"lease_id": lease["lease_id"]});
        client.structured("release_lease", given).await;
        let asked = json!({"kind": "lease", "limit": 2});
        let events = client.structured("list_events", asked).await;
        let kinds: Vec<_> = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                assert_eq!(it["mount"], "fake", "{it}");
                assert_eq!(it["epoch"], lease["epoch"], "{it}");
                it["kind"].as_str().unwrap()
            })
            .collect();
        assert_eq!(kinds, ["lease_granted", "lease_released"]);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_list_of_leases_has_those_of_mounts_and_tells_when_they_change() {
    const LEASES: &str = "termgate://leases";
    let fake = leased(MountTrust::Trusted);
    let (daemon, _) = fake.known(true).await;
    for era in Era::BOTH {
        let (mut ada, mut bob) = (daemon.client(era).await, daemon.client(era).await);
        let session = ada.start("cat").await;
        let free = json!({"held": false, "waiters": 0});
        let listed = bob.facts(LEASES).await;
        assert_eq!(listed["leases"][0], json!({"surface": "fake", "lease": free}), "{listed}");
        let sessions = listed["leases"].as_array().unwrap()[1..].iter();
        assert!(sessions.clone().any(|it| it["session"] == session), "{listed}");
        assert!(sessions.clone().all(|it| it.get("surface").is_none()), "{listed}");
        bob.subscribe(LEASES).await;
        let lease = acquire(&mut ada).await;
        assert_eq!(bob.receiver.notification(UPDATED).await["uri"], LEASES);
        let held = bob.facts(LEASES).await["leases"][0]["lease"].clone();
        assert_eq!((&held["held"], &held["epoch"]), (&json!(true), &lease["epoch"]), "{held}");
        assert!(!held.to_string().contains(lease["lease_id"].as_str().unwrap()));
        ada.structured("release_lease", json!({"lease_id": lease["lease_id"]})).await;
        assert_eq!(bob.receiver.notification(UPDATED).await["uri"], LEASES);
        // Those who see no mount see no lease of one.
        let mut inside = daemon.at_session(&session, era).await;
        let listed = inside.facts(LEASES).await;
        assert!(!listed.to_string().contains("surface"), "{listed}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn calls_that_fail_do_not_renew_a_lease() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    client.structured("acquire_lease", json!({"surface": "fake", "ttl_ms": 1_000})).await;
    let until_it_is_over = async {
        loop {
            assert_eq!(client.error_code("fake__refuse", json!({})).await, "upstream_error");
            if view(&mut operator).await["lease"]["held"] == false {
                return;
            }
        }
    };
    soon("the end of the lease", until_it_is_over).await;
    daemon.stop().await;
}

#[tokio::test]
async fn what_an_untrusted_server_refuses_with_hides_nothing() {
    let fake = leased(MountTrust::Untrusted);
    let (daemon, _) = fake.known(true).await;
    let mut client = daemon.client(Era::Legacy).await;
    acquire(&mut client).await;
    let refused = refusal(&client.call("fake__refuse", json!({})).await);
    assert!(refused["message"].as_str().unwrap().contains("not today\\u{1b}"), "{refused}");
    daemon.stop().await;
}

/// The answer to a call about which the rules ask: the id of its approval.
fn approval(answer: &Value) -> Value {
    let asked = refusal(answer);
    assert_eq!(asked["error_code"], "approval_required", "{asked}");
    asked["details"]["approval_id"].clone()
}

#[tokio::test]
async fn an_approval_of_a_call_ends_with_the_lease_under_which_it_was_asked_for() {
    let fake = leased(MountTrust::Untrusted);
    let rules = rules_of(
        "[[rule]]\nname = 'asks'\neffect = 'ask'\nmount = 'fake/echo'\narguments.x = '**s**'\n",
    );
    let (daemon, mut operator) = fake.known_under(rules).await;
    let mut ada = daemon.client(Era::Modern).await;
    let call = json!({"x": "a/secret"});
    // Nobody is asked about a call without the lease.
    assert_eq!(ada.error_code("fake__echo", call.clone()).await, "lease_required");
    let waiting = operator.structured("list_approvals", json!({})).await;
    assert_eq!(waiting["approvals"], json!([]));
    acquire(&mut ada).await;
    for changes in [false, true] {
        let id = approval(&ada.call("fake__echo", call.clone()).await);
        operator.structured("approve", json!({"approval_id": id})).await;
        if !changes {
            ada.structured("fake__echo", call.clone()).await;
            continue;
        }
        operator.structured("preempt_lease", json!({"surface": "fake"})).await;
        acquire(&mut ada).await;
        assert_eq!(ada.error_code("fake__echo", call.clone()).await, "approval_stale");
    }
    // What the rule is not about passes.
    ada.structured("fake__echo", json!({"x": "other"})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_lease_tool_of_a_mount_that_is_repeated_under_its_key_asks_nobody() {
    let fake = leased(MountTrust::Untrusted);
    let rules = rules_of("[[rule]]\nname = 'asks'\neffect = 'ask'\ntool = '*_lease'\n");
    let (daemon, mut operator) = fake.known_under(rules).await;
    let mut ada = daemon.client(Era::Modern).await;
    let asked = json!({"surface": "fake", "ttl_ms": LONG_MS, "idempotency_key": "a"});
    let lease = asked_once(&mut ada, &mut operator, "acquire_lease", asked).await;
    let release = json!({"lease_id": lease["lease_id"], "idempotency_key": "b"});
    let released = asked_once(&mut ada, &mut operator, "release_lease", release).await;
    assert_eq!(released["outcome"], "freed");
    daemon.stop().await;
}

#[tokio::test]
async fn an_approval_to_release_the_lease_of_one_mount_releases_no_other() {
    let (fake, other) = (leased(MountTrust::Untrusted), leased(MountTrust::Untrusted));
    let rules = rules_of("[[rule]]\nname = 'asks'\neffect = 'ask'\ntool = 'release_lease'\n");
    let table = BTreeMap::from([
        ("fake".parse::<MountName>().unwrap(), fake.settings.clone()),
        ("other".parse().unwrap(), other.settings.clone()),
    ]);
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.policy = rules.into();
        config.mounts = Arc::new(table);
    })
    .await;
    let (mut ada, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let known = async {
        while !ada.tools().await.iter().any(|it| it == "other__echo") {}
        while !ada.tools().await.iter().any(|it| it == "fake__echo") {}
    };
    soon("the tools of both", known).await;
    let mut lease = async |surface: &str| {
        let asked = json!({"surface": surface, "ttl_ms": LONG_MS});
        json!({"lease_id": ada.structured("acquire_lease", asked).await["lease_id"]})
    };
    let (own, of_other) = (lease("fake").await, lease("other").await);
    let id = approval(&ada.call("release_lease", own.clone()).await);
    let listed = operator.structured("list_approvals", json!({})).await;
    assert!(listed.to_string().contains("of the mount fake"), "{listed}");
    operator.structured("approve", json!({"approval_id": id})).await;
    assert_ne!(approval(&ada.call("release_lease", of_other).await), id);
    ada.structured("release_lease", own).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_holder_that_only_looks_after_a_restart_is_told_too() {
    let fake = leased(MountTrust::Trusted);
    let (daemon, mut operator) = fake.known(true).await;
    let (mut ada, mut bob) = (daemon.client(Era::Legacy).await, daemon.client(Era::Legacy).await);
    acquire(&mut ada).await;
    ada.structured("fake__echo", json!({})).await;
    operator.structured("manage_mounts", json!({"action": "restart", "mount": "fake"})).await;
    wait_for(&mut operator, |mount| mount["status"] == "running" && mount["generation"] == 2).await;
    // Who does not hold the lease relies on nothing.
    bob.structured("fake__look", json!({})).await;
    assert_eq!(ada.error_code("fake__look", json!({})).await, "upstream_restarted");
    for tool in ["fake__look", "fake__echo"] {
        ada.structured(tool, json!({})).await;
    }
    daemon.stop().await;
}

#[tokio::test]
async fn who_approves_a_call_of_a_mount_sees_all_of_its_arguments() {
    let fake = Fake::new(MountTrust::Trusted);
    let rules = rules_of("[[rule]]\nname = 'asks'\neffect = 'ask'\ntool = 'fake__echo'\n");
    let (daemon, mut operator) = fake.known_under(rules).await;
    let mut ada = daemon.client(Era::Legacy).await;
    // What a server calls so need be no environment variables.
    for given in [json!("production"), json!({"A": "staging"})] {
        ada.call("fake__echo", json!({"env": given})).await;
        let listed = operator.structured("list_approvals", json!({})).await.to_string();
        let shown = given.to_string().replace('"', "\\\"");
        assert!(listed.contains(&shown), "{listed}");
    }
    daemon.stop().await;
}
