//! Lines and messages of every form, good and bad, each with what it is answered.
//!
//! It must not know connections: what is tested is bytes in, messages and refusals out.

use rmcp::model::ClientJsonRpcMessage;
use serde_json::Value;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::{Duration, timeout};

use super::lines::{LineInput, LineReader};
use super::*;
use crate::transport::limits::{LINE_FREE, Limits};
use crate::transport::line_memory::LineMemory;

fn refused(line: &str) -> Value {
    let refusal = parse::<ClientJsonRpcMessage>(line.as_bytes()).unwrap_err();
    serde_json::from_slice(&refusal.to_line()).unwrap()
}

fn reading(limits: &Limits) -> (DuplexStream, LineReader<DuplexStream>) {
    let (near, far) = tokio::io::duplex(4 << 20);
    (near, LineReader::new(far, limits))
}

async fn text(lines: &mut LineReader<DuplexStream>) -> String {
    let LineInput::Line(line) = lines.next().await else { panic!("no line") };
    String::from_utf8(line.bytes().to_vec()).unwrap()
}

#[test]
fn the_id_of_a_refused_message_is_found_wherever_it_stands() {
    let cases = [
        (r#"{"method":1,"id":5}"#, serde_json::json!(5)),
        (r#"{"id":"a","method":[{"id":1}]}"#, serde_json::json!("a")),
        (r#"{"id":-3}"#, serde_json::json!(-3)),
        (r#"{"id":[1]}"#, Value::Null),
        (r#"{"id":18446744073709551615}"#, Value::Null),
        (r#"{"id":null}"#, Value::Null),
        ("7", Value::Null),
    ];
    for (line, id) in cases {
        let answer = refused(line);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&serde_json::json!(-32600), &id));
    }
}

#[test]
fn an_array_is_neither_a_message_nor_parameters() {
    for line in [
        r#"["2.0",1,"ping"]"#,
        r#"["2.0",1,"tools/call",{"name":"list_sessions"}]"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ] {
        let answer = refused(line);
        assert_eq!(answer["error"]["code"], -32600, "{line}");
        assert_eq!(answer["id"], Value::Null, "{line}");
    }
    for params in ["[]", r#"["termgate://sessions"]"#, "7"] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{params}}}"#);
        let answer = refused(&line);
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&(-32600).into(), &1.into()),
            "{line}"
        );
    }
}

#[test]
fn an_array_is_no_member_that_is_to_be_an_object() {
    let hello = |capabilities: &str, client: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{client}}}}}"#
        )
    };
    let client = r#"{"name":"a","version":"1"}"#;
    let read = |line: &str| parse::<ClientJsonRpcMessage>(line.as_bytes());
    assert!(read(&hello("{}", client)).is_ok());
    assert!(
        read(&hello("{}", r#"{"name":"a","version":"1","icons":[{"src":"https://a"}]}"#)).is_ok()
    );
    for (capabilities, client) in [
        ("{}", r#"["a",null,"1",null,null,null]"#),
        ("[null,null,null,null,null]", client),
        (r#"{"roots":[true]}"#, client),
        ("{}", r#"{"name":"a","version":"1","icons":[["https://a",null,null,null]]}"#),
    ] {
        let line = hello(capabilities, client);
        assert!(matches!(read(&line), Err(MessageRefusal::NotAMessage(Some(_)))), "{line}");
    }
}

#[test]
fn an_array_is_not_read_in_place_of_an_object() {
    #[derive(Debug, Deserialize)]
    struct Named {
        #[expect(dead_code, reason = "only whether it is read counts")]
        name: String,
    }
    assert!(object::<Named>(br#" {"name":"a"}"#).is_ok());
    assert!(object::<Named>(br#"["a"]"#).unwrap_err().is_data());
    assert!(object::<Named>(br#"["a""#).unwrap_err().is_eof());
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    for line in ["", "{", "nonsense", r#"{"id":1}{"id":2}"#, r#"{"id":1,}"#, "\u{feff}{}"] {
        assert_eq!(refused(line)["error"]["code"], -32700, "{line}");
    }
}

#[tokio::test]
async fn lines_may_end_with_a_carriage_return_and_empty_ones_are_skipped() {
    let (mut near, mut lines) = reading(&Limits::default());
    near.write_all(b"one\r\n\n\r\ntwo\nthree").await.unwrap();
    drop(near);
    assert_eq!(text(&mut lines).await, "one");
    assert_eq!(text(&mut lines).await, "two");
    assert_eq!(text(&mut lines).await, "three");
    assert!(matches!(lines.next().await, LineInput::End));
}

#[tokio::test(start_paused = true)]
async fn giving_up_in_the_middle_of_a_line_loses_none_of_it() {
    let (mut near, mut lines) = reading(&Limits::default());
    let whole = "x".repeat(300_000);
    for part in whole.as_bytes().chunks(70_000) {
        near.write_all(part).await.unwrap();
        assert!(timeout(Duration::from_millis(1), lines.next()).await.is_err());
    }
    near.write_all(b"\n").await.unwrap();
    assert_eq!(text(&mut lines).await, whole);
}

#[tokio::test]
async fn a_line_may_be_as_long_as_allowed_and_no_longer() {
    let (mut near, mut lines) = reading(&Limits { line_max: 8, ..Limits::default() });
    near.write_all(b"12345678\n123456789\nnext\n").await.unwrap();
    assert_eq!(text(&mut lines).await, "12345678");
    let LineInput::Refused(refusal) = lines.next().await else { panic!("not too long") };
    assert_eq!(refusal, MessageRefusal::TooLarge { id: None, bytes_max: 8 });
    assert_eq!(text(&mut lines).await, "next");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_and_without_end_ends_the_reading_in_time() {
    let limits = Limits { line_max: 8, ..Limits::default() };
    let (mut near, mut lines) = reading(&limits);
    lines.greeted();
    near.write_all(&[b'x'; 100]).await.unwrap();
    let some_time = limits.inside_message / 2;
    assert!(timeout(some_time, lines.next()).await.is_err());
    near.write_all(&[b'x'; 100]).await.unwrap();
    assert!(matches!(lines.next().await, LineInput::End));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_told_with_the_id_of_its_message() {
    let (mut near, mut lines) = reading(&Limits { line_max: 8, ..Limits::default() });
    let long = "x".repeat(100_000);
    near.write_all(format!("{{\"x\":\"{long}\",\"id\":5}}\n").as_bytes()).await.unwrap();
    let too_large = |id| MessageRefusal::TooLarge { id: Some(RequestId::Number(id)), bytes_max: 8 };
    let LineInput::Refused(refusal) = lines.next().await else { panic!("not too long") };
    assert_eq!(refusal, too_large(5));
    near.write_all(b"{\"id\":6,\"x\":1}").await.unwrap();
    drop(near);
    let LineInput::Refused(refusal) = lines.next().await else { panic!("not too long") };
    assert_eq!(refusal, too_large(6));
    assert!(matches!(lines.next().await, LineInput::End));
}

#[tokio::test]
async fn lines_that_are_not_whole_keep_no_line_of_their_user_waiting() {
    let limits = Limits { incoming: LineMemory::of_bytes(1_000_000), ..Limits::default() };
    let half = format!("{{\"id\":5,\"x\":\"{}", "x".repeat(400_000));
    let mut halves = Vec::new();
    for _ in 0..4 {
        let (mut near, mut lines) = reading(&limits);
        near.write_all(half.as_bytes()).await.unwrap();
        tokio::select! {
            biased;
            _ = lines.next() => panic!("it is not whole"),
            () = std::future::ready(()) => {}
        }
        halves.push((near, lines));
    }
    let (mut near, mut lines) = reading(&limits);
    let long = "y".repeat(300_000);
    near.write_all(format!("{long}\n").as_bytes()).await.unwrap();
    assert_eq!(text(&mut lines).await, long);

    // Those that began first gave way to others; the last of them is whole.
    let mut whole = Vec::new();
    for (near, lines) in &mut halves {
        near.write_all(b"\"}\nshort\n").await.unwrap();
        match lines.next().await {
            LineInput::Line(line) => whole.push(line.bytes().len() == half.len() + 2),
            LineInput::Refused(refusal) => {
                assert_eq!(refusal, MessageRefusal::GaveWay(Some(RequestId::Number(5))));
                whole.push(false);
            }
            LineInput::End => panic!("the connection lives on"),
        }
        assert_eq!(text(lines).await, "short");
    }
    assert_eq!(whole, [false, false, false, true]);
}

#[tokio::test]
async fn short_lines_need_no_memory_of_their_user() {
    let limits = Limits { incoming: LineMemory::of_bytes(0), ..Limits::default() };
    let (mut near, mut lines) = reading(&limits);
    let short = "x".repeat(LINE_FREE / 4);
    near.write_all(format!("{short}\n").as_bytes()).await.unwrap();
    assert_eq!(text(&mut lines).await, short);
}

const TOKENS_MAX: usize = 500;

fn has_too_much(line: &[u8]) -> bool {
    is_excessive(line, TOKENS_MAX)
}

#[test]
fn structure_is_counted_outside_strings_only() {
    let text = format!(r#"{{"text":"{}\"{}"}}"#, "[".repeat(200), ",".repeat(TOKENS_MAX));
    assert!(!has_too_much(text.as_bytes()));
}

#[test]
fn a_message_may_have_as_many_tokens_as_allowed_and_no_more() {
    let list = |commas: usize| format!("[{}1]", "1,".repeat(commas));
    assert!(!has_too_much(list(TOKENS_MAX - 1).as_bytes()));
    assert!(has_too_much(list(TOKENS_MAX).as_bytes()));
}

#[test]
fn a_message_may_be_as_deep_as_allowed_and_no_deeper() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(!has_too_much(nested(DEPTH_MAX).as_bytes()));
    assert!(has_too_much(nested(DEPTH_MAX + 1).as_bytes()));
    let deepest = nested(DEPTH_MAX);
    assert!(serde_json::from_str::<serde_json::Value>(&deepest).is_ok());
}
