//! The links that mounted servers send people to.

use serde_json::{Value, json};
use termgate::core::mount::MountTrust;

use crate::daemon::harness::{Era, error_code};
use crate::daemon::mount_asks::{Asking, Client, FORM, all, answers, asking};

const COMPLETE: &str = "notifications/elicitation/complete";

fn link(id: &str) -> Value {
    json!([{"method": FORM, "params":
        {"mode": "url", "elicitationId": id, "url": "https://a.example/x", "message": "Log in"}}])
}

fn told(id: &str) -> Value {
    json!({"method": COMPLETE, "params": {"elicitationId": id}})
}

#[tokio::test]
async fn the_client_that_was_sent_to_a_link_hears_that_it_was_followed() {
    for kind in ["lines", "http"] {
        let mut server = Asking::start(kind).await;
        server.settings.trust = MountTrust::Untrusted;
        let daemon = server.mounted().await;
        let mut ada = Client::new(&daemon, Era::Legacy, all()).await;
        let mut bob = Client::new(&daemon, Era::Legacy, all()).await;
        let mut known = Vec::new();
        for (is_ada, id) in [(true, "1\u{200b}"), (false, "2"), (false, "3")] {
            let client = if is_ada { &mut ada } else { &mut bob };
            let call = client.send("tools/call", asking(link(id))).await;
            let asked = client.asked(FORM).await;
            known.push(asked.params["elicitationId"].clone());
            let answer = json!({"action": "accept"});
            client.answers(&asked.id, &answer).await;
            assert_eq!(answers(&client.wire.answer(call).await), json!([{"result": answer}]));
        }
        assert_eq!(known, ["fake/1\\u{200b}", "fake/2", "fake/3"]);
        // Whoever calls the server then.
        for id in ["4", "fake/2", "1\u{200b}", "1\u{200b}", "3"] {
            bob.wire.structured("fake__tell", told(id)).await;
        }
        let heard = bob.wire.receiver.notification(COMPLETE).await;
        assert_eq!(heard, json!({"elicitationId": known[2]}), "{kind}");
        let heard = ada.wire.receiver.notification(COMPLETE).await;
        assert_eq!(heard, json!({"elicitationId": known[0]}), "{kind}");
        for client in [&mut ada, &mut bob] {
            client.wire.structured("fake__echo", json!({})).await;
            assert_eq!(client.wire.receiver.kept().count(), 0, "{kind}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn all_clients_that_were_sent_to_one_link_hear_that_it_was_followed() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut ada = Client::new(&daemon, Era::Legacy, all()).await;
    let mut bob = Client::new(&daemon, Era::Legacy, all()).await;
    for client in [&mut ada, &mut bob] {
        let call = client.send("tools/call", asking(link("1"))).await;
        let asked = client.asked(FORM).await;
        client.answers(&asked.id, &json!({"action": "accept"})).await;
        client.wire.answer(call).await;
    }
    ada.wire.structured("fake__tell", told("1")).await;
    for client in [&mut ada, &mut bob] {
        let heard = client.wire.receiver.notification(COMPLETE).await;
        assert_eq!(heard, json!({"elicitationId": "fake/1"}));
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_link_that_opens_no_page_or_has_no_name_is_refused_to_the_server() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    for (member, value) in [
        ("url", json!("javascript:alert(1)")),
        ("url", json!("file:///etc/passwd")),
        ("url", json!("https:///x")),
        ("elicitationId", json!(7)),
        ("elicitationId", json!(["1"])),
    ] {
        let mut question = link("1");
        question[0]["params"][member] = value.clone();
        let call = client.send("tools/call", asking(question)).await;
        let said = answers(&client.wire.answer(call).await);
        assert_eq!(said[0]["error"]["code"], -32602, "{value}: {said}");
    }
    assert_eq!(client.wire.receiver.kept().count(), 0);
    daemon.stop().await;
}

/// An error that wants this link to be opened first.
fn link_error(url: &str) -> Value {
    let link = json!({"mode": "url", "elicitationId": "1", "url": url, "message": "Log in"});
    json!({"error": {"code": -32042, "message": "not yet", "data": {"elicitations": [link]}}})
}

#[tokio::test]
async fn a_call_that_needs_a_link_to_be_opened_says_so_in_the_form_of_its_client() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let wanted = link_error("https://a.example/x");
    let call = json!({"name": "fake__refuse", "arguments": wanted});
    let mut knows = Client::new(&daemon, Era::Legacy, all()).await;
    let id = knows.send("tools/call", call.clone()).await;
    let refused = knows.wire.receiver.answer(id).await.unwrap_err();
    let mut shown = wanted["error"].clone();
    shown["data"]["elicitations"][0]["elicitationId"] = json!("fake/1");
    assert_eq!(refused, shown);
    for (era, capabilities) in
        [(Era::Legacy, json!({"elicitation": {"form": {}}})), (Era::Modern, all())]
    {
        let mut client = Client::new(&daemon, era, capabilities).await;
        let id = client.send("tools/call", call.clone()).await;
        let ended = client.wire.answer(id).await;
        assert_eq!(error_code(&ended), "upstream_error", "{era:?}");
        assert!(ended.to_string().contains("https://a.example/x"), "{era:?}: {ended}");
    }
    let mut unnamed = link_error("https://a.example/x");
    unnamed["error"]["data"]["elicitations"][0]["elicitationId"] = json!(7);
    for error in [link_error("javascript:x"), unnamed] {
        let other = json!({"name": "fake__refuse", "arguments": error});
        let id = knows.send("tools/call", other).await;
        let ended = knows.wire.answer(id).await;
        assert_eq!(error_code(&ended), "upstream_error");
        assert!(!ended.to_string().contains("elicitations"), "{ended}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_ends_its_call_alone() {
    for kind in ["lines", "http"] {
        let server = Asking::start(kind).await;
        let daemon = server.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        let waits =
            client.wire.send_call("fake__ask", asking(link("1"))["arguments"].clone()).await;
        let asked = client.asked(FORM).await;
        let long = json!({"error": {"code": 1, "message": "0123456789abcdef"}, "times": 600_000});
        let refused = client.wire.call("fake__refuse", long).await;
        assert_eq!(error_code(&refused), "upstream_error", "{kind}");
        assert!(refused.to_string().contains("more than 8 MiB"), "{kind}: {refused}");
        client.answers(&asked.id, &json!({"action": "decline"})).await;
        let ended = client.wire.answer(waits).await;
        assert_eq!(answers(&ended), json!([{"result": {"action": "decline"}}]), "{kind}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_error_without_a_code_is_shown_without_one() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let refused = client.wire.call("fake__refuse", json!({"error": {"message": "no"}})).await;
    assert!(refused.to_string().contains("refused the call: no"), "{refused}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_link_may_be_followed_before_the_client_answers() {
    let server = Asking::start("lines").await;
    let daemon = server.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let call = client.send("tools/call", asking(link("1"))).await;
    let asked = client.asked(FORM).await;
    client.wire.structured("fake__tell", told("1")).await;
    let heard = client.wire.receiver.notification(COMPLETE).await;
    assert_eq!(heard, json!({"elicitationId": "fake/1"}));
    client.answers(&asked.id, &json!({"action": "accept"})).await;
    client.wire.answer(call).await;
    daemon.stop().await;
}
