//! What hostile, broken and merely slow clients can do to others: nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, Sender, TestDaemon, Wire, error_code, structured};

/// JSON-RPC's own codes.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

async fn watermark(client: &mut Wire, session: &str) -> u64 {
    let screen = client.structured("read_screen", json!({"session": session})).await;
    screen["watermark"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_soon_read_from_no_more() {
    /// Requests are padded to a size at which hardly any fits into the buffers of the kernel.
    const PADDING: usize = 32 * 1024;
    /// Far beyond what may be in flight, and a small multiple of a MiB in answers.
    const REQUESTS_MAX: u64 = 256;
    /// How often in a row the socket must take nothing to count as full.
    const REFUSALS: usize = 50;
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut polite = daemon.client(era).await;
        let Wire { mut sender, mut receiver } = daemon.client(era).await;
        let padding = "x".repeat(PADDING);
        let padded = |sender: &mut Sender| {
            let (id, line) = sender.line("tools/list", json!({"_meta": {"padding": padding}}));
            (id, line.into_bytes())
        };
        let (first, mut rest) = padded(&mut sender);
        let (mut last, mut refusals) = (first, 0);
        while refusals < REFUSALS {
            let taken = sender.raw_now(&rest);
            rest.drain(..taken);
            refusals = if taken == 0 { refusals + 1 } else { 0 };
            if rest.is_empty() {
                (last, rest) = padded(&mut sender);
            }
            assert!(last - first < REQUESTS_MAX, "whatever is not read is kept");
            // The daemon gets its time, and shows that it has some for others.
            polite.structured("list_sessions", json!({})).await;
        }
        // Once the client reads, each request has its answer.
        let sending = tokio::spawn(async move {
            sender.raw(&rest).await;
            sender
        });
        for id in first..=last {
            receiver.answer(id).await.unwrap();
        }
        drop(sending.await.unwrap());
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_stopped_delays_neither_the_flood_nor_those_who_watch_it() {
    const DELTAS: usize = 50;
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        // So tall a screen that the stopped one's socket is full long before the other has enough.
        let flood = json!({"command": "yes", "args": ["flood".repeat(20)], "rows": 120});
        let created = client.structured("create_session", flood).await;
        let session = created["session"]["id"].as_str().unwrap();
        let before = watermark(&mut client, session).await;
        let mut stopped = daemon.client(era).await;
        stopped.send("termgate/observe", json!({"session": session})).await;
        let mut observer = daemon.client(era).await;
        let observing = observer.send("termgate/observe", json!({"session": session})).await;
        let newest = chain(&mut observer, observing, DELTAS).await;
        let after = watermark(&mut client, session).await;
        assert!(newest > before && after >= newest, "{before} {newest} {after}");
        // What the stopped one missed it gets as one delta, without a gap.
        let mut seen = 0;
        let mut last = Value::Null;
        while seen < after {
            let delta = stopped.receiver.notification("termgate/delta").await;
            assert!(last.is_null() || delta["from"] == last, "{last} {delta}");
            last = delta["watermark"].clone();
            seen = last.as_u64().unwrap();
        }
        daemon.stop().await;
    }
}

/// Takes so many deltas, each beginning where the last one ended, and gives back where they end.
async fn chain(observer: &mut Wire, observing: u64, count: usize) -> u64 {
    let mut last = Value::Null;
    for index in 0..count {
        let delta = observer.receiver.notification("termgate/delta").await;
        assert_eq!(delta["observe"], observing);
        if index == 0 {
            assert_eq!(delta["reset"], true, "{delta}");
        } else {
            assert_eq!(delta["from"], last, "{delta}");
        }
        last = delta["watermark"].clone();
    }
    last.as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_waits_as_may_be_open_keep_no_cancel_from_being_read() {
    const WAITS_MAX: usize = 256;
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("stty -echo; echo ready; read line; echo go-$line").await;
        client.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
        let wait = json!({"session": session, "text": "go-now", "timeout_ms": 600_000});
        let mut open = Vec::new();
        for _ in 0..WAITS_MAX {
            open.push(client.send_call("wait_for", wait.clone()).await);
        }
        let refused = client.call("wait_for", wait.clone()).await;
        assert_eq!(error_code(&refused), "busy");
        assert!(refused["structuredContent"]["retry_after_ms"].is_u64(), "{refused}");
        // Short requests are answered all the same.
        client.structured("list_sessions", json!({})).await;

        let cancelled = open.remove(63);
        client.sender.cancel(cancelled).await;
        open.push(client.send_call("wait_for", wait.clone()).await);
        assert_eq!(client.error_code("wait_for", wait.clone()).await, "busy");

        let mut typist = daemon.client(era).await;
        typist.acquire(&session).await;
        let text = json!({"session": session, "text": "now", "enter": true});
        typist.structured("send_text", text).await;
        for id in open {
            let waited = structured(&client.answer(id).await);
            assert_eq!(waited["outcome"], "matched", "{waited}");
        }
        client.structured("list_sessions", json!({})).await;
        assert_eq!(client.receiver.kept().find(|message| message["id"] == cancelled), None);
        daemon.stop().await;
    }
}

/// What is no message, and the code of the answer to it.
fn bad_lines() -> Vec<(&'static str, Vec<u8>, i64)> {
    let list = |id: &str, more: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"more":{more}}}}}"#)
    };
    let huge = "x".repeat(20_000_000);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let wide = format!("[{}0]", "0,".repeat(30_000));
    let mut broken = list("7", "\"?\"").into_bytes();
    let at = broken.iter().position(|byte| *byte == b'?').unwrap();
    broken[at] = 0xff;
    let garbage = (0..=255).filter(|byte| *byte != b'\n').collect();
    vec![
        ("20 MB of text", huge.clone().into_bytes(), INVALID_REQUEST),
        ("10,000 lists in each other", deep.clone().into(), INVALID_REQUEST),
        ("10,000 objects in each other", r#"{"a":"#.repeat(10_000).into(), INVALID_REQUEST),
        ("60,000 parts", wide.into(), INVALID_REQUEST),
        ("every byte", garbage, PARSE_ERROR),
        ("what is no UTF-8", broken, PARSE_ERROR),
        ("half a message", br#"{"jsonrpc":"2.0","id":7,"method":"tools"#.to_vec(), PARSE_ERROR),
        ("a batch", format!("[{}]", list("7", "0")).into(), INVALID_REQUEST),
        ("a number", b"7".to_vec(), INVALID_REQUEST),
        ("an id that is a list", list("[7]", "0").into(), INVALID_REQUEST),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_20_mb_is_answered_under_its_id_and_the_connection_lives_on() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let (id, line) = client.sender.line("tools/list", json!({"more": "x".repeat(20_000_000)}));
    client.sender.raw(line.as_bytes()).await;
    let refused = client.receiver.answer(id).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "too_large", "{refused}");
    client.structured("list_sessions", json!({})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_are_not_whole_delay_no_message_of_another() {
    const WATCHERS: usize = 32;
    /// More in all than a user may have coming in, and than is read at once.
    const HALF: usize = 600_000;
    let daemon = TestDaemon::configured(|config| {
        // Longer than the test waits for anything.
        config.connection.inside_message = Duration::from_secs(60);
    })
    .await;
    let mut halves = Vec::new();
    for _ in 0..WATCHERS {
        let Wire { mut sender, receiver } = daemon.client(Era::Modern).await;
        let (id, line) = sender.line("tools/list", json!({"padding": "x".repeat(HALF)}));
        let (line, rest) = line.split_at(HALF);
        sender.raw(line.as_bytes()).await;
        halves.push((sender, receiver, id, rest.to_owned()));
    }
    let mut client = daemon.client(Era::Modern).await;
    let long = json!({"padding": "y".repeat(200 * 1024)});
    client.request("tools/list", long).await.unwrap();

    // The last ones are whole; those that began first gave way, and say so.
    let (mut sender, mut receiver, id, rest) = halves.pop().unwrap();
    sender.raw(rest.as_bytes()).await;
    receiver.answer(id).await.unwrap();
    let (mut sender, mut receiver, id, rest) = halves.swap_remove(0);
    sender.raw(rest.as_bytes()).await;
    let refused = receiver.answer(id).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "busy", "{refused}");
    let again = sender.request("tools/list", json!({})).await;
    receiver.answer(again).await.unwrap();
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_at_the_door_of_observers_is_short_so_that_they_have_no_others_dropped() {
    let daemon = TestDaemon::writable().await;
    let mut observer = Wire::connect(&daemon.paths.gateway_read_only(), Era::Modern).await;
    let padded = |bytes| json!({"padding": "x".repeat(bytes)});
    observer.request("tools/list", padded(60_000)).await.unwrap();
    let refused = observer.request("tools/list", padded(70_000)).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "too_large", "{refused}");
    let mut agent = daemon.client(Era::Modern).await;
    agent.request("tools/list", padded(500_000)).await.unwrap();
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_answered_without_an_id_and_the_connection_lives_on() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        for (what, mut line, code) in bad_lines() {
            line.push(b'\n');
            client.sender.raw(&line).await;
            let answer = client.receiver.next().await;
            assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
            assert!(answer.as_object().unwrap().contains_key("id"), "{what}: {answer}");
            assert_eq!(answer["id"], Value::Null, "{what}: {answer}");
            client.structured("list_sessions", json!({})).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_lines_are_passed_over() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        client.sender.raw(b"\n\r\n\n").await;
        let id = client.send_call("list_sessions", json!({})).await;
        assert_eq!(client.receiver.next().await["id"], id);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_in_flight_is_not_given_to_a_second_request() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("exec cat").await;
        let wait = json!({"session": session, "exit": true, "timeout_ms": 600_000});
        let params = json!({"name": "wait_for", "arguments": wait});
        let (id, line) = client.sender.line("tools/call", params);
        client.sender.raw(format!("{line}{line}").as_bytes()).await;
        let answer = client.receiver.first(|message| message["id"] == id).await;
        assert_eq!(answer["error"]["code"], INVALID_REQUEST, "{answer}");
        daemon.stop().await;
    }
}
