//! Output that is lost while no daemon reads it, as configured, is told to whoever reads the session.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::outlive::client::{Client, listed, start};
use crate::outlive::home::{Home, number_in};
use crate::outlive::storm::text_of;

const CONFIGURATION: &str = "[sessions]\nring_bytes = 65536\noverwrite_unread = true\n";

/// A program that prints when the first file is there and then makes the second one.
fn gated(home: &Home, printing: &str) -> (String, [PathBuf; 2]) {
    let [go, written] = ["go", "written"].map(|name| home.path(name));
    let line = format!(
        "echo before; while [ ! -e {} ]; do sleep 0.01; done; {printing}; echo after; \
         echo 1 > {}; exec sleep 1000",
        go.display(),
        written.display()
    );
    (line, [go, written])
}

/// What is told of the rows that history still has.
async fn history(client: &mut Client, session: &str) -> Value {
    let tail = json!({"session": session, "tail": 500, "format": "cells"});
    client.must("read_history", tail).await
}

#[tokio::test]
async fn output_that_was_overwritten_while_no_daemon_read_it_is_told_with_its_place() {
    let home = Home::new();
    home.configure(CONFIGURATION);
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (line, [go, written]) = gated(&home, "seq 100000 199999");
    let session = start(&mut client, &line).await;
    let said = json!({"session": session.id, "text": "before", "since": 0});
    client.must("wait_for", said).await;
    // A screen is kept before its size is told.
    client.must("acquire_lease", json!({"session": session.id})).await;
    client.must("resize", json!({"session": session.id, "rows": 30, "cols": 120})).await;
    assert!(listed(&mut client, &session.id).await["lost_output"].is_null());
    daemon.kill().await;
    std::fs::write(&go, "").unwrap();
    number_in(&written).await;

    // Also the daemon after the next one tells it.
    for _ in 0..2 {
        let daemon = home.serve().await;
        let mut client = home.client().await;
        let said = json!({"session": session.id, "text": "after", "since": 0});
        client.must("wait_for", said).await;
        let lost = listed(&mut client, &session.id).await["lost_output"].clone();
        let [gap] = lost.as_array().unwrap().as_slice() else { panic!("{lost}") };
        // All lines but those that the ring holds, and what the terminal adds to each.
        let (all, ring) = (100_000 * 8 + "after\r\n".len() as u64, 65_536);
        let bytes = gap["bytes"].as_u64().unwrap();
        assert!((all - ring..all).contains(&bytes), "{bytes} of {all}");
        // The line above is the last from before; those that follow go on to the end.
        let row = gap["row"].as_u64().unwrap();
        assert_eq!(row, 1);
        let around = json!({"session": session.id, "start_row": 0, "count": 1});
        let told = client.must("read_history", around).await;
        assert_eq!((told["text"].clone(), &told["lost_output"]), (json!("before"), &lost));
        let newest = history(&mut client, &session.id).await;
        assert!(newest["lost_output"].is_null(), "nothing is missing there: {newest}");
        let screen = client.must("read_screen", json!({"session": session.id})).await;
        assert!(text_of(&screen).contains("199999\nafter"), "{screen}");
        daemon.kill().await;
    }
}

#[tokio::test]
async fn what_a_command_printed_and_nobody_read_is_told_with_the_command() {
    let home = Home::new();
    home.configure(CONFIGURATION);
    let own = home.path("own");
    std::fs::create_dir(&own).unwrap();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let bash = json!({"command": "bash", "args": ["-i"], "cwd": own, "env": {"HOME": own}});
    let created = client.must("create_session", bash).await;
    let (go, written) = (home.path("go"), home.path("written"));
    let line = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; seq 100000 199999; echo 1 > {}",
        go.display(),
        written.display()
    );
    let mut run = json!({
        "session": created["session"]["id"], "lease_id": created["lease"]["lease_id"],
        "command": line, "idempotency_key": "count", "timeout_ms": 1_000,
    });
    let sent = client.must("run", run.clone()).await;
    assert_eq!(sent["status"], "timeout", "{sent}");
    assert!(sent["lost_output"].is_null(), "{sent}");
    daemon.kill().await;
    std::fs::write(&go, "").unwrap();
    number_in(&written).await;

    let daemon = home.serve().await;
    let mut client = home.client().await;
    run["timeout_ms"] = json!(20_000);
    let ended = client.must("run", run.clone()).await;
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("completed"), &json!(0)));
    let bytes = ended["lost_output"][0]["bytes"].as_u64().unwrap();
    assert!((100_000 * 8 - 65_536..100_000 * 8).contains(&bytes), "{ended}");
    let known = json!({"session": run["session"], "id": sent["command_id"]});
    let known = client.must("read_commands", known).await;
    assert_eq!(known["lost_output"], ended["lost_output"], "{known}");
    let id = &sent["command_id"];
    let output = format!(
        "termgate://session/{}/command/{id}/output",
        created["session"]["id"].as_str().unwrap()
    );
    for (uri, remarks) in [(output.clone(), 1), (format!("{output}?from_line=0"), 0)] {
        let read = client.read_resource(&uri).await;
        let facts = &read["_meta"]["dev.termgate/output"];
        assert_eq!(facts["lost_output"], ended["lost_output"], "{facts}");
        let said = read["text"].as_str().unwrap().matches("bytes of output are lost");
        assert_eq!(said.count(), remarks, "what is read on from a line is output alone");
    }
    let end = client.read_resource(&format!("{output}?from_line={}", u64::MAX / 2)).await;
    assert!(end["_meta"]["dev.termgate/output"]["lost_output"].is_null(), "{end}");
    let next = json!({"session": run["session"], "lease_id": run["lease_id"], "command": "true"});
    let next = client.must("run", next).await;
    assert!(next["lost_output"].is_null(), "nothing of it is missing: {next}");
    daemon.kill().await;
}

#[tokio::test]
async fn what_is_missing_on_the_screen_is_told_with_the_screen() {
    let home = Home::new();
    home.configure(CONFIGURATION);
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (line, [go, written]) = gated(&home, "head -c 300000 /dev/zero | tr '\\0' '\\r'");
    let session = start(&mut client, &line).await;
    let said = json!({"session": session.id, "text": "before", "since": 0});
    client.must("wait_for", said).await;
    let grid = format!("termgate://session/{}/grid", session.id);
    assert!(client.read_facts(&grid).await["lost_output"].is_null());
    daemon.kill().await;
    std::fs::write(&go, "").unwrap();
    number_in(&written).await;

    let daemon = home.serve().await;
    let mut client = home.client().await;
    let said = json!({"session": session.id, "text": "after", "since": 0});
    client.must("wait_for", said).await;
    let screen = client.must("read_screen", json!({"session": session.id})).await;
    assert!(screen["lost_output"][0]["bytes"].as_u64().unwrap() > 200_000, "{screen}");
    assert_eq!(client.read_facts(&grid).await["lost_output"], screen["lost_output"]);
    daemon.kill().await;
}
