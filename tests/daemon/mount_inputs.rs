//! What mounted servers of the newer era ask with their results, and the answers with which a request is made again.

use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::MountMode;

use crate::daemon::harness::{Era, error_code, structured};
use crate::daemon::mount_asks::{Client, FORM, Question, ROOTS, SAMPLE, all, brings, returned};
use crate::daemon::mount_eras::NewerFake;
use crate::daemon::policy::{journal, rules_of};
use crate::harness::waiting::until;

/// A call that asks these rounds of questions.
fn asking(rounds: Value) -> Value {
    json!({"name": "fake__ask", "arguments": {"rounds": rounds}, "_meta": {"progressToken": 7}})
}

fn one(name: &str, method: &str, params: Value) -> Value {
    json!([{"inputRequests": {name: {"method": method, "params": params}}}])
}

fn who() -> Value {
    one("who", FORM, json!({"message": "Who?"}))
}

/// Answers all that is asked until a request is over. Returns the questions, and the result.
async fn answering(
    client: &mut Client,
    (method, params): (&str, Value),
    answer: impl Fn(&Question) -> Value,
) -> (Vec<Question>, Value) {
    let mut id = client.send(method, params.clone()).await;
    let mut asked = Vec::new();
    loop {
        let is_question =
            |message: &Value| [FORM, SAMPLE, ROOTS].map(Value::from).contains(&message["method"]);
        let is_next = |message: &Value| message.get("method").is_none() || is_question(message);
        let mut next = client.wire.receiver.first(is_next).await;
        if next.get("method").is_some() {
            let method = next["method"].as_str().unwrap().to_owned();
            let question =
                Question { method, params: next["params"].take(), id: next["id"].take() };
            client.answers(&question.id, &answer(&question)).await;
            asked.push(question);
            continue;
        }
        assert_eq!(next["id"], json!(id), "{next}");
        let result = next["result"].take();
        if result["resultType"] != "input_required" {
            return (asked, result);
        }
        let questions = returned(&result);
        let answers: Vec<Value> = questions.iter().map(&answer).collect();
        let again = brings(params.clone(), &result, questions.iter().zip(&answers));
        asked.extend(questions);
        id = client.send(method, again).await;
    }
}

/// An answer that says what was asked.
fn echoed(question: &Question) -> Value {
    json!({"action": "accept", "content": {"of": question.params["message"]}})
}

