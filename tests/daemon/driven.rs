//! A session that does what it is told, line by line, without prompt and without echo, so that
//! every row on its screen is one that a test asked for.

use serde_json::{Value, json};

use crate::daemon::harness::Wire;

/// Reads lines and runs each as shell.
const LOOP: &str = "stty -echo; echo ready; while IFS= read -r line; do eval \"$line\"; done";

/// Starts such a session under the lease of this client, and waits until it listens; its row 0 says
/// `ready`.
pub(crate) async fn start(wire: &mut Wire) -> String {
    let session = wire.start(LOOP).await;
    wire.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
    wire.wait_for(json!({"session": session, "needs_input": true})).await;
    wire.acquire(&session).await;
    session
}

/// Has the session run a shell line.
pub(crate) async fn tell(wire: &mut Wire, session: &str, line: &str) {
    wire.structured("send_text", json!({"session": session, "text": line, "enter": true})).await;
}

/// Has the session run a shell line, and waits until it printed `sign`.
pub(crate) async fn tell_until(wire: &mut Wire, session: &str, line: &str, sign: &str) {
    let since = screen(wire, session).await["watermark"].clone();
    tell(wire, session, line).await;
    wire.wait_for(json!({"session": session, "text": sign, "since": since})).await;
}

/// The screen as plain text.
pub(crate) async fn screen(wire: &mut Wire, session: &str) -> Value {
    wire.structured("read_screen", json!({"session": session})).await
}
