//! People at sessions: what they are shown, and whose turn it is when they type.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};
use crate::daemon::shells::Shell;
use crate::daemon::tenants::{House, TENANTS};
use crate::harness::waiting::{soon, until};

/// A person at a session, on a connection of its own.
struct Person {
    wire: Wire,
    attach: u64,
    /// The parts of the screen told so far, the newest of each.
    first: Value,
}

impl Person {
    async fn attach(daemon: &TestDaemon, mut params: Value) -> Self {
        let mut wire = daemon.operator().await;
        for (name, default) in [("cols", 100), ("rows", 30)] {
            params.as_object_mut().unwrap().entry(name).or_insert(json!(default));
        }
        let attach = wire.send("termgate/attach", params).await;
        let first = wire.receiver.notification("termgate/delta").await;
        assert_eq!(first["observe"], attach);
        Self { wire, attach, first }
    }

    async fn at(daemon: &TestDaemon, session: &str) -> Self {
        Self::attach(daemon, json!({"session": session})).await
    }

    async fn types(&mut self, text: &str) -> Result<Value, Value> {
        let params = json!({"attach": self.attach, "data": STANDARD.encode(text)});
        self.wire.request("termgate/attach/input", params).await
    }

    async fn asks(&mut self, what: &str) -> Result<Value, Value> {
        self.wire.request(&format!("termgate/attach/{what}"), json!({"attach": self.attach})).await
    }

    /// Waits for an update of this type that fits.
    async fn is_told(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let delta = self.wire.receiver.notification("termgate/delta").await;
            let updates = delta["updates"].as_array().unwrap();
            let told = updates.iter().find(|update| update["type"] == kind && fits(update));
            if let Some(update) = told {
                return update.clone();
            }
        }
    }
}

fn update<'a>(delta: &'a Value, kind: &str) -> &'a Value {
    let updates = delta["updates"].as_array().unwrap();
    updates.iter().find(|update| update["type"] == kind).unwrap_or(&Value::Null)
}

fn code(error: &Value) -> &str {
    error["data"]["error_code"].as_str().unwrap_or_else(|| panic!("no code in {error}"))
}

async fn lease_of(client: &mut Wire, session: &str) -> Value {
    let listed = client.structured("list_sessions", json!({"session": session})).await;
    listed["sessions"][0]["lease"].clone()
}

/// What was refused to people at a session: each act and its error code, as it is recorded.
async fn refusals(client: &mut Wire, session: &str) -> Vec<(String, String)> {
    let asked = json!({"kind": "refused", "session": session});
    let told = client.structured("list_events", asked).await;
    let word = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    let events = told["events"].as_array().unwrap();
    events.iter().map(|event| (word(event, "act"), word(event, "code"))).collect()
}

async fn until_agent_holds(client: &mut Wire, session: &str) {
    soon("the agent to hold the lease again", async {
        while lease_of(client, session).await["kind"] != "agent" {}
    })
    .await;
}

