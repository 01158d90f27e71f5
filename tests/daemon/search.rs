//! Searching what sessions showed, over the sockets.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::harness::waiting::soon;

async fn search(wire: &mut Wire, arguments: Value) -> Value {
    wire.structured("search", arguments).await
}

/// The session and text of each hit.
fn told(results: &Value) -> Vec<(&str, &str)> {
    let hits = results["hits"].as_array().unwrap();
    hits.iter().map(|hit| (word(&hit["session"]), word(&hit["snippet"]))).collect()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A session that has shown all that its line prints.
async fn shown(wire: &mut Wire, line: &str) -> String {
    let session = wire.start(&format!("{line}; printf '<%s>' ready; exec cat")).await;
    wire.wait_for(json!({"session": session, "text": "<ready>"})).await;
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_found_as_soon_as_it_is_shown_and_after_it_left_the_screen() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = shown(&mut wire, "echo Disk full; seq 500; echo last words").await;
    let results = search(&mut wire, json!({"query": "full disk"})).await;
    assert_eq!(told(&results), [(&*session, "Disk full")]);
    assert_eq!(results["hits"][0]["row"], 0);
    let results = search(&mut wire, json!({"query": "words", "session": session})).await;
    assert_eq!(results["hits"][0]["row"], 501);
    let results = search(&mut wire, json!({"query": "^4[79]$", "regex": true})).await;
    assert_eq!(told(&results), [(&*session, "49"), (&*session, "47")]);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_hits_than_wanted_are_told_and_old_ones_left_out_on_request() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    shown(&mut wire, "for n in 1 2 3; do echo again $n; done").await;
    let results = search(&mut wire, json!({"query": "again", "limit": 2})).await;
    assert_eq!(results["hits"].as_array().unwrap().len(), 2);
    assert_eq!(results["more"], true);
    let results = search(&mut wire, json!({"query": "again", "limit": 3})).await;
    assert_eq!((results["hits"].as_array().unwrap().len(), &results["more"]), (3, &Value::Null));
    let future = results["hits"][0]["at"].as_u64().unwrap() + 3_600_000;
    let results = search(&mut wire, json!({"query": "again", "since": future})).await;
    assert_eq!(results["hits"], json!([]));
    let bare = search(&mut wire, json!({"query": "again", "snippets": false})).await;
    assert_eq!(bare["hits"][0]["snippet"], Value::Null);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_session_finds_nothing_of_others() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let line = "echo shared word; seq 200";
    let (own, other) = (shown(&mut wire, line).await, shown(&mut wire, line).await);
    // Once both are in the index, too.
    soon("both sessions", async {
        while told(&search(&mut wire, json!({"query": "shared word"})).await).len() < 2 {}
    })
    .await;
    for mut bound in
        [daemon.at_session(&own, Era::Modern).await, daemon.at_read_only(&own, Era::Modern).await]
    {
        let results = search(&mut bound, json!({"query": "shared word"})).await;
        assert_eq!(told(&results), [(&*own, "shared word")]);
        let refused = bound.call("search", json!({"query": "shared", "session": other})).await;
        assert_eq!(error_code(&refused), "session_not_found");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_for_nothing_is_refused() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    for arguments in [
        json!({"query": " "}),
        json!({"query": "(", "regex": true}),
        json!({"query": "a", "limit": 101}),
    ] {
        assert_eq!(wire.error_code("search", arguments).await, "invalid_argument");
    }
    let unknown = json!({"query": "a", "session": "nowhere"});
    assert_eq!(wire.error_code("search", unknown).await, "session_not_found");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_can_be_reduced_to_rows_that_match() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = shown(&mut wire, "seq 100").await;
    let grep = json!({"session": session, "grep": "^[1-5]7$"});
    let rows = wire.structured("read_history", grep).await;
    let lines = [16, 26, 36, 46, 56].map(|row| json!({"row": row, "text": (row + 1).to_string()}));
    assert_eq!(rows["lines"], json!(lines));
    assert_eq!(rows["next_row"], rows["end_row"]);
    let first = json!({"session": session, "grep": "7$", "count": 2});
    let rows = wire.structured("read_history", first).await;
    assert_eq!(rows["lines"], json!([{"row": 6, "text": "7"}, {"row": 16, "text": "17"}]));
    let next = rows["next_row"].clone();
    let rest = json!({"session": session, "grep": "7$", "start_row": next, "count": 1});
    let rows = wire.structured("read_history", rest).await;
    assert_eq!(rows["lines"], json!([{"row": 26, "text": "27"}]));
    let bad = json!({"session": session, "grep": "("});
    assert_eq!(wire.error_code("read_history", bad).await, "invalid_argument");
    daemon.stop().await;
}
