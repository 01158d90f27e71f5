//! Mounted servers of the newer era of the protocol, and older ones that do not understand its greeting.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use termgate::core::mount::server::{HttpAddress, MountedServer, ServerCommand};
use termgate::core::mount::{MountSettings, MountTrust};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mounts::{daemon_of, settings_of, view, wait_for};
use crate::harness::home::Home;
use crate::harness::waiting::until;

const SERVER: &str = include_str!("fake_newer_server.py");
const ONE: &str = "termgate://mount/fake/one";
const UPDATED: &str = "notifications/resources/updated";

/// A server, and its process if the daemon does not start it.
pub(crate) struct NewerFake {
    pub(crate) ground: Home,
    pub(crate) settings: MountSettings,
    pub(crate) process: Option<Child>,
}

impl Drop for NewerFake {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl NewerFake {
    /// A program that treats the greetings like this.
    pub(crate) fn lines(kind: &str) -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let directory = text(ground.ground().to_owned());
        let program = ServerCommand {
            command: "python3".to_owned(),
            args: vec![text(ground.path("server.py")), directory, "lines".into(), kind.into()],
            ..ServerCommand::default()
        };
        let settings = settings_of(MountedServer::Program(program), MountTrust::Trusted);
        Self { ground, settings, process: None }
    }

    pub(crate) async fn http() -> Self {
        let ground = Home::new();
        fs::write(ground.path("server.py"), SERVER).unwrap();
        let mut command = Command::new("python3");
        command.arg(ground.path("server.py")).arg(ground.ground()).arg("http");
        let process = Some(command.stdin(Stdio::null()).spawn().unwrap());
        until("the server", || ground.path("ready").exists()).await;
        let port = fs::read_to_string(ground.path("ready")).unwrap();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let http = HttpAddress { url, headers: BTreeMap::new(), socket: None };
        Self {
            ground,
            settings: settings_of(MountedServer::Http(http), MountTrust::Trusted),
            process,
        }
    }

    /// One for each way to a server.
    pub(crate) async fn both() -> [Self; 2] {
        [Self::lines("newer"), Self::http().await]
    }

    /// All that it heard.
    pub(crate) fn all_heard(&self) -> String {
        fs::read_to_string(self.ground.path("heard")).unwrap_or_default()
    }

    /// How often it heard this.
    pub(crate) fn heard(&self, what: &str) -> usize {
        self.all_heard().lines().filter(|line| *line == what).count()
    }

    pub(crate) async fn mounted(&self) -> (TestDaemon, Wire) {
        self.mounted_under(PolicyRules::default()).await
    }

    pub(crate) async fn mounted_under(&self, rules: PolicyRules) -> (TestDaemon, Wire) {
        let daemon = daemon_of(&self.settings, true, rules).await;
        let mut operator = daemon.operator().await;
        wait_for(&mut operator, |mount| mount["accepted"].is_u64()).await;
        (daemon, operator)
    }
}

async fn subscribe(client: &mut Wire, uri: &str) -> Result<Value, Value> {
    client.request("resources/subscribe", json!({"uri": uri})).await
}

#[tokio::test]
async fn a_newer_server_is_called_and_its_results_are_those_of_the_clients_era() {
    for fake in NewerFake::both().await {
        let (daemon, mut operator) = fake.mounted().await;
        let mount = view(&mut operator).await;
        assert_eq!(mount["instructions"], "Be kind.");
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            let result = client.call("fake__echo", json!({})).await;
            let kind = (era == Era::Modern).then(|| json!("complete"));
            assert_eq!(result.get("resultType"), kind.as_ref());
            assert_eq!(result["structuredContent"], json!({"z": 1.0, "a": 100.0}));
            let read = client.request("resources/read", json!({"uri": ONE})).await.unwrap();
            assert_eq!(read["contents"][0]["text"], "read");
            let listed = client.request("resources/list", json!({})).await.unwrap();
            assert!(listed.to_string().contains(ONE), "{listed}");
            let filled = client.request("prompts/get", json!({"name": "fake__greet"})).await;
            assert_eq!(filled.unwrap()["messages"][0]["content"]["text"], "hello");
        }
        assert_eq!((fake.heard("discover"), fake.heard("GET")), (1, 0));
        daemon.stop().await;
        assert_eq!(fake.heard("GET"), 0, "there is no session to end");
    }
}

