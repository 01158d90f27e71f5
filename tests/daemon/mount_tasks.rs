//! Calls that mounted servers run as tasks are ordinary calls for clients.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::mount::server::{MountedServer, ServerCommand};
use termgate::core::mount::{MountMode, MountTrust};

use crate::daemon::harness::{Era, Wire, error_code, structured};
use crate::daemon::mount_asks::{Client, FORM, all, brings, returned};
use crate::daemon::mount_eras::NewerFake;
use crate::daemon::mounts::settings_of;
use crate::harness::home::Home;
use crate::harness::waiting::until;

const OLDER: &str = include_str!("older_task_server.py");

fn older() -> NewerFake {
    let ground = Home::new();
    fs::write(ground.path("server.py"), OLDER).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let program = ServerCommand {
        command: "python3".to_owned(),
        args: vec![text(&ground.path("server.py")), text(ground.ground())],
        ..ServerCommand::default()
    };
    let settings = settings_of(MountedServer::Program(program), MountTrust::Trusted);
    NewerFake { ground, settings, process: None }
}

/// A server of each era, the newer one in both ways.
async fn servers() -> [NewerFake; 3] {
    let [lines, http] = NewerFake::both().await;
    [lines, http, older()]
}

/// A call whose task is in these states, one after the other. The last one stays.
fn task(steps: Value) -> Value {
    json!({"name": "fake__task", "arguments": {"steps": steps}, "_meta": {"progressToken": 7}})
}

fn working() -> Value {
    json!({"status": "working"})
}

/// It works until it is told otherwise.
fn endless() -> Value {
    task(json!([working()]))
}

fn done() -> Value {
    let result = json!({"content": [], "structuredContent": {"z": 1}});
    json!({"status": "completed", "result": result})
}

fn asks() -> Value {
    let who = json!({"method": FORM, "params": {"message": "Who?"}});
    json!({"status": "input_required", "inputRequests": {"who": who}})
}

async fn ended(client: &mut Wire, call: Value) -> Value {
    client.request("tools/call", call).await.unwrap()
}

#[tokio::test]
async fn the_result_of_a_task_is_that_of_its_call() {
    for fake in servers().await {
        let (daemon, _) = fake.mounted().await;
        for era in Era::BOTH {
            let mut client = daemon.client(era).await;
            let says = |message: &str| json!({"status": "working", "statusMessage": message});
            let steps = json!([says("a"), says("a"), says("b"), done()]);
            let result = ended(&mut client, task(steps)).await;
            assert_eq!(structured(&result), json!({"z": 1}), "{era:?}");
            let kind = (era == Era::Modern).then(|| json!("complete"));
            assert_eq!(result.get("resultType"), kind.as_ref());
            for (progress, message) in [(1, "a"), (2, "b")] {
                let told = client.receiver.notification("notifications/progress").await;
                let wanted = json!({"progressToken": 7, "progress": progress, "message": message});
                assert_eq!(told, wanted);
            }
        }
        assert_eq!(fake.heard("tasks/cancel"), 0, "{}", fake.all_heard());
        daemon.stop().await;
    }
}

#[tokio::test]
async fn only_tools_that_must_be_tasks_are_called_so_and_clients_are_not_told() {
    let fake = older();
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    assert!(listed.to_string().contains("fake__task"), "{listed}");
    assert!(!listed.to_string().contains("taskSupport"), "{listed}");
    for tool in ["fake__maybe", "fake__echo"] {
        assert_eq!(client.structured(tool, json!({})).await, json!({"task": false}));
    }
    ended(&mut client, task(json!([done()]))).await;
    assert_eq!(fake.heard("ttl 3600000"), 1, "{}", fake.all_heard());
    daemon.stop().await;
}

#[tokio::test]
async fn a_task_that_fails_fails_its_call() {
    let error = json!({"code": -32603, "message": "out of order"});
    for fake in servers().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        for (step, why) in [
            (json!({"status": "failed", "error": error}), "(-32603): out of order"),
            (json!({"status": "cancelled"}), "it has cancelled the task"),
            (json!({"status": "lost"}), "its task is malformed"),
        ] {
            let result = ended(&mut client, task(json!([working(), step]))).await;
            assert_eq!(error_code(&result), "upstream_error");
            assert!(result.to_string().contains(why), "{result}");
        }
        daemon.stop().await;
    }
    // In the older era, a tool that fails has a task that fails, and a result.
    let (fake, failed) = (older(), json!({"content": [], "isError": true}));
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let steps = json!([{"status": "failed", "result": failed}]);
    assert_eq!(ended(&mut client, task(steps)).await["isError"], true);
    daemon.stop().await;
}

#[tokio::test]
async fn only_calls_of_tools_may_be_tasks() {
    let fake = NewerFake::lines("newer");
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let asked = json!({"uri": "termgate://mount/fake/task"});
    let refused = client.request("resources/read", asked).await.unwrap_err();
    assert!(refused.to_string().contains("only calls of tools may be tasks"), "{refused}");
    daemon.stop().await;
}

