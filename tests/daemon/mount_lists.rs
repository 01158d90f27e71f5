//! Servers that list their tools again, do not, or have never done so.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::mount::{MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;
use tokio::time::Instant;

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::mount_exact::Exact;
use crate::daemon::mounts::{daemon_of, settings_of, view, wait_for};
use crate::harness::home::Home;
use crate::harness::waiting::until;

const SERVER: &str = include_str!("listing_server.py");

struct Lister {
    ground: Home,
    settings: MountSettings,
}

impl Lister {
    fn new() -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let text = |name: &str| ground.path(name).to_str().unwrap().to_owned();
        let (command, args) = ("python3".to_owned(), vec![text("server.py"), text("")]);
        let program = ServerCommand { command, args, ..ServerCommand::default() };
        let settings = settings_of(MountedServer::Program(program), MountTrust::Trusted);
        Self { ground, settings }
    }

    async fn mounted(&self) -> TestDaemon {
        daemon_of(&self.settings, true, PolicyRules::default()).await
    }

    /// How often it was started, or asked for its tools.
    fn count(&self, what: &str) -> usize {
        fs::read_to_string(self.ground.path(what)).unwrap_or_default().lines().count()
    }
}

async fn known(operator: &mut Wire) {
    wait_for(operator, |mount| mount["accepted"] == 2).await;
}

async fn counts(client: &mut Wire) -> Value {
    client.structured("fake__count", json!({})).await["counter"].clone()
}

