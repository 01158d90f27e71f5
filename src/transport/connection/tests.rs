//! A client that says whatever a test wants it to, and a handler that shows what arrived.
//!
//! It must not know tools of the daemon: what is tested is the wire alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, CustomResult, ErrorData, ProtocolVersion, RequestMetaObject};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::core::ids::ConnectionId;
use crate::mcp::call::{CallParams, Reply, ToolCall};
use crate::mcp::call_result::CallResult;
use crate::mcp::connection::Connection;
use crate::mcp::era::Era;
use crate::mcp::outbox::{Delivery, PushLane, UnsentLimits};
use crate::session::request_order::TurnSlot;
use crate::transport::framing;

/// What the handler was seen to do.
#[derive(Clone)]
struct Probe {
    connection: Arc<Connection>,
    notes: Arc<Mutex<Vec<u64>>>,
    calls: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl Probe {
    fn of(connection: &Arc<Connection>) -> Self {
        let (notes, calls, cancelled) = Default::default();
        Self { connection: Arc::clone(connection), notes, calls, cancelled }
    }
}

/// Counts what is given up before it ends by itself.
struct GivenUp(Arc<AtomicUsize>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn argument(call: &CallParams, name: &str) -> u64 {
    call.arguments.as_ref().and_then(|all| all.get(name)?.as_u64()).unwrap_or_default()
}

impl CallHandler for Probe {
    fn revision(&self, meta: &RequestMetaObject) -> Result<ProtocolVersion, ErrorData> {
        Ok(meta.protocol_version().unwrap_or(ProtocolVersion::V_2025_11_25))
    }

    async fn answer(&self, call: ToolCall) -> Reply {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let ToolCall { params, turn } = call;
        let mut room = None;
        let text = match params.name.as_str() {
            "note" => {
                turn.wait().await;
                self.notes.lock().unwrap().push(argument(&params, "n"));
                "noted".to_owned()
            }
            "big" => {
                let size = argument(&params, "size") as usize;
                room = Some(self.connection.outbox.room(size).await);
                "x".repeat(size)
            }
            "slow" => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                "slow".to_owned()
            }
            "wait_for" => {
                turn.pass();
                let _given_up = GivenUp(self.cancelled.clone());
                std::future::pending().await
            }
            "stuck" => {
                let _given_up = GivenUp(self.cancelled.clone());
                std::future::pending().await
            }
            "panic" => panic!("asked to"),
            other => other.to_owned(),
        };
        let named = params.meta.as_ref().and_then(|meta| meta.protocol_version());
        let era = if named.is_some() { Era::Modern } else { Era::Legacy };
        let structured = Box::new(json!({}));
        Reply { result: Ok(CallResult::success(era, text, structured)), room }
    }
}

impl ServerHandler for Probe {
    /// Pushes numbered deltas until the lane ends, or never stops for anything.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        drop(context.extensions.get::<TurnSlot>().and_then(TurnSlot::take));
        if request.method == "test/deaf" {
            self.calls.fetch_add(1, Ordering::SeqCst);
            return std::future::pending().await;
        }
        let lane = context.extensions.get::<PushLane>().unwrap().clone();
        let outbox = self.connection.outbox.clone();
        for number in 0u64.. {
            let params = json!({"observe": context.id, "number": number});
            let delta = json!({"jsonrpc": "2.0", "method": "termgate/delta", "params": params});
            let line = framing::to_line(&delta);
            let segments = [line.unwrap(), Bytes::new(), Bytes::new()];
            let room = outbox.push_room(128).await;
            if outbox.push(&lane, Some(room), segments).await == Delivery::Dropped {
                break;
            }
        }
        self.cancelled.fetch_add(1, Ordering::SeqCst);
        Ok(CustomResult::new(json!({})))
    }
}

struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    connection: Arc<Connection>,
    probe: Probe,
    serving: JoinHandle<()>,
}

