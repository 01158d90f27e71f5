//! Events over daemons that are killed: each once, with numbers that only grow.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::waiting::until;
use crate::outlive::client::start;
use crate::outlive::home::Home;

/// All events of a session that `termgate events` prints, page by page.
fn events_of(home: &Home, session: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut since = 0;
    loop {
        let line = format!("events --json --session {session} --since {since} --limit 50");
        let printed = home.printed(&line);
        let page: Vec<Value> = printed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone())
            .collect();
        let Some(last) = page.last() else { return events };
        since = last["seq"].as_u64().unwrap();
        events.extend(page);
    }
}

#[tokio::test]
async fn each_command_is_told_once_whenever_the_daemon_is_killed() {
    const COMMANDS: u64 = 40;

    let home = Home::new();
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec bash --norc").await;
    for number in 1..=COMMANDS {
        let what = if number % 3 == 0 { "false" } else { "true" };
        let line = format!("run --no-spawn {} --timeout 60s {what}", session.id);
        let mut running = home.termgate(&line).stdout(Stdio::null()).spawn().unwrap();
        if number % 4 == 0 {
            // Somewhere before, within or after the command.
            tokio::time::sleep(Duration::from_millis(number)).await;
            daemon.kill().await;
            daemon = home.serve().await;
        }
        assert!(running.wait().unwrap().code().is_some());
    }
    let ran = home.envelope(&format!("commands {} --limit 100", session.id));
    let ran = ran["data"]["commands"].as_array().unwrap().clone();
    assert!(ran.len() > 4, "{ran:#?}");
    let events = events_of(&home, &session.id);
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let mut told = BTreeMap::<(u64, String), Vec<Value>>::new();
    for event in events.iter().filter(|event| event.get("command_id").is_some()) {
        let of =
            (event["command_id"].as_u64().unwrap(), event["kind"].as_str().unwrap().to_owned());
        told.entry(of).or_default().push(event["exit_code"].clone());
    }
    for command in &ran {
        let number = command["command_id"].as_u64().unwrap();
        let code = command["exit_code"].clone();
        let mut of = |kind: &str| told.remove(&(number, kind.to_owned()));
        assert_eq!(of("command_started"), Some(vec![Value::Null]), "{number} in {events:#?}");
        let ended = of("command_ended");
        // One that was cut off by a kill may not have ended, as far as is known.
        let is_open = code.is_null() && ended.is_none();
        assert!(is_open || ended == Some(vec![code]), "{number}: {ended:?} in {events:#?}");
    }
    assert!(told.is_empty(), "{told:?}");
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_that_ends_while_no_daemon_runs_is_told_to_have_ended_once() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let gate = home.path("gate");
    let line =
        format!("until test -e {}; do sleep 0.01; done; printf '\\007'; exit 7", gate.display());
    let session = start(&mut client, &line).await;
    daemon.kill().await;
    std::fs::write(&gate, "").unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        let daemon = home.serve().await;
        let mut client = home.client().await;
        let ended = json!({"session": session.id, "exit": true, "since": 0, "timeout_ms": 60_000});
        client.must("wait_for", ended).await;
        let kinds = |event: &Value| event["kind"].as_str().unwrap().to_owned();
        told = events_of(&home, &session.id).iter().map(kinds).collect();
        daemon.kill().await;
    }
    let of_program = |kind: &&String| matches!(kind.as_str(), "bell" | "session_ended");
    let mut of_program: Vec<_> = told.iter().filter(of_program).collect();
    of_program.sort();
    assert_eq!(of_program, ["bell", "session_ended"], "{told:?}");
}

#[tokio::test]
async fn a_session_of_which_nothing_is_left_is_told_to_be_removed_once() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let lost = start(&mut client, "exec cat").await;
    let stays = start(&mut client, "exec cat").await;
    daemon.kill().await;
    // As if the machine had been started again, for this one.
    let shim = home.shim(&lost.id);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    for place in ["s", "h"] {
        for entry in std::fs::read_dir(home.runtime(place)).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().contains(&lost.id) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    for _ in 0..2 {
        let daemon = home.serve().await;
        let kinds = |session: &str| -> Vec<_> {
            let kind = |event: &Value| event["kind"].as_str().unwrap().to_owned();
            events_of(&home, session).iter().map(kind).collect()
        };
        assert_eq!(kinds(&lost.id), ["session_created", "session_removed"]);
        assert_eq!(kinds(&stays.id), ["session_created"]);
        daemon.kill().await;
    }
}

#[tokio::test]
async fn following_goes_on_under_the_next_daemon_and_prints_each_event_once() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec bash --norc").await;
    let printed = home.path("printed");
    let file = std::fs::File::create(&printed).unwrap();
    let mut following =
        home.termgate("events --follow --json --kind command").stdout(file).spawn().unwrap();
    let said = || std::fs::read_to_string(&printed).unwrap();
    let run = |what: &str| {
        home.run(&format!("run --no-spawn {} --timeout 60s {what}", session.id)).status.code()
    };
    assert_eq!(run("false"), Some(1));
    until("the end of the first", || said().contains("\"exit_code\":1")).await;
    daemon.kill().await;
    let daemon = home.serve().await;
    assert_eq!(run("true"), Some(0));
    until("the end of the second", || said().contains("\"exit_code\":0")).await;
    following.kill().unwrap();
    following.wait().unwrap();
    let kinds: Vec<_> = said()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"]["kind"].clone())
        .collect();
    let each = ["command_started", "command_ended"];
    assert_eq!(kinds, [each, each].concat());
    daemon.kill().await;
}

#[tokio::test]
async fn no_command_runs_for_what_happened_before_it_was_configured_and_the_daemon_started() {
    let home = Home::new();
    let daemon = home.serve().await;
    home.printed("new --name before -- cat");
    daemon.kill().await;
    let told = home.path("told");
    let line = format!("echo $TERMGATE_EVENT_NAME >> {}", told.display());
    home.configure(&format!("[notify]\nevents = ['session_created']\ncommand = '{line}'\n"));
    let daemon = home.serve().await;
    home.printed("new --name after -- cat");
    let said = || std::fs::read_to_string(&told).unwrap_or_default();
    until("the command", || !said().is_empty()).await;
    assert_eq!(said(), "after\n");
    daemon.kill().await;
}
