//! `run` and programs that ask, hide what is typed, take the whole screen or have a prompt of their
//! own.

use std::fs;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, structured};
use crate::daemon::shells::{ALL, Ended, Shell, with_each};
use crate::harness::home::is_installed;
use crate::harness::waiting::soon;

/// What nobody may find anywhere.
const SECRET: &str = "hunter2-correct-horse";

/// Programs that ask for a secret, as they are started, and what they show first.
const SECRET_PROMPTS: [(&str, &str); 3] = [
    (
        "sh -c 'stty -echo; printf \"[sudo] password for me: \"; read x; stty echo; echo; exit 5'",
        "[sudo] password for me: ",
    ),
    (
        "sh -c 'printf \"me@host s password: \"; stty -echo; read x; stty echo; echo; exit 5'",
        "me@host s password: ",
    ),
    ("python3 -c 'import getpass, sys; getpass.getpass(); sys.exit(5)'", "Password: "),
];

impl Shell {
    /// Runs a command that must come to ask for something.
    async fn asks(&mut self, command: &str, state: &str) -> Ended {
        let ended = self.run(command).await;
        assert_eq!(ended.status(), "needs_input", "{}: {command}: {}", self.name, ended.0);
        assert_eq!(ended.0["activity"]["state"], state, "{}: {command}: {}", self.name, ended.0);
        ended
    }

