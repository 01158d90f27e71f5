//! What a request says beside its parameters (`_meta`).

use std::time::Duration;

use rmcp::model::{JsonObject, RequestMetaObject};
use serde_json::Value;

use crate::wire::policy::APPROVAL_WAIT_KEY;

/// How long a call may wait for an approval, if its client says so.
pub(super) fn approval_wait(meta: &RequestMetaObject) -> Option<Duration> {
    meta.get(APPROVAL_WAIT_KEY).and_then(Value::as_u64).map(Duration::from_millis)
}

/// What of a request's `_meta` is for the server: not what is between client and daemon.
pub(super) fn meta_for_server(meta: &RequestMetaObject) -> JsonObject {
    const OF_CONNECTION: [&str; 2] = ["io.modelcontextprotocol/", "dev.termgate/"];
    let is_own = |name: &str| {
        name == "progressToken" || OF_CONNECTION.iter().any(|prefix| name.starts_with(prefix))
    };
    let theirs = meta.iter().filter(|(name, _)| !is_own(name));
    theirs.map(|(name, value)| (name.clone(), value.clone())).collect()
}
