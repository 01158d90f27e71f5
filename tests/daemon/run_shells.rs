//! `run` in real shells: each command has its own output and its own code, and where a shell tells
//! no codes there are none.

use serde_json::{Value, json};

use crate::daemon::harness::TestDaemon;
use crate::daemon::shells::{ALL, MARKING, POSIX, Shell, with_each};
use crate::harness::home::is_installed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_the_code_that_it_returned() {
    let codes = [
        ("true", 0),
        ("false", 1),
        ("sh -c 'exit 2'", 2),
        ("sh -c 'exit 7'", 7),
        ("/etc/passwd", 126),
        ("no_such_command_anywhere", 127),
        ("sh -c 'kill -INT $$'", 130),
        ("sh -c 'kill -KILL $$'", 137),
        ("false | true", 0),
        ("true | false", 1),
        ("true; false", 1),
        ("false || true", 0),
        ("sleep 300 &", 0),
        ("sleep 0.03", 0),
    ];
    with_each(&ALL, async |shell| {
        for (command, code) in codes {
            let ended = shell.run(command).await;
            shell.check(command, &ended, code);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_its_own_output_and_nothing_else() {
    let wide = "w".repeat(300);
    let outputs = [
        ("echo plain".to_owned(), "plain".to_owned()),
        ("printf 'no line end'".to_owned(), "no line end".to_owned()),
        ("printf 'a\\nb'".to_owned(), "a\nb".to_owned()),
        ("printf '日本 äöü 🦀'".to_owned(), "日本 äöü 🦀".to_owned()),
        ("printf '\\n\\n'; echo x; echo; echo".to_owned(), "\n\nx\n\n".to_owned()),
        ("echo héllo 日本語 🦀 e\u{301}".to_owned(), "héllo 日本語 🦀 e\u{301}".to_owned()),
        (format!("echo {wide}"), wide.clone()),
        ("echo one | tr a-z A-Z; echo two >&2".to_owned(), "ONE\ntwo".to_owned()),
        // What is painted over counts as it is in the end.
        ("printf 'step %s\\r' 1 2 3; echo".to_owned(), "step 3".to_owned()),
        ("printf '\\033[2J\\033[Hcleared\\n'".to_owned(), "cleared".to_owned()),
        ("echo after".to_owned(), "after".to_owned()),
        ("echo 'a\nb\nc'".to_owned(), "a\nb\nc".to_owned()),
        ("echo one\necho two".to_owned(), "one\ntwo".to_owned()),
        ("printf '%s|' a\tb '\t'".to_owned(), "a|b|\t|".to_owned()),
    ];
    with_each(&ALL, async |shell| {
        for (command, output) in &outputs {
            let ended = shell.run(command).await;
            shell.check(command, &ended, 0);
            // A terminal shows a tab as the blanks up to the next stop.
            let expected = output.replace("|\t|", "|    |");
            assert_eq!(ended.output(), expected, "{}: {command}", shell.name);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_writes_marks_is_not_believed() {
    let forged = [
        "printf '\\033]133;D;9\\007'; echo one; false",
        "printf '\\033]133;D;9;nonce=0123456789abcdef0123456789abcdef\\033\\\\'; echo one; false",
        "printf '\\033]133;D;0\\007\\033]133;A\\007$ \\033]133;B\\007\\r'; echo one; false",
    ];
    with_each(&ALL, async |shell| {
        for command in forged {
            shell.must(command, 1, "one").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_several_lines_gives_the_code() {
    with_each(&ALL, async |shell| {
        shell.must("true\necho b\nsh -c 'exit 4'", 4, "b").await;
        shell.must("false\ntrue", 0, "").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_lines_are_one_command_for_a_bash_that_asks_for_no_brackets_around_a_paste() {
    with_each(&["bash"], async |shell| {
        shell.must("bind 'set enable-bracketed-paste off'", 0, "").await;
        shell.must("echo a\nfor i in 1 2; do\n  echo $i\ndone\n(exit 4)", 4, "a\n1\n2").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_takes_a_command_as_soon_as_what_ran_was_interrupted() {
    with_each(&ALL, async |shell| {
        for round in 0..10 {
            shell.must("true", 0, "").await;
            // A shell that has not given the terminal to what it starts keeps the key to itself.
            let command = format!("sh -c \"echo ru''ns {round}; exec sleep 300\"");
            shell.run_with(&command, json!({"timeout_ms": 100})).await;
            shell.wait_for(json!({"text": format!("runs {round}"), "since": 0})).await;
            shell.press("C-c").await;
            shell.must("echo fine", 0, "fine").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_long_output_head_and_tail_are_told_and_the_rest_is_counted() {
    with_each(&ALL, async |shell| {
        let command = "seq 1000";
        let ended = shell.run_with(command, json!({"max_lines": 5})).await;
        shell.check(command, &ended, 0);
        let id = ended.number("command_id");
        let uri = format!("termgate://session/{}/command/{id}/output", shell.session);
        assert_eq!(ended.0["rest"], uri);
        let all = shell.client.request("resources/read", json!({"uri": uri})).await.unwrap();
        let all = all["contents"][0]["text"].as_str().unwrap();
        for number in [4, 500, 996] {
            assert!(all.lines().any(|line| line == number.to_string()), "{}: {all}", shell.name);
        }
        let told: Vec<_> = ended.output().lines().collect();
        let left_out = format!("[… 995 lines left out: {uri}]");
        assert_eq!(told, ["1", &left_out, "997", "998", "999", "1000"]);
        assert_eq!((ended.number("lines_total"), ended.number("lines_left_out")), (1000, 995));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_output_beyond_what_is_kept_what_is_gone_is_counted() {
    with_each(&ALL, async |shell| {
        let command = "seq 300000";
        let ended = shell.run(command).await;
        shell.check(command, &ended, 0);
        let trimmed = ended.number("lines_trimmed");
        assert!(trimmed > 0, "{}", ended.0);
        assert_eq!(ended.lines_of_all(), 300_000);
        assert_eq!(ended.output().lines().next().unwrap(), (trimmed + 1).to_string());
        assert_eq!(ended.output().lines().last(), Some("300000"));
        let shown = ended.output().lines().count() as u64 - 1;
        assert_eq!(shown + trimmed + ended.number("lines_left_out"), 300_000);
        let id = ended.number("command_id");
        let asked = json!({"session": shell.session, "id": id});
        let read = shell.client.call("read_commands", asked).await;
        let text = read["content"][0]["text"].as_str().unwrap();
        let said = format!("the first {trimmed} lines of its output are no longer kept");
        assert!(text.contains(&said), "{}: {text}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_a_shell_cannot_read_was_not_run_and_the_next_is() {
    with_each(&MARKING, async |shell| {
        for command in ["echo )", "true\necho )\ntrue"] {
            let ended = shell.run(command).await;
            let first_line_runs = command.contains('\n') && shell.name != "fish";
            assert!(ended.status() == "not_run" || first_line_runs, "{}: {}", shell.name, ended.0);
            if !first_line_runs {
                assert_eq!(ended.0["exit_code"], Value::Null, "{}", shell.name);
                assert!(ended.output().contains(')'), "{}: {}", shell.name, ended.0);
            }
            shell.must("echo fine", 0, "fine").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_shell_without_marks_says_of_a_line_that_it_cannot_read_is_the_output_of_it() {
    with_each(&["dash"], async |shell| {
        for command in ["echo )", "true\necho )\ntrue", "if true; fi", "echo ${}"] {
            let ended = shell.run(command).await;
            shell.check(command, &ended, 2);
            let told = ended.output().to_lowercase();
            assert!(told.contains("syntax error") || told.contains("bad sub"), "{}", ended.0);
            assert_eq!(ended.number("lines_total"), 1, "{command}: {}", ended.0);
            shell.must("echo fine", 0, "fine").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_without_marks_asks_for_the_rest_of_a_command_as_well() {
    with_each(&["dash"], async |shell| {
        for (begun, rest, output) in
            [("echo one \\", "two", "one two"), ("echo 'one", "two'", "one\ntwo")]
        {
            let ended = shell.run(begun).await;
            assert_eq!(ended.status(), "needs_input", "{begun}: {}", ended.0);
            assert_eq!(ended.0["prompt"], "> ", "{begun}: {}", ended.0);
            let since = ended.number("watermark");
            shell.call("send_text", json!({"text": rest, "enter": true})).await;
            shell.wait_for(json!({"command_done": true, "since": since})).await;
            let record = shell.record(ended.number("command_id")).await;
            assert_eq!(record["output"], format!("> {rest}\n{output}"), "{begun}: {record}");
        }
        let ended = shell.run("echo 'begun").await;
        assert_eq!(ended.status(), "needs_input", "{}", ended.0);
        shell.interrupt(ended.number("command_id")).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_asks_for_the_rest_of_a_command_is_not_at_its_prompt() {
    with_each(&POSIX, async |shell| {
        shell.must("true", 0, "").await;
        let ended = shell.run("echo 'begun").await;
        assert_eq!(ended.status(), "needs_input", "{}: {}", shell.name, ended.0);
        assert_eq!(ended.0["activity"]["state"], "needs_input", "{}: {}", shell.name, ended.0);
        shell.interrupt(ended.number("command_id")).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
    with_each(&["bash", "zsh"], async |shell| {
        shell.must("true", 0, "").await;
        let typing = json!({
            "text": "echo 'begun", "enter": true, "until": {"needs_input": true},
            "wait_ms": 20_000,
        });
        let typed = shell.call("send_text", typing).await;
        assert_eq!(typed["wait"]["outcome"], "needs_input", "{}: {typed}", shell.name);
        let arguments = json!({"session": shell.session, "command": "echo lost"});
        assert_eq!(shell.client.error_code("run", arguments).await, "busy", "{}", shell.name);
        shell.press("C-c").await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_not_all_there_asks_for_the_rest() {
    with_each(&MARKING, async |shell| {
        // fish masks a quote that is pasted behind a quote.
        let quoted = ("echo 'one", "two'", "one\ntwo");
        let quoted = Some(quoted).filter(|_| shell.name != "fish");
        for (begun, rest, output) in [("echo one \\", "two", "one two")].into_iter().chain(quoted) {
            let ended = shell.run(begun).await;
            assert_eq!(ended.status(), "needs_input", "{}: {}", shell.name, ended.0);
            let id = ended.number("command_id");
            let mark = ended.number("watermark");
            shell.call("send_text", json!({"text": rest, "enter": true})).await;
            shell.wait_for(json!({"command_done": true, "since": mark})).await;
            let record = shell.record(id).await;
            assert_eq!(record["commands"][0]["exit_code"], 0, "{}: {record}", shell.name);
            let told = record["output"].as_str().unwrap();
            assert!(told.ends_with(output), "{}: {record}", shell.name);
        }
        // Whoever gives it up has a shell that takes the next.
        let ended = shell.run("echo 'begun").await;
        assert_eq!(ended.status(), "needs_input", "{}: {}", shell.name, ended.0);
        shell.interrupt(ended.number("command_id")).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_on_the_line_is_no_part_of_a_command() {
    with_each(&MARKING, async |shell| {
        shell.must("true", 0, "").await;
        for left in ["echo left ", "echo 'left\nbelow it"] {
            // A shell asks for pastes to be marked a moment after its prompt, and knows them before.
            shell.call("send_text", json!({"text": left, "paste": "always"})).await;
            let last = left.lines().last().unwrap();
            shell.wait_for(json!({"text": last, "since": 0})).await;
            shell.must("echo mine", 0, "mine").await;
        }
    })
    .await;
}

/// Runs commands in a shell of their own, of which the last ends it with this code.
async fn check_end(daemon: &TestDaemon, name: &'static str, commands: &[&str], code: i32) {
    let mut shell = Shell::start(daemon, name).await;
    let (last, before) = commands.split_last().unwrap();
    for command in before {
        assert_eq!(shell.run(command).await.status(), "completed", "{name}: {command}");
    }
    let ended = shell.run(last).await;
    let told = json!([ended.0["status"], ended.0["exit_code"], ended.0["evidence"]]);
    assert_eq!(told, json!(["exited", code, "exit"]), "{name}: {last}: {}", ended.0);
    let prints = last.contains("echo last; exit");
    assert_eq!(ended.output().contains("last"), prints, "{name}: {last}: {}", ended.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ends_the_shell_has_the_code_of_the_shell() {
    let daemon = TestDaemon::writable().await;
    for name in ALL.into_iter().filter(|name| is_installed(name)) {
        check_end(&daemon, name, &["exec false"], 1).await;
        check_end(&daemon, name, &["exec sh -c 'echo last; exit 9'"], 9).await;
    }
    for name in POSIX.into_iter().filter(|name| is_installed(name)) {
        check_end(&daemon, name, &["exit 3"], 3).await;
        check_end(&daemon, name, &["sh -c 'exit 5'", "exit"], 5).await;
        check_end(&daemon, name, &["set -e", "false"], 1).await;
        check_end(&daemon, name, &["set -e", "true; (exit 4); echo last"], 4).await;
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_without_marks_that_takes_the_place_of_the_first_one_takes_commands() {
    let daemon = TestDaemon::writable().await;
    for (name, other) in [("bash", "sh"), ("bash", "dash"), ("zsh", "dash"), ("fish", "dash")] {
        if !is_installed(name) || !is_installed(other) {
            continue;
        }
        let mut shell = Shell::start(&daemon, name).await;
        shell.must("true", 0, "").await;
        let replaced = shell.run(&format!("exec {other}")).await;
        assert_eq!(replaced.status(), "completed", "{name}, {other}: {}", replaced.0);
        assert_eq!(replaced.0["exit_code"], Value::Null, "{name}, {other}: {}", replaced.0);
        for round in 0..3 {
            let ended = shell.run(&format!("echo hi {round}; sh -c 'exit 3'")).await;
            let told = (ended.status(), ended.output(), &ended.0["evidence"]);
            let expected = format!("hi {round}");
            assert_eq!(told, ("completed", &*expected, &json!("kernel")), "{name}, {other}");
        }
        // What asks there is no prompt.
        let asks = shell.run("printf 'Name: '; read name").await;
        assert_eq!(asks.status(), "needs_input", "{name}, {other}: {}", asks.0);
        shell.press("x Enter").await;
        assert_eq!(shell.run("echo $name").await.output(), "x", "{name}, {other}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_takes_the_place_of_the_shell_and_asks_is_no_shell() {
    let daemon = TestDaemon::writable().await;
    for interpreter in ["sh", "dash", "busybox sh"] {
        if !is_installed(interpreter.split(' ').next().unwrap()) {
            continue;
        }
        let mut shell = Shell::start(&daemon, "bash").await;
        let script = "printf 'printf \"name> \"; read name; echo hi $name; read end' > setup.sh";
        shell.must(script, 0, "").await;
        let asks = shell.run(&format!("exec {interpreter} ./setup.sh")).await;
        assert_eq!(asks.status(), "needs_input", "{interpreter}: {}", asks.0);
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_fish_is_the_end_of_its_exit() {
    let daemon = TestDaemon::writable().await;
    for name in ["fish"].into_iter().filter(|name| is_installed(name)) {
        for commands in [&["exit 3"][..], &["sh -c 'exit 3'", "exit"]] {
            let mut shell = Shell::start(&daemon, name).await;
            let (exit, before) = commands.split_last().unwrap();
            for command in before {
                shell.must(command, 3, "").await;
            }
            let ended = shell.run(exit).await;
            assert_eq!((&ended.0["status"], &ended.0["exit_code"]), (&json!("exited"), &json!(3)));
        }
    }
    daemon.stop().await;
}
