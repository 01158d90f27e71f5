//! The client against a daemon of which each word is written down in the test.
//!
//! It must not know the real daemon, so that its answers may also be wrong ones.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::*;
use crate::transport::limits::LINE_MAX;

/// A daemon of which each word is written down here.
struct Daemon {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Daemon {
    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn say(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, id: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    async fn push(&mut self, observe: &Value, number: u64) {
        let params = json!({"observe": observe, "number": number});
        self.say(json!({"jsonrpc": "2.0", "method": "termgate/delta", "params": params})).await;
    }
}

fn listening() -> (Daemon, DuplexStream) {
    let (near, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    (Daemon { lines: BufReader::new(reader).lines(), writer }, near)
}

async fn connected() -> (Client, Daemon) {
    let (mut daemon, near) = listening();
    let (reader, writer) = tokio::io::split(near);
    let greeting = async {
        let hello = daemon.hear().await;
        assert_eq!(hello["method"], "initialize");
        daemon.answer(&hello["id"], json!({"protocolVersion": "2025-11-25"})).await;
        assert_eq!(daemon.hear().await["method"], "notifications/initialized");
    };
    let (client, ()) = tokio::join!(Client::over(reader, writer), greeting);
    (client.unwrap(), daemon)
}

#[tokio::test(start_paused = true)]
async fn a_daemon_is_looked_for_until_the_end_of_the_time_or_a_final_failure() {
    let tries = std::cell::Cell::new(0);
    let connect = async || {
        tries.set(tries.get() + 1);
        Err::<(), u32>(tries.get())
    };
    assert_eq!(reach(connect, Duration::ZERO, |_| true).await, Err(1));
    assert_eq!(reach(connect, Duration::MAX, |tried| *tried < 4).await, Err(4));
    assert_eq!(reach(connect, LOOK_INTERVAL_MIN * 5 / 2, |_| true).await, Err(8));
}

#[tokio::test]
async fn a_call_gives_the_result_of_its_tool() {
    let (client, mut daemon) = connected().await;
    let serving = async {
        let call = daemon.hear().await;
        assert_eq!(call["params"], json!({"name": "why", "arguments": {"code": "busy"}}));
        let content = json!([{"type": "text", "text": "later"}]);
        daemon.answer(&call["id"], json!({"content": content, "isError": true})).await;
    };
    let arguments = Map::from_iter([("code".to_owned(), json!("busy"))]);
    let (result, ()) = tokio::join!(client.call("why", arguments), serving);
    assert_eq!(result.unwrap().is_error, Some(true));
}

#[tokio::test]
async fn an_error_of_the_protocol_is_told_apart_from_a_result() {
    let (client, mut daemon) = connected().await;
    let serving = async {
        let id = daemon.hear().await["id"].clone();
        let error = json!({"code": -32601, "message": "no such method"});
        daemon.say(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    };
    let (result, ()) = tokio::join!(client.request("x", json!({})), serving);
    let message = "no such method".to_owned();
    assert_eq!(result, Err(ClientError::Refused { code: -32601, message, data: None }));
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let (client, mut daemon) = connected().await;
    let serving = async {
        let (first, second) = (daemon.hear().await, daemon.hear().await);
        daemon.answer(&second["id"], json!(2)).await;
        daemon.answer(&first["id"], json!(1)).await;
    };
    let (first, second, ()) =
        tokio::join!(client.request("a", json!({})), client.request("b", json!({})), serving);
    assert_eq!((first, second), (Ok(json!(1)), Ok(json!(2))));
}

#[tokio::test]
async fn deltas_come_in_the_order_they_were_sent_until_the_daemon_ends_them() {
    let (client, mut daemon) = connected().await;
    let mut observation = client.observe(&json!({"session": "s"})).unwrap();
    let id = daemon.hear().await["id"].clone();
    // More than may wait at once.
    let serving = async {
        for number in 0..1000 {
            daemon.push(&id, number).await;
        }
        daemon.answer(&id, json!({})).await;
    };
    let observing = async {
        let mut numbers = Vec::new();
        while let Some(delta) = observation.next().await.unwrap() {
            numbers.push(delta["number"].as_u64().unwrap());
        }
        numbers
    };
    let (numbers, ()) = tokio::join!(observing, serving);
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_observation_that_is_refused_says_why() {
    let (client, mut daemon) = connected().await;
    let mut observation = client.observe(&json!({"session": "s"})).unwrap();
    let id = daemon.hear().await["id"].clone();
    let error = json!({"code": -32602, "message": "session_not_found"});
    daemon.say(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    let refused = observation.next().await;
    assert!(matches!(refused, Err(ClientError::Refused { code: -32602, .. })), "{refused:?}");
}

#[tokio::test]
async fn giving_up_cancels_at_the_daemon() {
    let (client, mut daemon) = connected().await;
    let observation = client.observe(&json!({})).unwrap();
    let observe = daemon.hear().await["id"].clone();
    drop(observation);
    let cancelled = daemon.hear().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], observe);
    daemon.push(&observe, 1).await;
    let waiting = timeout(Duration::ZERO, client.request("slow", json!({}))).await;
    assert!(waiting.is_err());
    let slow = daemon.hear().await["id"].clone();
    assert_eq!(daemon.hear().await["params"]["requestId"], slow);
}

#[tokio::test]
async fn a_daemon_that_goes_ends_everything_that_waits() {
    let (client, mut daemon) = connected().await;
    let mut observation = client.observe(&json!({})).unwrap();
    daemon.hear().await;
    let waiting = client.request("slow", json!({}));
    drop(daemon);
    assert_eq!(waiting.await, Err(ClientError::Closed));
    assert_eq!(observation.next().await, Err(ClientError::Closed));
    client.closed().await;
    assert_eq!(client.request("late", json!({})).await, Err(ClientError::Closed));
}

#[tokio::test]
async fn a_request_no_daemon_would_take_is_not_sent() {
    let (client, mut daemon) = connected().await;
    let text = json!({"text": "x".repeat(LINE_MAX)});
    let refused = client.request("send", text).await;
    assert!(matches!(refused, Err(ClientError::TooLarge { .. })));
    let _observation = client.observe(&json!({})).unwrap();
    assert_eq!(daemon.hear().await["method"], "termgate/observe");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_greet_is_no_daemon() {
    let (_daemon, near) = listening();
    let (reader, writer) = tokio::io::split(near);
    assert!(matches!(Client::over(reader, writer).await, Err(ConnectError::NoGreeting)));
}

#[tokio::test]
async fn whoever_hangs_up_at_once_is_told_apart_from_one_that_is_silent() {
    let (daemon, near) = listening();
    drop(daemon);
    let (reader, writer) = tokio::io::split(near);
    assert!(matches!(Client::over(reader, writer).await, Err(ConnectError::HungUp)));
}

#[tokio::test]
async fn a_missing_and_a_stale_socket_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.sock");
    assert!(matches!(
        Client::connect(&path, ExpectedDaemon::Ours).await,
        Err(ConnectError::Absent)
    ));
    drop(tokio::net::UnixListener::bind(&path).unwrap());
    assert!(matches!(
        Client::connect(&path, ExpectedDaemon::Ours).await,
        Err(ConnectError::Refused)
    ));
}