impl Client {
    /// Connects, but says nothing yet.
    fn silent(limits: Limits) -> Self {
        Self::of(Connection::new(ConnectionId(7), UnsentLimits::default()), limits)
    }

    fn of(connection: Connection, limits: Limits) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let connection = Arc::new(connection);
        let probe = Probe::of(&connection);
        let (served, handler) = (connection.clone(), probe.clone());
        let serving = tokio::spawn(async move {
            let link = link::plain(reader, writer).in_lines(&limits);
            serve(handler, link, served, &limits).await;
        });
        let (reader, writer) = tokio::io::split(near);
        let lines = BufReader::new(reader).lines();
        Self { lines, writer, connection, probe, serving }
    }

    async fn greeted_with(limits: Limits) -> Self {
        let mut client = Self::silent(limits);
        client.say(initialize(0)).await;
        assert_eq!(client.hear().await["id"], 0);
        client
    }

    async fn greeted() -> Self {
        Self::greeted_with(Limits::default()).await
    }

    async fn say(&mut self, message: Value) {
        self.say_raw(&format!("{message}\n")).await;
    }

    async fn say_raw(&mut self, bytes: &str) {
        self.writer.write_all(bytes.as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Hears until the answer to `id`, which is given back with what came before it.
    async fn hear_answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut earlier = Vec::new();
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                return (message, earlier);
            }
            earlier.push(message);
        }
    }

    async fn hears_the_end(&mut self) {
        assert_eq!(self.lines.next_line().await.unwrap(), None);
    }
}

fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}

fn observe(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "termgate/observe", "params": {}})
}

fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn modern_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}})
}

/// Checks that `line` gets an error of this code with this id, and that the connection goes on.
async fn check_refused(line: &str, code: i64, id: Value) {
    let mut client = Client::greeted().await;
    client.say_raw(line).await;
    let answer = client.hear().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{answer}");
    assert!(answer.as_object().unwrap().contains_key("id"));
    client.say(call(99, "after", json!({}))).await;
    assert_eq!(client.hear().await["id"], 99);
}

#[tokio::test]
async fn a_client_of_the_older_era_greets_and_calls() {
    let mut client = Client::silent(Limits::default());
    client.say(initialize(0)).await;
    assert_eq!(client.hear().await["result"]["protocolVersion"], "2025-11-25");
    client.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.say(call(1, "hello", json!({}))).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "hello");
}

