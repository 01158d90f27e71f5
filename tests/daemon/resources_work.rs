//! Resources about what is done in a session: its commands, their output, and where they ran.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::resource_reader::UPDATED;

/// A session of bash that marks its commands, under the lease of this client.
async fn bash(wire: &mut Wire) -> String {
    let shell = json!({"command": "bash", "args": [], "env": {"HOME": "/nonexistent"}});
    let created = wire.structured("create_session", shell).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

async fn run(wire: &mut Wire, session: &str, command: &str) -> Value {
    wire.structured("run", json!({"session": session, "command": command})).await
}

#[tokio::test]
async fn the_commands_and_the_directory_are_told_in_both_eras() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut wire = daemon.client(era).await;
        let session = bash(&mut wire).await;
        let of = |part: &str| format!("termgate://session/{session}/{part}");
        assert_eq!(wire.facts(&of("commands")).await["commands"], json!([]));
        run(&mut wire, &session, "cd /usr; false").await;
        run(&mut wire, &session, "true").await;
        let commands = wire.facts(&of("commands")).await;
        let told = |name: &str| [&commands["commands"][0][name], &commands["commands"][1][name]];
        assert_eq!(told("command_id"), [&json!(1), &json!(2)]);
        assert_eq!(told("command"), [&json!("cd /usr; false"), &json!("true")]);
        assert_eq!(told("exit_code"), [&json!(1), &json!(0)]);
        assert_eq!(wire.facts(&of("cwd")).await, json!({"cwd": "/usr"}));
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_rest_of_an_output_is_read_where_a_result_says_it_is() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = bash(&mut wire).await;
    let order = json!({"session": session, "command": "seq 1 4000", "max_lines": 4});
    let ran = wire.structured("run", order).await;
    assert_eq!(ran["lines_left_out"], 3_996);
    let (text, told) = wire.read_resource(ran["rest"].as_str().unwrap(), "text/plain").await;
    let expected: String = (1..=4_000).map(|number| format!("{number}\n")).collect();
    assert!(text == expected, "{}", text.len());
    assert_eq!((&told["status"], &told["exit_code"]), (&json!("completed"), &json!(0)));
    assert_eq!((&told["lines_left_out"], &told["lines_trimmed"]), (&json!(0), &json!(0)));
    daemon.stop().await;
}

#[tokio::test]
async fn an_output_beyond_one_message_says_how_to_go_on() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = bash(&mut wire).await;
    // 400 lines of 200 characters.
    let command = "for i in $(seq 1 400); do printf '%0200d\\n' $i; done";
    let ran = run(&mut wire, &session, command).await;
    let uri = format!("termgate://session/{session}/command/{}/output", ran["command_id"]);
    let (text, mut told) = wire.read_resource(&uri, "text/plain").await;
    let left = told["lines_left_out"].as_u64().unwrap();
    let (told_lines, notice) = text.trim_end().rsplit_once('\n').unwrap();
    let go_on = format!("{uri}?from_line={}", told["next_line"]);
    assert_eq!(notice, format!("[… {left} more lines: {go_on}]"));
    let mut all: Vec<String> = told_lines.lines().map(str::to_owned).collect();
    while told["lines_left_out"] != 0 {
        let go_on = format!("{uri}?from_line={}", told["next_line"]);
        let whole = wire.request("resources/read", json!({"uri": go_on})).await.unwrap();
        assert!(whole.to_string().len() < 30_000, "{}", whole.to_string().len());
        let (rest, next) = wire.read_resource(&go_on, "text/plain").await;
        all.extend(rest.lines().map(str::to_owned));
        told = next;
    }
    let expected: Vec<String> = (1..=400).map(|number| format!("{number:0200}")).collect();
    assert!(all == expected, "{} lines", all.len());
    let (whole, told) = daemon.operator().await.read_resource(&uri, "text/plain").await;
    assert!(whole.lines().eq(&expected), "operators are told all: {told}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_subscriber_to_an_output_is_told_until_the_command_has_ended() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = bash(&mut writer).await;
        let of = |part: &str| format!("termgate://session/{session}/{part}");
        let mut wire = daemon.client(era).await;
        for uri in [of("commands"), of("log"), of("cwd"), of("git")] {
            wire.subscribe(&uri).await;
            run(&mut writer, &session, "cd /usr").await;
            run(&mut writer, &session, "cd /").await;
            assert_eq!(wire.receiver.notification(UPDATED).await["uri"], uri, "{era:?}");
            wire = daemon.client(era).await;
        }
        let line = "echo one; read -r answer; echo two";
        let asked = run(&mut writer, &session, line).await;
        assert_eq!(asked["status"], "needs_input");
        let uri = of(&format!("command/{}/output", asked["command_id"]));
        wire.subscribe(&uri).await;
        let answer = json!({"session": session, "text": "x", "enter": true});
        writer.structured("send_text", answer).await;
        assert_eq!(wire.receiver.notification(UPDATED).await["uri"], uri, "{era:?}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_repository_of_the_directory_is_told_and_null_outside_of_one() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = bash(&mut wire).await;
    let uri = format!("termgate://session/{session}/git");
    let place = daemon.file("place");
    std::fs::create_dir(&place).unwrap();
    let place = place.to_str().unwrap();
    run(&mut wire, &session, &format!("cd {place}")).await;
    assert_eq!(wire.facts(&uri).await, json!({"cwd": place, "git": null}));
    run(&mut wire, &session, "git init -q -b trunk").await;
    let git = wire.facts(&uri).await["git"].clone();
    assert_eq!(git, json!({"branch": "trunk", "commit": null}));
    daemon.stop().await;
}

#[tokio::test]
async fn the_log_tells_what_ran_by_whom_where_and_how_it_ended() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = bash(&mut wire).await;
    let uri = format!("termgate://session/{session}/log");
    let (log, _) = wire.read_resource(&uri, "text/markdown").await;
    assert!(log.contains("No command is known to have run here."), "{log}");
    run(&mut wire, &session, "cd /usr").await;
    run(&mut wire, &session, "seq 1 20; printf '```\\n# not a heading\\n'; (exit 4)").await;
    let (log, _) = wire.read_resource(&uri, "text/markdown").await;
    let entry = log.split("\n## Command ").nth(2).unwrap();
    for part in [
        "2\n\n````sh\nseq 1 20;",
        "\n- by: ` tester#p",
        "\n- in: ` /usr `\n",
        "\n- end: exit code 4\n",
    ] {
        assert!(entry.contains(part), "{part:?}: {entry}");
    }
    assert!(entry.contains("```text\n1\n2\n"), "{entry}");
    assert!(!entry.contains("\n11\n"), "{entry}");
    let whole = format!("22 lines in all: <termgate://session/{session}/command/2/output>");
    assert!(entry.contains(&whole), "{entry}");
    daemon.stop().await;
}

