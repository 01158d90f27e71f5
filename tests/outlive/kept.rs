//! What lists tell of a session counts on at the next daemon.

use serde_json::json;

use crate::outlive::client::{listed, start};
use crate::outlive::home::Home;

#[tokio::test]
async fn how_long_a_session_is_idle_and_what_it_wrote_is_counted_on() {
    let home = Home::new();
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "printf hello; exec sleep 1000").await;
    let said = json!({"session": session.id, "text": "hello", "since": 0});
    client.must("wait_for", said).await;
    // Longer than it takes until what was still is kept for good.
    client.must("wait_for", json!({"session": session.id, "idle_ms": 1_500})).await;
    for round in 0..2 {
        let before = listed(&mut client, &session.id).await;
        daemon.kill().await;
        daemon = home.serve().await;
        client = home.client().await;
        let after = listed(&mut client, &session.id).await;
        assert_eq!(after["output_bytes"], 5, "{round}: {after}");
        let idle = [&before, &after].map(|one| one["idle_ms"].as_u64().unwrap());
        assert!(idle[0] >= 1_500 && idle[1] >= idle[0], "{round}: {before}, then {after}");
    }
    daemon.kill().await;
}
