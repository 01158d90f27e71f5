//! A tool that does nothing, behind the transport of the daemon: what a call costs before a tool begins.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::json;
use termgate::core::ids::ConnectionId;
use termgate::mcp::call::{CallHandler, Reply, ToolCall};
use termgate::mcp::call_result::CallResult;
use termgate::mcp::connection::Connection;
use termgate::mcp::era::Era;
use termgate::mcp::outbox::UnsentLimits;
use termgate::transport::connection::{link, serve as serve_link};
use termgate::transport::limits::Limits;
use tokio::net::UnixStream;

use crate::support::agent::Agent;
use crate::support::echo::Served;
use crate::support::placement::Placement;

/// The argument that makes the bench serve it.
pub(crate) const EMPTY_TOOL: &str = "--empty-tool";

/// Starts a process that serves it with answers of so many bytes, and connects.
///
/// # Errors
/// Why it does not run.
pub(crate) fn start(placement: Placement, answer: usize) -> anyhow::Result<(Served, Agent)> {
    let (served, stream) = Served::start(placement, EMPTY_TOOL, answer)?;
    Ok((served, Agent::greet(stream)?))
}

/// Serves it to one client.
pub(crate) async fn serve(stream: UnixStream, answer: usize) {
    let (limits, unsent) = (Limits::default(), UnsentLimits::default());
    let connection = Arc::new(Connection::new(ConnectionId(1), unsent));
    let (reader, writer) = stream.into_split();
    let link = link::plain(reader, writer).in_lines(&limits);
    // Its frame is about 100 bytes.
    let tool = EmptyTool("x".repeat(answer.saturating_sub(100)));
    serve_link(tool, link, connection, &limits).await;
}

struct EmptyTool(String);

impl ServerHandler for EmptyTool {}

impl CallHandler for EmptyTool {
    fn revision(&self, _meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData> {
        Ok(ProtocolVersion::V_2025_11_25)
    }

    async fn answer(&self, _call: ToolCall) -> Reply {
        let structured = Box::new(json!({}));
        Ok(CallResult::success(Era::Legacy, self.0.clone(), structured)).into()
    }
}