#[tokio::test]
async fn a_newer_server_is_brought_the_answers_of_the_client_of_its_call() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            for (method, answer) in [
                (FORM, json!({"action": "accept", "content": {"x": 1}})),
                (SAMPLE, json!({"role": "assistant", "model": "m", "content": []})),
                (ROOTS, json!({"roots": [{"uri": "file:///a"}], "more": true})),
            ] {
                let call =
                    asking(one("its own name", method, json!({"message": "x", "messages": []})));
                let (asked, ended) =
                    answering(&mut client, ("tools/call", call), |_| answer.clone()).await;
                assert_eq!(asked.len(), 1, "{asked:?}");
                assert_eq!(asked[0].method, method);
                assert_eq!(asked[0].params["_meta"], json!({"dev.termgate/mount": "fake"}));
                let said = structured(&ended);
                assert_eq!(said["answers"], json!([{"its own name": answer}]), "{era:?}");
                assert!(said["token"].is_u64(), "the progress token stays: {said}");
                let kind = (era == Era::Modern).then(|| json!("complete"));
                assert_eq!(ended.get("resultType"), kind.as_ref());
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn questions_come_at_the_same_time_and_in_rounds_and_a_state_alone_is_brought_back() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            let form = |message: &str| json!({"method": FORM, "params": {"message": message}});
            let rounds = json!([
                {"inputRequests": {"a": form("1"), "b": form("2")}},
                {},
                {"inputRequests": {"a": form("3")}},
            ]);
            let call = asking(rounds);
            let (asked, ended) = answering(&mut client, ("tools/call", call), echoed).await;
            let mut messages: Vec<_> =
                asked.iter().map(|it| it.params["message"].to_string()).collect();
            messages.sort();
            assert_eq!(messages, ["\"1\"", "\"2\"", "\"3\""], "{era:?}");
            let answer = |of: &str| json!({"action": "accept", "content": {"of": of}});
            let answers = json!([{"a": answer("1"), "b": answer("2")}, {"a": answer("3")}]);
            assert_eq!(structured(&ended)["answers"], answers, "{era:?}");
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn what_a_server_asks_together_reaches_a_newer_client_together() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = Client::new(&daemon, Era::Modern, all()).await;
        let form = |message: &str| json!({"method": FORM, "params": {"message": message}});
        let asked = json!({"a": form("1"), "b": form("2"), "c": form("3"), "d": form("4")});
        let call = asking(json!([{"inputRequests": asked}]));
        let id = client.send("tools/call", call.clone()).await;
        let asked = client.wire.answer(id).await;
        let questions = returned(&asked);
        assert_eq!(questions.len(), 4, "{questions:?}");
        let answers: Vec<Value> = questions.iter().map(echoed).collect();
        let again = brings(call, &asked, questions.iter().zip(&answers));
        let id = client.send("tools/call", again).await;
        assert_eq!(structured(&client.wire.answer(id).await)["answers"][0]["d"], answers[3]);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_gives_no_state_is_brought_none() {
    let fake = NewerFake::lines("newer");
    let (daemon, _) = fake.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let mut call = asking(who());
    call["arguments"]["stateless"] = json!(true);
    let (_, ended) = answering(&mut client, ("tools/call", call), echoed).await;
    let said = structured(&ended);
    assert_eq!((&said["state"], said["answers"][0]["who"].is_object()), (&json!(false), true));
    daemon.stop().await;
}

#[tokio::test]
async fn resources_and_prompts_of_newer_servers_ask_as_tools_do() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            for (method, params) in [
                ("resources/read", json!({"uri": "termgate://mount/fake/asks"})),
                ("prompts/get", json!({"name": "fake__asks"})),
            ] {
                let (asked, ended) = answering(&mut client, (method, params), echoed).await;
                assert_eq!(asked[0].params["message"], method, "{era:?}");
                assert!(ended.to_string().contains("accept"), "{era:?}: {ended}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_question_that_is_not_answered_ends_the_call() {
    let fake = NewerFake::lines("newer");
    let denies = r#"
        unknown = "allow"
        [[rule]]
        name = "no-forms"
        effect = "deny"
        tool = "fake__elicitation/create"
    "#;
    let (daemon, _) = fake.mounted_under(rules_of(denies)).await;
    for era in Era::BOTH {
        let mut client = Client::new(&daemon, era, json!({"elicitation": {}, "roots": {}})).await;
        let long = json!({"message": "x".repeat(70_000)});
        for (rounds, why) in [
            (one("a", SAMPLE, json!({})), "the client has no sampling"),
            (who(), "termgate does not let this server ask that: policy_denied"),
            (one("a", ROOTS, long), "the question is too long"),
            (one("a", "tasks/list", json!({})), "unknown method tasks/list"),
        ] {
            let id = client.send("tools/call", asking(rounds)).await;
            let ended = client.wire.answer(id).await;
            assert_eq!(error_code(&ended), "upstream_error", "{era:?}");
            assert!(ended.to_string().contains(why), "{era:?}: {ended}");
        }
    }
    // What is refused beside others ends those too.
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let two = json!({"a": {"method": ROOTS}, "b": {"method": FORM, "params": {"message": "x"}}});
    let unknown = json!({"a": {"method": ROOTS}, "b": {"method": "tasks/list"}});
    let link = json!({"mode": "url", "url": "javascript:x", "message": "x", "elicitationId": "1"});
    let link = json!({"a": {"method": ROOTS}, "b": {"method": FORM, "params": link}});
    let many: serde_json::Map<_, _> =
        (0..5).map(|n| (n.to_string(), json!({"method": ROOTS}))).collect();
    for (requests, why, asked) in [
        (json!(many), "this call asks too much", 0),
        (unknown, "unknown method tasks/list", 0),
        (link, "the url must begin with http", 0),
        (two, "policy_denied", 1),
    ] {
        let before = client.wire.receiver.kept().filter(|it| it["method"] == ROOTS).count();
        let id = client.send("tools/call", asking(json!([{"inputRequests": requests}]))).await;
        let ended = client.wire.answer(id).await;
        assert_eq!(error_code(&ended), "upstream_error");
        assert!(ended.to_string().contains(why), "{ended}");
        let after = client.wire.receiver.kept().filter(|it| it["method"] == ROOTS).count();
        assert!(after - before <= asked, "{why}");
    }
    assert!(!fake.all_heard().contains("answers"), "{}", fake.all_heard());
    let acts: Vec<Value> = journal(&daemon).into_iter().map(|it| it["act"].clone()).collect();
    assert!(acts.contains(&json!("fake__elicitation/create")), "{acts:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_newer_client_that_brings_no_answer_ends_the_call() {
    let fake = NewerFake::lines("newer");
    let (daemon, _) = fake.mounted().await;
    let mut client = Client::new(&daemon, Era::Modern, all()).await;
    let id = client.send("tools/call", asking(who())).await;
    let asked = client.wire.answer(id).await;
    let id = client.send("tools/call", brings(asking(who()), &asked, [])).await;
    let ended = client.wire.answer(id).await;
    assert_eq!(error_code(&ended), "upstream_error");
    assert!(ended.to_string().contains("the client brought no answer"), "{ended}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_asks_for_ever_is_answered_ten_times() {
    let fake = NewerFake::lines("newer");
    let (daemon, _) = fake.mounted().await;
    for era in Era::BOTH {
        let mut client = Client::new(&daemon, era, all()).await;
        for (rounds, questions) in [(who(), 10), (json!([{}]), 0)] {
            let mut call = asking(rounds);
            call["arguments"]["for ever"] = json!(true);
            let (asked, ended) = answering(&mut client, ("tools/call", call), echoed).await;
            assert_eq!(asked.len(), questions, "{era:?}");
            assert_eq!(error_code(&ended), "upstream_error");
            assert!(ended.to_string().contains("it has asked 10 times"), "{ended}");
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_whose_client_is_asked_with_a_result_has_time_for_the_answer() {
    let mut fake = NewerFake::lines("newer");
    fake.settings.call_timeout = Duration::from_millis(700);
    let (daemon, _) = fake.mounted().await;
    let mut client = Client::new(&daemon, Era::Legacy, all()).await;
    let id = client.send("tools/call", asking(who())).await;
    let asked = client.asked(FORM).await;
    assert_eq!(client.wire.error_code("fake__hang", json!({})).await, "timeout");
    client.answers(&asked.id, &json!({"action": "decline"})).await;
    let said = structured(&client.wire.answer(id).await);
    assert_eq!(said["answers"], json!([{"who": {"action": "decline"}}]));
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_asked_with_a_result_ends_with_its_call() {
    for fake in NewerFake::both().await {
        let (daemon, mut operator) = fake.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        let id = client.send("tools/call", asking(who())).await;
        let asked = client.asked(FORM).await;
        client.wire.sender.cancel(id).await;
        let told = client.wire.receiver.notification("notifications/cancelled").await;
        assert_eq!(told["requestId"], asked.id);
        client.answers(&asked.id, &json!({"action": "accept"})).await;
        // The end of the server is the end of the call too.
        let id = client.send("tools/call", asking(who())).await;
        let asked = client.asked(FORM).await;
        operator.structured("manage_mounts", json!({"action": "restart", "mount": "fake"})).await;
        let told = client.wire.receiver.notification("notifications/cancelled").await;
        assert_eq!(told["requestId"], asked.id);
        assert_eq!(error_code(&client.wire.answer(id).await), "upstream_restarted");
        client.answers(&asked.id, &json!({"action": "accept"})).await;
        client.wire.call("fake__echo", json!({})).await;
        assert!(!fake.all_heard().contains("answers"), "{}", fake.all_heard());
        daemon.stop().await;
    }
}

#[tokio::test]
async fn answers_do_not_reach_a_server_after_the_lease_of_their_call() {
    for era in Era::BOTH {
        let mut fake = NewerFake::lines("newer");
        fake.settings.mode = MountMode::Leased;
        let (daemon, mut operator) = fake.mounted().await;
        let mut client = Client::new(&daemon, era, all()).await;
        client.wire.structured("acquire_lease", json!({"surface": "fake"})).await;
        let id = client.send("tools/call", asking(who())).await;
        let lost = if era == Era::Legacy {
            let asked = client.asked(FORM).await;
            operator.structured("preempt_lease", json!({"surface": "fake"})).await;
            let told = client.wire.receiver.notification("notifications/cancelled").await;
            assert_eq!(told["requestId"], asked.id);
            client.answers(&asked.id, &json!({"action": "accept"})).await;
            client.wire.answer(id).await
        } else {
            let asked = client.wire.answer(id).await;
            operator.structured("preempt_lease", json!({"surface": "fake"})).await;
            let (question, answer) = (returned(&asked).remove(0), json!({"action": "accept"}));
            let again = brings(asking(who()), &asked, [(&question, &answer)]);
            let id = client.send("tools/call", again).await;
            client.wire.answer(id).await
        };
        assert_eq!(error_code(&lost), "lease_lost", "{era:?}");
        // The next holder waits for nothing that the server still does.
        let mut next = daemon.client(era).await;
        next.structured("acquire_lease", json!({"surface": "fake"})).await;
        next.call("fake__echo", json!({})).await;
        assert!(!fake.all_heard().contains("answers"), "{}", fake.all_heard());
        daemon.stop().await;
    }
}

#[tokio::test]
async fn only_the_client_of_the_call_is_asked_whoever_else_calls() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        let mut ada = Client::new(&daemon, Era::Legacy, all()).await;
        let mut bob = Client::new(&daemon, Era::Legacy, all()).await;
        bob.wire.send_call("fake__hang", json!({})).await;
        until("the other call", || fake.heard("hang") == 1).await;
        let (asked, _) = answering(&mut ada, ("tools/call", asking(who())), echoed).await;
        assert_eq!((asked.len(), bob.wire.receiver.kept().count()), (1, 0));
        daemon.stop().await;
    }
}