#[tokio::test]
async fn what_a_task_asks_is_asked_once_of_the_client_of_its_call() {
    for fake in servers().await {
        let (daemon, _) = fake.mounted().await;
        let mut other = Client::new(&daemon, Era::Legacy, all()).await;
        other.wire.send_call("fake__hang", json!({})).await;
        until("the other call", || fake.heard("hang") == 1).await;
        for era in Era::BOTH {
            let mut client = Client::new(&daemon, era, all()).await;
            let call = task(json!([working(), asks(), working(), done()]));
            let answer = json!({"action": "accept", "content": {"x": 1}});
            let id = client.send("tools/call", call.clone()).await;
            let polls = || fake.heard("tasks/get");
            let result = if era == Era::Legacy {
                let asked = client.asked(FORM).await;
                let before = polls();
                until("further looks at the task", || polls() > before + 2).await;
                client.answers(&asked.id, &answer).await;
                client.wire.answer(id).await
            } else {
                let asked = client.wire.answer(id).await;
                let question = returned(&asked).remove(0);
                let again = brings(call, &asked, [(&question, &answer)]);
                let id = client.send("tools/call", again).await;
                client.wire.answer(id).await
            };
            assert_eq!(structured(&result), json!({"z": 1}), "{era:?}");
            assert!(client.wire.receiver.kept().all(|it| it["method"] != FORM));
            let told =
                format!("answers {}", r#"{"who": {"action": "accept", "content": {"x": 1}}}"#);
            assert_eq!(fake.heard(&told), 1, "{}", fake.all_heard());
            fs::remove_file(fake.ground.path("heard")).unwrap();
        }
        assert_eq!(other.wire.receiver.kept().count(), 0);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_task_whose_question_has_no_answer_is_cancelled() {
    for fake in NewerFake::both().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let result = ended(&mut client, task(json!([working(), asks()]))).await;
        assert_eq!(error_code(&result), "upstream_error");
        assert!(result.to_string().contains("the client has no elicitation"), "{result}");
        until("the task to be cancelled", || fake.heard("tasks/cancel") == 1).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_call_whose_client_has_not_answered_in_time_says_so() {
    for mut fake in NewerFake::both().await {
        fake.settings.call_timeout = Duration::from_millis(700);
        let (daemon, _) = fake.mounted().await;
        let mut client = Client::new(&daemon, Era::Legacy, all()).await;
        let mut asks = asks();
        asks["moves"] = json!(true);
        let steps = json!([asks, {"status": "working", "ttlMs": 1}]);
        let result = ended(&mut client.wire, task(steps)).await;
        assert_eq!(error_code(&result), "upstream_error");
        assert!(result.to_string().contains("the client did not answer in time"), "{result}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_task() {
    for fake in servers().await {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let id = client.send("tools/call", endless()).await;
        until("the task", || fake.heard("tasks/get") > 0).await;
        client.sender.cancel(id).await;
        until("the task to be cancelled", || fake.heard("tasks/cancel") == 1).await;
        client.call("fake__echo", json!({})).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_works_may_take_longer_than_a_call_and_not_longer_than_it_lives() {
    for mut fake in servers().await {
        fake.settings.call_timeout = Duration::from_millis(700);
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let mut steps = vec![working(); 12];
        steps.push(done());
        structured(&ended(&mut client, task(json!(steps))).await);
        assert_eq!(fake.heard("tasks/cancel"), 0);
        let short = json!({"status": "working", "ttl": 1, "ttlMs": 1});
        let silent = json!({"status": "working", "silent": true});
        for (count, step, why) in
            [(1, short, "was not done within 700 ms"), (2, silent, "did not answer within 700 ms")]
        {
            let result = ended(&mut client, task(json!([step]))).await;
            assert_eq!(error_code(&result), "timeout", "{step}");
            assert!(result.to_string().contains(why), "{step}: {result}");
            until("the task to be cancelled", || fake.heard("tasks/cancel") == count).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_look_at_a_task_that_is_lost_is_repeated() {
    let [_, fake] = NewerFake::both().await;
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let lost = json!({"status": "working", "lose": true});
    let result = ended(&mut client, task(json!([lost, done()]))).await;
    assert_eq!(structured(&result), json!({"z": 1}));
    daemon.stop().await;
}

#[tokio::test]
async fn a_task_ends_with_its_server() {
    for fake in [NewerFake::lines("newer"), older()] {
        let (daemon, _) = fake.mounted().await;
        let mut client = daemon.client(Era::Legacy).await;
        let dies = json!({"status": "working", "die": true});
        let result = ended(&mut client, task(json!([working(), dies]))).await;
        assert_eq!(error_code(&result), "upstream_restarted");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_task_ends_with_the_lease_of_its_call_before_the_next_holder_calls() {
    for mut fake in servers().await {
        fake.settings.mode = MountMode::Leased;
        let (daemon, mut operator) = fake.mounted().await;
        let mut ada = daemon.client(Era::Legacy).await;
        let mut bob = daemon.client(Era::Legacy).await;
        ada.structured("acquire_lease", json!({"surface": "fake"})).await;
        let id = ada.send("tools/call", endless()).await;
        until("the task", || fake.heard("tasks/get") > 0).await;
        operator.structured("preempt_lease", json!({"surface": "fake"})).await;
        assert_eq!(error_code(&ada.answer(id).await), "lease_lost");
        bob.structured("acquire_lease", json!({"surface": "fake"})).await;
        bob.call("fake__maybe", json!({})).await;
        let heard = fake.all_heard();
        let after: Vec<&str> = heard.lines().skip_while(|it| *it != "tasks/cancel").collect();
        assert_eq!(after, ["tasks/cancel", "maybe"], "{heard}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_begins_malformed_or_with_the_id_of_another_is_no_result() {
    let fake = older();
    let (daemon, _) = fake.mounted().await;
    let mut client = daemon.client(Era::Legacy).await;
    let begin = |more: Value| {
        let mut call = task(json!([working()]));
        call["arguments"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let weird = client.request("tools/call", begin(json!({"begun": {"status": "odd"}}))).await;
    assert_eq!(error_code(&weird.unwrap()), "upstream_error");
    let first = client.send("tools/call", begin(json!({"id": "same"}))).await;
    until("the task", || fake.heard("task") >= 2).await;
    let second = client.request("tools/call", begin(json!({"id": "same"}))).await.unwrap();
    assert!(second.to_string().contains("that of another one"), "{second}");
    client.sender.cancel(first).await;
    daemon.stop().await;
}
