//! The client of the library most Rust agents are written with, in both eras.

use std::fs;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, GetPromptRequestParams, Implementation, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::daemon::harness::TestDaemon;
use crate::daemon::policy::daemon_with;
use crate::harness::waiting::soon;

type Client = RunningService<RoleClient, ()>;

async fn connect(daemon: &TestDaemon, modern: bool) -> Client {
    connect_as(daemon, modern, ()).await
}

async fn connect_as<H: ClientHandler>(
    daemon: &TestDaemon,
    modern: bool,
    handler: H,
) -> RunningService<RoleClient, H> {
    let stream = UnixStream::connect(daemon.paths.gateway()).await.unwrap();
    let mode = if modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    soon("the greeting", handler.serve_with_lifecycle(stream, mode)).await.unwrap()
}

async fn call<H: ClientHandler>(
    client: &RunningService<RoleClient, H>,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap();
    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
    soon(tool, client.call_tool(call)).await.unwrap()
}

async fn structured<H: ClientHandler>(
    client: &RunningService<RoleClient, H>,
    tool: &'static str,
    arguments: Value,
) -> Value {
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
            "until": {"text": "by the first"}, "wait_ms": 10_000,
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
        let seen = json!({"session": session, "text": "and the second", "since": 0});
        assert_eq!(structured(&one, "wait_for", seen).await["outcome"], "matched");

        one.cancel().await.unwrap();
        other.cancel().await.unwrap();
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_finds_every_prompt_and_reads_it_as_a_skill() {
    for modern in [false, true] {
        let daemon = TestDaemon::read_only().await;
        let client = connect(&daemon, modern).await;
        let prompts = soon("the prompts", client.list_all_prompts()).await.unwrap();
        assert_eq!(prompts.len(), 10);
        for prompt in prompts {
            let wanted = GetPromptRequestParams::new(prompt.name.clone());
            let got = soon("the prompt", client.get_prompt(wanted)).await.unwrap();
            assert_eq!(got.description, prompt.description);
            let message = serde_json::to_value(&got.messages[0]).unwrap();
            let uri = format!("termgate://skills/{}", prompt.name);
            let wanted = ReadResourceRequestParams::new(uri);
            let read = soon("the skill", client.read_resource(wanted)).await.unwrap();
            let skill = serde_json::to_value(&read.contents[0]).unwrap();
            let text = message["content"]["text"].as_str().unwrap();
            assert!(skill["text"].as_str().unwrap().ends_with(text), "{skill}");
        }
        client.cancel().await.unwrap();
        daemon.stop().await;
    }
}

/// A client whose person lets pass what touches `fine`.
struct Asking;

impl ClientHandler for Asking {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("asking", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("no form")
        };
        let is_fine = message.contains("/fine\n");
        let action = if is_fine { ElicitationAction::Accept } else { ElicitationAction::Decline };
        Ok(ElicitResult::new(action))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_person_is_asked_where_a_rule_says_so() {
    const RULES: &str = r#"
        [[rule]]
        name = "ask-touch"
        effect = "ask"
        client_may_approve = true
        command = { program = "touch" }
    "#;
    for modern in [false, true] {
        let daemon = daemon_with(RULES).await;
        let client = connect_as(&daemon, modern, Asking).await;
        let shell = json!({"command": "bash", "args": ["--norc"]});
        let created = structured(&client, "create_session", shell).await;
        let session = created["session"]["id"].clone();
        let fine = daemon.file("fine");
        let run = json!({"session": session, "command": format!("touch {}", fine.display())});
        assert_eq!(structured(&client, "run", run).await["exit_code"], 0);
        fs::remove_file(&fine).unwrap();
        let other = daemon.file("other");
        let run = json!({"session": session, "command": format!("touch {}", other.display())});
        let denied = call(&client, "run", run).await.structured_content.unwrap();
        assert_eq!(denied["error_code"], "policy_denied", "{denied}");
        assert!(!other.exists());
        client.cancel().await.unwrap();
        daemon.stop().await;
    }
}
