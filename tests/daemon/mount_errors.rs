//! What a mounted server refuses reaches the client as the server wrote it.

use serde_json::{Value, json};
use termgate::core::mount::MountTrust;

use crate::daemon::harness::{Era, error_code};
use crate::daemon::mount_asks::{Asking, Client, FORM, all, asking};
use crate::daemon::mount_exact::Exact;

/// Data of an error that a library of JSON would write in another way.
const DATA: &str = r#"{"z":123456789012345678901234567890,"a":[1e400,"\u200b"],"uri":"x:y"}"#;

fn refusal(code: i64, data: &str) -> String {
    format!(r#""error":{{"code":{code},"message":"not \u200bhere","data":{data}}}"#)
}

/// The data and the message as clients of a mount with this trust see them.
fn seen(trust: MountTrust) -> (String, &'static str) {
    match trust {
        MountTrust::Trusted => (DATA.replace("\\u200b", "\u{200b}"), "not \u{200b}here"),
        MountTrust::Untrusted | MountTrust::Sandboxed => {
            (DATA.replace("\\u200b", "\\\\u{200b}"), "not \\\\u{200b}here")
        }
    }
}

#[tokio::test]
async fn what_is_refused_beside_tools_has_the_code_the_message_and_the_data_of_the_server() {
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        for what in ["prompts.get", "resources.read", "completion.complete"] {
            server.says(what, &refusal(-32002, DATA));
        }
        let daemon = server.mounted().await;
        let argument = json!({"name": "who", "value": ""});
        let of = json!({"type": "ref/prompt", "name": "fake__greet"});
        let (data, message) = seen(trust);
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            for (method, params) in [
                ("prompts/get", json!({"name": "fake__greet"})),
                ("resources/read", json!({"uri": "termgate://mount/fake/x:y"})),
                ("completion/complete", json!({"ref": of, "argument": argument})),
            ] {
                client.send(method, params).await;
                let line = client.receiver.line_with("\"error\"").await;
                let code = if era == Era::Modern { -32602 } else { -32002 };
                let error =
                    format!(r#""error":{{"code":{code},"message":"{message}","data":{data}}}"#);
                assert!(line.contains(&error), "{method} {trust:?}: {line}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_data_of_a_refused_call_is_in_the_details_of_its_error() {
    for trust in [MountTrust::Trusted, MountTrust::Untrusted] {
        let server = Exact::new(trust, "older");
        let daemon = server.mounted().await;
        let (data, _) = seen(trust);
        for (code, word) in [(-5, "upstream_error"), (-32602, "invalid_argument")] {
            server.says("tools.call", &refusal(code, DATA));
            for era in Era::BOTH {
                let mut client = daemon.client(era).await;
                client.send("tools/call", json!({"name": "fake__echo"})).await;
                let line = client.receiver.line_with("isError").await;
                assert!(line.contains(&format!(r#""details":{{"data":{data}}}"#)), "{line}");
                assert!(line.contains(word), "{line}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_error_without_a_code_of_the_protocol_or_with_much_data_is_told_in_other_words() {
    let server = Exact::new(MountTrust::Trusted, "older");
    let daemon = server.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let read = json!({"uri": "termgate://mount/fake/x:y"});
    for code in ["\"none\"", "1e3", "99999999999"] {
        server.says("resources.read", &format!(r#""error":{{"code":{code},"data":1e400}}"#));
        let refused = client.request("resources/read", read.clone()).await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "upstream_error", "{refused}");
    }
    let long = format!("\"{}\"", "x".repeat(70_000));
    for what in ["resources.read", "tools.call"] {
        server.says(what, &refusal(-5, &long));
    }
    let refused = client.request("resources/read", read).await.unwrap_err();
    assert_eq!((&refused["code"], refused.get("data")), (&json!(-5), None), "{refused}");
    let refused = client.call("fake__echo", json!({})).await;
    assert_eq!(error_code(&refused), "upstream_error");
    assert_eq!(refused["structuredContent"].get("details"), None::<&Value>, "{refused}");
    daemon.stop().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_call_at_once() {
    for kind in ["lines", "http"] {
        let mut server = Asking::start(kind).await;
        // An hour: it is not this that ends the calls.
        server.settings.call_timeout = std::time::Duration::from_secs(3_600);
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        for (text, problem) in [("LATIN1", "not UTF-8"), ("NAN", "no JSON")] {
            let error = json!({"error": {"code": -5, "message": "x", "data": text}});
            let refused = client.wire.call("fake__refuse", error).await;
            assert_eq!(error_code(&refused), "upstream_error", "{kind}");
            assert!(refused.to_string().contains(problem), "{kind}: {refused}");
            // In a stream of events, over HTTP.
            let form = json!({"message": "Who?", "requestedSchema": {"type": "object"}});
            let question = json!([{"method": FORM, "params": form}]);
            let call = client.send("tools/call", asking(question)).await;
            let asked = client.asked(FORM).await;
            client.answers(&asked.id, &json!({"action": "accept", "content": {"a": text}})).await;
            let refused = client.wire.answer(call).await;
            assert_eq!(error_code(&refused), "upstream_error", "{kind}");
            assert!(refused.to_string().contains(problem), "{kind}: {refused}");
        }
        daemon.stop().await;
    }
}
