//! Addresses of resources in what mounted servers answer: clients can read them.

use std::fs;

use serde_json::{Value, json};
use termgate::core::mount::MountTrust;
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::policy::rules::PolicyRules;

use crate::daemon::harness::{Era, TestDaemon};
use crate::daemon::mounts::{daemon_of, settings_of, wait_for};
use crate::harness::home::Home;

const SERVER: &str = include_str!("linking_server.py");

/// An address as its server knows it, and as clients do.
const OWN: &str = "file:///a b?c#d";
const KNOWN: &str = "termgate://mount/fake/file:///a b?c#d";

/// A daemon with the server, once its tools are known.
async fn linking(trust: MountTrust) -> (Home, TestDaemon) {
    let ground = Home::new();
    fs::write(ground.path("server.py"), SERVER).unwrap();
    let args = vec![ground.path("server.py").to_str().unwrap().to_owned()];
    let command = "python3".to_owned();
    let program = ServerCommand { command, args, ..ServerCommand::default() };
    let settings = settings_of(MountedServer::Program(program), trust);
    let daemon = daemon_of(&settings, true, PolicyRules::default()).await;
    wait_for(&mut daemon.operator().await, |mount| mount["accepted"].is_u64()).await;
    (ground, daemon)
}

/// Content with these addresses and texts.
fn content(address: &str, text: &str) -> [Value; 3] {
    [
        json!({"type": "text", "text": OWN}),
        json!({"type": "resource_link", "uri": address, "name": "n", "size": 7}),
        json!({"type": "resource", "resource": {"uri": address, "text": text}}),
    ]
}

#[tokio::test]
async fn a_client_reads_what_a_result_or_a_prompt_links_to() {
    let (_ground, daemon) = linking(MountTrust::Trusted).await;
    for era in Era::BOTH {
        let mut client = daemon.client(era).await;
        let result = client.call("fake__links", json!({})).await;
        assert_eq!(result["content"], json!(content(KNOWN, "t\u{200b}")));
        // What has a schema of its own is its server's.
        assert_eq!(result["structuredContent"]["content"][0]["uri"], OWN);
        let prompt = client.request("prompts/get", json!({"name": "fake__links"})).await.unwrap();
        let linked = [1, 2].map(|at| prompt["messages"][at]["content"].clone());
        assert_eq!(linked[0]["uri"], KNOWN, "{prompt}");
        assert_eq!(linked[1]["resource"]["uri"], KNOWN, "{prompt}");
        let address = &result["content"][1]["uri"];
        let read = client.request("resources/read", json!({"uri": address})).await.unwrap();
        assert_eq!(read["contents"], json!([{"uri": KNOWN, "text": format!("read {OWN}")}]));
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_addresses_of_an_untrusted_server_can_be_read_as_well() {
    let (_ground, daemon) = linking(MountTrust::Untrusted).await;
    let mut client = daemon.client(Era::Legacy).await;
    let result = client.call("fake__links", json!({})).await;
    assert_eq!(result["content"], json!(content(KNOWN, "t\\u{200b}")));
    assert_eq!(result["_meta"]["dev.termgate/untrusted"], true);
    daemon.stop().await;
}
