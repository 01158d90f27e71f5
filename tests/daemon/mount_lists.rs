//! Servers that list their tools again, do not, or have never done so.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::mount::{MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;
use tokio::time::Instant;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mounts::{daemon_of, settings_of, wait_for};
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
    fs::remove_file(server.ground.path("mute")).unwrap();
    while !lists(&mut client).await {}
    wait_for(&mut operator, |mount| mount["problem"].is_null()).await;
    daemon.stop().await;
}