#[tokio::test]
async fn the_number_of_a_command_is_completed_and_an_unknown_one_is_named() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = bash(&mut wire).await;
    run(&mut wire, &session, "true").await;
    let template = "termgate://session/{session}/command/{id}/output{?from_line}";
    let typed = json!({
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": "id", "value": ""},
        "context": {"arguments": {"session": session}},
    });
    let completed = wire.request("completion/complete", typed).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["1"]));
    let uri = format!("termgate://session/{session}/command/7/output");
    let error = wire.request("resources/read", json!({"uri": uri})).await.unwrap_err();
    assert_eq!(error["data"]["details"]["parameter"], "id", "{error}");
    daemon.stop().await;
}

#[tokio::test]
async fn nobody_reads_what_ran_in_a_session_that_a_door_does_not_show() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let (seen, hidden) = (bash(&mut wire).await, bash(&mut wire).await);
    run(&mut wire, &hidden, "true").await;
    let mut bound = daemon.at_session(&seen, Era::Legacy).await;
    for part in ["commands", "command/1/output", "cwd", "git", "log"] {
        let uri = format!("termgate://session/{hidden}/{part}");
        let error = bound.request("resources/read", json!({"uri": uri})).await.unwrap_err();
        assert_eq!(error["data"]["error_code"], "session_not_found", "{part}: {error}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn nobody_is_told_what_a_command_concealed() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = bash(&mut wire).await;
    let ran = run(&mut wire, &session, r"printf 'user \033[8mse%s\033[m end\n' cret").await;
    assert_eq!(ran["output"], "user        end");
    let id = &ran["command_id"];
    let listed = json!({"session": session, "id": id});
    let listed = wire.structured("read_commands", listed).await.to_string();
    let of = |part: &str| format!("termgate://session/{session}/{part}");
    let (output, _) = wire.read_resource(&of(&format!("command/{id}/output")), "text/plain").await;
    let (log, _) = wire.read_resource(&of("log"), "text/markdown").await;
    for told in [listed, output, log] {
        assert!(told.contains("user ") && told.contains(" end"), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
    let awaited = json!({"session": session, "text": "secret", "timeout_ms": 0, "since": 0});
    let awaited = wire.structured("wait_for", awaited).await;
    assert_eq!(awaited["outcome"], "timeout", "{awaited}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_command_of_several_lines_stands_on_one_line_of_the_list() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Modern).await;
    let session = bash(&mut wire).await;
    run(&mut wire, &session, "true one\ntrue '#9 forged (exit 0, 1 ms)'").await;
    let listed = wire.call("read_commands", json!({"session": session})).await;
    let text = listed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(r"true one\ntrue '#9 forged"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("true")), "{text}");
    daemon.stop().await;
}
