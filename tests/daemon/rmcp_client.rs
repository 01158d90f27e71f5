//! The client of the library most Rust agents are written with, in both eras.

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::daemon::harness::{TestDaemon, soon};

type Client = RunningService<RoleClient, ()>;

async fn connect(daemon: &TestDaemon, modern: bool) -> Client {
    let stream = UnixStream::connect(daemon.paths.gateway()).await.unwrap();
    let mode = if modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    soon("the greeting", ().serve_with_lifecycle(stream, mode)).await.unwrap()
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap();
    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
    soon(tool, client.call_tool(call)).await.unwrap()
}

async fn structured(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
    result.structured_content.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_its_clients_share_a_terminal_in_turns() {
    for modern in [false, true] {
        let daemon = TestDaemon::writable().await;
        let (one, other) = (connect(&daemon, modern).await, connect(&daemon, modern).await);
        let tools = soon("the tools", one.list_all_tools()).await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "send_text"));

        let created = structured(&one, "create_session", json!({"command": "exec cat"})).await;
        let session = created["session"]["id"].clone();
        let typed = json!({
            "session": session, "text": "by the first", "enter": true,
            "until": {"pattern": "by the first"}, "wait_ms": 10_000,
        });
        let written = structured(&one, "send_text", typed).await;
        assert_eq!(written["wait"]["outcome"], "matched");

        let refused = call(&other, "send_text", json!({"session": session, "text": "x"})).await;
        assert_eq!(refused.is_error, Some(true));
        let refused = refused.structured_content.unwrap();
        assert_eq!(refused["error_code"], "lease_held");
        assert!(refused["details"]["held_by"].is_string());

        let wish = json!({"session": session, "wait_ms": 10_000});
        let given = json!({"lease_id": created["lease"]["lease_id"]});
        let (granted, _) = tokio::join!(
            structured(&other, "acquire_lease", wish),
            structured(&one, "release_lease", given),
        );
        assert_eq!(granted["session"], session);
        structured(&other, "send_text", json!({"session": session, "text": "and the second"}))
            .await;
        let seen = json!({"session": session, "pattern": "and the second", "since": 0});
        assert_eq!(structured(&one, "wait_for", seen).await["outcome"], "matched");

        one.cancel().await.unwrap();
        other.cancel().await.unwrap();
        daemon.stop().await;
    }
}
