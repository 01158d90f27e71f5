//! Writes reach the terminal whole and in their order, whoever else writes.

use std::fs;

use serde_json::json;

use crate::daemon::harness::{Era, TestDaemon, error_code, structured};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_reaches_the_program_as_it_was_sent() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let log = daemon.file("log");
        let session = client.start_recorder(&log, 6).await;
        client.acquire(&session).await;
        let written =
            client.structured("send_text", json!({"session": session, "text": "hello\n"})).await;
        assert_eq!(written["written"], 6);
        client.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(log).unwrap(), "hello\r");
        daemon.stop().await;
    }
}