    /// Waits for the end of a command that was run, which must have this code.
    async fn ends(&mut self, begun: &Ended, code: i32) -> Value {
        let id = begun.number("command_id");
        let since = begun.number("watermark");
        let waited = self.wait_for(json!({"command_done": true, "since": since})).await;
        assert_eq!(waited["outcome"], "command_done", "{waited}");
        let record = self.record(id).await;
        let code = json!(code);
        assert_eq!(record["commands"][0]["exit_code"], code, "{}: {record}", self.name);
        record
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_prompt_is_told_with_its_question_and_the_answer_is_in_no_result() {
    with_each(&ALL, async |shell| {
        for (command, question) in SECRET_PROMPTS {
            let begun = shell.asks(command, "secret_prompt").await;
            assert_eq!(begun.0["prompt"], question, "{}: {command}", shell.name);
            assert_eq!(begun.0["evidence"], "kernel");
            let typed = shell.call("send_text", json!({"text": SECRET, "enter": true})).await;
            let record = shell.ends(&begun, 5).await;
            let listed = shell.call("list_sessions", json!({})).await;
            let screen = shell.call("read_screen", json!({})).await;
            let history = shell.call("read_history", json!({})).await;
            let commands = shell.call("read_commands", json!({})).await;
            for told in [typed, record, listed, screen, history, commands] {
                assert!(!told.to_string().contains(SECRET), "{}: {told}", shell.name);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_without_echo_is_a_secret_prompt_of_the_shell_itself() {
    with_each(&["bash", "zsh"], async |shell| {
        let begun = shell.asks("read -s answer", "secret_prompt").await;
        shell.call("send_text", json!({"text": SECRET, "enter": true})).await;
        let record = shell.ends(&begun, 0).await;
        assert!(!record.to_string().contains(SECRET));
        shell.must(&format!("test ${{#answer}} = {}", SECRET.len()), 0, "").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_reads_a_line_is_told_with_its_question() {
    with_each(&ALL, async |shell| {
        let question = "sh -c 'printf \"Go on? \"; read x; echo \"<$x>\"; exit 4'";
        let begun = shell.asks(question, "needs_input").await;
        assert_eq!(begun.0["prompt"], "Go on? ", "{}", shell.name);
        shell.call("send_text", json!({"text": "yes", "enter": true})).await;
        let record = shell.ends(&begun, 4).await;
        assert_eq!(record["output"], "Go on? yes\n<yes>", "{}", shell.name);
        let begun = shell.asks("cat", "needs_input").await;
        shell.call("send_text", json!({"text": "line", "enter": true})).await;
        shell.press("C-d").await;
        let record = shell.ends(&begun, 0).await;
        assert_eq!(record["output"], "line\nline", "{}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_the_whole_screen_waits_for_keys_and_leaves_no_output() {
    for (command, program, keys) in
        [("vim -u NONE", "vim", ": q ! Enter"), ("seq 500 | less", "less", "q")]
    {
        if !is_installed(program) {
            continue;
        }
        with_each(&ALL, async |shell| {
            let begun = shell.asks(command, "full_screen").await;
            assert_eq!(begun.0["full_screen"], true, "{}: {}", shell.name, begun.0);
            shell.press(keys).await;
            let record = shell.ends(&begun, 0).await;
            assert_eq!(record["commands"][0]["full_screen"], true, "{record}");
            assert_eq!(record["output"], "", "{}: {command}", shell.name);
            shell.must("echo fine", 0, "fine").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_computes_neither_asks_nor_has_ended() {
    let work = "awk 'BEGIN { while (n < 3e7) n++ }'";
    with_each(&ALL, async |shell| {
        let looped = "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; echo done";
        if shell.name != "fish" {
            shell.must(looped, 0, "done").await;
        }
        shell.must(&format!("printf 'Loading: '; {work}; echo done"), 0, "Loading: done").await;
        shell.must(&format!("printf '[##   ]'; {work}; echo"), 0, "[##   ]").await;
        shell.must(&format!("stty -echo; {work}; stty echo; echo heard"), 0, "heard").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vim_that_asks_the_terminal_at_its_start_is_typed_nothing() {
    if !is_installed("vim") {
        return;
    }
    with_each(&["bash"], async |shell| {
        shell
            .must("export HOME=$PWD; mkdir own && cd own && echo mine > a && echo its > b", 0, "")
            .await;
        // With what it copied in the one file at hand, it would paste that into the other.
        for (file, keys) in [("a", "y y"), ("b", "")] {
            let begun = shell.asks(&format!("vim {file}"), "full_screen").await;
            shell.wait_for(json!({"text": format!("\"{file}\""), "since": 0})).await;
            shell.press(format!("{keys} : w q Enter").trim_start()).await;
            shell.ends(&begun, 0).await;
        }
        shell.must("cat b", 0, "its").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_in_an_interpreter_is_known_by_its_prompt_and_the_answer_says_so() {
    with_each(&ALL, async |shell| {
        let outer = shell.asks("python3 -q", "needs_input").await;
        assert_eq!(outer.0["prompt"], ">>> ", "{}", outer.0);
        for (command, output) in [
            ("6 * 7", "42"),
            ("print('a\\nb')", "a\nb"),
            ("x = 1", ""),
            ("for i in range(2): print(i)\n", "0\n1"),
            ("import time; time.sleep(0.4); print('late')", "late"),
        ] {
            let ended = shell.run(command).await;
            let told = json!([ended.0["status"], ended.0["exit_code"], ended.0["evidence"]]);
            assert_eq!(told, json!(["completed", null, "pattern"]), "{command}: {}", ended.0);
            assert_eq!(ended.output(), output, "{}: {command}", shell.name);
        }
        let begun = shell.asks("input('Name? ')", "needs_input").await;
        assert_eq!(begun.0["prompt"], "Name? ", "{}", begun.0);
        shell.call("send_text", json!({"text": "me", "enter": true})).await;
        while shell.record(begun.number("command_id")).await["commands"][0]["status"] == "running" {
        }
        shell.run("exit(4)").await;
        let record = shell.record(outer.number("command_id")).await;
        let code = json!(4);
        assert_eq!(record["commands"][0]["exit_code"], code, "{}: {record}", shell.name);
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_works_silently_behind_a_terminal_of_its_own_is_not_taken_to_ask() {
    with_each(&ALL, async |shell| {
        // As ssh does, it has this terminal raw and hands on all that is typed.
        let inner = "env PS1='inner> ' python3 -c 'import pty; pty.spawn([\"dash\", \"-i\"])'";
        let outer = shell.asks(inner, "needs_input").await;
        assert_eq!(outer.0["prompt"], "inner> ", "{}", outer.0);
        for (command, output) in [("sleep 1; echo built", "built"), ("echo a; sleep 1; false", "a")]
        {
            let ended = shell.run(command).await;
            let told = json!([ended.0["status"], ended.0["exit_code"], ended.0["evidence"]]);
            assert_eq!(told, json!(["completed", null, "pattern"]), "{command}: {}", ended.0);
            assert_eq!(ended.output(), output, "{}: {command}", shell.name);
        }
        let begun = shell.asks("printf 'Name? '; read name; echo got $name", "needs_input").await;
        assert_eq!(begun.0["prompt"], "Name? ", "{}", begun.0);
        assert_eq!(begun.0["evidence"], "pattern", "{}", begun.0);
        shell.call("send_text", json!({"text": "me", "enter": true})).await;
        shell.wait_for(json!({"text": "got me", "since": begun.0["watermark"]})).await;
        shell.call("send_text", json!({"text": "exit", "enter": true})).await;
        let since = outer.0["watermark"].clone();
        shell.wait_for(json!({"command_done": true, "since": since})).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_takes_a_paste_one_command_is_taken_at_a_time() {
    with_each(&["bash", "dash"], async |shell| {
        shell.asks("env PYTHON_BASIC_REPL=1 python3 -q", "needs_input").await;
        let several = json!({"session": shell.session, "command": "print('one')\nprint('two')"});
        assert_eq!(shell.client.error_code("run", several).await, "invalid_argument");
        for (command, output) in [
            ("def double(of):\n    return 2 * of\n", ""),
            ("double(\n  4\n)", "8"),
            ("if double(1) > 2: 'many'\nelse: 'two'\n", "'two'"),
        ] {
            let ended = shell.run(command).await;
            assert_eq!(ended.status(), "completed", "{}: {command}: {}", shell.name, ended.0);
            assert_eq!(ended.output(), output, "{}: {command}: {}", shell.name, ended.0);
        }
        shell.run("exit()").await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_key_makes_of_a_full_screen_program_is_waited_for() {
    with_each(&["bash"], async |shell| {
        for _ in 0..5 {
            shell.asks("seq 500 | less", "full_screen").await;
            let until = json!({"command_done": true, "needs_input": true});
            let paged = shell.call("send_keys", json!({"keys": "Space", "until": until})).await;
            assert_eq!(paged["wait"]["outcome"], "needs_input", "{paged}");
            let left = shell.call("send_keys", json!({"keys": "q", "until": until})).await;
            assert_eq!(left["wait"]["outcome"], "command_done", "{left}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_is_not_all_there_asks_for_its_rest() {
    with_each(&["bash"], async |shell| {
        shell.asks("python3 -q", "needs_input").await;
        let begun = shell.asks("for i in range(2): print(i)", "needs_input").await;
        assert_eq!(begun.0["prompt"], "... ", "{}", begun.0);
        shell.press("Enter").await;
        while shell.record(begun.number("command_id")).await["commands"][0]["status"] == "running" {
        }
        let ended = shell.run("print('next')").await;
        assert_eq!(ended.output(), "next", "{}", ended.0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nested_shell_tells_codes_and_the_outer_one_tells_its_end() {
    with_each(&ALL, async |shell| {
        let outer = shell.asks("env PS1='inner> ' bash --norc", "needs_input").await;
        shell.must("echo one", 0, "one").await;
        shell.must("false", 1, "").await;
        shell.run("exit 6").await;
        let record = shell.record(outer.number("command_id")).await;
        let code = json!(6);
        assert_eq!(record["commands"][0]["exit_code"], code, "{}: {record}", shell.name);
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_progress_the_final_state_is_told() {
    let progress = "sh -c 'for i in 1 2 3 4 5; do printf \"\\rProgress: [%3d%%]\" ${i}0; \
                    printf \"\\033[K\"; sleep 0.02; done; printf \"\\r\\033[KDone.\\n\"'";
    with_each(&ALL, async |shell| {
        shell.must(progress, 0, "Done.").await;
    })
    .await;
}

/// Prints so many lines, and the progress of it in the last row, below those that scroll; at its end
/// it takes that row away, or waits for ever.
const INSTALL: &str = r#"
rows=$(stty size)
rows=${rows% *}
keep() { printf '\n\0337\033[0;%dr\0338\033[1A' "$1"; }
paint() { printf '\0337\033[%d;0f\033[42mProgress: [%3d%%]\033[49m\0338' "$rows" "$1"; }
keep $((rows - 1))
for number in $(seq "$1"); do
  printf 'Unpacking package '
  paint $((number * 100 / $1))
  echo "$number ..."
  [ $((number % 8)) != 0 ] || sleep 0.02
done
[ "$2" != stay ] || exec sleep 300
keep "$rows"
printf '\033[J'
"#;

fn unpacked(count: usize) -> String {
    let lines = (1..=count).map(|number| format!("Unpacking package {number} ..."));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_progress_below_the_lines_that_scroll_only_those_are_told() {
    with_each(&ALL, async |shell| {
        let home = shell.run("pwd").await.output().to_owned();
        fs::write(format!("{home}/install"), INSTALL).unwrap();
        // First where there is room on the screen, and then at its end.
        for count in [5, 60, 5, 30] {
            let output = unpacked(count);
            let ended = shell.must(&format!("sh install {count}"), 0, &output).await;
            let record = shell.record(ended.number("command_id")).await;
            assert_eq!(record["output"], output, "{}: {record}", shell.name);
        }
        let history = shell.call("read_history", json!({})).await;
        let screen = shell.call("read_screen", json!({})).await;
        for told in [history, screen] {
            assert!(!told.to_string().contains("Progress"), "{}: {told}", shell.name);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_that_was_interrupted_is_no_output_either() {
    with_each(&ALL, async |shell| {
        let home = shell.run("pwd").await.output().to_owned();
        fs::write(format!("{home}/install"), INSTALL).unwrap();
        let begun = shell.run_with("sh install 40 stay", json!({"timeout_ms": 1_000})).await;
        assert_eq!(begun.status(), "timeout", "{}: {}", shell.name, begun.0);
        assert_eq!(begun.output(), unpacked(40), "{}", shell.name);
        shell.interrupt(begun.number("command_id")).await;
        let record = shell.record(begun.number("command_id")).await;
        assert_eq!(record["output"], unpacked(40) + "\n^C", "{}: {record}", shell.name);
        // Whatever it has left of the screen.
        shell.must("echo fine", 0, "fine").await;
        let lines: Vec<_> = (1..=50).map(|number| number.to_string()).collect();
        shell.must("seq 50", 0, &lines.join("\n")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_is_slow_to_start_is_waited_for() {
    let daemon = TestDaemon::writable().await;
    let home = daemon.file("slow");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".bashrc"), "read -t 30 go <~/fifo; echo started $go\n").unwrap();
    mkfifo(&home.join("fifo"), Mode::S_IRWXU).unwrap();
    let mut client = daemon.client(Era::Legacy).await;
    let bash = json!({"command": "bash", "args": ["-i"], "env": {"HOME": home}});
    let created = client.structured("create_session", bash).await;
    let session = created["session"]["id"].as_str().unwrap();
    let running =
        client.send_call("run", json!({"session": session, "command": "echo mine"})).await;
    let fifo = home.join("fifo");
    // Opening it waits for the shell's file to be read.
    let told = tokio::task::spawn_blocking(move || fs::write(fifo, "now\n"));
    soon("the shell to read its file", told).await.unwrap().unwrap();
    let ended = structured(&client.answer(running).await);
    assert_eq!((&ended["output"], &ended["exit_code"]), (&json!("mine"), &json!(0)), "{ended}");
    daemon.stop().await;
}
