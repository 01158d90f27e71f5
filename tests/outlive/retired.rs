//! A session whose program has ended keeps no process, and the next daemons tell of it as before.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::processes::{command_line, lives};
use crate::harness::waiting::{line_in, until};
use crate::outlive::client::{Client, listed, start};
use crate::outlive::home::Home;

/// A home whose runtime directory is in memory, where ended sessions are kept in files.
fn home_in_memory() -> (tempfile::TempDir, Home) {
    let memory = tempfile::Builder::new().prefix("tgo").tempdir_in("/dev/shm").unwrap();
    let home = Home::with_root(|_| memory.path().join("user"));
    (memory, home)
}

/// Whether a process holds the terminal of a session.
fn is_held(home: &Home, session: &str) -> bool {
    let socket = format!("{session}.sock");
    home.shims().into_iter().any(|pid| command_line(pid).contains(&socket))
}

/// The files of a session.
fn beside(home: &Home, session: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.runtime("h")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_str().unwrap().contains(session)).collect()
}

/// All that is told of an ended session, but for times, watermarks, and what the kernel said of its terminal.
async fn told(client: &mut Client, session: &str) -> [Value; 4] {
    const PASSING: [&str; 6] =
        ["idle_ms", "state_ms", "remove_in_ms", "watermark", "started", "activity"];
    let asked = json!({"session": session});
    let listed = listed(client, session).await;
    let screen = client.must("read_screen", asked.clone()).await;
    let history = json!({"session": session, "start_row": 0, "count": 500});
    let history = client.must("read_history", history).await;
    let commands = client.must("read_commands", asked).await;
    let mut told = [listed, screen, history, commands];
    for facts in &mut told {
        let commands = facts["commands"].as_array_mut();
        commands.into_iter().flatten().for_each(|command| drop(command["started"].take()));
        PASSING.iter().for_each(|passing| drop(facts.as_object_mut().unwrap().remove(*passing)));
    }
    told
}

async fn watermark(client: &mut Client, session: &str) -> u64 {
    listed(client, session).await["watermark"].as_u64().unwrap()
}

#[tokio::test]
async fn an_ended_session_keeps_no_process_and_the_next_daemons_tell_of_it() {
    let (_memory, home) = home_in_memory();
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let shell = json!({"name": "build", "command": "bash", "args": ["--norc"], "tags": ["x"]});
    let created = client.must("create_session", shell).await;
    let id = created["session"]["id"].as_str().unwrap().to_owned();
    let run = |command: &str| json!({"session": id, "command": command});
    assert_eq!(client.must("run", run("seq 1 300; false")).await["exit_code"], 1);
    let exit = json!({"session": id, "text": "exit 7", "enter": true});
    client.must("send_text", exit).await;
    client.must("wait_for", json!({"session": id, "exit": true})).await;
    until("its shim to have ended", || !is_held(&home, &id)).await;
    assert!(!beside(&home, &id).iter().any(|path| path.ends_with(".sock")));
    // What comes after the end is kept as well.
    let rename = json!({"session": id, "action": "rename", "new_name": "done"});
    client.must("manage_session", rename).await;
    let before = told(&mut client, "done").await;
    assert_eq!(before[0]["exit"], json!({"code": 7}));
    assert_eq!(before[3]["commands"][0]["exit_code"], 1, "{}", before[3]);
    let mut newest = watermark(&mut client, &id).await;
    for round in 0..3 {
        // The second one leaves of its own accord.
        if round == 1 {
            daemon.signal(nix::sys::signal::Signal::SIGUSR1);
            daemon.ends().await;
        } else {
            daemon.kill().await;
        }
        daemon = home.serve().await;
        client = home.client().await;
        let after = told(&mut client, "done").await;
        assert_eq!(after, before, "{round}");
        let now = watermark(&mut client, &id).await;
        assert!(now > newest, "each daemon has watermarks of its own: {newest}, then {now}");
        newest = now;
        assert!(!is_held(&home, &id));
    }
    // What is cleared is not there again, neither now nor later.
    client.must("manage_session", json!({"session": id, "action": "clear_history"})).await;
    for round in 0..2 {
        let history = json!({"session": id, "start_row": 0});
        let history = client.must("read_history", history).await;
        assert_eq!(history["dropped_rows"], 264, "{round}: {history}");
        assert_eq!(told(&mut client, "done").await[1]["text"], before[1]["text"], "{round}");
        daemon.kill().await;
        daemon = home.serve().await;
        client = home.client().await;
    }
    client.must("manage_session", json!({"session": id, "action": "kill"})).await;
    until("its files to be removed", || beside(&home, &id).is_empty()).await;
    daemon.kill().await;
    let daemon = home.serve().await;
    let all = home.client().await.must("list_sessions", json!({})).await;
    assert_eq!(all["sessions"], json!([]), "{all}");
    daemon.kill().await;
}

#[tokio::test]
async fn what_a_program_left_behind_runs_on_and_ends_with_its_session() {
    let (_memory, home) = home_in_memory();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let left = home.path("left");
    let line = format!("trap '' HUP; sleep 1000 & echo $! > '{}'; exit 3", left.display());
    let session = start(&mut client, &line).await;
    client.must("wait_for", json!({"session": session.id, "exit": true})).await;
    let left = line_in(&left).await.parse().unwrap();
    daemon.kill().await;
    let daemon = home.serve().await;
    let mut client = home.client().await;
    assert_eq!(listed(&mut client, &session.id).await["exit"], json!({"code": 3}));
    assert!(lives(left) && is_held(&home, &session.id));
    client.must("manage_session", json!({"session": session.id, "action": "kill"})).await;
    until("nothing to be left", || !lives(left) && beside(&home, &session.id).is_empty()).await;
    daemon.kill().await;
}

#[tokio::test]
async fn an_ended_session_whose_file_is_damaged_is_told_to_be_lost() {
    let (_memory, home) = home_in_memory();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "echo done").await;
    client.must("wait_for", json!({"session": session.id, "exit": true})).await;
    until("its shim to have ended", || !is_held(&home, &session.id)).await;
    daemon.kill().await;
    let file = home.runtime(&format!("h/{}.ended", session.id));
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 4]).unwrap();
    let daemon = home.serve().await;
    let found = listed(&mut home.client().await, &session.id).await;
    assert_eq!(found["exit"], json!({"cause": "shim_lost"}), "{found}");
    daemon.kill().await;
}
