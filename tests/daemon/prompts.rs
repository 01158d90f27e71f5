//! Prompts as clients of both eras get them, and the same texts as resources.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};

/// The names of all prompts, as their files are called.
fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prompts");
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

async fn listed(wire: &mut Wire) -> Vec<Value> {
    let listed = wire.request("prompts/list", json!({})).await.unwrap();
    listed["prompts"].as_array().unwrap().clone()
}

/// The text of a prompt that is given these arguments.
async fn text(wire: &mut Wire, name: &str, arguments: Value) -> String {
    let prompt = json!({"name": name, "arguments": arguments});
    let prompt = wire.request("prompts/get", prompt).await.unwrap();
    let messages = prompt["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{prompt}");
    assert_eq!(messages[0]["role"], "user");
    assert_eq!(messages[0]["content"]["type"], "text");
    messages[0]["content"]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_list_of_prompts() {
    let daemon = TestDaemon::read_only().await;
    let prompts = listed(&mut daemon.client(Era::Modern).await).await;
    daemon.stop().await;
    assert_snapshot!("prompts", serde_json::to_string_pretty(&prompts).unwrap());
}

#[tokio::test]
async fn every_file_is_a_prompt_in_both_eras_wherever_writing_is_switched() {
    for daemon in [TestDaemon::read_only().await, TestDaemon::writable().await] {
        for era in Era::BOTH {
            let mut wire = daemon.client(era).await;
            let prompts = listed(&mut wire).await;
            let name = |prompt: &Value| prompt["name"].as_str().unwrap().to_owned();
            let mut names: Vec<String> = prompts.iter().map(name).collect();
            names.sort();
            assert_eq!(names, files());
            for prompt in prompts {
                let text = text(&mut wire, &name(&prompt), json!({})).await;
                assert!(text.starts_with("# "), "{text}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn both_eras_are_told_that_there_are_prompts_and_that_mounts_may_change_them() {
    let daemon = TestDaemon::read_only().await;
    let mut newer = daemon.client(Era::Modern).await;
    let found = newer.request("server/discover", json!({})).await.unwrap();
    assert_eq!(found["capabilities"]["prompts"], json!({"listChanged": true}));
    let filter = json!({"notifications": {"promptsListChanged": true}});
    newer.send("subscriptions/listen", filter).await;
    let accepted = newer.receiver.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["notifications"], json!({"promptsListChanged": true}));
    let mut older = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    let greeting = older.request("initialize", hello).await.unwrap();
    assert_eq!(greeting["capabilities"]["prompts"], json!({"listChanged": true}));
    daemon.stop().await;
}

#[tokio::test]
async fn a_prompt_speaks_of_what_it_is_given_and_of_nothing_else() {
    for era in Era::BOTH {
        let daemon = TestDaemon::read_only().await;
        let mut wire = daemon.client(era).await;
        let command = "make -j2 \"two words\" {{session}}";
        let given = text(&mut wire, "fix_error", json!({"command": command})).await;
        assert!(given.contains(command), "{given}");
        let empty = json!({"command": "", "session": null});
        let without = text(&mut wire, "fix_error", empty).await;
        assert!(!given.contains("It failed in the session"), "{given}");
        assert!(!without.contains("{{") && !without.contains("The command line is"), "{without}");
        let both = json!({"command": command, "session": "build"});
        let both = text(&mut wire, "fix_error", both).await;
        assert!(both.contains(command) && both.contains("session build."), "{both}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn what_a_prompt_does_not_take_is_told_by_its_name() {
    let long = "x".repeat(16 * 1024 + 1);
    for era in Era::BOTH {
        let daemon = TestDaemon::read_only().await;
        let mut wire = daemon.client(era).await;
        for (name, arguments, parameter) in [
            ("tuii", json!({}), "name"),
            ("../core", json!({}), "name"),
            ("core", json!({"session": "x"}), "arguments.session"),
            ("fix_error", json!({"colour": "x"}), "arguments.colour"),
            ("fix_error", json!({"command": 7}), "arguments.command"),
            ("fix_error", json!({"command": long}), "arguments.command"),
        ] {
            let prompt = json!({"name": name, "arguments": arguments});
            let error = wire.request("prompts/get", prompt).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{error}");
            assert_eq!(error["data"]["error_code"], "invalid_argument", "{error}");
            assert_eq!(error["data"]["details"]["parameter"], parameter, "{error}");
            assert!(error["data"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
        }
        let error = wire.request("prompts/get", json!({"name": "tuii"})).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("`tui`"), "{error}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_session_that_a_prompt_is_about_is_completed() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        wire.structured("create_session", json!({"name": "zbuild", "command": "cat"})).await;
        for (prompt, argument, typed, expected) in [
            ("monitor", "session", "zb", vec!["zbuild"]),
            ("monitor", "session", "nobody", vec![]),
            ("fix_error", "command", "", vec![]),
            ("core", "session", "zb", vec![]),
            ("nothing", "session", "zb", vec![]),
        ] {
            let params = json!({
                "ref": {"type": "ref/prompt", "name": prompt},
                "argument": {"name": argument, "value": typed},
            });
            let completed = wire.request("completion/complete", params).await.unwrap();
            assert_eq!(completed["completion"]["values"], json!(expected), "{prompt}, {argument}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn every_prompt_is_a_skill_to_read_under_the_name_that_hosts_take() {
    for era in Era::BOTH {
        let daemon = TestDaemon::read_only().await;
        let mut wire = daemon.client(era).await;
        let resources = wire.request("resources/list", json!({})).await.unwrap();
        for prompt in listed(&mut wire).await {
            let name = prompt["name"].as_str().unwrap();
            let uri = format!("termgate://skills/{name}");
            let of_uri = |resource: &&Value| resource["uri"] == *uri;
            let resource = resources["resources"].as_array().unwrap().iter().find(of_uri);
            assert_eq!(resource.unwrap()["mimeType"], "text/markdown");
            assert_eq!(resource.unwrap()["description"], prompt["description"]);
            let read = wire.request("resources/read", json!({"uri": uri})).await.unwrap();
            let content = &read["contents"][0];
            assert_eq!(
                (&content["uri"], &content["mimeType"]),
                (&json!(uri), &json!("text/markdown"))
            );
            let body = text(&mut wire, name, json!({})).await;
            let description = prompt["description"].as_str().unwrap();
            let name = name.replace('_', "-");
            let skill =
                format!("---\nname: termgate-{name}\ndescription: {description}\n---\n\n{body}");
            assert_eq!(content["text"], skill);
            let of_host = json!({"uri": format!("termgate://skills/{name}")});
            let of_host = wire.request("resources/read", of_host).await.unwrap();
            assert_eq!(of_host["contents"][0]["text"], skill);
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_skill_that_is_none_and_a_subscription_to_one_are_refused() {
    for (era, code) in [(Era::Legacy, -32002), (Era::Modern, -32602)] {
        let daemon = TestDaemon::read_only().await;
        let mut wire = daemon.client(era).await;
        for uri in ["termgate://skills/nothing", "termgate://skills", "termgate://skills/core/x"] {
            let error = wire.request("resources/read", json!({"uri": uri})).await.unwrap_err();
            assert_eq!(error["code"], code, "{uri}: {error}");
        }
        let query = json!({"uri": "termgate://skills/core?since=1"});
        let error = wire.request("resources/read", query).await.unwrap_err();
        assert_eq!(error["data"]["details"]["parameter"], "since", "{error}");
        daemon.stop().await;
    }
    let daemon = TestDaemon::read_only().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let uri = json!({"uri": "termgate://skills/core"});
    let error = wire.request("resources/subscribe", uri).await.unwrap_err();
    assert_eq!(error["data"]["details"]["parameter"], "uri", "{error}");
    daemon.stop().await;
}
