//! Recordings over daemons that are killed: each byte of output once, and a replay with the screen as it is.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::waiting::until;
use crate::outlive::client::{Client, start};
use crate::outlive::home::Home;

const ALWAYS: &str = "[recording]\nalways = true\n";

/// The events of the newest recording of a session.
fn events_of(home: &Home, session: &str) -> Vec<Value> {
    let printed = home.printed(&format!("replay --json {session}"));
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap()["data"].clone();
    printed.lines().map(event).collect()
}

fn of_kind(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|it| it["kind"] == kind).map(|it| it["value"].clone()).collect()
}

fn output_of(events: &[Value]) -> String {
    of_kind(events, "output").iter().map(|it| it.as_str().unwrap()).collect()
}

/// The text of the screen, without blank rows at its end.
async fn screen_of(client: &mut Client, session: &str) -> String {
    let screen = client.must("read_screen", json!({"session": session})).await;
    screen["text"].as_str().unwrap().trim_end().to_owned()
}

/// The files of recordings.
fn files_of(home: &Home, session: &str) -> Vec<PathBuf> {
    let listed = home.printed(&format!("record ls {session} --json"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let recordings = listed["data"]["recordings"].as_array().unwrap();
    recordings.iter().map(|it| it["path"].as_str().unwrap().into()).collect()
}

#[tokio::test]
async fn each_byte_is_recorded_once_however_often_the_daemon_is_killed() {
    let home = Home::new();
    home.configure(ALWAYS);
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let counted = home.path("counted");
    let line = format!(
        "for i in $(seq 1 3000); do echo \"line $i ä漢\"; echo $i > {}; \
         test $((i % 20)) != 0 || sleep 0.01; done; exit 3",
        counted.display()
    );
    let session = start(&mut client, &line).await;
    let count = || std::fs::read_to_string(&counted).ok()?.trim().parse::<u32>().ok();
    for kills in 1..=5 {
        until("more lines", || count().is_some_and(|lines| lines >= kills * 500)).await;
        daemon.kill().await;
        daemon = home.serve().await;
    }
    let mut client = home.client().await;
    let ended = json!({"session": session.id, "exit": true, "since": 0, "timeout_ms": 60_000});
    client.must("wait_for", ended).await;
    until("the end of the recording", || {
        of_kind(&events_of(&home, &session.id), "exit") == [json!(3)]
    })
    .await;
    let events = events_of(&home, &session.id);
    let expected: String = (1..=3_000).map(|line| format!("line {line} ä漢\r\n")).collect();
    assert!(output_of(&events) == expected, "{:?}", of_kind(&events, "marker"));
    assert_eq!(files_of(&home, &session.id).len(), 1);
    daemon.kill().await;
}

#[tokio::test]
async fn a_recording_that_began_in_the_middle_replays_to_the_screen_as_it_is() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (one, other) = (home.path("one"), home.path("other"));
    let wait = |gate: &PathBuf| format!("until test -e {}; do sleep 0.01; done", gate.display());
    let line = format!(
        "printf 'before\\r\\n\\033[1;31mred\\033[0m\\033[3;9r\\033[6;4Hhere'; {}; \
         printf '\\n\\n\\n\\n\\nscrolled\\033[?1049h\\033[2J\\033[5;5Hfull'; {}; \
         printf '\\033[7mmore\\033[?1049lback\\r\\nlast'; exec cat",
        wait(&one),
        wait(&other)
    );
    let session = start(&mut client, &line).await;
    let id = session.id.as_str();
    client.must("wait_for", json!({"session": id, "text": "here", "since": 0})).await;
    let told = home.printed(&format!("record start {id}"));
    assert!(told.starts_with("recording to "), "{told}");
    assert!(home.printed(&format!("record start {id}")).starts_with("already recording to "));
    let exported = || home.printed(&format!("record export {id}")).trim_end().to_owned();
    assert_eq!(exported(), screen_of(&mut client, id).await);
    std::fs::write(&one, "").unwrap();
    client.must("wait_for", json!({"session": id, "text": "full", "since": 0})).await;
    assert_eq!(exported(), screen_of(&mut client, id).await);
    daemon.kill().await;
    std::fs::write(&other, "").unwrap();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    client.must("wait_for", json!({"session": id, "text": "last", "since": 0})).await;
    let shown = screen_of(&mut client, id).await;
    until("the rest to be recorded", || exported().ends_with("last")).await;
    let recorded = exported();
    assert!(recorded.ends_with(&shown), "{recorded:?} {shown:?}");
    let image = home.printed(&format!("record export {id} --svg --at end"));
    assert!(image.starts_with("<svg ") && image.contains(">last<"), "{image}");
    let told = home.printed(&format!("record stop {id}"));
    assert!(told.starts_with("the recording is "), "{told}");
    assert_eq!(home.printed(&format!("record stop {id}")).trim(), "no recording was running");
    daemon.kill().await;
    // What an operator stopped stays so under the next daemon.
    let daemon = home.serve().await;
    assert!(home.printed(&format!("record ls {id}")).contains(" ended "));
    daemon.kill().await;
}

#[tokio::test]
async fn a_screen_that_was_resized_just_before_the_daemon_was_killed_replays_as_it_is() {
    let home = Home::new();
    home.configure(ALWAYS);
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let gate = home.path("gate");
    let (long, wait) = ("0123456789".repeat(9), format!("until test -e {}", gate.display()));
    let line = format!("echo first; echo {long}; {wait}; do sleep 0.01; done; echo last; exec cat");
    let session = start(&mut client, &line).await;
    let id = session.id.as_str();
    client.must("wait_for", json!({"session": id, "text": long, "since": 0})).await;
    client.must("acquire_lease", json!({"session": id})).await;
    client.must("resize", json!({"session": id, "cols": 60, "rows": 12})).await;
    daemon.kill().await;
    std::fs::write(&gate, "").unwrap();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    client.must("wait_for", json!({"session": id, "text": "last", "since": 0})).await;
    let exported = || home.printed(&format!("record export {id}")).trim_end().to_owned();
    until("the rest to be recorded", || exported().ends_with("last")).await;
    assert_eq!(exported(), format!("first\n{long}\nlast"));
    let image = home.printed(&format!("record export {id} --svg --at end"));
    let text = |element: &str| element.split(['>', '<']).nth(1).unwrap().to_owned();
    let rows: Vec<_> = image.split("<text ").skip(1).map(text).collect();
    assert_eq!(rows.join("\n"), screen_of(&mut client, id).await);
    assert!(rows.ends_with(&[long[60..].to_owned(), "last".to_owned()]), "{rows:?}");
    let sizes = of_kind(&events_of(&home, id), "resize");
    assert_eq!(sizes, [json!({"cols": 60, "rows": 12})]);
    daemon.kill().await;
}

#[tokio::test]
async fn a_secret_that_is_typed_at_a_prompt_is_not_recorded_and_commands_are_markers() {
    let home = Home::new();
    home.configure(ALWAYS);
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec bash --norc").await;
    let id = session.id.as_str();
    client.must("acquire_lease", json!({"session": id})).await;
    client.must("run", json!({"session": id, "command": "false"})).await;
    let asks = json!({"session": id, "command": "read -rs -p 'Token: ' token; echo; echo taken"});
    client.must("run", asks).await;
    let typed = json!({"session": id, "text": "hunter2-is-secret", "enter": true});
    client.must("send_text", typed).await;
    client.must("wait_for", json!({"session": id, "pattern": "^taken", "since": 0})).await;
    let mut text = String::new();
    until("the end of the command to be recorded", || {
        text = std::fs::read_to_string(&files_of(&home, id)[0]).unwrap();
        text.contains("\"exit code 0\"")
    })
    .await;
    assert!(text.contains("Token: ") && text.contains("taken"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let events = events_of(&home, id);
    let markers = of_kind(&events, "marker");
    let has = |wanted: &str| markers.iter().any(|it| it.as_str().unwrap().starts_with(wanted));
    assert!(has("$ false") && has("exit code 1") && has("lease: outlive"), "{markers:?}");
    daemon.kill().await;
}

#[tokio::test]
async fn the_nonce_of_a_shell_is_in_no_recording() {
    let home = Home::new();
    home.configure(ALWAYS);
    let daemon = home.serve().await;
    home.printed("new --name work -- bash");
    home.printed("run work true");
    home.printed("run work pwd");
    let file = files_of(&home, "work").pop().unwrap();
    let text = || std::fs::read_to_string(&file).unwrap();
    until("the marks", || text().matches("133;D;").count() >= 2).await;
    let with_nonce = text()
        .split("nonce=")
        .skip(1)
        .any(|rest| rest.starts_with(|it: char| it.is_ascii_hexdigit()));
    assert!(!with_nonce && text().contains("nonce="), "{}", text());
    daemon.kill().await;
}
