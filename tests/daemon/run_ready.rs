//! `run` and a terminal that is not ready yet: what is waited for, and that nobody else waits with
//! it.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, structured};
use crate::daemon::shells::{ALL, Ended, with_each};
use crate::harness::waiting::soon;

/// A bash that reads a line of a fifo on its way to its first prompt, where this file for its start
/// says.
struct Slow {
    client: Wire,
    session: String,
    fifo: PathBuf,
}

impl Slow {
    async fn start(daemon: &TestDaemon, file: &str) -> Self {
        let home = daemon.file("slow");
        fs::create_dir(&home).unwrap();
        fs::write(home.join(".bashrc"), file).unwrap();
        let fifo = home.join("fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let mut client = daemon.client(Era::Legacy).await;
        let bash = json!({"command": "bash", "args": ["-i"], "cwd": home, "env": {"HOME": home}});
        let created = client.structured("create_session", bash).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        Self { client, session, fifo }
    }

    async fn send_run(&mut self, command: &str) -> u64 {
        let run = json!({"session": self.session, "command": command});
        self.client.send_call("run", run).await
    }

    /// Lets the shell go on.
    async fn go_on(&self) {
        let fifo = self.fifo.clone();
        // Opening it waits for the shell to open it, too.
        let told = tokio::task::spawn_blocking(move || fs::write(fifo, "now\n"));
        soon("the shell to read its fifo", told).await.unwrap().unwrap();
    }
}

/// Lets so much time pass in which a terminal does nothing.
async fn nothing_happens_for(client: &mut Wire, session: &str, millis: u64) {
    let never = json!({"session": session, "text": "never there", "timeout_ms": millis});
    assert_eq!(client.structured("wait_for", never).await["outcome"], "timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_is_slow_to_show_its_prompt_is_waited_for_whatever_it_is_slow_at() {
    let files = [
        "read go <~/fifo; echo started $go\n",
        // Behind the mark of the prompt's beginning.
        "PROMPT_COMMAND='[ -p ~/fifo ] && { read go <~/fifo; rm ~/fifo; }'\n",
        // In a program of its own, which is in front meanwhile.
        "PROMPT_COMMAND='[ -p ~/fifo ] && { head -n 1 <~/fifo; rm ~/fifo; }'\n",
    ];
    for file in files {
        let daemon = TestDaemon::writable().await;
        let mut slow = Slow::start(&daemon, file).await;
        let running = slow.send_run("echo mine").await;
        let mut other = daemon.client(Era::Legacy).await;
        nothing_happens_for(&mut other, &slow.session, 2_500).await;
        slow.go_on().await;
        let ended = structured(&slow.client.answer(running).await);
        let told = (&ended["output"], &ended["exit_code"]);
        assert_eq!(told, (&json!("mine"), &json!(0)), "{file}: {ended}");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_wait_that_long_is_told_that_there_is_no_prompt_yet() {
    let daemon = TestDaemon::writable().await;
    let mut slow = Slow::start(&daemon, "read go <~/fifo; echo started $go\n").await;
    let hurried = json!({
        "session": slow.session, "command": "echo mine >> ran", "timeout_ms": 100,
    });
    let call = slow.client.send_call("run", hurried).await;
    let refused = slow.client.answer(call).await["structuredContent"].take();
    assert_eq!(refused["error_code"], "busy", "{refused}");
    assert_eq!(refused["details"]["cause"], "no_prompt_yet", "{refused}");
    slow.go_on().await;
    let running = slow.send_run("ls ran; echo mine").await;
    let ended = structured(&slow.client.answer(running).await);
    assert!(ended["output"].as_str().unwrap().ends_with("mine"), "{ended}");
    assert!(ended["output"].as_str().unwrap().contains("No such file"), "{ended}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_waits_for_its_second_takes_nothing_of_a_command() {
    with_each(&["bash", "zsh", "fish"], async |shell| {
        for keys in ["Escape", "C-x", "Escape [", "a b c Escape", "C-v"] {
            shell.run("true").await;
            shell.press(keys).await;
            let Ended(told) = shell.run("echo fine").await;
            let told = (&told["output"], &told["exit_code"]);
            assert_eq!(told, (&json!("fine"), &json!(0)), "{}: {keys}", shell.name);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_the_line_editor_takes_nothing_of_a_command() {
    with_each(&["bash"], async |shell| {
        for answer in ["", "y"] {
            shell.run("true").await;
            shell.press("Tab Tab").await;
            shell.wait_for(json!({"text": "(y or n)", "since": 0})).await;
            if !answer.is_empty() {
                shell.press(answer).await;
                shell.wait_for(json!({"text": "--More--", "since": 0})).await;
            }
            shell.must("echo xx nq; echo TAIL", 0, "xx nq\nTAIL").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_mode_of_a_line_editor_takes_anything_of_a_command_and_none_is_lost() {
    let search = "C-r e c";
    let vi = [
        "a Escape",
        "a Escape d",
        "a Escape r",
        "a Escape f",
        "a Escape 3",
        "a Escape c",
        "a b Escape 0 R",
        search,
    ];
    // What has it read like vi, and what tells whether it still does.
    let bash = [("set -o emacs; stty -ixon", "[[ -o emacs ]]"), ("set -o vi", "[[ -o vi ]]")];
    let zsh = [
        ("bindkey -e; setopt no_flow_control", "[[ $(bindkey -lL main) == *emacs* ]]"),
        ("bindkey -v", "[[ $(bindkey -lL main) == *viins* ]]"),
    ];
    let fish = [
        ("fish_default_key_bindings; true", "test $fish_bind_mode = default"),
        ("fish_vi_key_bindings; true", "test $fish_bind_mode = insert"),
    ];
    let emacs = ["C-r", search, "M-x", "M-x k i", "C-s e"];
    for (name, [as_ever, as_vi], searches_like_vi) in
        [("bash", bash, true), ("zsh", zsh, false), ("fish", fish, true)]
    {
        with_each(&[name], async |shell| {
            for ((setting, holds), keys) in [(as_ever, &emacs[..]), (as_vi, &vi)] {
                shell.must(setting, 0, "").await;
                // What zsh searches for in its command mode it reads by the keys of another one.
                let search = searches_like_vi && setting == as_vi.0;
                for keys in keys.iter().chain(search.then_some(&"a Escape / e c")) {
                    shell.press(keys).await;
                    let ended = shell.run("echo fine").await;
                    let told = (ended.output(), &ended.0["exit_code"]);
                    assert_eq!(told, ("fine", &json!(0)), "{name}: {setting}: {keys}");
                    shell.must(holds, 0, "").await;
                }
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_typed_at_a_shell_that_stands_still_runs_before_what_is_sent() {
    with_each(&["bash", "zsh", "fish"], async |shell| {
        shell.run("true").await;
        let listed = shell.call("list_sessions", json!({})).await;
        let pid = i32::try_from(listed["sessions"][0]["pid"].as_i64().unwrap()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        shell.call("send_text", json!({"text": "echo typed; false", "enter": true})).await;
        let run = json!({"session": shell.session, "command": "echo mine"});
        let sent = shell.client.send_call("run", run).await;
        // Whoever waits for it on the same connection has the call begun by then.
        let never = json!({"text": "never there", "timeout_ms": 600});
        assert_eq!(shell.call("wait_for", never).await["outcome"], "timeout");
        kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
        let ended = structured(&shell.client.answer(sent).await);
        let told = (&ended["output"], &ended["exit_code"]);
        assert_eq!(told, (&json!("mine"), &json!(0)), "{}: {ended}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_typed_at_a_shell_that_is_slow_to_take_it_runs_before_what_is_sent() {
    let bindings = [
        ("bash", "C-g", r#"bind -x '"\C-g": sleep 1'"#),
        // What it begins to wait for after this one is a longer name of a command.
        ("bash", "C-x", r#"bind -x '"\C-x": sleep 1'"#),
        ("zsh", "C-x", "slow() { sleep 1 }; zle -N slow; bindkey '^X' slow"),
        ("fish", "C-x", r"bind \cx 'sleep 1'"),
    ];
    for (name, key, binding) in bindings {
        with_each(&[name], async |shell| {
            shell.run(binding).await;
            shell.press(key).await;
            shell.call("send_text", json!({"text": "echo typed; false", "enter": true})).await;
            let run = json!({"session": shell.session, "command": "echo mine"});
            let ended = loop {
                let call = shell.client.send_call("run", run.clone()).await;
                let answer = shell.client.answer(call).await;
                // What the key does may take longer than a command waits for.
                if answer["structuredContent"]["error_code"] != "busy" {
                    break structured(&answer);
                }
            };
            let told = (&ended["output"], &ended["exit_code"]);
            assert_eq!(told, (&json!("mine"), &json!(0)), "{name}: {ended}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_call_waits_for_a_shell_others_of_its_connection_go_on() {
    let daemon = TestDaemon::writable().await;
    let mut slow = Slow::start(&daemon, "read go <~/fifo; echo started $go\n").await;
    let running = slow.send_run("echo mine").await;
    let screen = slow.client.structured("read_screen", json!({"session": slow.session})).await;
    assert_eq!(screen["text"].as_str().unwrap().trim_end(), "", "{screen}");
    let other = slow.client.start("exec cat").await;
    slow.client.acquire(&other).await;
    let typing = json!({"session": other, "text": "typed", "enter": true});
    slow.client.structured("send_text", typing).await;
    slow.go_on().await;
    let ended = structured(&slow.client.answer(running).await);
    assert_eq!(ended["output"], "mine", "{ended}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_wait_for_a_shell_go_out_in_the_order_in_which_they_were_sent() {
    let daemon = TestDaemon::writable().await;
    let mut slow = Slow::start(&daemon, "read go <~/fifo; echo started $go\n").await;
    let mut running = Vec::new();
    for number in 0..8 {
        running.push(slow.send_run(&format!("echo {number} >> ran")).await);
    }
    slow.go_on().await;
    let mut ran = String::new();
    for (number, call) in running.into_iter().enumerate() {
        let answer = slow.client.answer(call).await;
        if answer["isError"] == true {
            // The one before may take its time.
            assert_eq!(error_code(&answer), "busy", "{answer}");
        } else {
            assert_eq!(structured(&answer)["status"], "completed", "{answer}");
            ran.push_str(&format!("{number}\n"));
        }
    }
    assert!(ran.starts_with("0\n"), "{ran}");
    assert_eq!(fs::read_to_string(slow.fifo.with_file_name("ran")).unwrap(), ran);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_after_an_interrupt_a_shell_takes_the_next_command() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        let programs =
            ["cat", "sh -c 'stty -echo; read x'", "sh -c 'stty raw -echo isig; exec cat'"];
        // dash leaves the terminal as a program has set it.
        let count = if shell.name == "dash" { 1 } else { programs.len() };
        for program in &programs[..count] {
            // What takes keys may work as well.
            let (options, status) = match program.contains("raw") {
                true => (json!({"timeout_ms": 1_000}), "timeout"),
                false => (json!({}), "needs_input"),
            };
            let begun = shell.run_with(program, options).await;
            assert_eq!(begun.status(), status, "{}: {}", shell.name, begun.0);
            shell.press("C-c").await;
            // Nobody says when it is over, and no shell need be fast; but nothing old is believed.
            let next = json!({"session": shell.session, "command": "stty sane; echo fine"});
            let ended = loop {
                let answer = shell.client.call("run", next.clone()).await;
                if answer["isError"] != true {
                    break Ended(structured(&answer));
                }
                let waited = answer["_meta"]["dev.termgate/envelope"]["elapsed_ms"].as_u64();
                assert!(waited.unwrap() >= 300, "{}: {program}: {answer}", shell.name);
            };
            let told = (ended.status(), ended.output());
            assert_eq!(told, ("completed", "fine"), "{}: {program}: {}", shell.name, ended.0);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_really_runs_is_told_without_waiting_for_its_end() {
    with_each(&["bash", "dash"], async |shell| {
        shell.must("true", 0, "").await;
        let programs = ["sleep 300", "cat", "sh -c 'printf \"Name: \"; read x'"];
        for program in programs {
            let begun = shell.run_with(program, json!({"timeout_ms": 1_000})).await;
            assert_ne!(begun.status(), "completed", "{}: {}", shell.name, begun.0);
            let other = json!({"session": shell.session, "command": "echo other"});
            assert_eq!(shell.client.error_code("run", other).await, "busy", "{program}");
            shell.press("C-c").await;
            let next = json!({"session": shell.session, "command": "true"});
            while shell.client.call("run", next.clone()).await["isError"] == true {}
        }
        let newest = shell.call("read_commands", json!({})).await["commands"].clone();
        let texts: Vec<&Value> =
            newest.as_array().unwrap().iter().map(|it| &it["command"]).collect();
        assert!(!texts.contains(&&json!("echo other")), "{}: {newest}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_file_of_the_users_asks_is_told_and_once_it_is_answered_commands_are_taken() {
    let daemon = TestDaemon::writable().await;
    let file = "read -p 'Continue? ' answer; echo said $answer\n";
    let mut shell = Slow::start(&daemon, file).await;
    let run = shell.send_run("echo fine").await;
    let refused = shell.client.answer(run).await;
    assert_eq!(error_code(&refused), "busy", "{refused}");
    let told = &refused["structuredContent"];
    assert_eq!(told["details"], json!({"cause": "asks", "prompt": "Continue? "}), "{told}");
    assert!(told["message"].as_str().unwrap().contains("(Continue?)"), "{told}");
    assert!(told["hint"].as_str().unwrap().contains("send_text"), "{told}");
    let session = &shell.session;
    let answer = json!({"session": session, "text": "yes", "enter": true});
    shell.client.structured("send_text", answer).await;
    let run = shell.send_run("echo fine").await;
    assert_eq!(structured(&shell.client.answer(run).await)["output"], "fine");
}
