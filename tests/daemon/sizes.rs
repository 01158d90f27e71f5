//! How long the answers about commands are: whatever a program writes, they stay small, and say
//! what they leave out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, structured};
use crate::daemon::shells::Shell;

/// How many bytes a result has at most, for programs and models together.
const RESULT_BYTES_MAX: usize = 30_000;

/// What needs an escape in JSON, and what is wide or takes more bytes than columns.
const AWKWARD: &str = r#""\"\\"漢字"é̂́"\u{7f}"\""#;

/// A command that prints 2,000 lines of it.
const PRINTING: &str = "yes \"$(cat line)\" | head -n 2000";

/// Calls a tool that must succeed, and gives back its result once it was found to be small enough.
async fn small(shell: &mut Shell, tool: &str, mut arguments: Value) -> Value {
    arguments["session"] = json!(shell.session);
    let result = shell.client.call(tool, arguments.clone()).await;
    let bytes = result.to_string().len();
    assert!(bytes <= RESULT_BYTES_MAX, "{tool} {arguments}: {bytes} bytes");
    structured(&result)
}

/// A shell with a file `line` in its directory, whose name is long and has quotes.
async fn in_a_deep_directory(daemon: &TestDaemon) -> Shell {
    let mut shell = Shell::start(daemon, "bash").await;
    let deep = daemon.file("home").join(vec!["a\"deep\"directory"; 60].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("line"), format!("{AWKWARD}{AWKWARD}\n")).unwrap();
    shell.must(&format!("cd '{}'", deep.display()), 0, "").await;
    shell
}

/// Runs so many commands of 1 KB, most of it quotes.
async fn run_long_ones(shell: &mut Shell, count: usize) {
    for _ in 0..count {
        shell.must(&format!("true '{}'", "\"\\".repeat(500)), 0, "").await;
    }
}

/// How many lines of the output an answer shows, besides the one that stands for the others.
fn shown(told: &Value) -> u64 {
    let lines = told["output"].as_str().unwrap().lines();
    lines.filter(|line| !line.starts_with("[… ")).count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_printed_is_told_as_far_as_there_is_room_and_the_rest_is_counted() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    let command = json!({"command": PRINTING, "max_lines": 2_000});
    let ran = small(&mut shell, "run", command).await;
    let id = ran["command_id"].clone();
    let mut all = vec![ran];
    for ends in [json!({}), json!({"head": 2_000}), json!({"tail": 2_000})] {
        let mut one = ends;
        one["id"] = id.clone();
        all.push(small(&mut shell, "read_commands", one).await);
    }
    for told in all {
        let left_out = told["lines_left_out"].as_u64().unwrap();
        assert_eq!(told["lines_total"], 2_000, "{told}");
        assert_eq!(shown(&told) + left_out, 2_000, "{told}");
        assert!(shown(&told) > 40, "{}: room is made use of", shown(&told));
        assert!(told["rest"].as_str().unwrap().ends_with(&format!("/command/{id}/output")));
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_long_commands_in_a_deep_directory_are_listed_in_one_answer() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 20).await;
    let list = small(&mut shell, "read_commands", json!({})).await;
    let commands = list["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 20);
    for command in commands {
        assert_eq!(command["cut"], true, "{command}");
        assert!(command["command"].as_str().unwrap().ends_with('…'), "{command}");
        assert!(command["cwd"].as_str().unwrap().ends_with('…'), "{command}");
    }
    let last = commands[19]["command_id"].clone();
    let one = small(&mut shell, "read_commands", json!({"id": last})).await;
    let one = &one["commands"][0];
    assert_eq!(one["cut"], Value::Null, "{one}");
    assert!(one["command"].as_str().unwrap().len() > 1_000, "{one}");
    assert!(one["cwd"].as_str().unwrap().ends_with("directory"), "{one}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_commands_are_found_by_going_on_before_the_oldest_one_told() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 59).await;
    let mut found = BTreeSet::new();
    let mut page = json!({"limit": 100});
    loop {
        let list = small(&mut shell, "read_commands", page.clone()).await;
        let commands = list["commands"].as_array().unwrap();
        let ids = commands.iter().map(|command| command["command_id"].as_u64().unwrap());
        let told = ids.clone().count();
        assert!(told > 0, "{list}");
        let before = found.len();
        found.extend(ids);
        assert_eq!(found.len(), before + told, "none is told twice");
        let left = list["older"].as_u64().unwrap_or_default();
        assert_eq!(left, 60 - found.len() as u64, "{list}");
        if left == 0 {
            break;
        }
        page["before"] = commands[0]["command_id"].clone();
    }
    assert_eq!(found, (1..=60).collect());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_as_a_resource_is_bounded_and_says_how_many_it_leaves_out() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 39).await;
    let uri = format!("termgate://session/{}/commands", shell.session);
    let read = shell.client.request("resources/read", json!({"uri": uri})).await.unwrap();
    assert!(read.to_string().len() <= RESULT_BYTES_MAX, "{}", read.to_string().len());
    let list: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let commands = list["commands"].as_array().unwrap();
    assert!(commands.len() >= 10, "{}", commands.len());
    assert_eq!(commands.last().unwrap()["command_id"], 40);
    assert_eq!(list["older"], 40 - commands.len());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_tells_no_more_of_wide_rows_than_there_is_room_for() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let line = format!(
        "for i in $(seq 30); do printf '%s\\n' '{}END'; done; sleep 300",
        "\"\\".repeat(480)
    );
    let arguments = json!({"command": "sh", "args": ["-c", line], "cols": 1_000});
    let created = client.structured("create_session", arguments).await;
    let session = created["session"]["id"].clone();
    for wanted in [json!({"pattern": "END"}), json!({"idle_ms": 50})] {
        let mut arguments = wanted;
        arguments["session"] = session.clone();
        arguments["since"] = json!(0);
        let result = client.call("wait_for", arguments).await;
        let bytes = result.to_string().len();
        assert!(bytes <= RESULT_BYTES_MAX, "{bytes}");
        let waited = structured(&result);
        let last = waited["last_rows"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(last.ends_with("[… 463 more bytes of this line]"), "{last}");
    }
    daemon.stop().await;
}
