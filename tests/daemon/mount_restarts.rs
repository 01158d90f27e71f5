//! What clients know of mounted servers that this daemon has not started yet.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use termgate::core::mount::MountTrust;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mount_exact::Exact;
use crate::daemon::mounts::{table_of, view};

/// Has the server declare these capabilities when it is greeted.
fn declares(server: &Exact, capabilities: &Value) {
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
        "serverInfo": {"name": "exact", "version": "2"}});
    server.says("initialize", &format!(r#""result":{greeting}"#));
}

/// The next daemon with the same state and the same mount.
pub(crate) async fn restarted(daemon: TestDaemon, server: &Exact) -> TestDaemon {
    let settings = &server.settings;
    daemon
        .restarted(|config| {
            config.allow_write = true;
            config.mounts = table_of(settings);
        })
        .await
}

/// The file of what was accepted of the mount.
fn kept(daemon: &TestDaemon) -> (PathBuf, Value) {
    let mut directories = fs::read_dir(daemon.file("state").join("mounts")).unwrap();
    let path = directories.next().unwrap().unwrap().path().join("fake.json");
    let text = fs::read(&path).unwrap();
    (path, serde_json::from_slice(&text).unwrap())
}

/// How many prompts the mount lists.
async fn prompts(client: &mut Wire) -> usize {
    let listed = client.request("prompts/list", json!({})).await.unwrap();
    let of_mount = |it: &&Value| it["name"].as_str().unwrap().starts_with("fake__");
    listed["prompts"].as_array().unwrap().iter().filter(of_mount).count()
}

#[tokio::test]
async fn a_server_without_tools_is_listed_read_and_completed_after_a_restart() {
    let server = Exact::new(MountTrust::Trusted, "older");
    declares(&server, &json!({"resources": {}, "prompts": {}, "completions": {}}));
    server.says("resources.list", r#""result":{"resources":[{"uri":"a:b","name":"one"}]}"#);
    server.says("resources.read", r#""result":{"contents":[{"uri":"a:b","text":"read"}]}"#);
    let template = r#""result":{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"many"}]}"#;
    server.says("resources.templates.list", template);
    let mut daemon = server.mounted().await;
    let prompt = json!({"type": "ref/prompt", "name": "fake__greet"});
    for (method, params, found) in [
        ("prompts/list", json!({}), "fake__greet"),
        ("prompts/get", json!({"name": "fake__greet"}), "messages"),
        ("resources/list", json!({}), "termgate://mount/fake/a:b"),
        ("resources/templates/list", json!({}), "termgate://mount/fake/a:{x}"),
        ("resources/read", json!({"uri": "termgate://mount/fake/a:b"}), "read"),
        (
            "completion/complete",
            json!({"ref": prompt, "argument": {"name": "who", "value": ""}}),
            "done",
        ),
    ] {
        daemon = restarted(daemon, &server).await;
        assert_eq!(view(&mut daemon.operator().await).await["status"], "stopped");
        let mut client = daemon.client(Era::Legacy).await;
        let answer = client.request(method, params).await;
        assert!(answer.as_ref().is_ok_and(|it| it.to_string().contains(found)), "{answer:?}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn changed_capabilities_are_no_changed_tools_and_are_known_after_the_next_restart() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted().await;
    declares(&server, &json!({"tools": {}, "resources": {"subscribe": true}}));
    let daemon = restarted(daemon, &server).await;
    let mut client = daemon.client(Era::Modern).await;
    let called = client.call("fake__echo", json!({})).await;
    assert_eq!(called["isError"], Value::Null, "{called}");
    assert_eq!(view(&mut daemon.operator().await).await["changed"], false);
    let daemon = restarted(daemon, &server).await;
    let expected = json!({"resources": {"subscribe": true}, "tools": {}});
    assert_eq!(kept(&daemon).1["capabilities"], expected);
    let mut client = daemon.client(Era::Modern).await;
    assert_eq!(prompts(&mut client).await, 0);
    let mount = view(&mut daemon.operator().await).await;
    assert_eq!(mount["capabilities"], json!(["resources", "tools"]));
    assert_eq!(mount["generation"], 0, "it was started for a list that it does not have");
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_of_which_only_tools_are_kept_is_started_for_a_list() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted().await;
    let (path, whole) = kept(&daemon);
    fs::write(&path, whole["tools"].to_string()).unwrap();
    let daemon = restarted(daemon, &server).await;
    let mut client = daemon.client(Era::Legacy).await;
    assert!(client.tools().await.contains(&"fake__echo".to_owned()));
    assert_eq!(prompts(&mut client).await, 1);
    assert_eq!(view(&mut daemon.operator().await).await["changed"], false);
    assert_eq!(kept(&daemon).1, whole);
    daemon.stop().await;
}
