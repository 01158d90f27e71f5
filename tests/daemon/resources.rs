//! Resources: what each tells, who is told that it changed, and names that are completed.

use serde_json::{Value, json};

use crate::daemon::driven::{screen, start, tell, tell_until};
use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::resource_reader::UPDATED;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn uris(listed: &Value, list: &str, name: &str) -> Vec<String> {
    let uri = |it: &Value| it[name].as_str().unwrap().to_owned();
    listed[list].as_array().unwrap().iter().map(uri).collect()
}

/// Changes the title of a driven session, which takes exactly one frame, and waits until it shows.
async fn retitle(wire: &mut Wire, session: &str, title: &str) {
    let since = screen(wire, session).await["watermark"].clone();
    tell(wire, session, &format!(r"printf '\033]2;{title}\007'")).await;
    wire.wait_for(json!({"session": session, "change": true, "since": since})).await;
    assert_eq!(screen(wire, session).await["title"], title);
}

#[tokio::test]
async fn every_list_and_every_part_of_every_session_is_listed() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        let session = wire.start("cat").await;
        let listed = wire.request("resources/list", json!({})).await.unwrap();
        let part = |part: &str| format!("termgate://session/{session}/{part}");
        let expected = [
            "termgate://sessions".to_owned(),
            "termgate://leases".to_owned(),
            "termgate://mounts".to_owned(),
            "termgate://events".to_owned(),
            part("grid"),
            part("cursor"),
            part("history"),
            part("lease"),
            part("commands"),
            part("recording"),
            part("cwd"),
            part("git"),
            part("log"),
        ];
        let mut listed = uris(&listed, "resources", "uri");
        listed.retain(|uri| !uri.starts_with("termgate://skills/"));
        assert_eq!(listed, expected);
        for uri in expected.iter().filter(|uri| !uri.ends_with("/log")) {
            assert!(wire.facts(uri).await.is_object(), "{uri}");
        }
        let listed = wire.request("resources/templates/list", json!({})).await.unwrap();
        let expected = [
            "termgate://session/{session}/grid{?since,top,rows,format}",
            "termgate://session/{session}/cursor",
            "termgate://session/{session}/history{?start_row,count,mode}",
            "termgate://session/{session}/lease",
            "termgate://session/{session}/commands",
            "termgate://session/{session}/recording{?offset}",
            "termgate://session/{session}/cwd",
            "termgate://session/{session}/git",
            "termgate://session/{session}/log{?before}",
            "termgate://session/{session}/command/{id}/output{?from_line}",
        ];
        assert_eq!(uris(&listed, "resourceTemplates", "uriTemplate"), expected);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_lists_tell_sessions_and_leases() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = wire.start("cat").await;
    let sessions = wire.facts("termgate://sessions").await;
    let listed = wire.structured("list_sessions", json!({})).await;
    for name in ["id", "name", "command", "rows", "cols", "state", "watermark", "write_allowed"] {
        assert_eq!(sessions["sessions"][0][name], listed["sessions"][0][name], "{name}");
    }
    let leases = wire.facts("termgate://leases").await;
    let free = json!({"leases": [{"session": session, "lease": {"held": false, "waiters": 0}}]});
    assert_eq!(leases, free);
    let grant = wire.acquire(&session).await;
    let leases = wire.facts("termgate://leases").await;
    assert_eq!(leases["leases"][0]["lease"]["held"], true);
    assert!(!leases.to_string().contains(grant["lease_id"].as_str().unwrap()));
    daemon.stop().await;
}

#[tokio::test]
async fn a_grid_tells_the_screen_or_what_changed() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = start(&mut wire).await;
    tell_until(&mut wire, &session, "seq 1 100; echo over", "over").await;
    let base = format!("termgate://session/{session}/grid");
    let grid = wire.facts(&base).await;
    // `ready`, a hundred numbers and the sign stand in rows 0 to 101, the cursor in row 102.
    assert_eq!(
        (&grid["cols"], &grid["rows"], &grid["base_row"]),
        (&json!(120), &json!(40), &json!(63))
    );
    assert_eq!(grid["viewport"], json!({"top": 63, "height": 40}));
    assert_eq!(grid["lines"].as_array().unwrap().len(), 40);
    assert_eq!(grid["lines"][0], json!({"row": 63, "text": "63"}));
    let cursor = &grid["cursor"];
    assert_eq!(
        (&cursor["row"], &cursor["col"], &cursor["visible"]),
        (&json!(102), &json!(0), &json!(true))
    );
    assert!(cursor["seq"].as_u64() <= grid["watermark"].as_u64());

    let part = wire.facts(&format!("{base}?top=2&rows=3")).await;
    assert_eq!(part["viewport"], json!({"top": 65, "height": 3}));
    assert_eq!(uris(&part, "lines", "text"), ["65", "66", "67"]);

    let cells = wire.facts(&format!("{base}?rows=1&format=cells")).await;
    assert_eq!(cells["lines"][0]["cells"], json!([{"ch": "6"}, {"ch": "3"}]));

    let watermark = &grid["watermark"];
    let nothing = wire.facts(&format!("{base}?since={watermark}")).await;
    assert_eq!((&nothing["reset"], &nothing["lines"]), (&json!(false), &json!([])));
    tell_until(&mut wire, &session, "echo more", "more").await;
    let changed = wire.facts(&format!("{base}?since={watermark}")).await;
    assert_eq!(changed["base_row"], 64);
    assert_eq!(uris(&changed, "lines", "text"), ["more", ""]);
    let unknown = wire.facts(&format!("{base}?since=999999999")).await;
    assert_eq!(unknown["reset"], true);
    assert_eq!(unknown["lines"].as_array().unwrap().len(), 40);
    daemon.stop().await;
}