#[tokio::test]
async fn a_server_that_announces_changes_faster_than_it_lists_them_is_found_out() {
    let server = Lister::new();
    let daemon = server.mounted().await;
    let (mut operator, mut client) = (daemon.operator().await, daemon.client(Era::Legacy).await);
    known(&mut operator).await;
    client.structured("fake__change", json!({"to": "eager"})).await;
    wait_for(&mut operator, |mount| mount["changed"] == true).await;
    assert_eq!(client.error_code("fake__count", json!({})).await, "upstream_unavailable");
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_list_its_tools_again_keeps_its_state_and_is_asked_later() {
    let server = Lister::new();
    let daemon = server.mounted().await;
    let (mut operator, mut client) = (daemon.operator().await, daemon.client(Era::Legacy).await);
    known(&mut operator).await;
    assert_eq!(counts(&mut client).await, 1);
    client.structured("fake__change", json!({"to": "refuse"})).await;
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert!(mount["problem"].as_str().unwrap().contains("backend is busy"), "{mount}");
    assert_eq!(mount["status"], "running");
    assert_eq!(counts(&mut client).await, 2);
    client.structured("fake__change", json!({"to": ""})).await;
    wait_for(&mut operator, |mount| mount["problem"].is_null()).await;
    assert_eq!(counts(&mut client).await, 3);
    assert_eq!(server.count("starts"), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn a_flood_of_changes_delays_no_call_and_causes_one_list_a_second() {
    let server = Lister::new();
    let daemon = server.mounted().await;
    let (mut operator, mut client) = (daemon.operator().await, daemon.client(Era::Legacy).await);
    known(&mut operator).await;
    let (began, before) = (Instant::now(), server.count("lists"));
    client.structured("fake__change", json!({"to": "flood"})).await;
    // Two lists, so that the flood goes on for a while.
    until("lists", || server.count("lists") >= before + 2).await;
    for number in 1..=50 {
        assert_eq!(counts(&mut client).await, number);
    }
    let lists = server.count("lists") - before;
    let most = began.elapsed().as_secs() as usize + 2;
    assert!(lists <= most, "{lists} in {:?}", began.elapsed());
    client.structured("fake__change", json!({"to": ""})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn tools_that_a_server_adds_while_it_lists_them_first_are_accepted_with_the_others() {
    let server = Lister::new();
    fs::write(server.ground.path("grows"), "during").unwrap();
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    known(&mut operator).await;
    assert_eq!(view(&mut operator).await["changed"], false);
    daemon.stop().await;
}

#[tokio::test]
async fn the_first_call_of_a_server_that_adds_its_tools_as_it_starts_is_made() {
    let server = Lister::new();
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    known(&mut operator).await;
    let watched = json!({"uri": "termgate://mount/fake/a:b"});
    for when in ["during", "after"] {
        fs::write(server.ground.path("grows"), when).unwrap();
        let before = server.count("starts");
        let restart = json!({"action": "restart", "mount": "fake"});
        operator.structured("manage_mounts", restart).await;
        until("the next start", || server.count("starts") > before).await;
        let mut client = daemon.client(Era::Legacy).await;
        let call = client.send_call("fake__count", json!({})).await;
        client.request("resources/subscribe", watched.clone()).await.unwrap();
        let answer = structured(&client.answer(call).await);
        assert_eq!(answer["counter"], 1, "{when}");
        assert_eq!(view(&mut operator).await["changed"], false, "{when}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_fails_before_its_tools_are_known_is_started_again() {
    let server = Lister::new();
    fs::write(server.ground.path("early"), "").unwrap();
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    until("the next start", || server.count("starts") >= 2).await;
    fs::remove_file(server.ground.path("early")).unwrap();
    known(&mut operator).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_restarted_at_once() {
    let mut server = Lister::new();
    server.settings.initialize_timeout = Duration::from_secs(600);
    for early in ["early", "hang"] {
        fs::write(server.ground.path(early), "").unwrap();
    }
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    until("the start", || server.count("starts") == 1).await;
    fs::remove_file(server.ground.path("early")).unwrap();
    let restart = json!({"action": "restart", "mount": "fake"});
    operator.structured("manage_mounts", restart).await;
    known(&mut operator).await;
    assert_eq!(server.count("starts"), 2);
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_list_of_clients_is_named_until_it_does() {
    let server = Lister::new();
    fs::write(server.ground.path("mute"), "").unwrap();
    let daemon = server.mounted().await;
    let (mut operator, mut client) = (daemon.operator().await, daemon.client(Era::Legacy).await);
    known(&mut operator).await;
    let lists = async |client: &mut Wire| {
        let listed = client.request("resources/list", json!({})).await.unwrap();
        listed.to_string().contains("termgate://mount/fake/a:b")
    };
    assert!(!lists(&mut client).await);
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert!(mount["problem"].as_str().unwrap().contains("`resources/list`"), "{mount}");
    // Another list that it answers says nothing of this one, whoever asks for it.
    client.request("prompts/list", json!({})).await.unwrap();
    let mount = view(&mut operator).await;
    assert!(mount["problem"].as_str().unwrap().contains("`resources/list`"), "{mount}");
    client.structured("fake__change", json!({"to": "refuse"})).await;
    let is_busy = |mount: &Value| mount["problem"].to_string().contains("backend is busy");
    wait_for(&mut operator, is_busy).await;
    client.structured("fake__change", json!({"to": ""})).await;
    let mount = wait_for(&mut operator, |mount| !is_busy(mount)).await;
    assert!(mount["problem"].to_string().contains("`resources/list`"), "{mount}");
    fs::remove_file(server.ground.path("mute")).unwrap();
    while !lists(&mut client).await {}
    wait_for(&mut operator, |mount| mount["problem"].is_null()).await;
    daemon.stop().await;
}

#[tokio::test]
async fn what_a_server_says_before_its_first_list_is_heard() {
    let server = Exact::new(MountTrust::Trusted, "");
    let line = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
            .to_string()
    };
    let logs = |text: &str| line("message", json!({"level": "error", "data": text}));
    let harmless = [
        line("progress", json!({"progressToken": 1, "progress": 1})),
        line("cancelled", json!({"requestId": 1})),
        line("resources/updated", json!({"uri": "a:b"})),
        line("subscriptions/acknowledged", json!({})),
        line("elicitation/complete", json!([])),
        line("unheard of", json!(null)),
        "{\"method\":1}".to_owned(),
    ];
    let told = |log: &str| [&[logs(log)], &harmless[..]].concat().join("\n") + "\n";
    server.says("initialize.tells", &told("no licence"));
    let changed = line("tools/list_changed", json!({})) + "\n";
    server.says("tools.list.tells", &(told("no index") + &changed));
    let daemon = server.mounted().await;
    let mut operator = daemon.operator().await;
    // It is asked for its tools again, because the list may be the one before the change.
    let listed = r#"[{"name":"more","inputSchema":{"type":"object"}}]"#;
    server.says("tools.list", &format!(r#""result":{{"tools":{listed}}}"#));
    let mount = wait_for(&mut operator, |mount| mount["changed"] == true).await;
    let log = mount["log"].to_string();
    assert!(log.contains("[error] no licence") && log.contains("[error] no index"), "{log}");
    daemon.stop().await;
}

#[tokio::test]
async fn what_a_server_logs_before_it_fails_to_start_is_in_its_log() {
    let server = Exact::new(MountTrust::Trusted, "");
    let refusal = r#""error":{"code":-32000,"message":"no"}"#;
    for method in ["initialize", "server.discover"] {
        server.says(method, refusal);
    }
    let message = json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "error", "data": "no licence"},
    });
    server.says("initialize.tells", &format!("{message}\n"));
    let daemon = daemon_of(&server.settings, true, PolicyRules::default()).await;
    let mut operator = daemon.operator().await;
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert!(mount["log"].to_string().contains("[error] no licence"), "{mount}");
    daemon.stop().await;
}