#[tokio::test]
async fn a_newer_server_is_told_what_the_client_is() {
    let fake = NewerFake::lines("newer");
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let asked =
        json!({"name": "fake__params", "arguments": {"a": 1}, "_meta": {"progressToken": 7}});
    let result = client.request("tools/call", asked).await.unwrap();
    let meta = &result["structuredContent"]["params"]["_meta"];
    assert!(meta["progressToken"].is_u64(), "{meta}");
    let declared = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "termgate");
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_as_its_way_has_it() {
    for fake in NewerFake::both().await {
        let is_http = fake.process.is_some();
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let id = client.send_call("fake__hang", json!({})).await;
        until("the call", || fake.heard("hang") == 1).await;
        client.sender.cancel(id).await;
        let end = if is_http { "closed" } else { "cancelled" };
        until("the end", || fake.heard(end) == 1).await;
        client.call("fake__echo", json!({})).await;
        assert_eq!(fake.heard("notifications/cancelled"), 0);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_newer_server_tells_of_its_lists_and_resources() {
    for fake in NewerFake::both().await {
        let (daemon, mut operator) = fake.mounted().await;
        let lists = r#"listen {"promptsListChanged": true, "resourcesListChanged": true, "toolsListChanged": true}"#;
        until("the subscription to lists", || fake.heard(lists) == 1).await;
        let mut client = daemon.client(Era::Legacy).await;
        let mut other = daemon.client(Era::Legacy).await;
        for what in ["resources", "prompts"] {
            client.call("fake__tell", json!({"what": what})).await;
            other.receiver.notification(&format!("notifications/{what}/list_changed")).await;
        }
        for wire in [&mut client, &mut other] {
            subscribe(wire, ONE).await.unwrap();
        }
        let one = r#"listen {"resourceSubscriptions": ["one"]}"#;
        assert_eq!(fake.heard(one), 1);
        client.call("fake__tell", json!({"uri": "one"})).await;
        for wire in [&mut client, &mut other] {
            assert_eq!(wire.receiver.notification(UPDATED).await, json!({"uri": ONE}));
        }
        // It ends all subscriptions, is asked again, and may have changed meanwhile.
        client.call("fake__drop", json!({})).await;
        client.receiver.notification(UPDATED).await;
        until("the subscriptions again", || (fake.heard(one), fake.heard(lists)) == (2, 2)).await;
        client.request("resources/unsubscribe", json!({"uri": ONE})).await.unwrap();
        drop(other);
        until("the end of the subscription", || fake.heard("left") == 1).await;

        client.call("fake__changed", json!({})).await;
        wait_for(&mut operator, |mount| mount["changed"] == true).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn what_a_newer_server_does_not_acknowledge_is_refused() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let refused = subscribe(&mut client, "termgate://mount/fake/unknown").await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "invalid_argument", "{refused}");
        until("the end of the subscription", || fake.heard("left") == 1).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_in_the_older_for_clients_of_both() {
    let fake = NewerFake::lines("both");
    let (daemon, _) = fake.mounted().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = daemon.client(era).await;
        let result = client.call("fake__echo", json!({})).await;
        assert_eq!(result["structuredContent"], json!({"era": "older"}));
    }
    assert_eq!((fake.heard("initialize"), fake.heard("discover")), (1, 0));
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_both_greetings_says_why_it_refused_the_first() {
    let fake = NewerFake::lines("neither");
    let daemon = daemon_of(&fake.settings, true, PolicyRules::default()).await;
    let mut operator = daemon.operator().await;
    let mount = wait_for(&mut operator, |mount| mount["problem"].is_string()).await;
    assert_eq!(mount["problem"], "it refused to start: no initialize");
    assert_eq!(fake.heard("discover"), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn what_a_newer_server_says_for_its_log_is_there() {
    for fake in NewerFake::both().await {
        let (daemon, mut operator) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        client.call("fake__log", json!({})).await;
        let mount = view(&mut operator).await;
        assert_eq!(mount["log"], json!(["[warning] db: full"]));
        daemon.stop().await;
    }
}

#[tokio::test]
async fn over_http_a_newer_server_hears_the_arguments_that_it_wants_in_headers() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        for arguments in [json!({"region": "us-west1"}), json!({})] {
            let result = client.call("fake__headers", arguments).await;
            assert_ne!(result["isError"], true, "{result}");
        }
        daemon.stop().await;
    }
}