#[tokio::test]
async fn a_session_is_named_in_a_uri_as_in_a_call() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let named = json!({"name": "build", "command": "cat"});
    let created = wire.structured("create_session", named).await;
    let id = created["session"]["id"].as_str().unwrap();
    for name in [id, &id[..11], "build"] {
        let cursor = wire.facts(&format!("termgate://session/{name}/cursor")).await;
        assert_eq!(cursor["cursor"]["row"], 0, "{name}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn cursor_history_and_lease_tell_what_the_tools_tell() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = start(&mut wire).await;
    tell_until(&mut wire, &session, "seq 1 100; printf over", "over").await;
    let part = |part: &str| format!("termgate://session/{session}/{part}");
    let cursor = wire.facts(&part("cursor")).await["cursor"].clone();
    assert_eq!((&cursor["row"], &cursor["col"]), (&json!(101), &json!(4)));

    let history = wire.facts(&part("history?start_row=10&count=3")).await;
    assert_eq!((&history["text"], &history["first_row"]), (&json!("10\n11\n12"), &json!(10)));
    assert_eq!((&history["next_row"], &history["end_row"]), (&json!(13), &json!(102)));
    for mode in ["json", "cells"] {
        let uri = part(&format!("history?start_row=10&count=1&mode={mode}"));
        let cells = json!([{"row": 10, "text": "10", "cells": [{"ch": "1"}, {"ch": "0"}]}]);
        assert_eq!(wire.facts(&uri).await["lines"], cells, "{mode}");
    }

    let lease = wire.facts(&part("lease")).await;
    assert_eq!((&lease["lease"]["held"], &lease["lease"]["kind"]), (&json!(true), &json!("agent")));
    assert!(lease["lease"]["expires_in_ms"].as_u64().unwrap() <= 30_000);
    assert_eq!(lease["lease"].get("lease_id"), None);
    daemon.stop().await;
}

#[tokio::test]
async fn a_uri_that_names_nothing_is_an_error_of_each_era() {
    for (era, code) in [(Era::Legacy, -32002), (Era::Modern, -32602)] {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        let session = wire.start("cat").await;
        for uri in [
            "termgate://nothing".to_owned(),
            "http://sessions".to_owned(),
            "termgate://session/nobody/grid".to_owned(),
            format!("termgate://session/{session}/colour"),
        ] {
            let error = wire.request("resources/read", json!({"uri": uri})).await.unwrap_err();
            assert_eq!(error["code"], code, "{uri}: {error}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_parameter_of_a_uri_that_is_wrong_is_named() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        let session = wire.start("cat").await;
        let of = |part: &str| format!("termgate://session/{session}/{part}");
        for (uri, parameter) in [
            (of("grid?since=abc"), "since"),
            (of("grid?rows=3&format=red"), "format"),
            (of("grid?colour=1"), "colour"),
            (of("history?count=501"), "count"),
            (of("history?mode=red"), "mode"),
            (of("cursor?since=1"), "since"),
            ("termgate://sessions?since=1".to_owned(), "since"),
        ] {
            let error = wire.request("resources/read", json!({"uri": uri})).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{uri}: {error}");
            assert_eq!(error["data"]["error_code"], "invalid_argument", "{uri}: {error}");
            assert_eq!(error["data"]["details"]["parameter"], parameter, "{uri}: {error}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_subscription_with_a_wrong_parameter_is_refused_by_its_name() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = wire.start("cat").await;
    let uri = format!("termgate://session/{session}/grid?since=abc");
    let error = wire.request("resources/subscribe", json!({"uri": uri})).await.unwrap_err();
    assert_eq!(error["data"]["details"]["parameter"], "since", "{error}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscriber_of_the_older_era_is_told_each_change_once_until_it_unsubscribes() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let grid = format!("termgate://session/{session}/grid?rows=1");
    let lease = format!("termgate://session/{session}/lease");
    let mut wire = daemon.client(Era::Legacy).await;
    for uri in [&grid, &grid, &lease] {
        wire.request("resources/subscribe", json!({"uri": uri})).await.unwrap();
    }
    retitle(&mut writer, &session, "one").await;
    assert_eq!(wire.receiver.notification(UPDATED).await, json!({"uri": grid}));
    wire.request("resources/unsubscribe", json!({"uri": grid})).await.unwrap();
    retitle(&mut writer, &session, "two").await;
    let grant = writer.acquire(&session).await;
    writer.structured("release_lease", json!({"lease_id": grant["lease_id"]})).await;
    assert_eq!(wire.receiver.notification(UPDATED).await, json!({"uri": lease}));
    assert_eq!(wire.receiver.kept().count(), 0, "{:?}", wire.receiver);
    daemon.stop().await;
}

#[tokio::test]
async fn every_kind_of_resource_fires_when_it_changes() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let part = |part: &str| format!("termgate://session/{session}/{part}");
    for (uri, change) in [
        (part("grid"), "echo x"),
        (part("cursor"), "printf x"),
        (part("history"), "seq 1 100"),
        (part("lease"), "release"),
        ("termgate://leases".to_owned(), "release"),
        ("termgate://sessions".to_owned(), "create"),
    ] {
        for era in Era::BOTH {
            let mut wire = daemon.client(era).await;
            wire.subscribe(&uri).await;
            let grant = writer.acquire(&session).await;
            match change {
                "release" => {
                    let key = json!({"lease_id": grant["lease_id"]});
                    writer.structured("release_lease", key).await;
                }
                "create" => drop(writer.start("cat").await),
                line => tell(&mut writer, &session, line).await,
            }
            assert_eq!(wire.receiver.notification(UPDATED).await["uri"], uri, "{era:?}");
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_listener_of_the_newer_era_is_told_what_it_asked_for_until_it_cancels() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let grid = format!("termgate://session/{session}/grid");
    let mut wire = daemon.client(Era::Modern).await;
    let filter = json!({
        "resourcesListChanged": true,
        "resourceSubscriptions": [grid, "termgate://session/nobody/grid"],
    });
    let id = wire.send("subscriptions/listen", json!({"notifications": filter})).await;
    let tag = json!({SUBSCRIPTION: id});
    let accepted = wire.receiver.notification("notifications/subscriptions/acknowledged").await;
    let served = json!({"resourcesListChanged": true, "resourceSubscriptions": [grid]});
    assert_eq!(accepted, json!({"notifications": served, "_meta": tag}));
    retitle(&mut writer, &session, "one").await;
    assert_eq!(wire.receiver.notification(UPDATED).await, json!({"uri": grid, "_meta": tag}));
    writer.start("cat").await;
    let listed = wire.receiver.notification("notifications/resources/list_changed").await;
    assert_eq!(listed, json!({"_meta": tag}));

    wire.sender.cancel(id).await;
    wire.request("tools/list", json!({})).await.unwrap();
    retitle(&mut writer, &session, "two").await;
    let filter = json!({"notifications": {"resourceSubscriptions": [grid]}});
    let again = wire.send("subscriptions/listen", filter).await;
    wire.receiver.notification("notifications/subscriptions/acknowledged").await;
    retitle(&mut writer, &session, "three").await;
    let tag = json!({SUBSCRIPTION: again});
    assert_eq!(wire.receiver.notification(UPDATED).await, json!({"uri": grid, "_meta": tag}));
    assert!(wire.receiver.kept().all(|message| message["method"].is_null()), "{wire:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_client_of_the_older_era_is_told_unasked_when_a_session_is_created() {
    let daemon = TestDaemon::writable().await;
    let mut watcher = daemon.client(Era::Legacy).await;
    // Its greeting has been understood when a later request is answered.
    watcher.tools().await;
    daemon.client(Era::Modern).await.start("cat").await;
    let told = watcher.receiver.notification("notifications/resources/list_changed").await;
    assert_eq!(told, json!({}));
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscription_to_what_does_not_exist_is_refused() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    for uri in ["termgate://nothing", "termgate://session/nobody/grid"] {
        let error = wire.request("resources/subscribe", json!({"uri": uri})).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{uri}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn names_of_sessions_are_completed_and_ids_where_no_name_fits() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        let mut ids = Vec::new();
        for name in ["zbuild", "zbench", "ytest"] {
            let arguments = json!({"name": name, "command": "cat"});
            let created = wire.structured("create_session", arguments).await;
            ids.push(created["session"]["id"].as_str().unwrap().to_owned());
        }
        for (typed, expected) in [
            ("zb", vec!["zbench", "zbuild"]),
            ("y", vec!["ytest"]),
            (ids[0].as_str(), vec![ids[0].as_str()]),
            ("nobody", vec![]),
        ] {
            let params = json!({
                "ref": {"type": "ref/resource", "uri": "termgate://session/{session}/cursor"},
                "argument": {"name": "session", "value": typed},
            });
            let completed = wire.request("completion/complete", params).await.unwrap();
            assert_eq!(completed["completion"]["values"], json!(expected), "{typed}");
            assert_eq!(completed["completion"]["hasMore"], false);
        }
        daemon.stop().await;
    }
}