async fn size_of(client: &mut Wire, session: &str) -> (u64, u64) {
    let screen = client.structured("read_screen", json!({"session": session})).await;
    (screen["cols"].as_u64().unwrap(), screen["rows"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_shown_the_whole_screen_and_every_change() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("printf '\\033[?1h\\033[?2004hhello'; exec cat").await;
    agent.wait_for(json!({"session": session, "text": "hello", "since": 0})).await;
    let mut person = Person::at(&daemon, &session).await;
    assert_eq!(person.first["reset"], true);
    assert_eq!(update(&person.first, "row")["text"], "hello");
    let modes = update(&person.first, "input_modes");
    assert_eq!(modes["application_cursor"], true, "{modes}");
    assert_eq!(modes["bracketed_paste"], true, "{modes}");
    assert_eq!(modes["mouse"], "off", "{modes}");
    person.types(" you").await.unwrap();
    person.is_told("row", |row| row["text"] == "hello you").await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_are_not_told_what_only_typists_need() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    agent.send("termgate/observe", json!({"session": session})).await;
    let first = agent.receiver.notification("termgate/delta").await;
    assert_eq!(update(&first, "input_modes"), &Value::Null);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_during_which_a_person_types_ends_with_the_lease_suspended_and_not_lost() {
    let daemon = TestDaemon::writable().await;
    let mut shell = Shell::start(&daemon, "bash").await;
    shell.must("true", 0, "").await;
    let mut person = Person::at(&daemon, &shell.session).await;
    let command = json!({"session": shell.session, "command": "echo begun; sleep 300"});
    let running = shell.client.send_call("run", command).await;
    person.is_told("row", |row| row["text"] == "begun").await;
    person.types("mine").await.unwrap();
    let result = shell.client.answer(running).await;
    let ran = structured(&result);
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("lease_suspended"), &Value::Null));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("it comes back by itself"), "{text}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typing_suspends_the_agents_lease_and_handing_back_resumes_it() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let lease = agent.acquire(&session).await;
    let mut person = Person::at(&daemon, &session).await;

    person.types("mine").await.unwrap();
    person.is_told("row", |row| row["text"] == "mine").await;
    let held = lease_of(&mut agent, &session).await;
    assert_eq!(held["kind"], "human", "{held}");
    assert_eq!(held["suspended"]["kind"], "agent", "{held}");
    let text = |text: &str| json!({"session": session, "text": text});
    let refused = agent.call("send_text", text("yours")).await;
    assert_eq!(error_code(&refused), "lease_suspended", "{refused}");

    assert_eq!(person.asks("hand_back").await.unwrap(), json!({"handed_back": true}));
    assert_eq!(person.asks("hand_back").await.unwrap(), json!({"handed_back": false}));
    let held = lease_of(&mut agent, &session).await;
    assert_eq!(held["kind"], "agent", "{held}");
    assert!(held["epoch"].as_u64() > lease["epoch"].as_u64(), "{held}");
    // The screen is not what the agent last saw, and it has to show that it knows.
    assert_eq!(agent.error_code("send_text", text("blind")).await, "screen_changed");
    let seen = agent.structured("read_screen", json!({"session": session})).await;
    let mut knowing = text(" and yours");
    knowing["expect_watermark"] = seen["watermark"].clone();
    let written = agent.structured("send_text", knowing).await;
    assert_eq!(written["lease"]["lease_id"], lease["lease_id"], "{written}");
    person.is_told("row", |row| row["text"] == "mine and yours").await;
    // Only the first write has to.
    agent.structured("send_text", text("!")).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_person_typed_a_command_runs_once_its_caller_has_looked() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("PS1='# ' exec dash -i").await;
    agent.acquire(&session).await;
    // What is typed before the prompt is there comes out behind it.
    let prompt = json!({"session": session, "text": "# ", "since": 0});
    agent.structured("wait_for", prompt).await;
    let mut person = Person::at(&daemon, &session).await;
    person.types("echo by hand\r").await.unwrap();
    person.is_told("row", |row| row["text"] == "by hand").await;
    person.asks("hand_back").await.unwrap();

    let mut command = json!({"session": session, "command": "echo fine"});
    assert_eq!(agent.error_code("run", command.clone()).await, "screen_changed");
    let ended = loop {
        // The prompt may come after the look.
        let seen = agent.structured("read_screen", json!({"session": session})).await;
        command["expect_watermark"] = seen["watermark"].clone();
        let answer = agent.call("run", command.clone()).await;
        if answer["structuredContent"]["error_code"] != "screen_changed" {
            break structured(&answer);
        }
    };
    assert_eq!(ended["output"], "fine", "{ended}");
    agent.structured("run", json!({"session": session, "command": "true"})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_in_any_way_hands_back_at_once() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    agent.acquire(&session).await;

    let mut person = Person::at(&daemon, &session).await;
    person.asks("take_over").await.unwrap();
    assert_eq!(lease_of(&mut agent, &session).await["kind"], "human");
    person.wire.sender.cancel(person.attach).await;
    until_agent_holds(&mut agent, &session).await;

    let mut person = Person::at(&daemon, &session).await;
    person.asks("take_over").await.unwrap();
    assert_eq!(lease_of(&mut agent, &session).await["kind"], "human");
    drop(person);
    until_agent_holds(&mut agent, &session).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_takes_the_size_of_whoever_typed_last() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let at = |cols: u64, rows: u64| json!({"session": session, "cols": cols, "rows": rows});
    let mut wide = Person::attach(&daemon, at(150, 20)).await;
    let mut tall = Person::attach(&daemon, at(70, 60)).await;
    assert_eq!(size_of(&mut agent, &session).await, (120, 40));
    wide.types("a").await.unwrap();
    assert_eq!(size_of(&mut agent, &session).await, (150, 20));
    tall.types("b").await.unwrap();
    assert_eq!(size_of(&mut agent, &session).await, (70, 60));
    // Who points at something does so in the size in which it was seen.
    let click = json!({
        "attach": wide.attach,
        "data": STANDARD.encode("\x1b[<0;1;1M"),
        "resize": false,
    });
    wide.wire.request("termgate/attach/input", click).await.unwrap();
    assert_eq!(size_of(&mut agent, &session).await, (70, 60));
    tall.types("c").await.unwrap();
    // Who does not have the keyboard changes nothing, and who has it does.
    let room = |person: &Person| json!({"attach": person.attach, "cols": 90, "rows": 33});
    wide.wire.request("termgate/attach/size", room(&wide)).await.unwrap();
    assert_eq!(size_of(&mut agent, &session).await, (70, 60));
    tall.wire.request("termgate/attach/size", room(&tall)).await.unwrap();
    assert_eq!(size_of(&mut agent, &session).await, (90, 33));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_took_over_is_not_interrupted_by_another_persons_typing() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let mut first = Person::at(&daemon, &session).await;
    let mut second = Person::at(&daemon, &session).await;
    first.asks("take_over").await.unwrap();
    let refused = second.types("x").await.unwrap_err();
    assert_eq!(code(&refused), "lease_held", "{refused}");
    second.asks("take_over").await.unwrap();
    second.types("second").await.unwrap();
    let refused = first.types("y").await.unwrap_err();
    assert_eq!(code(&refused), "lease_held", "{refused}");
    second.is_told("row", |row| row["text"] == "second").await;
    let told = [("typing", "lease_held"); 2];
    assert_eq!(refusals(&mut agent, &session).await, told.map(|it| (it.0.into(), it.1.into())));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_types_and_takes_over_in_sessions_of_all_tenants() {
    let house = House::new(TENANTS).await;
    for (who, name, visibility) in [("ci", "desk", "tenant"), ("clerk", "till", "private")] {
        let session = house.session(who, name, visibility).await;
        let mut person = Person::at(&house.daemon, &session).await;
        person.types("typed").await.unwrap();
        person.is_told("row", |row| row["text"] == "typed").await;
        person.asks("take_over").await.unwrap();
        person.types("\x03").await.unwrap();
        person.wire.receiver.answer(person.attach).await.unwrap();
    }
    house.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_read_only_daemon_people_only_watch() {
    let daemon = TestDaemon::writable().await;
    let mut operator = daemon.operator().await;
    let session = operator.start("printf shown; exec cat").await;
    operator.structured("set_write", json!({"state": "off"})).await;
    let mut person = Person::at(&daemon, &session).await;
    let refused = person.types("x").await.unwrap_err();
    assert_eq!(code(&refused), "read_only", "{refused}");
    let refused = person.asks("take_over").await.unwrap_err();
    assert_eq!(code(&refused), "read_only", "{refused}");
    let before = size_of(&mut operator, &session).await;
    let room = json!({"attach": person.attach, "cols": 50, "rows": 10});
    person.wire.request("termgate/attach/size", room).await.unwrap();
    assert_eq!(size_of(&mut operator, &session).await, before);
    let told = ["typing", "take_over"].map(|act| (act.to_owned(), "read_only".to_owned()));
    assert_eq!(refusals(&mut operator, &session).await, told);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_came_to_watch_cannot_type() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let params = json!({"session": session, "view_only": true});
    let mut person = Person::attach(&daemon, params).await;
    let refused = person.types("x").await.unwrap_err();
    assert_eq!(code(&refused), "read_only", "{refused}");
    assert_eq!(lease_of(&mut agent, &session).await["held"], false);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn detach_sends_everybody_away_and_the_end_of_the_program_too() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let mut people = [Person::at(&daemon, &session).await, Person::at(&daemon, &session).await];
    agent.acquire(&session).await;
    agent.structured("manage_session", json!({"session": session, "action": "detach"})).await;
    for person in &mut people {
        let ended = person.wire.receiver.answer(person.attach).await.unwrap();
        assert_eq!((&ended["session"], &ended["ended"]), (&json!(session), &json!("detached")));
    }
    let mut person = Person::at(&daemon, &session).await;
    agent.structured("send_keys", json!({"session": session, "keys": "C-d"})).await;
    let exit = person.is_told("exit", |_| true).await;
    assert_eq!(exit["status"]["code"], 0, "{exit}");
    let ended = person.wire.receiver.answer(person.attach).await.unwrap();
    assert_eq!(ended, json!({"session": session, "name": "sh", "ended": "exited"}));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_name_the_session_created_last_is_meant() {
    let daemon = TestDaemon::writable().await;
    let mut operator = daemon.operator().await;
    let nobody = operator.request("termgate/attach", json!({"cols": 80, "rows": 24})).await;
    assert_eq!(code(&nobody.unwrap_err()), "session_not_found");
    operator.start("exec cat").await;
    let latest = operator.start("exec cat").await;
    let ended = operator.start("exit 0").await;
    operator.wait_for_exit(&ended).await;
    let person = Person::attach(&daemon, json!({})).await;
    assert_eq!(person.first["session"], latest);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attaching_exists_at_the_operators_door_alone() {
    const EXTENSION: &str = "dev.termgate/attach";
    const METHOD_NOT_FOUND: i64 = -32601;
    let daemon = TestDaemon::writable().await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    for (door, declared) in
        [(daemon.paths.operator(), true), (daemon.paths.gateway().into(), false)]
    {
        let mut wire = Wire::silent(&door, Era::Legacy).await;
        let greeted = wire.request("initialize", hello.clone()).await.unwrap();
        let extensions = greeted["capabilities"]["experimental"].as_object().unwrap();
        assert_eq!(extensions.contains_key(EXTENSION), declared, "{greeted}");
    }
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    for era in Era::BOTH {
        for mut client in [daemon.client(era).await, daemon.at_session(&session, era).await] {
            let params = json!({"session": session, "cols": 80, "rows": 24});
            let refused = client.request("termgate/attach", params).await.unwrap_err();
            assert_eq!(refused["code"], METHOD_NOT_FOUND, "{refused}");
            let input = json!({"attach": 1, "data": ""});
            let refused = client.request("termgate/attach/input", input).await.unwrap_err();
            assert_eq!(refused["code"], METHOD_NOT_FOUND, "{refused}");
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_ask_wrongly_is_told_apart() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let mut person = Person::at(&daemon, &session).await;
    let attach = person.attach;
    for (method, params) in [
        ("input", json!({"attach": 4711, "data": ""})),
        ("input", json!({"attach": attach, "data": "*"})),
        ("input", json!({"attach": attach, "data": STANDARD.encode(vec![b'x'; 65 * 1024])})),
        ("input", json!({"attach": attach})),
        ("size", json!({"attach": attach, "cols": -1, "rows": 3})),
        ("take_over", json!({"attach": attach, "now": true})),
    ] {
        let full = format!("termgate/attach/{method}");
        let refused = person.wire.request(&full, params.clone()).await.unwrap_err();
        assert_eq!(code(&refused), "invalid_argument", "{method} {params}");
    }
    daemon.stop().await;
}

/// An agent and a person type at the same time, again and again: the program is given whole
/// writes alone, and each that was acknowledged exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_and_an_agent_race_for_the_keyboard_a_thousand_times() {
    const ROUNDS: usize = 1_000;
    let daemon = TestDaemon::writable().await;
    let log = daemon.file("log");
    let mut agent = daemon.client(Era::Legacy).await;
    let line = format!("stty raw -echo; printf recording; exec cat > {}", log.display());
    let session = agent.start(&line).await;
    agent.wait_for(json!({"session": session, "text": "recording", "since": 0})).await;
    agent.structured("acquire_lease", json!({"session": session, "ttl_ms": 600_000})).await;
    let mut person = Person::at(&daemon, &session).await;

    let agent_session = session.clone();
    let typing = tokio::spawn(async move {
        let mut told = Vec::new();
        for round in 0..ROUNDS {
            let seen = agent.structured("read_screen", json!({"session": agent_session})).await;
            let text = format!("<a{round}>");
            let write = json!({
                "session": agent_session,
                "text": text,
                "expect_watermark": seen["watermark"],
            });
            let answer = agent.call("send_text", write).await;
            if answer["isError"] != true {
                let written = answer["structuredContent"]["written"].as_u64().unwrap();
                told.push((text, written as usize));
            } else {
                let code = error_code(&answer);
                assert!(["lease_suspended", "screen_changed"].contains(&&*code), "{answer}");
            }
        }
        (agent, told)
    });
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        let text = format!("<h{round}>");
        let written = person.types(&text).await.unwrap()["written"].as_u64().unwrap() as usize;
        told.push((text, written));
        person.asks("hand_back").await.unwrap();
    }
    let (mut agent, by_agent) = typing.await.unwrap();
    // Who gets how many is the scheduler's doing.
    let fair = ROUNDS / 50;
    let whole = |told: &[(String, usize)]| told.iter().filter(|(_, written)| *written > 0).count();
    let (persons, agents) = (whole(&told), whole(&by_agent));
    assert!(persons > fair && agents > fair, "{persons} by the person, {agents} by the agent");
    told.extend(by_agent);
    person.types("\x04").await.unwrap();
    agent.structured("list_sessions", json!({})).await;
    let expected: usize = told.iter().map(|(_, written)| written).sum::<usize>() + 1;
    until("the program to write down what it was given", || {
        fs::metadata(&log).unwrap().len() >= expected as u64
    })
    .await;
    let typed = fs::read_to_string(&log).unwrap();
    assert_eq!(typed.len(), expected, "the program was given other bytes than were acknowledged");
    for (text, written) in told {
        let part = &text[..written];
        assert_eq!(written, text.len(), "a short write is never cut: {text}");
        assert_eq!(typed.matches(part).count(), 1, "{part}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_seats_of_one_connection_do_not_end_each_others_keyboard() {
    let daemon = TestDaemon::writable().await;
    let mut agent = daemon.client(Era::Legacy).await;
    let session = agent.start("exec cat").await;
    let mut person = Person::at(&daemon, &session).await;
    let taken = person.asks("take_over").await.unwrap();
    let room = json!({"session": session, "cols": 100, "rows": 30});
    let second = person.wire.send("termgate/attach", room).await;
    let told = async |person: &mut Person| {
        person.wire.receiver.notification("termgate/delta").await["observe"].clone()
    };
    while told(&mut person).await != second {}
    let typed = json!({"attach": second, "data": STANDARD.encode("x")});
    let refused = person.wire.request("termgate/attach/input", typed).await.unwrap_err();
    assert_eq!(code(&refused), "lease_held");
    let handing = json!({"attach": second});
    let handed = person.wire.request("termgate/attach/hand_back", handing).await.unwrap();
    assert_eq!(handed["handed_back"], false);
    person.wire.sender.cancel(second).await;

    person.types("y").await.unwrap();
    assert_eq!(lease_of(&mut agent, &session).await["by"], taken["you"]);
    daemon.stop().await;
}
