//! Leases as clients meet them: who gets one, who loses one, and what an id is worth.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};

/// The code of the protocol for parameters that do not fit, such as the name of no tool.
const INVALID_PARAMS: i64 = -32602;

/// The longest time to live there is, so that nothing in these tests ends by it.
const LONG_MS: u64 = 600_000;

async fn lease_of(client: &mut Wire, session: &str) -> Value {
    let listed = client.structured("list_sessions", json!({"session": session})).await;
    listed["sessions"][0]["lease"].clone()
}

async fn until_so_many_wait(client: &mut Wire, session: &str, count: u64) {
    while lease_of(client, session).await["waiters"] != count {}
}

async fn ask_and_wait(client: &mut Wire, session: &str) -> u64 {
    let arguments = json!({"session": session, "ttl_ms": LONG_MS, "wait_ms": LONG_MS});
    client.send_call("acquire_lease", arguments).await
}

async fn release(client: &mut Wire, lease: &Value) {
    let released = client.structured("release_lease", json!({"lease_id": lease["lease_id"]})).await;
    assert_eq!(released["outcome"], "freed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_get_the_lease_in_the_order_they_came() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut watcher = daemon.client(era).await;
        let session = watcher.start("exec cat").await;
        let mut holder = daemon.client(era).await;
        let mut lease = holder.acquire(&session).await;
        let mut queue = Vec::new();
        for waiting in 1..=3 {
            let mut waiter = daemon.client(era).await;
            let asked = ask_and_wait(&mut waiter, &session).await;
            until_so_many_wait(&mut watcher, &session, waiting).await;
            queue.push((waiter, asked));
        }
        for (index, (mut waiter, asked)) in queue.into_iter().enumerate() {
            release(&mut holder, &lease).await;
            // Whoever came later still waits, so nobody else can have been given it.
            until_so_many_wait(&mut watcher, &session, 2 - index as u64).await;
            let granted = structured(&waiter.answer(asked).await);
            assert!(granted["epoch"].as_u64() > lease["epoch"].as_u64(), "{granted} {lease}");
            (holder, lease) = (waiter, granted);
        }
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_connection_closed_is_passed_over() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut holder = daemon.client(era).await;
        let session = holder.start("exec cat").await;
        let lease = holder.acquire(&session).await;
        let mut leaving = daemon.client(era).await;
        ask_and_wait(&mut leaving, &session).await;
        until_so_many_wait(&mut holder, &session, 1).await;
        let mut staying = daemon.client(era).await;
        let asked = ask_and_wait(&mut staying, &session).await;
        until_so_many_wait(&mut holder, &session, 2).await;
        drop(leaving);
        until_so_many_wait(&mut holder, &session, 1).await;
        release(&mut holder, &lease).await;
        structured(&staying.answer(asked).await);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_cancels_is_passed_over() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut holder = daemon.client(era).await;
        let session = holder.start("exec cat").await;
        let lease = holder.acquire(&session).await;
        let mut fickle = daemon.client(era).await;
        let asked = ask_and_wait(&mut fickle, &session).await;
        until_so_many_wait(&mut holder, &session, 1).await;
        fickle.sender.cancel(asked).await;
        until_so_many_wait(&mut holder, &session, 0).await;
        release(&mut holder, &lease).await;
        assert_eq!(lease_of(&mut holder, &session).await["held"], false);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_need_not_wait_until_a_holder_that_left_has_read_its_answers() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.lease.grace = Duration::ZERO;
    })
    .await;
    let mut watcher = daemon.operator().await;
    let session = watcher.start("exec cat").await;
    let mut holder = daemon.client(Era::Legacy).await;
    let asked = json!({"session": session, "ttl_ms": LONG_MS});
    holder.structured("acquire_lease", asked).await;
    let mut waiter = daemon.client(Era::Legacy).await;
    let asked = ask_and_wait(&mut waiter, &session).await;
    until_so_many_wait(&mut watcher, &session, 1).await;
    // More than a socket takes, so that the connection stays for as long as it may, and not so much
    // that the daemon stops reading.
    let answer = holder.request("tools/list", json!({})).await.unwrap().to_string();
    for _ in 0..400_000 / answer.len() {
        holder.send("tools/list", json!({})).await;
    }
    let Wire { sender, receiver: _unread } = holder;
    drop(sender);
    structured(&waiter.answer(asked).await);
    let status = watcher.request("resources/read", json!({"uri": "termgate://daemon"})).await;
    let status = status.unwrap()["contents"][0]["text"].as_str().unwrap().to_owned();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["connections"]["open"], 3, "the holder's answers are still to be read");
    daemon.stop_by(watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_goes_to_who_waits_when_its_holder_stays_away() {
    for era in Era::BOTH {
        let grace = Duration::from_millis(50);
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.lease.ttl = Duration::from_millis(LONG_MS);
            config.lease.grace = grace;
        })
        .await;
        let mut holder = daemon.client(era).await;
        let session = holder.start("exec cat").await;
        let lost = holder.acquire(&session).await;
        let mut waiter = daemon.client(era).await;
        let asked = ask_and_wait(&mut waiter, &session).await;
        until_so_many_wait(&mut holder, &session, 1).await;
        // It only ends its input, in the middle of a wait.
        let exit = json!({"session": session, "exit": true, "timeout_ms": 600_000});
        holder.send_call("wait_for", exit).await;
        let Wire { sender, receiver: _still_open } = holder;
        drop(sender);
        let granted = structured(&waiter.answer(asked).await);
        assert!(granted["epoch"].as_u64() > lost["epoch"].as_u64());
        assert_ne!(granted["lease_id"], lost["lease_id"]);
        // Whoever comes back with the old one is told what became of it.
        let mut back = daemon.client(era).await;
        let arguments = json!({"session": session, "lease_id": lost["lease_id"], "text": "x"});
        let refused = back.call("send_text", arguments).await;
        assert_eq!(error_code(&refused), "lease_lost");
        assert_eq!(refused["structuredContent"]["details"]["cause"], "disconnected");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_its_connection_and_moves_to_who_presents_it() {
    for era in Era::BOTH {
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.lease.grace = Duration::from_millis(LONG_MS);
        })
        .await;
        let log = daemon.file("log");
        let mut holder = daemon.client(era).await;
        let session = holder.start_recorder(&log, 3).await;
        let arguments = json!({"session": session, "ttl_ms": LONG_MS});
        let first = holder.structured("acquire_lease", arguments).await;
        holder.structured("send_text", json!({"session": session, "text": "1"})).await;
        drop(holder);

        let mut back = daemon.client(era).await;
        let present = json!({"session": session, "lease_id": first["lease_id"]});
        let again = loop {
            let answer = back.call("acquire_lease", present.clone()).await;
            if answer["isError"] != true {
                break structured(&answer);
            }
            // So long the daemon has not yet noticed that the old connection is gone.
            assert_eq!(error_code(&answer), "lease_held");
        };
        assert_eq!(again["lease_id"], first["lease_id"]);
        assert!(again["epoch"].as_u64() > first["epoch"].as_u64(), "{again} {first}");
        let mut other = daemon.client(era).await;
        let text = json!({"session": session, "text": "2"});
        assert_eq!(other.error_code("send_text", text.clone()).await, "lease_held");
        back.structured("send_text", text).await;
        back.structured("send_text", json!({"session": session, "text": "3"})).await;
        back.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(&log).unwrap(), "123");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaked_lease_id_is_worth_nothing_while_its_holder_is_there() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let log = daemon.file("log");
        let mut holder = daemon.client(era).await;
        let session = holder.start_recorder(&log, 2).await;
        let lease = holder.acquire(&session).await["lease_id"].clone();
        let mut thief = daemon.client(era).await;
        let with = |more: Value| {
            let mut arguments = json!({"session": session, "lease_id": lease});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        for (tool, arguments) in [
            ("send_text", with(json!({"text": "stolen"}))),
            ("send_keys", with(json!({"keys": "C-c"}))),
            ("resize", with(json!({"rows": 10, "cols": 10}))),
            ("acquire_lease", with(json!({}))),
            ("renew_lease", json!({"lease_id": lease})),
            ("release_lease", json!({"lease_id": lease})),
        ] {
            assert_eq!(thief.error_code(tool, arguments).await, "lease_held", "{tool}");
        }
        holder.structured("send_text", json!({"session": session, "text": "ok"})).await;
        holder.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(&log).unwrap(), "ok");
        let screen = holder.structured("read_screen", json!({"session": session})).await;
        assert_eq!((&screen["cols"], &screen["rows"]), (&json!(120), &json!(40)));
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_the_command_line_is_one_holders_whoever_shows_its_id() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let log = daemon.file("log");
        let mut agent = daemon.client(era).await;
        let session = agent.start_recorder(&log, 4).await;
        let (mut first, mut second) = (daemon.operator().await, daemon.operator().await);
        let lease = first.acquire(&session).await["lease_id"].clone();
        let type_it = |text: &str| json!({"session": session, "text": text, "lease_id": lease});
        second.structured("send_text", type_it("1")).await;
        first.structured("send_text", type_it("2")).await;
        assert_eq!(agent.error_code("send_text", type_it("x")).await, "lease_held");
        let nameless = json!({"session": session, "text": "x"});
        assert_eq!(second.error_code("send_text", nameless).await, "lease_held");
        drop((first, second));

        while agent.call("send_text", type_it("3")).await["isError"] == true {}
        let (mut third, mut other) = (daemon.operator().await, daemon.client(era).await);
        for former in [&mut third, &mut other] {
            assert_eq!(former.error_code("send_text", type_it("x")).await, "lease_held");
            let renewal = json!({"lease_id": lease});
            assert_eq!(former.error_code("renew_lease", renewal).await, "lease_held");
        }
        agent.structured("send_text", type_it("4")).await;
        agent.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(&log).unwrap(), "1234");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_sent_twice_with_one_key_is_written_once() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let log = daemon.file("log");
        let mut client = daemon.client(era).await;
        let session = client.start_recorder(&log, 8).await;
        client.acquire(&session).await;
        let keyed =
            |text: &str| json!({"session": session, "text": text, "idempotency_key": "one"});
        let first = client.structured("send_text", keyed("once")).await;
        let mut second = client.structured("send_text", keyed("once")).await;
        assert_eq!(second.as_object_mut().unwrap().remove("replayed"), Some(json!(true)));
        // Beside that, only the time that is left may differ between the two answers.
        second["lease"]["expires_in_ms"] = first["lease"]["expires_in_ms"].clone();
        second["watermark"] = first["watermark"].clone();
        assert_eq!(second, first);
        assert_eq!(client.error_code("send_text", keyed("other")).await, "invalid_argument");
        client.structured("send_text", json!({"session": session, "text": "then"})).await;
        client.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(&log).unwrap(), "oncethen");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_again_with_a_key_gets_its_answer_whatever_has_changed_since() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("stty raw -echo; echo ready; exec cat").await;
        client.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
        let lease = client.acquire(&session).await;
        let screen = client.structured("read_screen", json!({"session": session})).await;
        // What it writes changes the screen that it expects.
        let keyed = json!({
            "session": session,
            "text": "copied",
            "expect_watermark": screen["watermark"],
            "idempotency_key": "one",
        });
        let first = client.structured("send_text", keyed.clone()).await;
        assert_eq!(first["written"], "copied".len());
        let copy = json!({"session": session, "text": "copied", "since": 0});
        client.wait_for(copy).await;
        let second = client.structured("send_text", keyed.clone()).await;
        assert_eq!(second["written"], first["written"]);
        assert_eq!(second["lease"]["lease_id"], first["lease"]["lease_id"]);
        release(&mut client, &lease).await;
        let third = client.structured("send_text", keyed).await;
        assert_eq!(third["written"], first["written"]);
        assert_eq!(third["lease"], Value::Null, "{third}");
        // What comes after it shows that nothing came between.
        client.acquire(&session).await;
        client.structured("send_text", json!({"session": session, "text": "!end"})).await;
        let end = json!({"session": session, "text": "!end", "since": 0});
        let screen = client.wait_for(end).await;
        assert_eq!(screen["text"].as_str().unwrap().trim_start(), "copied!end");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_again_for_a_lease_with_a_key_gets_the_same_one() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("exec cat").await;
        let acquire = json!({"session": session, "idempotency_key": "a"});
        let first = client.structured("acquire_lease", acquire.clone()).await;
        let again = client.structured("acquire_lease", acquire).await;
        assert_eq!(again["lease_id"], first["lease_id"]);
        assert_eq!(again["epoch"], first["epoch"]);
        let release = json!({"lease_id": first["lease_id"], "idempotency_key": "r"});
        for _ in 0..2 {
            let released = client.structured("release_lease", release.clone()).await;
            assert_eq!(released["outcome"], "freed");
        }
        // A key stands for one call, whatever tool it was.
        let mixed = json!({"session": session, "text": "x", "idempotency_key": "a"});
        assert_eq!(client.error_code("send_text", mixed).await, "invalid_argument");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_told_at_once_that_an_operator_ended_its_lease() {
    let daemon = TestDaemon::writable().await;
    let mut holder = daemon.client(Era::Legacy).await;
    let session = holder.start("exec cat").await;
    let lease = holder.acquire(&session).await;
    let mut operator = daemon.operator().await;
    let ended = operator.structured("preempt_lease", json!({"session": session})).await;
    assert_eq!(ended["ended"], true);
    let told = holder.receiver.notification("notifications/message").await;
    let data = &told["data"];
    assert_eq!(data["event"], "lease_lost");
    assert_eq!(data["cause"], "preempted");
    assert_eq!(data["session"], json!(session));
    assert_eq!(data["epoch"], lease["epoch"]);
    assert!(data["by"].is_string(), "{told}");
    let text = json!({"session": session, "text": "x"});
    assert_eq!(holder.error_code("send_text", text).await, "lease_lost");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_the_newer_era_hears_of_it_by_its_subscription() {
    let daemon = TestDaemon::writable().await;
    let mut holder = daemon.client(Era::Modern).await;
    let session = holder.start("exec cat").await;
    holder.acquire(&session).await;
    let uri = format!("termgate://session/{session}/lease");
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let listening = holder.send("subscriptions/listen", filter).await;
    let acknowledged = "notifications/subscriptions/acknowledged";
    holder.receiver.notification(acknowledged).await;
    let mut operator = daemon.operator().await;
    operator.structured("preempt_lease", json!({"session": session})).await;
    let told = holder.receiver.notification("notifications/resources/updated").await;
    assert_eq!(told["uri"], json!(uri));
    assert_eq!(told["_meta"]["io.modelcontextprotocol/subscriptionId"], listening);
    assert_eq!(lease_of(&mut holder, &session).await["held"], false);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_operators_do_exists_at_their_door_alone() {
    let daemon = TestDaemon::writable().await;
    let mut operator = daemon.operator().await;
    let session = operator.start("exec cat").await;
    let listed = operator.tools().await;
    for era in Era::BOTH {
        let doors = [
            daemon.client(era).await,
            daemon.at_session(&session, era).await,
            daemon.at_read_only(&session, era).await,
        ];
        for mut client in doors {
            let there = client.tools().await;
            for (tool, arguments) in [
                ("set_write", json!({"state": "on"})),
                ("preempt_lease", json!({"session": session})),
            ] {
                assert!(listed.iter().any(|name| name == tool), "operators have no {tool}");
                assert!(!there.iter().any(|name| name == tool), "{tool} is listed to agents");
                let params = json!({"name": tool, "arguments": arguments});
                let error = client.request("tools/call", params).await.unwrap_err();
                assert_eq!(error["code"], INVALID_PARAMS, "{tool}: {error}");
            }
            client.request("termgate/stop", json!({})).await.unwrap_err();
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_inside_a_session_is_turned_away_at_the_operators_door() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let run = daemon.paths.root().display();
    let gateway = daemon.paths.gateway().display();
    let termgate = env!("CARGO_BIN_EXE_termgate");
    // A program may shed its mark and leave its family, and still descends from the daemon.
    // One that has it is told why.
    for (before, exit) in [("", 5), ("env -i", 7), ("setsid -w", 5), ("env -i setsid -w", 7)] {
        let line = format!(
            "{before} env TERMGATE_RUNTIME_DIR={run} {termgate} ls; echo operator $?; \
             {before} env TERMGATE_SOCKET={gateway} {termgate} ls; echo gateway $?; exec cat"
        );
        let session = client.start(&line).await;
        let wanted = json!({"session": session, "pattern": "gateway \\d",
            "since": 0});
        client.wait_for(wanted).await;
        let screen = client.structured("read_screen", json!({"session": session})).await;
        let text = screen["text"].as_str().unwrap();
        assert!(text.contains(&format!("operator {exit}")), "{before}: {text}");
        // The same program reaches the other door, and is shown nothing there.
        assert!(text.contains("no sessions\ngateway 0"), "{before}: {text}");
    }
    daemon.stop().await;
}