#[tokio::test]
async fn a_client_of_the_newer_era_calls_without_greeting() {
    let mut client = Client::silent(Limits::default());
    let mut discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"});
    discover["params"] = json!({"_meta": modern_meta()});
    client.say(discover).await;
    let versions = client.hear().await["result"]["supportedVersions"].clone();
    assert!(versions.as_array().unwrap().contains(&json!("2026-07-28")));
    let mut hello = call(2, "hello", json!({}));
    hello["params"]["_meta"] = modern_meta();
    client.say(hello).await;
    let answer = client.hear().await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn what_comes_before_the_first_request_does_not_end_the_connection() {
    let mut client = Client::silent(Limits::default());
    client.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.say(json!({"jsonrpc": "2.0", "id": 5, "result": {}})).await;
    client.say_raw("what?\n\r\n\n").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    client.say(initialize(0)).await;
    assert_eq!(client.hear().await["id"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_pipelined_calls_take_effect_in_order() {
    const CALLS: u64 = 20_000;
    let Client { mut lines, mut writer, probe, .. } = Client::greeted().await;
    let writing = tokio::spawn(async move {
        for id in 1..=CALLS {
            let line = format!("{}\n", call(id, "note", json!({"n": id})));
            writer.write_all(line.as_bytes()).await.unwrap();
        }
        writer
    });
    for _ in 0..CALLS {
        assert!(lines.next_line().await.unwrap().is_some());
    }
    writing.await.unwrap();
    assert_eq!(*probe.notes.lock().unwrap(), (1..=CALLS).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_read_from_no_more() {
    let mut client = Client::greeted().await;
    let flood = async {
        for id in 1.. {
            client.say(call(id, "big", json!({"size": 10_000}))).await;
        }
    };
    assert!(timeout(Duration::from_secs(1), flood).await.is_err(), "the flood was taken");
    // Each unsent answer is less than 1 KiB longer than its text.
    assert!(client.connection.outbox.unsent_bytes() <= 1024 * 1024);
    assert!(client.probe.calls.load(Ordering::SeqCst) < 250);
}

#[tokio::test(start_paused = true)]
async fn garbage_from_a_client_that_never_reads_is_not_answered_for_ever() {
    let mut client = Client::greeted().await;
    let flood = async {
        for _ in 0..100 {
            client.say_raw(&"x\n".repeat(1000)).await;
        }
    };
    assert!(timeout(Duration::from_secs(1), flood).await.is_err(), "the flood was taken");
    // Half of what replies may hold, and the answer that went over it.
    assert!(client.connection.outbox.unsent_bytes() <= 384 * 1024 + 100);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_cancelled_but_do_not_stop_are_bounded() {
    let limits = Limits { short_max: 2, long_max: 1, ..Limits::default() };
    let mut client = Client::greeted_with(limits).await;
    let flood = async {
        for id in 1..=10_000 {
            client.say(json!({"jsonrpc": "2.0", "id": id, "method": "test/deaf"})).await;
            client.say(cancel(id)).await;
        }
    };
    assert!(timeout(Duration::from_secs(1), flood).await.is_err(), "the flood was taken");
    assert_eq!(client.probe.calls.load(Ordering::SeqCst), 2 + 1 + 64);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_cannot_be_owed_more_than_the_bound_by_an_observer() {
    let mut client = Client::greeted().await;
    for id in 1..=20 {
        client.say(observe(id)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(client.connection.outbox.unsent_bytes() <= 20 * 128, "one push outstanding for each");
    client.say(ping(21)).await;
    let (_, earlier) = client.hear_answer(21).await;
    assert!(earlier.len() > 20);
}

#[tokio::test]
async fn a_cancel_gets_through_behind_as_many_long_calls_as_may_be() {
    let mut client = Client::greeted().await;
    for id in 1..=256 {
        client.say(call(id, "wait_for", json!({}))).await;
    }
    client.say(call(257, "wait_for", json!({}))).await;
    let refused = client.hear().await;
    assert_eq!(refused["id"], 257);
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(refused["result"]["structuredContent"]["error_code"], "busy");
    client.say(observe(258)).await;
    assert_eq!(client.hear().await["error"]["code"], -32000);
    client.say(cancel(1)).await;
    client.say(call(259, "wait_for", json!({}))).await;
    client.say(call(260, "short", json!({}))).await;
    assert_eq!(client.hear().await["id"], 260);
    client.say(cancel(259)).await;
    client.say(ping(261)).await;
    assert_eq!(client.hear().await["id"], 261);
}

#[tokio::test]
async fn a_cancelled_call_is_given_up_and_never_answered() {
    let mut client = Client::greeted().await;
    client.say(call(1, "stuck", json!({}))).await;
    client.say(cancel(1)).await;
    client.say(ping(2)).await;
    assert_eq!(client.hear().await["id"], 2);
    assert_eq!(client.probe.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_waits_for_neither_the_replies_nor_the_ends_of_earlier_ones() {
    let mut client = Client::greeted().await;
    client.say(call(1, "stuck", json!({}))).await;
    client.say(call(2, "hello", json!({}))).await;
    assert_eq!(client.hear().await["id"], 2);
}

#[tokio::test]
async fn a_cancel_ends_no_connection_whose_client_has_only_called_tools() {
    let mut client = Client::silent(Limits::default());
    let mut stuck = call(1, "stuck", json!({}));
    stuck["params"]["_meta"] = modern_meta();
    client.say(stuck).await;
    client.say(cancel(1)).await;
    client.say(call(2, "hello", json!({}))).await;
    assert_eq!(client.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn short_calls_beyond_the_bound_stay_unread_until_one_is_answered() {
    let limits = Limits { short_max: 2, ..Limits::default() };
    let mut client = Client::greeted_with(limits).await;
    for id in 1..=3 {
        client.say(call(id, "stuck", json!({}))).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.probe.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nothing_of_an_observer_follows_its_cancel() {
    let mut client = Client::greeted().await;
    client.say(observe(1)).await;
    assert_eq!(client.hear().await["params"]["number"], 0);
    assert_eq!(client.hear().await["params"]["number"], 1);
    client.say(cancel(1)).await;
    client.say(ping(2)).await;
    client.hear_answer(2).await;
    client.say(ping(3)).await;
    let (_, between) = client.hear_answer(3).await;
    assert_eq!(between, Vec::<Value>::new());
}

#[tokio::test]
async fn the_command_lines_client_calls_and_observes() {
    let (near, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    let connection = Arc::new(Connection::new(ConnectionId(3), UnsentLimits::default()));
    let probe = Probe::of(&connection);
    let handler = probe.clone();
    let serving = tokio::spawn(async move {
        let limits = Limits::default();
        let link = link::plain(reader, writer).in_lines(&limits);
        serve(handler, link, connection, &limits).await;
    });
    let (reader, writer) = tokio::io::split(near);
    let client = crate::transport::client::Client::over(reader, writer).await.unwrap();
    let mut observation = client.observe(&json!({})).unwrap();
    for number in 0..100 {
        assert_eq!(observation.next().await.unwrap().unwrap()["number"], number);
    }
    drop(observation);
    let hello = client.call("hello", serde_json::Map::new()).await.unwrap();
    assert_eq!(hello.content[0].as_text().unwrap().text, "hello");
    drop(client);
    serving.await.unwrap();
    assert_eq!(probe.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_for() {
    let mut client = Client::greeted().await;
    client.say(call(1, "panic", json!({}))).await;
    assert_eq!(client.hear().await["error"]["code"], -32603);
    client.say(call(1, "again", json!({}))).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "again");
}

#[tokio::test]
async fn a_line_that_is_not_json_is_answered_with_a_parse_error() {
    check_refused("{\"jsonrpc\": \"2.0\", \n", -32700, Value::Null).await;
}

#[tokio::test]
async fn a_line_that_is_no_text_is_answered_with_a_parse_error() {
    let mut client = Client::greeted().await;
    client.writer.write_all(b"\"\xff\xfe\"\n").await.unwrap();
    assert_eq!(client.hear().await["error"]["code"], -32700);
}

#[tokio::test]
async fn json_that_is_no_message_is_refused_with_its_id() {
    check_refused("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":5}\n", -32600, json!("a")).await;
}

#[tokio::test]
async fn a_batch_is_refused() {
    check_refused(&format!("[{}]\n", ping(1)), -32600, Value::Null).await;
}

#[tokio::test]
async fn members_without_their_names_are_no_message_and_no_parameters() {
    let line = "[\"2.0\",1,\"tools/call\",{\"name\":\"hello\"}]\n";
    check_refused(line, -32600, Value::Null).await;
    let line =
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":[\"hello\",{}]}\n";
    check_refused(line, -32602, json!(4)).await;
    let line =
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"resources/read\",\"params\":[\"a:b\"]}\n";
    check_refused(line, -32600, json!(4)).await;
}

#[tokio::test]
async fn an_id_that_is_neither_integer_nor_string_is_refused() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":9.5,\"method\":\"ping\"}\n";
    check_refused(line, -32600, Value::Null).await;
}

#[tokio::test]
async fn parameters_that_a_method_does_not_have_are_refused() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"nome\":1}}\n";
    check_refused(line, -32602, json!(4)).await;
}

#[tokio::test]
async fn a_message_nested_too_deeply_is_refused_with_its_id() {
    let line = format!("{{\"id\":8,\"x\":{}{}}}\n", "[".repeat(500), "]".repeat(500));
    check_refused(&line, -32600, json!(8)).await;
}

#[tokio::test]
async fn a_message_of_too_many_parts_is_refused_with_its_id() {
    let line = format!("{{\"x\":[{}0],\"id\":8}}\n", "0,".repeat(20_000));
    check_refused(&line, -32600, json!(8)).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_answered() {
    let line = format!("{}\n", "x".repeat(3 * 1024 * 1024));
    check_refused(&line, -32600, Value::Null).await;
}

#[tokio::test]
async fn a_line_of_the_greatest_length_is_taken() {
    let mut client = Client::greeted().await;
    let frame = call(1, "long", json!({"text": ""})).to_string();
    let text = "x".repeat(1024 * 1024 - frame.len());
    client.say(call(1, "long", json!({"text": text}))).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "long");
}

#[tokio::test]
async fn an_id_in_flight_cannot_be_used_again() {
    let mut client = Client::greeted().await;
    client.say(call(1, "wait_for", json!({}))).await;
    client.say(call(1, "hello", json!({}))).await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
    client.say(cancel(1)).await;
    client.say(ping(2)).await;
    assert_eq!(client.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_left_after_five_seconds() {
    let start = Instant::now();
    let mut client = Client::silent(Limits::default());
    client.hears_the_end().await;
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(client.connection.gone.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn garbage_does_not_postpone_the_first_message() {
    let start = Instant::now();
    let mut client = Client::silent(Limits::default());
    tokio::time::sleep(Duration::from_secs(4)).await;
    client.say_raw("garbage\n").await;
    client.hear().await;
    client.hears_the_end().await;
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_inside_a_message_is_left_after_ten_seconds() {
    let mut client = Client::greeted().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let start = Instant::now();
    client.say_raw("{\"jsonrpc\"").await;
    client.hears_the_end().await;
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ends_its_input_still_gets_its_answers() {
    let mut client = Client::silent(Limits::default());
    client.say(initialize(0)).await;
    client.say(observe(1)).await;
    client.say(call(2, "hello", json!({}))).await;
    // The last line needs no end.
    client.say_raw(&call(3, "hello", json!({})).to_string()).await;
    client.writer.shutdown().await.unwrap();
    let mut answered = Vec::new();
    while let Some(line) = client.lines.next_line().await.unwrap() {
        let message: Value = serde_json::from_str(&line).unwrap();
        answered.extend(message["id"].as_u64());
    }
    answered.sort_unstable();
    assert_eq!(answered, [0, 2, 3]);
    client.serving.await.unwrap();
    assert_eq!(client.probe.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_end_of_input_ends_what_still_waits() {
    let mut client = Client::greeted().await;
    client.say(call(1, "wait_for", json!({}))).await;
    client.say(call(2, "hello", json!({}))).await;
    client.writer.shutdown().await.unwrap();
    assert_eq!(client.hear().await["id"], 2);
    client.hears_the_end().await;
    client.serving.await.unwrap();
    assert!(client.connection.ended.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_short_call_that_does_not_end_is_left_two_seconds_after_the_end_of_input() {
    let mut client = Client::greeted().await;
    client.say(call(1, "stuck", json!({}))).await;
    let ended = Instant::now();
    client.writer.shutdown().await.unwrap();
    client.hears_the_end().await;
    assert_eq!(ended.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_library_that_does_not_end_is_left_as_soon() {
    let mut client = Client::greeted().await;
    client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "test/deaf"})).await;
    let ended = Instant::now();
    client.writer.shutdown().await.unwrap();
    client.hears_the_end().await;
    assert_eq!(ended.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_wait_is_still_accepted_in_its_turn_after_the_end_of_input() {
    let mut client = Client::greeted().await;
    client.say(call(1, "slow", json!({}))).await;
    client.say(call(2, "note", json!({"n": 7, "wait_ms": 600_000}))).await;
    client.writer.shutdown().await.unwrap();
    client.hear_answer(2).await;
    client.hears_the_end().await;
    assert_eq!(*client.probe.notes.lock().unwrap(), [7]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_is_told_before_the_last_answers_are_read() {
    let mut client = Client::greeted().await;
    // More than the stream takes, and not so much that nothing more is read.
    for id in 1..=10 {
        client.say(call(id, "big", json!({"size": 30_000}))).await;
    }
    client.writer.shutdown().await.unwrap();
    let began = Instant::now();
    client.connection.ended.cancelled().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!client.connection.gone.is_cancelled(), "the answers are still to be read");
}

#[tokio::test]
async fn hanging_up_on_a_client_ends_its_connection() {
    let mut client = Client::greeted().await;
    client.connection.gone.cancel();
    client.hears_the_end().await;
    client.serving.await.unwrap();
    assert!(client.connection.ended.is_cancelled());
}

/// Waits for what real sockets do, but not for ever.
async fn within_time<F: Future>(waiting: F) -> F::Output {
    timeout(Duration::from_secs(20), waiting).await.unwrap()
}

#[tokio::test]
async fn a_socket_that_hangs_up_is_noticed_while_nothing_is_read_from_it() {
    let (near, far) = UnixStream::pair().unwrap();
    let connection = Arc::new(Connection::new(ConnectionId(8), UnsentLimits::default()));
    let probe = Probe::of(&connection);
    let (served, handler) = (connection.clone(), probe.clone());
    let limits = Limits { short_max: 1, ..Limits::default() };
    let hangup = link::watch_hangup(&far).unwrap();
    let link = link::unix(far, hangup).unwrap().in_lines(&limits);
    let serving = tokio::spawn(async move { serve(handler, link, served, &limits).await });
    let (reader, mut writer) = near.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(format!("{}\n", initialize(0)).as_bytes()).await.unwrap();
    assert!(lines.next_line().await.unwrap().is_some());
    let stuck = format!("{}\n{}\n", call(1, "stuck", json!({})), ping(2));
    writer.write_all(stuck.as_bytes()).await.unwrap();
    drop((lines, writer));
    within_time(connection.ended.cancelled()).await;
    within_time(serving).await.unwrap();
    assert_eq!(probe.cancelled.load(Ordering::SeqCst), probe.calls.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_socket_closed_in_one_direction_has_not_hung_up() {
    let (near, far) = UnixStream::pair().unwrap();
    let connection = Arc::new(Connection::new(ConnectionId(9), UnsentLimits::default()));
    let served = connection.clone();
    let hangup = link::watch_hangup(&far).unwrap();
    let link = link::unix(far, hangup).unwrap().in_lines(&Limits::default());
    let serving = tokio::spawn(async move {
        serve(Probe::of(&served), link, served, &Limits::default()).await;
    });
    let (reader, mut writer) = near.into_split();
    let input = format!("{}\n{}\n", initialize(0), call(1, "hello", json!({})));
    writer.write_all(input.as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut lines = BufReader::new(reader).lines();
    let mut count = 0;
    while lines.next_line().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 2);
    within_time(serving).await.unwrap();
}

#[tokio::test]
async fn nothing_is_done_of_what_is_said_once_the_right_to_speak_is_over() {
    use std::sync::atomic::AtomicBool;

    let holds = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&holds);
    let right = move || asked.load(Ordering::SeqCst);
    let connection = Connection::new(ConnectionId(7), UnsentLimits::default()).with_right(right);
    let mut client = Client::of(connection, Limits::default());
    client.say(initialize(0)).await;
    assert_eq!(client.hear().await["id"], 0);
    client.say(call(1, "note", json!({"n": 1}))).await;
    assert_eq!(client.hear().await["id"], 1);
    holds.store(false, Ordering::SeqCst);
    client.say(call(2, "note", json!({"n": 2}))).await;
    client.hears_the_end().await;
    assert_eq!(*client.probe.notes.lock().unwrap(), [1]);
}
