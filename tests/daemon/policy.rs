//! Rules judge the calls of clients, and every decision can be explained.

use std::path::Path;

use serde_json::{Value, json};
use termgate::config::policy;
use termgate::core::policy::rules::PolicyRules;
use termgate::surface::TOOL_NAMES;

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::harness::home::is_installed;

/// The rules of a policy file.
pub(crate) fn rules_of(text: &str) -> PolicyRules {
    let mut rules = PolicyRules::default();
    let problems = policy::read(text, Path::new("policy.toml"), TOOL_NAMES, &mut rules);
    assert!(problems.is_empty(), "{problems:?}");
    rules
}

/// A daemon that allows writing, with the rules of this policy file.
pub(crate) async fn daemon_with(text: &str) -> TestDaemon {
    TestDaemon::configured(|config| {
        config.allow_write = true;
        config.policy = rules_of(text).into();
    })
    .await
}

/// A session with a shell, of which the client holds the lease.
pub(crate) async fn shell(client: &mut Wire) -> String {
    let arguments = json!({"command": "bash", "args": ["--norc"], "tags": ["prod"]});
    let created = client.structured("create_session", arguments).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

/// Gives a client the lease, whoever has it.
pub(crate) async fn take_lease(daemon: &TestDaemon, client: &mut Wire, session: &str) {
    let about = json!({"session": session});
    daemon.operator().await.structured("preempt_lease", about.clone()).await;
    client.structured("acquire_lease", about).await;
}

/// The error of a call that must fail.
pub(crate) async fn refused(client: &mut Wire, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

const NO_RECURSIVE_RM: &str = r#"
[[rule]]
name = "no-rm"
effect = "deny"
reason = "it does not come back"
command = { program = "rm", flags = ["r"] }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_a_rule_denies_does_not_run_however_it_is_written() {
    let daemon = daemon_with(NO_RECURSIVE_RM).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    let kept = daemon.file("kept");
    std::fs::create_dir(&kept).unwrap();
    let kept = kept.display();
    for line in [
        format!("rm -fr {kept}"),
        format!("true; rm --recursive {kept}"),
        format!("bash -c 'rm -r {kept}'"),
        format!("echo {kept} | xargs rm -R"),
    ] {
        let arguments = json!({"session": session, "command": line});
        let error = refused(&mut client, "run", arguments).await;
        assert_eq!(error["error_code"], "policy_denied", "{line}: {error}");
        assert_eq!(error["details"]["rule"], "no-rm");
        let message = error["message"].as_str().unwrap();
        assert_eq!(message, "the rule `no-rm` denies this: it does not come back");
    }
    assert!(Path::new(&kept.to_string()).exists());
    let ran = client.structured("run", json!({"session": session, "command": "echo fine"})).await;
    assert_eq!(ran["exit_code"], 0, "{ran}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_explained_to_its_tenant_and_to_operators() {
    let daemon = daemon_with(NO_RECURSIVE_RM).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    let error =
        refused(&mut client, "run", json!({"session": session, "command": "rm -r x"})).await;
    let id = error["details"]["decision_id"].clone();
    let told = client.structured("why", json!({"decision_id": id})).await;
    assert_eq!(told["code"], "policy_denied");
    let meaning = told["meaning"].as_str().unwrap();
    assert!(meaning.ends_with("deny by the rule `no-rm`: it does not come back"), "{meaning}");
    let mut operator = daemon.operator().await;
    let explained = operator.structured("explain_decision", json!({"decision_id": id})).await;
    assert_eq!((&explained["effect"], &explained["what"]), (&json!("deny"), &json!("rm -r x")));
    assert_eq!(explained["rules"], json!([{"rule": "no-rm", "effect": "deny", "matches": "yes"}]));
    for unknown in ["00000000", "x"] {
        let error = refused(&mut client, "why", json!({"decision_id": unknown})).await;
        assert_eq!(error["error_code"], "invalid_argument", "{error}");
    }
    // The journal names the decision beside what became of the call.
    let journal = journal(&daemon);
    let denied = journal.iter().find(|line| line["kind"] == "refused").unwrap();
    assert_eq!((&denied["decision"], &denied["code"]), (&id, &json!("policy_denied")));
    assert_eq!(denied["command"], "rm -r x", "{denied}");
    let events = operator.structured("list_events", json!({"kind": "refused"})).await;
    assert_eq!(events["events"][0]["decision_id"], id, "{events}");
    assert_eq!(events["events"][0]["command"], "rm -r x", "{events}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_rules_refuse_is_recorded_as_what_passes_is_and_no_secret() {
    let rule = "[[rule]]\nname = 'quiet'\neffect = 'deny'\ntool = ['send_*', 'run']\n";
    let daemon = daemon_with(rule).await;
    let mut client = daemon.client(Era::Modern).await;
    let shown = client.start("printf ready; exec cat").await;
    let hidden = client.start("stty -echo; printf Password:; exec cat").await;
    for (session, text) in [(&shown, "ready"), (&hidden, "Password:")] {
        client.wait_for(json!({"session": session, "text": text, "since": 0})).await;
    }
    let long = format!("echo {}end", "x".repeat(8_000));
    let calls = [
        ("send_text", json!({"session": shown, "text": "a zebra", "enter": true})),
        ("send_text", json!({"session": shown, "text": "emVicmE=", "encoding": "base64"})),
        ("send_keys", json!({"session": shown, "keys": "C-c"})),
        ("run", json!({"session": shown, "command": "rm zebra"})),
        ("run", json!({"session": shown, "command": long})),
        ("send_text", json!({"session": hidden, "text": "hunter2", "enter": true})),
        ("send_keys", json!({"session": hidden, "keys": "h u n t e r 3"})),
        ("run", json!({"session": hidden, "command": "hunter4"})),
    ];
    let mut ids = Vec::new();
    for (tool, arguments) in calls {
        let error = refused(&mut client, tool, arguments).await;
        assert_eq!(error["error_code"], "policy_denied", "{error}");
        ids.push(error["details"]["decision_id"].clone());
    }
    let refusals = journal(&daemon).into_iter().filter(|line| line["kind"] == "refused");
    let told = |record: &Value| {
        let members = ["text", "command", "secret"].map(|name| record[name].clone());
        members.into_iter().find(|member| !member.is_null()).unwrap_or_default()
    };
    let refusals: Vec<Value> = refusals.collect();
    let mut recorded: Vec<Value> = refusals.iter().map(told).collect();
    let cut = recorded.remove(4);
    let expected = json!(["a zebra", "zebra", "C-c", "rm zebra", true, true, true]);
    assert_eq!(json!(recorded), expected);
    let cut = cut.as_str().unwrap();
    assert!(cut.starts_with("echo xxx") && cut.ends_with("xend") && cut.len() < 2_100, "{cut}");
    assert_eq!(refusals[4]["bytes"], 8_008);
    let mut operator = daemon.operator().await;
    let mut explained = String::new();
    for id in ids {
        let decision = json!({"decision_id": id});
        explained += &operator.structured("explain_decision", decision).await.to_string();
    }
    assert!(explained.contains("rm zebra") && !explained.contains("hunter"), "{explained}");
    assert!(!explained.contains("h u n t"), "{explained}");
    daemon.stop().await;
}

/// The records of the daemon's journal.
pub(crate) fn journal(daemon: &TestDaemon) -> Vec<Value> {
    let entries = |directory: &Path| {
        std::fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect::<Vec<_>>()
    };
    let journals = entries(&daemon.file("state/journal"));
    let files = journals.iter().flat_map(|journal| entries(journal));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_judge_by_session_tool_and_door_and_not_what_people_type() {
    let rules = r#"
        [[rule]]
        name = "prod-keys"
        effect = "deny"
        tags = "prod"
        tool = "send_*"
        raw_input = true

        [[rule]]
        name = "no-kill"
        effect = "deny"
        door = ["gateway", "session"]
        tool = "manage_session"
        arguments = { action = "kill" }
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    for (tool, arguments) in [
        ("send_text", json!({"session": session, "text": "x"})),
        ("send_keys", json!({"session": session, "keys": ["Enter"]})),
        ("manage_session", json!({"session": session, "action": "kill"})),
    ] {
        let error = refused(&mut client, tool, arguments).await;
        assert_eq!(error["error_code"], "policy_denied", "{tool}: {error}");
    }
    let ran = client.structured("run", json!({"session": session, "command": "true"})).await;
    assert_eq!(ran["exit_code"], 0);
    let rename = json!({"session": session, "action": "rename", "new_name": "other"});
    client.structured("manage_session", rename).await;
    let free = client.structured("create_session", json!({"command": "cat"})).await;
    let free = free["session"]["id"].as_str().unwrap();
    client.structured("send_text", json!({"session": free, "text": "x"})).await;
    let mut operator = daemon.operator().await;
    let kill = json!({"session": session, "action": "kill"});
    operator.structured("manage_session", kill).await;
    daemon.stop().await;
}

#[tokio::test]
async fn variables_of_a_new_session_are_judged_by_what_they_run() {
    let daemon = daemon_with(NO_RECURSIVE_RM).await;
    let mut client = daemon.client(Era::Modern).await;
    for (name, value, is_refused) in
        [("PROMPT_COMMAND", "rm -rf /nowhere", true), ("NOTE", "rm -rf /nowhere", false)]
    {
        for mut wanted in [json!({}), json!({"command": "cat"})] {
            wanted["env"] = json!({name: value});
            let created = client.call("create_session", wanted.clone()).await;
            assert_eq!(created["isError"], is_refused, "{wanted} {created}");
            if is_refused {
                assert_eq!(created["structuredContent"]["error_code"], "policy_denied");
            }
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_rule_allows_happens_as_the_default_says_and_reading_is_free() {
    let rules = r#"
        default = "deny"

        [[rule]]
        name = "sessions"
        effect = "allow"
        tool = ["create_session", "release_lease"]

        [[rule]]
        name = "look"
        effect = "allow"
        command = { program = ["ls", "echo"] }
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    let ran = client.structured("run", json!({"session": session, "command": "echo a; ls"})).await;
    assert_eq!(ran["exit_code"], 0);
    for (tool, arguments) in [
        ("run", json!({"session": session, "command": "echo a; cat"})),
        ("run", json!({"session": session, "command": "echo a > file"})),
        ("run", json!({"session": session, "command": "/tmp/ls"})),
        ("run", json!({"session": session, "command": "echo $(date)"})),
        ("send_text", json!({"session": session, "text": "cat x", "enter": true})),
        ("send_text", json!({"session": session, "text": "echo a"})),
        ("resize", json!({"session": session, "rows": 30, "cols": 90})),
        ("manage_session", json!({"session": session, "action": "kill"})),
    ] {
        let error = refused(&mut client, tool, arguments.clone()).await;
        assert_eq!(error["error_code"], "policy_denied", "{tool} {arguments}: {error}");
        assert_eq!(error["message"], "no rule allows this");
    }
    let screen = client.structured("read_screen", json!({"session": session})).await;
    assert!(screen["text"].is_string() || screen["lines"].is_array(), "{screen}");
    let listed = structured(&client.call("list_sessions", json!({})).await);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn nothing_is_allowed_by_its_name_where_the_client_says_where_programs_are() {
    let rules = r#"
        default = "deny"

        [[rule]]
        name = "cat"
        effect = "allow"
        command = { program = "cat" }
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let own = daemon.variable("PATH");
    for (argument, name, value, is_allowed) in [
        ("env_client", "PATH", "/nowhere", false),
        ("env_client", "PATH", &*own, true),
        ("env_client", "LANG", "C", true),
        ("env", "PATH", "/nowhere", false),
        ("env", "PATH", &*own, true),
        ("env", "LANG", "C", false),
    ] {
        let wanted = json!({"command": "cat", argument: {name: value}});
        let created = client.call("create_session", wanted.clone()).await;
        assert_eq!(created["isError"] == false, is_allowed, "{wanted} {created}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variable_with_the_value_that_a_session_has_anyway_changes_nothing() {
    let rules = r#"
        [[rule]]
        name = "no-rm"
        effect = "ask"
        command = { program = "rm", flags = ["recursive"] }
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let (path, home) = (daemon.variable("PATH"), daemon.variable("HOME"));
    for (variables, is_asked) in [
        (json!({"PATH": path, "HOME": home, "API_TOKEN": "x"}), false),
        (json!({"PATH": format!("/nowhere:{path}"), "HOME": home}), true),
        (json!({"HOME": "/nowhere"}), true),
        (json!({"LD_PRELOAD": "/nowhere.so"}), true),
        (json!({"BASH_ENV": ""}), true),
    ] {
        let created = client.call("create_session", json!({"env": variables})).await;
        assert_eq!(created["isError"] == true, is_asked, "{variables} {created}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_typed_whole_at_an_empty_prompt_is_judged_as_a_command() {
    let rules = r#"
        [[rule]]
        name = "no-rm"
        effect = "deny"
        command = { program = "rm" }

        [[rule]]
        name = "keys-at-prompts"
        effect = "deny"
        raw_input = true
        terminal = "prompt"
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    client.structured("run", json!({"session": session, "command": "true"})).await;
    let at_prompt = json!({"session": session, "idle_ms": 100, "timeout_ms": 20_000});
    client.structured("wait_for", at_prompt).await;
    for (text, rule) in [
        ("rm x\n", "no-rm"),
        ("rm x; ls\r", "no-rm"),
        ("ls", "keys-at-prompts"),
        ("ls\t\n", "keys-at-prompts"),
    ] {
        let arguments = json!({"session": session, "text": text});
        let error = refused(&mut client, "send_text", arguments).await;
        assert_eq!(error["error_code"], "policy_denied", "{text:?}: {error}");
        assert_eq!(error["details"]["rule"], rule, "{text:?}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_judged_where_it_ends_however_it_is_typed() {
    let rules = "[[rule]]\nname = 'no-rm'\neffect = 'deny'\ncommand = { program = 'rm' }";
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let created = client.structured("create_session", json!({"command": "bash"})).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    client.structured("run", json!({"session": session, "command": "true"})).await;
    let typed = |tool: &'static str, name: &str, value: &str| {
        let mut arguments = json!({"session": session, "until": {"idle_ms": 200}});
        arguments[name] = value.into();
        (tool, arguments)
    };
    // At the empty prompt, in one call.
    for (tool, arguments) in [
        typed("send_text", "text", "rm x\nls"),
        typed("send_keys", "keys", "r m Space x Enter"),
        ("send_text", json!({"session": session, "text": "cm0geAo=", "encoding": "base64"})),
    ] {
        let error = refused(&mut client, tool, arguments.clone()).await;
        assert_eq!(error["error_code"], "policy_denied", "{arguments}: {error}");
    }
    // In several calls: what stands before is a part of the line.
    let (tool, begun) = typed("send_text", "text", "rm ");
    client.structured(tool, begun).await;
    for (tool, arguments) in [
        typed("send_keys", "keys", "Enter"),
        typed("send_text", "text", "x\n"),
        typed("send_text", "text", "\r"),
        ("send_text", json!({"session": session, "text": "", "enter": true})),
    ] {
        let error = refused(&mut client, tool, arguments.clone()).await;
        assert_eq!(error["error_code"], "policy_denied", "{arguments}: {error}");
    }
    // What other keys make of it is not known.
    for keys in ["Up Enter", "Left Enter", "C-o", "M-a", "M-C-e", "C-x", "Escape"] {
        let (tool, mut arguments) = typed("send_keys", "keys", keys);
        // Nobody approves it.
        arguments["wait_ms"] = 1.into();
        let error = refused(&mut client, tool, arguments).await;
        assert_eq!(error["error_code"], "approval_required", "{keys}: {error}");
    }
    let (tool, emptied) = typed("send_keys", "keys", "C-u");
    client.structured(tool, emptied).await;
    let (tool, begun) = typed("send_text", "text", "echo fi");
    client.structured(tool, begun).await;
    let (tool, ended) = typed("send_text", "text", "ne\n");
    client.structured(tool, ended).await;
    // A key that ends a line for some programs removes a character for an editor, or does nothing.
    for key in ["C-d", "C-\\"] {
        for (tool, arguments) in [
            typed("send_text", "text", "xrm y"),
            typed("send_keys", "keys", "Home"),
            typed("send_keys", "keys", key),
        ] {
            client.structured(tool, arguments).await;
        }
        let (tool, ended) = typed("send_keys", "keys", "Enter");
        let error = refused(&mut client, tool, ended).await;
        assert_eq!(error["error_code"], "approval_required", "{key}: {error}");
        let (tool, emptied) = typed("send_keys", "keys", "C-c");
        client.structured(tool, emptied).await;
    }
    daemon.stop().await;
}

/// fish marks no other prompt for an interrupt at an empty one. A line that reaches the next row is one behind a prompt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_known_behind_an_interrupt_and_where_it_reaches_the_next_row() {
    let rules = "[[rule]]\nname = 'no-rm'\neffect = 'deny'\ncommand = { program = 'rm' }";
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    for command in ["bash", "zsh", "fish"].into_iter().filter(|it| is_installed(it)) {
        let new = json!({"command": command, "cols": 40});
        let created = client.structured("create_session", new).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        client.structured("run", json!({"session": session, "command": "true"})).await;
        let typed =
            |text: &str| json!({"session": session, "text": text, "until": {"idle_ms": 300}});
        let interrupt = json!({"session": session, "keys": "C-c", "until": {"idle_ms": 300}});
        client.structured("send_keys", interrupt).await;
        let written = client.structured("send_text", typed("true\n")).await;
        assert_eq!(written["written"], 5, "{command}: {written}");
        // fish draws its rows in a way of its own.
        let parts = if command == "fish" { 1 } else { 4 };
        for _ in 0..parts {
            client.structured("send_text", typed("true aaaa; ")).await;
        }
        let denied = refused(&mut client, "send_text", typed("rm x\n")).await;
        assert_eq!(denied["error_code"], "policy_denied", "{command}: {denied}");
        let written = client.structured("send_text", typed("true\n")).await;
        assert_eq!(written["written"], 5, "{command}: {written}");
    }
    daemon.stop().await;
}

/// fish ends quotes elsewhere, has escapes of its own, and runs what is between parentheses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_shell_may_read_in_another_way_is_not_known() {
    if !is_installed("fish") {
        return;
    }
    let rules = r#"
        default = "deny"
        unknown = "ask"

        [[rule]]
        name = "look"
        effect = "allow"
        command = { program = ["ls", "echo"] }

        [[rule]]
        name = "sessions"
        effect = "allow"
        tool = "create_session"

        [[rule]]
        name = "rm"
        effect = "ask"
        command = { program = "rm" }
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let created = client.structured("create_session", json!({"command": "fish"})).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    let run = |command: &str| json!({"session": session, "command": command, "timeout_ms": 1});
    let plain = json!({"session": session, "command": "echo 'a b'; ls -l"});
    assert_eq!(client.structured("run", plain).await["exit_code"], 0);
    for line in
        [r"echo 'x\' '; rm -rf build #'", r"\x72m -rf build", "echo (rm -rf build)", "ls >?x"]
    {
        let error = refused(&mut client, "run", run(line)).await;
        assert_eq!(error["error_code"], "approval_required", "{line}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("a shell of another syntax may read it"), "{line}: {message}");
    }
    let typed = json!({"session": session, "text": r"echo 'x\' '; rm -rf build #'", "enter": true});
    let error = refused(&mut client, "send_text", typed).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_a_program_leaves_to_the_shell_is_asked_about() {
    let rules = "[[rule]]\nname = 'no-rm'\neffect = 'deny'\ncommand = { program = 'rm' }";
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    let line = |text: &str| json!({"session": session, "text": text, "enter": true, "until": {"idle_ms": 100}});
    client.structured("send_text", line("sleep 1000")).await;
    client.structured("send_text", line("yes, and rm x")).await;
    for text in ["rm x", "echo a; rm x"] {
        let error = refused(&mut client, "send_text", line(text)).await;
        assert_eq!(error["error_code"], "approval_required", "{text}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with("a shell may run `rm` when it reads this"), "{message}");
    }
    client.structured("send_keys", json!({"session": session, "keys": "Up Enter"})).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_for_a_shell_inside_of_the_shell_is_judged_as_a_command() {
    let rules = "[[rule]]\nname = 'no-rm'\neffect = 'deny'\ncommand = { program = 'rm' }";
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let session = shell(&mut client).await;
    let typed = |text: &str| json!({"session": session, "text": text, "until": {"idle_ms": 100}});
    client.structured("send_text", typed("bash --norc\n")).await;
    client.structured("send_text", typed("true\n")).await;
    for (text, code) in [
        ("rm x\n", "policy_denied"),
        ("true; rm x\n", "policy_denied"),
        ("$X x\n", "approval_required"),
    ] {
        let error = refused(&mut client, "send_text", typed(text)).await;
        assert_eq!(error["error_code"], code, "{text:?}: {error}");
    }
    // Of a line that was begun before, it is not sure how it begins. What was typed is judged.
    client.structured("send_text", typed("r")).await;
    for (text, code) in [("m x\n", "policy_denied"), ("true\n", "approval_required")] {
        let error = refused(&mut client, "send_text", typed(text)).await;
        assert_eq!(error["error_code"], code, "{text:?}: {error}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_judge_by_who_calls_and_by_what_is_in_front_and_where() {
    let rules = r#"
        [[rule]]
        name = "client"
        effect = "deny"
        client = "**"
        tool = "resize"

        [[rule]]
        name = "token"
        effect = "deny"
        token = "**"

        [[rule]]
        name = "reader"
        effect = "deny"
        foreground = "cat"
        terminal = ["needs_input", "running"]

        [[rule]]
        name = "root"
        effect = "deny"
        directory = "/"
    "#;
    let daemon = daemon_with(rules).await;
    let mut client = daemon.client(Era::Modern).await;
    let size = |session: &str| json!({"session": session, "rows": 30, "cols": 90});
    let write = |session: &str| json!({"session": session, "text": "x"});
    let create = json!({"command": "exec cat", "cwd": "/tmp"});
    let created = client.structured("create_session", create).await;
    let cat = created["session"]["id"].as_str().unwrap().to_owned();
    let reads = json!({"session": cat, "needs_input": true, "timeout_ms": 20_000});
    client.structured("wait_for", reads).await;
    let root = json!({"command": "bash", "args": ["--norc"], "cwd": "/"});
    let created = client.structured("create_session", root).await;
    let root = created["session"]["id"].as_str().unwrap().to_owned();
    let at_prompt = json!({"session": root, "idle_ms": 300, "timeout_ms": 20_000});
    client.structured("wait_for", at_prompt).await;
    for (tool, arguments, rule) in [
        ("resize", size(&cat), "client"),
        ("send_text", write(&cat), "reader"),
        ("send_text", write(&root), "root"),
    ] {
        let error = refused(&mut client, tool, arguments).await;
        assert_eq!(error["details"]["rule"], rule, "{tool}: {error}");
    }
    let elsewhere = shell(&mut client).await;
    client.structured("send_text", write(&elsewhere)).await;
    daemon.stop().await;
}
