//! A client may be gone after any byte that it sent, and nothing of it is left.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::harness::line_client::hello;
use crate::harness::waiting::{LOOK, soon};
use crate::outlive::client::{Client, listed, start};
use crate::outlive::descriptors::{are_no_more, open_in};
use crate::outlive::home::Home;

/// How many connections the daemon has, that of the operator who asks among them.
async fn connections(operator: &mut Client) -> u64 {
    let facts = operator.read_facts("termgate://daemon").await;
    facts["connections"]["open"].as_u64().unwrap()
}

#[tokio::test]
async fn whoever_is_gone_after_any_byte_of_a_call_leaves_no_lease_no_wait_and_no_descriptor() {
    let home = Home::new();
    home.configure("[lease]\ngrace_ms = 0\n");
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let mut operator = Client::find(&home.runtime("operator.sock")).await;
    let session = start(&mut client, "exec cat").await;
    let before = open_in(daemon.pid());
    let greeting =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("gone")});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "acquire_lease", "arguments": {"session": session.id, "wait_ms": 600_000}}});
    let text = format!("{greeting}\n{call}\n");
    for count in 0..=text.len() {
        let mut stream = UnixStream::connect(&home.gateway().path).await.unwrap();
        stream.write_all(&text.as_bytes()[..count]).await.unwrap();
    }
    let gone = async {
        loop {
            let lease = listed(&mut client, &session.id).await["lease"].take();
            let nobody = lease["held"] == false && lease["waiters"] == 0;
            if nobody && connections(&mut operator).await == 2 {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    soon("nothing of them to be left", gone).await;
    are_no_more(daemon.pid(), &before, 1).await;
    client.must("acquire_lease", json!({"session": session.id})).await;
    daemon.kill().await;
}
