//! Mounted servers that are reached by HTTP or a Unix socket, and those that misbehave there.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use termgate::core::mount::server::{HttpAddress, MountedServer};
use termgate::core::mount::{MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mounts::{daemon_of, settings_of, view, wait_for};
use crate::harness::home::Home;
use crate::harness::waiting::until;

const SERVER: &str = include_str!("fake_http_server.py");

/// A server behind a socket. Dropping it ends it.
struct Fake {
    ground: Home,
    process: Child,
    kind: &'static str,
    port: String,
    settings: MountSettings,
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Fake {
    async fn start(kind: &'static str) -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let process = spawn(&ground, kind, "0");
        until("the server", || ground.path("ready").exists()).await;
        let ready = fs::read_to_string(ground.path("ready")).unwrap();
        let http = |url: String, socket: Option<String>| {
            let secret = ("Authorization".to_owned(), "Bearer ${TOKEN:-secret}".to_owned());
            MountedServer::Http(HttpAddress { url, headers: BTreeMap::from([secret]), socket })
        };
        let server = match kind {
            "http" => http(format!("http://127.0.0.1:{ready}/mcp?key=secret"), None),
            "http-unix" => http("http://localhost/mcp".to_owned(), Some(ready.clone())),
            _ => MountedServer::Socket(ready.clone()),
        };
        let settings = settings_of(server, MountTrust::Trusted);
        Self { ground, process, kind, port: ready, settings }
    }

    /// Has the server end and start again at the same place.
    async fn restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        fs::remove_file(self.ground.path("ready")).unwrap();
        self.process = spawn(&self.ground, self.kind, &self.port);
        until("the server", || self.ground.path("ready").exists()).await;
    }

    fn at(&mut self, path: &str) {
        if let MountedServer::Http(http) = &mut self.settings.server {
            http.url = format!("http://127.0.0.1:{}{path}", self.port);
        }
    }

    fn heard(&self) -> String {
        fs::read_to_string(self.ground.path("heard")).unwrap_or_default()
    }

    /// How often it was greeted.
    fn greetings(&self) -> usize {
        self.heard().lines().filter(|line| *line == "initialize").count()
    }

    /// A daemon with this mount, and its operator.
    async fn mounted(&self) -> (TestDaemon, Wire) {
        let daemon = daemon_of(&self.settings, true, PolicyRules::default()).await;
        let operator = daemon.operator().await;
        (daemon, operator)
    }

    /// The same, once its tools are known.
    async fn known(&self) -> (TestDaemon, Wire) {
        let (daemon, mut operator) = self.mounted().await;
        wait_for(&mut operator, |mount| mount["accepted"].is_u64()).await;
        (daemon, operator)
    }
}

fn spawn(ground: &Home, kind: &str, port: &str) -> Child {
    let mut command = Command::new("python3");
    command.arg(ground.path("server.py")).arg(ground.ground()).args([kind, port]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

async fn restart(operator: &mut Wire) {
    operator.structured("manage_mounts", json!({"action": "restart", "mount": "fake"})).await;
    wait_for(operator, |mount| mount["status"] == "running").await;
}

#[tokio::test]
async fn a_server_is_called_over_each_kind_of_socket() {
    for (kind, shown) in [("http", "http://127.0.0.1:"), ("http-unix", "unix:"), ("lines", "unix:")]
    {
        let fake = Fake::start(kind).await;
        let (daemon, mut operator) = fake.known().await;
        let mut client = daemon.client(Era::Legacy).await;
        for number in 0..3 {
            let result = client.call("fake__echo", json!({"x": number})).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(text, format!("{{\"x\": {number}}}"), "{kind}");
        }
        let mount = view(&mut operator).await;
        assert!(mount["server"].as_str().unwrap().contains(shown), "{mount}");
        assert!(mount["pid"].is_null() && mount["generation"] == 1, "{mount}");
        assert!(!mount.to_string().contains("secret"), "{mount}");
        daemon.stop().await;
        if kind != "lines" {
            assert!(fake.heard().contains("delete"), "{kind}: {}", fake.heard());
        }
    }
}

#[tokio::test]
async fn headers_go_to_the_server() {
    let fake = Fake::start("http").await;
    let (daemon, _) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    let headers = client.structured("fake__headers", json!({})).await;
    assert_eq!(headers["authorization"], "Bearer secret", "{headers}");
    assert_eq!(headers["mcp-protocol-version"], "2025-06-18", "{headers}");
    assert_eq!(headers["host"], format!("127.0.0.1:{}", fake.port), "{headers}");
    daemon.stop().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_a_cancelled_call_is_closed() {
    let fake = Fake::start("http").await;
    let (daemon, _) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    let call =
        json!({"name": "fake__progress", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let id = client.send("tools/call", call).await;
    let told = client.receiver.notification("notifications/progress").await;
    assert_eq!(told, json!({"progressToken": "mine", "progress": 1, "message": "half"}));
    assert_eq!(client.answer(id).await["content"][0]["text"], "done");
    until("the answer to the server's ping", || fake.heard().contains("answer")).await;
    until("the stream to be closed", || fake.heard().contains("closed")).await;
    let id = client.send_call("fake__hang", json!({})).await;
    until("the server to be asked", || fake.heard().contains("hang")).await;
    client.call("fake__echo", json!({})).await;
    client.sender.cancel(id).await;
    until("the server to hear of it", || {
        let heard = fake.heard();
        let after = heard.split_once("hang").unwrap().1;
        after.contains("notifications/cancelled") && after.contains("closed")
    })
    .await;
    daemon.stop().await;
}

#[tokio::test]
async fn an_answer_may_come_in_a_later_stream() {
    let fake = Fake::start("http").await;
    let (daemon, _) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    let result = client.call("fake__polled", json!({})).await;
    assert_eq!(result["content"][0]["text"], "polled");
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_says_by_itself_that_its_tools_have_changed() {
    let fake = Fake::start("http").await;
    let (daemon, mut operator) = fake.known().await;
    until("the stream", || fake.heard().contains("listening")).await;
    daemon.client(Era::Legacy).await.call("fake__changed", json!({})).await;
    wait_for(&mut operator, |mount| mount["changed"] == true).await;
    daemon.stop().await;
}

#[tokio::test]
async fn each_way_to_fail_ends_that_call_and_no_other() {
    let mut fake = Fake::start("http").await;
    fake.settings.call_timeout = Duration::from_millis(700);
    let (daemon, _) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    for (tool, code, message) in [
        ("fake__refuse", "upstream_error", "HTTP 401 Unauthorized; look at the mount's headers"),
        ("fake__moved", "upstream_error", "only redirects to the same server are followed"),
        ("fake__unavailable", "upstream_restarted", ""),
        ("fake__garbage", "upstream_restarted", ""),
        ("fake__endless", "upstream_error", "answered with more than 8 MiB"),
        ("fake__drop", "upstream_restarted", ""),
        ("fake__hang", "timeout", ""),
    ] {
        let failed = client.call(tool, json!({})).await;
        assert_eq!(failed["structuredContent"]["error_code"], code, "{tool}: {failed}");
        assert!(failed.to_string().contains(message), "{tool}: {failed}");
        client.call("fake__echo", json!({})).await;
        assert_eq!(fake.greetings(), 1, "{tool}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn many_long_answers_are_read_a_few_at_a_time() {
    let fake = Fake::start("http-unix").await;
    let (daemon, _) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    let mut asked = Vec::new();
    for number in 0..12 {
        let is_stream = number % 2 == 0;
        asked.push(client.send_call("fake__long", json!({"stream": is_stream})).await);
    }
    until("long answers", || fake.heard().contains("most halves 4")).await;
    // A short answer waits for none of them.
    client.call("fake__echo", json!({})).await;
    for id in asked {
        let answer = client.answer(id).await;
        assert_eq!(answer["content"][0]["text"].as_str().unwrap().len(), 4 * 1024 * 1024);
    }
    assert!(!fake.heard().contains("most halves 5"), "{}", fake.heard());
    daemon.stop().await;
}

#[tokio::test]
async fn a_lost_session_is_a_restart() {
    let mut fake = Fake::start("http").await;
    let (daemon, mut operator) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    assert_eq!(client.error_code("fake__forget", json!({})).await, "upstream_restarted");
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert!(mount["problem"].as_str().unwrap().contains("forgotten the session"), "{mount}");
    restart(&mut operator).await;
    client.call("fake__echo", json!({})).await;
    fake.restart().await;
    assert_eq!(client.error_code("fake__echo", json!({})).await, "upstream_restarted");
    restart(&mut operator).await;
    client.call("fake__echo", json!({})).await;
    assert_eq!((fake.greetings(), &view(&mut operator).await["generation"]), (3, &json!(3)));
    assert_eq!(client.error_code("fake__crash", json!({})).await, "upstream_restarted");
    // Until it is gone, its socket takes connections.
    fake.process.wait().unwrap();
    let refused = wait_for(&mut operator, |mount| mount["status"] == "running").await;
    assert!(refused["problem"].is_null(), "{refused}");
    assert_eq!(client.error_code("fake__echo", json!({})).await, "upstream_restarted");
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert!(mount["problem"].as_str().unwrap().contains("onnect"), "{mount}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_closed_socket_is_a_restart() {
    let fake = Fake::start("lines").await;
    let (daemon, mut operator) = fake.known().await;
    let mut client = daemon.client(Era::Legacy).await;
    assert_eq!(client.error_code("fake__drop", json!({})).await, "upstream_restarted");
    restart(&mut operator).await;
    client.call("fake__echo", json!({})).await;
    assert_eq!(fake.heard().matches("connected").count(), 2);
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_says_why() {
    let mut fake = Fake::start("http").await;
    fake.at("/away");
    let away = fake.settings.server.clone();
    let nowhere = |path: &str| MountedServer::Socket(path.to_owned());
    for (server, problem) in [
        (away, "only redirects to the same server are followed"),
        (nowhere("/nowhere/socket"), "cannot connect to /nowhere/socket: "),
    ] {
        fake.settings.server = server;
        let (daemon, mut operator) = fake.mounted().await;
        let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
        assert!(mount["problem"].as_str().unwrap().contains(problem), "{mount}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_may_have_moved_to_another_path() {
    let mut fake = Fake::start("http").await;
    fake.at("/old");
    let (daemon, _) = fake.known().await;
    daemon.client(Era::Legacy).await.call("fake__echo", json!({})).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_lets_nobody_in_says_so() {
    let fake = Fake::start("http").await;
    fs::write(fake.ground.path("closed"), "").unwrap();
    let (daemon, mut operator) = fake.mounted().await;
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    let problem = mount["problem"].as_str().unwrap();
    assert!(problem.contains("HTTP 401 Unauthorized; look at the mount's headers"), "{mount}");
    assert!(!mount.to_string().contains("secret"), "{mount}");
    daemon.stop().await;
}
