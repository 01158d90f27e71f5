//! Sessions that write as fast as they can while their daemon is replaced.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::waiting::until;
use crate::outlive::home::Home;

/// So many that a daemon which read what one has written before it looks at the next would be late for
/// the leases of the last.
const SESSIONS: usize = 14;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lease_can_be_taken_back_however_much_there_is_to_be_read_first() {
    let home = Home::new();
    let (begin, stop) = (home.path("begin"), home.path("stop"));
    let line = format!(
        "until test -e {}; do sleep 0.1; done; \
         until test -e {}; do yes 0123456789012345678901234567890123456789 | head -c 300000; done; \
         exec cat",
        begin.display(),
        stop.display(),
    );
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let mut leases = Vec::new();
    for _ in 0..SESSIONS {
        let asked = json!({"command": "sh", "args": ["-c", line]});
        let created = client.must("create_session", asked).await;
        let (session, lease) = (&created["session"]["id"], &created["lease"]["lease_id"]);
        let kept = json!({"session": session, "lease_id": lease, "ttl_ms": 600_000});
        client.must("acquire_lease", kept).await;
        leases.push((session.clone(), lease.clone()));
    }
    fs::write(begin, "").unwrap();
    for (session, _) in &leases {
        let written = json!({"session": session, "text": "0123", "since": 0});
        client.must("wait_for", written).await;
    }
    daemon.kill().await;
    let next = home.serve().await;
    fs::write(stop, "").unwrap();
    let mut client = home.client().await;
    for (session, lease) in leases {
        let taken = json!({"session": session, "lease_id": lease});
        let grant = client.must("acquire_lease", taken).await;
        assert_eq!(grant["lease_id"], lease, "{grant}");
    }
    next.kill().await;
}

/// How many bytes of memory a shim keeps rows of history in.
fn history_memory(shim: i32) -> u64 {
    let files = fs::read_dir(format!("/proc/{shim}/fd")).unwrap().flatten();
    let of_history = |file: &fs::DirEntry| {
        fs::read_link(file.path())
            .is_ok_and(|name| name.to_string_lossy().contains("termgate-history"))
    };
    let sizes = files.filter(of_history).filter_map(|file| fs::metadata(file.path()).ok());
    sizes.map(|file| file.len()).sum()
}

#[tokio::test]
async fn the_next_daemon_has_the_same_history_before_and_after_a_flood_has_paused() {
    let home = Home::new();
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let line = "seq -f 'row %g of all that a program writes as fast as it can' 30000; exec cat";
    let asked = json!({"command": "sh", "args": ["-c", line]});
    let created = client.must("create_session", asked).await;
    let id = created["session"]["id"].as_str().unwrap().to_owned();
    client.must("wait_for", json!({"session": id, "text": "row 30000 of", "since": 0})).await;
    let shim = home.shim(&id);
    let mut loose = 0;
    for pauses in [false, true, true] {
        if pauses {
            let packed = || history_memory(shim) * 2 < loose;
            until("the rows to be packed", packed).await;
        } else {
            loose = history_memory(shim);
        }
        daemon.kill().await;
        daemon = home.serve().await;
        client = home.client().await;
        for row in [20_100, 25_000, 29_900] {
            let asked = json!({"session": id, "start_row": row - 1, "count": 1, "format": "cells"});
            let history = client.must("read_history", asked).await;
            let expected = format!("row {row} of all that a program writes as fast as it can");
            assert_eq!(history["lines"][0]["text"], expected, "{history}");
        }
    }
    daemon.kill().await;
}

#[tokio::test]
async fn who_waits_on_a_daemon_that_was_set_aside_is_told_no_end_and_it_ends() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let created = client.must("create_session", json!({"command": "cat"})).await;
    let session = created["session"]["id"].clone();
    let waits = json!({"session": session, "exit": true, "timeout_ms": 60_000});
    let waiting = client.send_call("wait_for", waits).await.unwrap();
    client.must("list_sessions", json!({})).await;
    assert!(home.set_aside(&daemon).await);
    let next = home.serve().await;
    daemon.signal(Signal::SIGCONT);
    let answer = client.answer_of_call(waiting).await;
    assert!(answer.is_err(), "{answer:?}");
    let (code, log) = daemon.ends().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("another daemon has the place of this one"), "{log}");
    let told = home.client().await.must("list_sessions", json!({"session": session})).await;
    assert_eq!(told["sessions"][0]["state"], "running", "{told}");
    next.kill().await;
}
