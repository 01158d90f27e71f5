//! Sessions whose shell is prepared to mark its commands: where the scripts are, and how that is
//! switched off. `tests/shell_marks.rs` has what the shells tell.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::program::{Piped, piped};
use crate::harness::home::Home;

/// Starts a bash of a client, has it say whether it was prepared, and gives back what it said.
async fn told_by_bash(client: &mut Wire) -> String {
    let bash = json!({"command": "bash", "args": ["-i"], "env": {"HOME": "/nowhere"}});
    let created = client.structured("create_session", bash).await;
    let session = &created["session"]["id"];
    let line = "echo \"<${__termgate_a:+prepared}\"'>'${TERMGATE_SHELL_NONCE-}";
    let typing = json!({
        "session": session, "text": line, "enter": true,
        "until": {"pattern": "^<(prepared)?>$"}, "wait_ms": 20_000,
    });
    let typed = client.structured("send_text", typing).await;
    assert_eq!(typed["wait"]["outcome"], "matched", "{typed}");
    typed["wait"]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_of_a_session_is_prepared_by_scripts_that_are_for_us_alone() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    assert_eq!(told_by_bash(&mut client).await, "<prepared>");
    for name in ["", "zsh", "termgate.bash", "termgate.fish", "zsh/.zshenv"] {
        let metadata = fs::metadata(daemon.paths.shell().join(name)).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o7777, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_is_started_as_it_is_when_that_is_switched_off() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.shell_marks = false;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    assert_eq!(told_by_bash(&mut client).await, "<>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_without_sockets_takes_its_scripts_away_with_it() {
    let home = Home::new();
    let temporary = home.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = home.termgate("serve --stdio --allow-write");
    command.env("TMPDIR", &temporary);
    let (child, stream) = piped(command);
    let mut client = Piped { child, wire: Wire::over(stream, Era::Legacy) };
    client.wire.greet().await;
    assert_eq!(told_by_bash(&mut client.wire).await, "<prepared>");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    assert_eq!(client.end().await.0.code(), Some(0));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
