//! A write that is repeated by its key at the next daemon is told as what it was, whatever the program
//! has done since.

use serde_json::json;

use crate::outlive::client::start;
use crate::outlive::home::Home;

/// A program that asks for brackets around pastes once it has read five bytes.
const BRACKETS_LATER: &str = "stty raw -echo; printf ready; head -c 5 > /dev/null; \
    printf '\\033[?2004hasked'; exec cat > /dev/null";

#[tokio::test]
async fn a_repeated_text_tells_of_the_bytes_that_it_had_and_takes_the_lease_back() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, BRACKETS_LATER).await;
    let says = |text: &str| json!({"session": session.id, "text": text, "since": 0});
    client.must("wait_for", says("ready")).await;
    let lease = client.must("acquire_lease", json!({"session": session.id})).await;
    let keyed = json!({
        "session": session.id, "lease_id": lease["lease_id"], "idempotency_key": "a",
        "text": "hello",
    });
    let first = client.must("send_text", keyed.clone()).await;
    assert_eq!((&first["written"], &first["discarded"]), (&json!(5), &json!(0)), "{first}");
    client.must("wait_for", says("asked")).await;

    daemon.kill().await;
    let daemon = home.serve().await;
    let mut client = home.client().await;
    client.must("wait_for", says("asked")).await;
    let again = client.must("send_text", keyed).await;
    assert_eq!(again["replayed"], true, "{again}");
    assert_eq!((&again["written"], &again["discarded"]), (&json!(5), &json!(0)), "{again}");
    let listed = client.must("list_sessions", json!({"session": session.id})).await;
    let held = &listed["sessions"][0]["lease"];
    assert!(held["held"] == true && held["reclaimable"].is_null(), "{held}");
    daemon.kill().await;
}
