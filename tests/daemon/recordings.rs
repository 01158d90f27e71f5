//! Recordings as operators begin and end them, and as clients read them.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::harness::home::Home;
use crate::harness::waiting::until;

/// What `record_session` says of one session.
async fn recording(operator: &mut Wire, session: &str, action: &str) -> Value {
    let order = json!({"session": session, "action": action});
    operator.structured("record_session", order).await
}

/// The ids of the sessions that have recordings, oldest first.
async fn recorded(operator: &mut Wire) -> Vec<String> {
    let listed = operator.structured("record_session", json!({"action": "status"})).await;
    let id = |it: &Value| it["session"].as_str().unwrap().to_owned();
    listed["recordings"].as_array().unwrap().iter().map(id).collect()
}

fn path_of(answer: &Value) -> &str {
    answer["recordings"][0]["path"].as_str().unwrap()
}

/// Waits until a recording has a text.
async fn until_recorded(path: &str, text: &str) {
    let has = || fs::read_to_string(path).unwrap().contains(text);
    until(&format!("{text:?} to be recorded"), has).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_recordings_that_have_ended_make_room_for_new_ones() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.recording.always = true;
        config.recording.total_bytes = 15_000;
    })
    .await;
    let (mut agent, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let print = "head -c 6000 /dev/zero | tr '\\0' x; echo done";
    let running = agent.start(&format!("{print}; exec cat")).await;
    agent.wait_for(json!({"session": running, "text": "done", "since": 0})).await;
    let mut ended = Vec::new();
    for _ in 0..2 {
        let session = agent.start(print).await;
        agent.wait_for(json!({"session": session, "exit": true, "since": 0})).await;
        let path = path_of(&recording(&mut operator, &session, "status").await).to_owned();
        until_recorded(&path, r#""x", "0""#).await;
        ended.push(session);
    }
    assert_eq!(recorded(&mut operator).await, [&running, &ended[0], &ended[1]].map(String::clone));
    let last = agent.start("exec cat").await;
    assert_eq!(recorded(&mut operator).await, [&running, &ended[1], &last].map(String::clone));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ended_is_recorded_as_it_was_and_one_that_is_gone_is_not() {
    let daemon = TestDaemon::writable().await;
    let (mut agent, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    for action in ["start", "stop", "status"] {
        let unknown = json!({"session": "0123456789ab", "action": action});
        assert_eq!(operator.error_code("record_session", unknown).await, "session_not_found");
    }
    let session = agent.start("echo 'the last words'; exit 3").await;
    agent.wait_for(json!({"session": session, "exit": true, "since": 0})).await;
    let begun = recording(&mut operator, &session, "start").await;
    assert_eq!(begun["changed"], true);
    assert_eq!(begun["recordings"][0]["running"], false);
    let text = fs::read_to_string(path_of(&begun)).unwrap();
    assert!(text.contains("the last words") && text.contains(r#""x", "3""#), "{text}");
    assert_eq!(recording(&mut operator, &session, "stop").await["changed"], false);
    let removing = json!({"session": session, "action": "kill"});
    agent.structured("manage_session", removing).await;
    let listed = json!({"session": session});
    assert_eq!(agent.error_code("list_sessions", listed).await, "session_not_found");
    for action in ["start", "stop"] {
        let gone = json!({"session": session, "action": action});
        assert_eq!(operator.error_code("record_session", gone).await, "session_not_found");
    }
    let kept = recording(&mut operator, &session, "status").await;
    assert_eq!(path_of(&kept), path_of(&begun));
    daemon.stop().await;
}

/// Reads the recording of a session through a door, part by part.
async fn read_whole(wire: &mut Wire, session: &str) -> String {
    let uri = format!("termgate://session/{session}/recording");
    let (mut text, mut offset) = (String::new(), json!(0));
    loop {
        let part = wire.facts(&format!("{uri}?offset={offset}")).await["recording"].take();
        let read = part["text"].as_str().unwrap();
        if read.is_empty() {
            return text;
        }
        text.push_str(read);
        offset = part["next_offset"].clone();
    }
}

/// Prints more than one answer has room for.
const LONG: &str = "seq 1000 9000; echo 'that was all'; exec cat";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_at_sockets_read_a_recording_in_parts() {
    let daemon = TestDaemon::writable().await;
    let (mut agent, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let session = agent.start(&format!("read -r go; {LONG}")).await;
    let uri = format!("termgate://session/{session}/recording");
    assert_eq!(agent.facts(&uri).await, json!({"recording": null}));
    let begun = recording(&mut operator, &session, "start").await;
    agent.acquire(&session).await;
    agent.structured("send_keys", json!({"session": session, "keys": "Enter"})).await;
    agent.wait_for(json!({"session": session, "text": "that was all", "since": 0})).await;
    until_recorded(path_of(&begun), "that was all").await;
    recording(&mut operator, &session, "stop").await;
    let whole = fs::read_to_string(path_of(&begun)).unwrap();
    assert!(read_whole(&mut agent, &session).await == whole);
    for era in Era::BOTH {
        let mut bound = daemon.at_read_only(&session, era).await;
        assert!(read_whole(&mut bound, &session).await == whole);
        let newest = bound.facts(&uri).await["recording"].take();
        assert_eq!((&newest["session"], &newest["running"]), (&json!(session), &json!(false)));
        assert!(whole.ends_with(newest["text"].as_str().unwrap()), "{newest}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_at_standard_input_reads_the_recording_of_its_session() {
    let home = Home::new();
    home.configure("[recording]\nalways = true\n");
    let mut client = home.client("serve --stdio --allow-write", Era::Legacy).await;
    let session = client.wire.start(LONG).await;
    client.wire.wait_for(json!({"session": session, "text": "that was all", "since": 0})).await;
    let uri = format!("termgate://session/{session}/recording");
    let newest = client.wire.facts(&uri).await["recording"].take();
    assert_eq!(newest["running"], true);
    let path = newest["path"].as_str().unwrap().to_owned();
    until_recorded(&path, "that was all").await;
    let read = read_whole(&mut client.wire, &session).await;
    assert!(read == fs::read_to_string(&path).unwrap());
    client.end().await;
    assert!(fs::read_to_string(&path).unwrap().starts_with(&read), "it stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_commands_and_people_are_markers() {
    let daemon = TestDaemon::writable().await;
    let (mut agent, mut operator) = (daemon.client(Era::Legacy).await, daemon.operator().await);
    let shell = json!({"command": "bash", "args": ["--norc"], "lease": false});
    let created = agent.structured("create_session", shell).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    let begun = recording(&mut operator, &session, "start").await;
    agent.acquire(&session).await;
    agent.structured("run", json!({"session": session, "command": "(exit 7)"})).await;
    let mut person = daemon.operator().await;
    let attach = json!({"session": session, "cols": 100, "rows": 30});
    let attach = person.send("termgate/attach", attach).await;
    person.receiver.notification("termgate/delta").await;
    person.sender.cancel(attach).await;
    until_recorded(path_of(&begun), " detached\"]").await;
    let text = fs::read_to_string(path_of(&begun)).unwrap();
    let events = text.lines().filter(|line| line.starts_with('['));
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let markers: Vec<String> = events
        .filter(|event| event[1] == "m")
        .map(|event| event[2].as_str().unwrap().to_owned())
        .collect();
    let at = |wanted: &str| markers.iter().position(|marker| marker.contains(wanted));
    let order = ["lease: tester", "$ (exit 7)", "exit code 7", " attached", " detached"].map(at);
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{markers:?}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_stops_while_its_session_is_killed() {
    let daemon = TestDaemon::writable().await;
    let (mut agent, mut operator) = (daemon.client(Era::Legacy).await, daemon.operator().await);
    let stubborn = "trap '' HUP TERM; echo ready; while :; do sleep 1; done";
    let session = agent.start(stubborn).await;
    agent.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
    let begun = recording(&mut operator, &session, "start").await;
    let killing = json!({"session": session, "action": "kill"});
    let killing = agent.send_call("manage_session", killing).await;
    let stopped = recording(&mut operator, &session, "stop").await;
    agent.answer(killing).await;
    let text = fs::read_to_string(path_of(&begun)).unwrap();
    assert_eq!(stopped["changed"], true, "{text}");
    assert!(text.contains("ended the recording\"]") && !text.contains(r#", "x", "#), "{text}");
    let listed = recording(&mut operator, &session, "status").await;
    assert_eq!(listed["recordings"][0]["running"], false);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_has_a_new_session_recorded_from_its_first_byte_and_others_may_not() {
    let daemon = TestDaemon::writable().await;
    let (mut agent, mut operator) = (daemon.client(Era::Modern).await, daemon.operator().await);
    let order = json!({"command": "sh", "args": ["-c", "printf 'first'; exit 4"], "record": true});
    assert_eq!(agent.error_code("create_session", order.clone()).await, "policy_denied");
    assert_eq!(agent.structured("list_sessions", json!({})).await["sessions"], json!([]));
    let created = operator.structured("create_session", order).await;
    let session = created["session"]["id"].as_str().unwrap();
    agent.wait_for(json!({"session": session, "exit": true, "since": 0})).await;
    let path = created["recording"].as_str().unwrap();
    until_recorded(path, r#""x", "4""#).await;
    let text = fs::read_to_string(path).unwrap();
    let output = text.lines().find(|line| line.contains(r#", "o", "#)).unwrap();
    assert!(output.ends_with(r#""o", "first"]"#), "{text}");
    assert_eq!(path_of(&recording(&mut operator, session, "status").await), path);
    let plain = operator.structured("create_session", json!({"command": "true", "args": []})).await;
    assert_eq!(plain["recording"], Value::Null);
    daemon.stop().await;
}
