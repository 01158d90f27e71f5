//! An agent behind a bridge, whose daemon is killed and replaced: it goes on with what it was told before.

use std::fs;

use serde_json::json;

use crate::harness::waiting::until;
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;

#[tokio::test]
async fn an_agent_that_never_showed_its_lease_is_told_how_to_keep_it_over_a_restart() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut agent = home.bridged_client().await;
    let log = home.path("read");
    let made = json!({"command": "sh", "args": ["-c", recorder(&log)]});
    let made = agent.must("create_session", made).await;
    let (session, lease) = (&made["session"]["id"], &made["lease"]["lease_id"]);
    let said = json!({"session": session, "text": "recording", "since": 0});
    agent.must("wait_for", said).await;
    let before = json!({"session": session, "text": "before."});
    let before = agent.must("send_text", before).await;
    assert_eq!(before["lease"]["lease_id"], *lease, "every write tells it again");

    daemon.kill().await;
    let daemon = home.serve().await;
    let write = json!({"session": session, "text": "after."});
    let refused = agent.call("send_text", write.clone()).await.unwrap().unwrap_err();
    assert_eq!(refused["error_code"], "lease_held", "{refused}");
    assert_eq!(refused["details"]["reclaimable"], true, "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("show its lease_id"), "{refused}");
    let shown = json!({"session": session, "lease_id": lease});
    assert_eq!(agent.must("acquire_lease", shown).await["lease_id"], *lease);
    agent.must("send_text", write).await;
    let both = "before.after.";
    until("the program to read", || fs::read(&log).unwrap().len() >= both.len()).await;
    assert_eq!(fs::read_to_string(&log).unwrap(), both);
    daemon.kill().await;
}
