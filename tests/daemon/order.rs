//! Writes reach the terminal whole and in their order, whoever else writes.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};

/// How many clients contend for the lease, half of them of each era.
const WRITERS: usize = 8;
/// How often each of them takes it.
const TURNS: usize = 6;
/// How many writes each makes under one lease.
const WRITES: usize = 3;

/// The text of one write: several lines that all say whose they are and which write it was.
fn stamped(letter: char, number: usize) -> String {
    let line = format!("{letter}{number:06}\n");
    line.repeat(4)
}

/// What one writer did under one lease.
#[derive(Debug)]
struct Stint {
    epoch: u64,
    /// Everything that was acknowledged, as the program gets it.
    typed: String,
}

/// Takes the lease, in line with the others; as many as may wait already, it asks again.
async fn acquire(client: &mut Wire, session: &str) -> Value {
    loop {
        let arguments = json!({"session": session, "ttl_ms": 20_000, "wait_ms": 20_000});
        let answer = client.call("acquire_lease", arguments).await;
        if answer["isError"] != true {
            return structured(&answer);
        }
        assert_eq!(error_code(&answer), "quota_exceeded", "{answer}");
    }
}

async fn type_in_turns(mut client: Wire, session: String, letter: char) -> Vec<Stint> {
    let mut stints = Vec::new();
    for turn in 0..TURNS {
        let lease = acquire(&mut client, &session).await;
        let mut typed = String::new();
        for write in 0..WRITES {
            let text = stamped(letter, turn * WRITES + write);
            let arguments = json!({"session": session, "text": text});
            let result = client.structured("send_text", arguments).await;
            assert_eq!(result["written"], text.len(), "{result}");
            typed.push_str(&text.replace('\n', "\r"));
        }
        stints.push(Stint { epoch: lease["epoch"].as_u64().unwrap(), typed });
        client.structured("release_lease", json!({"lease_id": lease["lease_id"]})).await;
    }
    stints
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_take_turns_never_mix_and_their_epochs_grow_in_that_order() {
    let daemon = TestDaemon::writable().await;
    let mut watcher = daemon.client(Era::Modern).await;
    let log = daemon.file("log");
    let bytes = WRITERS * TURNS * WRITES * stamped('a', 0).len();
    let session = watcher.start_recorder(&log, bytes).await;
    let mut typing = JoinSet::new();
    for (index, letter) in ('a'..='z').take(WRITERS).enumerate() {
        let client = daemon.client(Era::BOTH[index % 2]).await;
        typing.spawn(type_in_turns(client, session.clone(), letter));
    }
    let mut stints: Vec<_> = typing.join_all().await.into_iter().flatten().collect();
    watcher.wait_for_exit(&session).await;
    stints.sort_by_key(|stint| stint.epoch);
    let mut expected = String::new();
    for pair in stints.windows(2) {
        assert!(pair[0].epoch < pair[1].epoch, "two holders had one epoch: {pair:?}");
    }
    for stint in &stints {
        expected.push_str(&stint.typed);
    }
    assert_eq!(fs::read_to_string(log).unwrap(), expected);
    daemon.stop().await;
}

/// Sends calls without waiting for answers, every `every`th of them a write of its number, and
/// gives back the log that the program made of them.
async fn pipelined(era: Era, calls: usize, every: usize) -> (PathBuf, TestDaemon) {
    const NUMBER: usize = 7;
    let daemon = TestDaemon::writable().await;
    let log = daemon.file("log");
    let mut client = daemon.client(era).await;
    let writes = calls / every;
    let session = client.start_recorder(&log, writes * NUMBER).await;
    client.acquire(&session).await;
    let Wire { mut sender, mut receiver } = client;
    let to = session.clone();
    let sending = tokio::spawn(async move {
        for call in 0..calls {
            if call % every == 0 {
                let text = format!("{:06}\n", call / every);
                sender.call("send_text", json!({"session": to, "text": text})).await;
            } else {
                sender.call("list_sessions", json!({"session": to})).await;
            }
        }
        sender
    });
    for _ in 0..calls {
        let answer = receiver.first(|message| message["id"].is_u64()).await;
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    let sender = sending.await.unwrap();
    let mut client = Wire { sender, receiver };
    client.wait_for_exit(&session).await;
    (log, daemon)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_start_side_by_side_have_names_in_their_order_and_are_there_for_the_next_call()
 {
    const UNNAMED: usize = 12;
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let mut expected = Vec::new();
    for number in 1..=UNNAMED {
        let id = client.send_call("create_session", json!({"command": "cat", "args": []})).await;
        let name = if number == 1 { "cat".to_owned() } else { format!("cat-{number}") };
        expected.push((id, name));
    }
    let named = json!({"command": "cat", "args": [], "name": "last"});
    expected.push((client.send_call("create_session", named).await, "last".to_owned()));
    let typed = client.send_call("send_text", json!({"session": "last", "text": "x"})).await;
    let (mut names, mut written) = (Vec::new(), 0);
    for _ in 0..UNNAMED + 2 {
        let answer = client.receiver.first(|message| message["id"].is_u64()).await;
        let (id, result) = (answer["id"].as_u64().unwrap(), structured(&answer["result"]));
        match id == typed {
            true => written = result["written"].as_u64().unwrap(),
            false => names.push((id, result["session"]["name"].as_str().unwrap().to_owned())),
        }
    }
    names.sort();
    assert_eq!((names, written), (expected, 1));
    daemon.stop().await;
}

fn numbers(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        write!(text, "{number:06}\r").unwrap();
        text
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_sent_without_waiting_arrive_in_their_order() {
    for era in Era::BOTH {
        let (log, daemon) = pipelined(era, 2_500, 1).await;
        assert_eq!(fs::read_to_string(log).unwrap(), numbers(2_500));
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_among_twenty_thousand_calls_arrive_in_their_order() {
    let (log, daemon) = pipelined(Era::Legacy, 20_000, 4).await;
    assert_eq!(fs::read_to_string(log).unwrap(), numbers(5_000));
    daemon.stop().await;
}
