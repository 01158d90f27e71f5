//! What ran in a session is known to the next daemon, with its output and its code, and what was
//! typed at a secret prompt to none.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::waiting::soon;
use crate::outlive::client::Client;
use crate::outlive::home::Home;

const SECRET: &str = "hunter2-correct-horse";

/// Starts a bash that nobody holds, and gives back its session.
async fn bash(client: &mut Client) -> String {
    let bash = json!({"command": "bash", "args": ["-i"], "lease": false});
    let created = client.must("create_session", bash).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

/// Runs a command under a lease that lasts only for it, and gives back what must be the same for
/// whoever asks later.
async fn run(client: &mut Client, session: &str, command: &str) -> Value {
    let lease = client.must("acquire_lease", json!({"session": session})).await;
    let run = json!({"session": session, "command": command, "lease_id": lease["lease_id"]});
    let ended = client.must("run", run).await;
    client.must("release_lease", json!({"lease_id": lease["lease_id"]})).await;
    ended
}

#[tokio::test]
async fn what_ran_is_known_after_the_daemon_was_killed_and_the_next_command_has_its_code() {
    let home = Home::new();
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let session = bash(&mut client).await;
    let mut ran = Vec::new();
    for round in 0..3 {
        for (command, code) in [("seq 30", 0), ("printf 'no end'; (exit 7)", 7)] {
            let ended = run(&mut client, &session, command).await;
            assert_eq!(ended["exit_code"], code, "{round}: {command}: {ended}");
            assert_eq!(ended["evidence"], "osc133", "{ended}");
            ran.push(ended);
        }
        daemon.kill().await;
        daemon = home.serve().await;
        client = home.client().await;
        for ended in &ran {
            let asked = json!({"session": session, "id": ended["command_id"]});
            let record = ended_one(&mut client, asked).await;
            let known = &record["commands"][0];
            assert_eq!(record["output"], ended["output"], "{round}: {record}");
            for told in ["exit_code", "status", "evidence"] {
                assert_eq!(known[told], ended[told], "{round}: {record}");
            }
        }
    }
    daemon.kill().await;
}

#[tokio::test]
async fn a_command_that_ran_while_the_daemon_was_killed_has_its_output_and_its_code() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = bash(&mut client).await;
    let go = home.path("go");
    let command = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done; (exit 5)",
        go.display()
    );
    let lease = client.must("acquire_lease", json!({"session": session})).await;
    let run = json!({
        "session": session, "command": command, "lease_id": lease["lease_id"], "timeout_ms": 100,
    });
    let begun = client.must("run", run).await;
    assert_eq!(begun["status"], "timeout", "{begun}");
    daemon.kill().await;
    fs::write(&go, "").unwrap();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let asked = json!({"session": session, "id": begun["command_id"]});
    let record = ended_one(&mut client, asked).await;
    assert_eq!(record["commands"][0]["exit_code"], 5, "{record}");
    assert_eq!(record["output"], "begun\ndone", "{record}");
    daemon.kill().await;
}

#[tokio::test]
async fn what_is_typed_at_a_secret_prompt_is_in_no_log_and_no_file() {
    let home = Home::new();
    let mut daemon = home.spawn("-vvv");
    daemon.is_ready().await;
    let mut client = home.client().await;
    let session = bash(&mut client).await;
    let lease = client.must("acquire_lease", json!({"session": session})).await;
    let lease = &lease["lease_id"];
    let command = "sh -c 'printf \"Password: \"; stty -echo; read x; stty echo; echo; exit 5'";
    let run = json!({"session": session, "command": command, "lease_id": lease});
    let begun = client.must("run", run).await;
    assert_eq!(begun["activity"]["state"], "secret_prompt", "{begun}");
    let typing = json!({
        "session": session, "text": SECRET, "enter": true, "lease_id": lease,
        "until": {"command_done": true}, "wait_ms": 20_000,
    });
    let typed = client.must("send_text", typing).await;
    assert_eq!(typed["wait"]["command"]["exit_code"], 5, "{typed}");
    assert_eq!(files_with(home.ground(), SECRET), Vec::<String>::new());
    daemon.signal(Signal::SIGUSR1);
    let (_, said) = daemon.ends().await;
    assert!(said.contains("TRACE"), "the log tells little: {said}");
    assert_eq!(files_with(home.ground(), SECRET), Vec::<String>::new());
}

/// What is known of a command, once a new daemon has read what the terminal wrote meanwhile.
async fn ended_one(client: &mut Client, asked: Value) -> Value {
    let looking = async {
        loop {
            let known = client.call("read_commands", asked.clone()).await.unwrap();
            if let Ok(known) = known
                && known["commands"][0]["status"] != "running"
            {
                return known;
            }
        }
    };
    soon("the end of a command", looking).await
}

/// The files below a directory that contain a text.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}
