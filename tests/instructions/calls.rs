//! A call of a tool: read, decoded, answered by a handler that does nothing, and written.

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
use termgate::transport::connection::{link, serve};
use termgate::transport::limits::Limits;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::instructions::counting::check;

/// Answers each call with its own text.
struct Empty;

impl ServerHandler for Empty {}

impl CallHandler for Empty {
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData> {
        Ok(meta.protocol_version().unwrap_or(ProtocolVersion::V_2025_11_25))
    }

    async fn answer(&self, call: ToolCall) -> Reply {
        call.turn.pass();
        let text = format!("{} was called", call.params.name);
        let structured = Box::new(json!({"session": "0123456789ab"}));
        Reply { result: Ok(CallResult::success(Era::Legacy, text, structured)), room: None }
    }
}

struct Client {
    stream: BufReader<DuplexStream>,
    line: String,
}

impl Client {
    async fn ask(&mut self, message: &str) {
        self.stream.get_mut().write_all(message.as_bytes()).await.unwrap();
        self.line.clear();
        self.stream.read_line(&mut self.line).await.unwrap();
        assert!(self.line.contains("result"), "{}", self.line);
    }
}

#[test]
fn call_of_a_tool() {
    check("call_of_a_tool", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(async move {
                let limits = Limits::default();
                let connection = Connection::new(ConnectionId(7), UnsentLimits::default());
                let link = link::plain(reader, writer).in_lines(&limits);
                serve(Empty, link, Arc::new(connection), &limits).await;
            });
            let mut client = Client { stream: BufReader::new(near), line: String::new() };
            let client_info = json!({"name": "counting", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
            let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            client.ask(&format!("{hello}\n")).await;
            let greeted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.stream.get_mut().write_all(format!("{greeted}\n").as_bytes()).await.unwrap();
            client.ask(&call(1)).await;
            client
        });
        move || {
            runtime.block_on(async {
                for id in 2..52 {
                    client.ask(&call(id)).await;
                }
            });
        }
    });
}

fn call(id: u64) -> String {
    let params =
        json!({"name": "send_text", "arguments": {"session": "0123456789ab", "text": "ls"}});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}
