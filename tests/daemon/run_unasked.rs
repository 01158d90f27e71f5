//! `run` where a shell does what nobody asked it to: it reads what was typed before, takes a line back,
//! asks about it, or comes back by another way than its marks tell.

use serde_json::{Value, json};

use crate::daemon::harness::structured;
use crate::daemon::shells::{ALL, Ended, MARKING, Shell, with_each};
use crate::harness::waiting::soon;

impl Shell {
    /// Runs a command as soon as the terminal takes it.
    async fn run_when_free(&mut self, command: &str) -> Ended {
        loop {
            let arguments = json!({"session": self.session, "command": command});
            let answer = self.client.call("run", arguments).await;
            if answer["structuredContent"]["error_code"] != "busy" {
                return Ended(structured(&answer));
            }
        }
    }

    /// Types a line that fails, and runs a command right behind it, which must be told alone.
    async fn type_and_run(&mut self, number: usize) {
        let line = json!({"text": format!("echo typed{number}; false"), "enter": true});
        self.call("send_text", line).await;
        let ended = self.run_when_free(&format!("echo mine{number}")).await;
        assert_eq!(ended.output(), format!("mine{number}"), "{}: {}", self.name, ended.0);
        assert_ne!(ended.0["exit_code"], 1, "{}: {}", self.name, ended.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_was_typed_just_before_is_not_taken_for_the_command() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        for number in 0..10 {
            shell.type_and_run(number).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_was_typed_while_another_ran_is_not_taken_for_the_command() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        for number in 0..3 {
            shell.run_with("sleep 0.6", json!({"timeout_ms": 400})).await;
            shell.type_and_run(number).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_line_that_was_typed_just_before_is_no_part_of_the_command() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        for _ in 0..5 {
            shell.call("send_text", json!({"text": "half a line"})).await;
            shell.must("printf mine", 0, "mine").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_line_that_the_kernel_holds_is_no_part_of_the_command_however_it_got_there() {
    with_each(&["dash"], async |shell| {
        shell.must("true", 0, "").await;
        // The key takes the next one as it is.
        shell.call("send_text", json!({"text": "half a line"})).await;
        shell.press("C-v").await;
        shell.must("printf mine", 0, "mine").await;
        // Longer than a row.
        shell.call("send_text", json!({"text": "x".repeat(200)})).await;
        shell.must("printf mine", 0, "mine").await;
        let ended = shell.run_with("sleep 0.6", json!({"timeout_ms": 300})).await;
        assert_eq!(ended.status(), "timeout", "{}", ended.0);
        shell.call("send_text", json!({"text": "half a line"})).await;
        let since = ended.number("watermark");
        shell.wait_for(json!({"command_done": true, "since": since})).await;
        shell.must("printf mine", 0, "mine").await;
        // What the terminal answers is typed at the prompt.
        shell.run("printf '\\033[6n'").await;
        shell.must("printf mine", 0, "mine").await;
        shell.must("stty -icrnl", 0, "").await;
        shell.call("send_text", json!({"text": "half a line"})).await;
        shell.must("printf mine", 0, "mine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_shows_nothing_that_is_typed_is_at_its_prompt_and_asks_for_no_secret() {
    with_each(&["dash"], async |shell| {
        shell.must("true", 0, "").await;
        let ended = shell.must("stty -echo", 0, "").await;
        assert_eq!(ended.0["activity"]["state"], "prompt", "{}", ended.0);
        for _ in 0..3 {
            shell.must("echo one; echo two", 0, "one\ntwo").await;
            shell.must("true", 0, "").await;
            shell.must("printf three", 0, "three").await;
        }
        shell.call("send_text", json!({"text": "half a line"})).await;
        shell.must("printf mine", 0, "mine").await;
        // What asks is told all the same, and the answer is nobody's output.
        let asked = shell.run("printf 'Secret: '; read answer; echo $answer").await;
        assert_eq!(asked.status(), "needs_input", "{}", asked.0);
        assert_eq!(asked.0["activity"]["state"], "secret_prompt", "{}", asked.0);
        let since = asked.number("watermark");
        shell.call("send_text", json!({"text": "told", "enter": true})).await;
        shell.wait_for(json!({"command_done": true, "since": since})).await;
        let record = shell.record(asked.number("command_id")).await;
        assert_eq!(record["output"], "Secret: told", "{record}");
        shell.must("stty echo", 0, "").await;
        shell.must("echo fine", 0, "fine").await;
        // Also where no command told of the prompt before.
        shell.call("send_text", json!({"text": "stty -echo", "enter": true})).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_a_comment_is_done_and_has_no_code() {
    with_each(&["bash", "zsh", "fish"], async |shell| {
        if shell.name == "zsh" {
            shell.must("setopt interactive_comments", 0, "").await;
        }
        shell.must("sh -c 'exit 4'", 4, "").await;
        for comment in ["# only a comment", "  # one\n\n# two"] {
            let ended = shell.run(comment).await;
            assert_eq!(ended.status(), "completed", "{}: {}", shell.name, ended.0);
            let told = (&ended.0["exit_code"], ended.output());
            // fish says that its code stays as it was.
            let code = if shell.name == "fish" { json!(4) } else { Value::Null };
            assert_eq!(told, (&code, ""), "{}: {}", shell.name, ended.0);
        }
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_bash_takes_back_ends_and_the_next_one_runs() {
    with_each(&["bash"], async |shell| {
        shell.must("true", 0, "").await;
        for line in ["echo \"feat!x: y\"", "!nothing-like-it"] {
            let typing = json!({
                "text": line, "enter": true, "until": {"text": "event not found"}, "wait_ms": 20_000,
            });
            let typed = shell.call("send_text", typing).await;
            assert_eq!(typed["wait"]["outcome"], "matched", "{typed}");
            shell.must("echo fine", 0, "fine").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_changes_nothing_that_is_run() {
    with_each(&["bash", "zsh"], async |shell| {
        shell.must("echo first", 0, "first").await;
        shell.must("echo \"feat!x: y!!\"", 0, "feat!x: y!!").await;
        shell.must("[ ! -e /nowhere ] && echo 'a!b'", 0, "a!b").await;
        let ended = shell.run("^first^second").await;
        assert_eq!(ended.0["exit_code"], 127, "{}", ended.0);
        shell.must("x=5; echo $x!", 0, "5!").await;
        shell.must("echo $x", 0, "5").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_whose_marks_are_taken_away_still_comes_back() {
    with_each(&["bash"], async |shell| {
        shell.must("true", 0, "").await;
        for command in ["unset PROMPT_COMMAND", "echo gone"] {
            let ended = shell.run(command).await;
            assert_eq!(ended.status(), "completed", "{}", ended.0);
            assert_eq!(ended.0["exit_code"], Value::Null, "{}", ended.0);
        }
        let ended = shell.run("echo one; echo \"${PS1@P}\"; echo two").await;
        assert!(ended.output().ends_with("two"), "{}", ended.0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_asks_about_a_line_is_told_with_its_question() {
    with_each(&["zsh"], async |shell| {
        shell.must("true", 0, "").await;
        shell.must("setopt correct", 0, "").await;
        let ended = shell.run("ehco hi").await;
        assert_eq!(ended.status(), "needs_input", "{}: {}", shell.name, ended.0);
        shell.press("C-c").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_command_is_told_to_be_half_where_the_shell_marks_nothing() {
    with_each(&["dash"], async |shell| {
        shell.must("true", 0, "").await;
        let ended = shell.run("echo 'abc").await;
        assert_eq!(ended.status(), "needs_input", "{}", ended.0);
        assert_eq!(ended.0["prompt"], "> ", "{}", ended.0);
        shell.press("C-c").await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_no_command_is_done_as_well() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        for line in ["", "(}"] {
            let typing = json!({
                "text": line, "enter": true, "until": {"command_done": true}, "wait_ms": 20_000,
            });
            let typing = if line.is_empty() {
                json!({"keys": "Enter", "until": {"command_done": true}, "wait_ms": 20_000})
            } else {
                typing
            };
            let tool = if line.is_empty() { "send_keys" } else { "send_text" };
            let typed = shell.call(tool, typing).await;
            let outcome = &typed["wait"]["outcome"];
            assert_eq!(outcome, "command_done", "{}: {line:?}: {typed}", shell.name);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_looks_like_a_prompt_ends_nothing_in_a_shell_below() {
    with_each(&["bash"], async |shell| {
        shell.must("true", 0, "").await;
        for inner in ["bash --norc", "dash"] {
            let begun = shell.run(inner).await;
            assert_eq!(begun.status(), "needs_input", "{inner}: {}", begun.0);
            let ended = shell.run("printf 'Progress 45%%'; sleep 0.6; echo; echo done").await;
            assert_eq!(ended.output(), "Progress 45%\ndone", "{inner}: {}", ended.0);
            shell.press("C-d").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_screen_that_a_killed_program_left_behind_keeps_nobody_from_running() {
    with_each(&MARKING, async |shell| {
        shell.must("true", 0, "").await;
        let left = shell.run("printf '\\033[?1049h'").await;
        shell.check("leave", &left, 0);
        let ended = shell.run("echo fine").await;
        shell.check("echo fine", &ended, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_is_interrupted_in_the_middle_of_its_prompt_takes_the_next_command() {
    let directory = tempfile::tempdir().unwrap();
    with_each(&MARKING, async |shell| {
        shell.must("true", 0, "").await;
        let sign = directory.path().join(shell.name);
        let wait = format!("once=1; touch {}; sleep 300", sign.display());
        let slow = match shell.name {
            "bash" => format!("PROMPT_COMMAND='[[ $once ]] || {{ {wait}; }}'"),
            "zsh" => format!("precmd() {{ [[ -n $once ]] || {{ {wait} }} }}"),
            _ => format!(
                "function fish_prompt; if not set -q once; set -g {}; end; echo -n 'p> '; end",
                wait.replace('=', " ")
            ),
        };
        // What comes before a prompt can belong to the command.
        shell.run_with(&slow, json!({"timeout_ms": 1_000})).await;
        let sleeping = async {
            while !sign.exists() {
                shell.call("wait_for", json!({"text": "never", "timeout_ms": 20})).await;
            }
        };
        soon("the prompt to be made", sleeping).await;
        shell.press("C-c").await;
        // Marks were interrupted as well, so that nobody may have told a code.
        let ended = shell.run("echo fine").await;
        assert_eq!((ended.status(), ended.output()), ("completed", "fine"), "{}", shell.name);
        assert!([Value::Null, json!(0)].contains(&ended.0["exit_code"]), "{}", ended.0);
        shell.must("echo again", 0, "again").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_lines_are_one_command_also_for_a_shell_without_a_line_editor() {
    with_each(&["bash", "zsh"], async |shell| {
        shell.must("true", 0, "").await;
        let off = if shell.name == "bash" { "set +o emacs" } else { "unsetopt zle" };
        shell.must(off, 0, "").await;
        shell.must("for i in 1 2\ndo echo $i\ndone\n(exit 3)", 3, "1\n2").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zsh_that_loses_its_hook_for_prompts_by_a_command_ends_that_and_marks_the_next() {
    with_each(&["zsh"], async |shell| {
        shell.must("true", 0, "").await;
        let emptied = shell.run("echo gone; precmd_functions=()").await;
        assert_eq!((emptied.status(), emptied.output()), ("completed", "gone"), "{}", emptied.0);
        assert_eq!(emptied.0["exit_code"], Value::Null, "nobody told it: {}", emptied.0);
        shell.must("echo fine; (exit 3)", 3, "fine").await;
        shell.must("echo again", 0, "again").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zsh_that_loses_all_of_its_hooks_by_a_command_runs_on_without_codes() {
    for taken in ["precmd_functions=() preexec_functions=()", "unfunction -m '__termgate*'"] {
        with_each(&["zsh"], async |shell| {
            shell.must("true", 0, "").await;
            for (command, output) in [
                (format!("echo gone; {taken}").as_str(), "gone"),
                ("echo one; (exit 4)", "one"),
                ("cd /; pwd; sleep 0.3; echo two", "/\ntwo"),
                ("true", ""),
            ] {
                let ended = shell.run(command).await;
                assert_eq!(ended.status(), "completed", "{command}: {}", ended.0);
                assert_eq!(ended.output(), output, "{command}: {}", ended.0);
                assert_eq!(ended.0["exit_code"], Value::Null, "nobody told it: {}", ended.0);
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bash_that_sets_its_prompt_commands_and_ps0_anew_tells_how_the_next_command_ended() {
    with_each(&["bash"], async |shell| {
        shell.must("true", 0, "").await;
        shell.must("PROMPT_COMMAND=: PS0=", 0, "").await;
        shell.must("echo after; (exit 4)", 4, "after").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_was_typed_is_not_asked_for_again() {
    with_each(&["bash"], async |shell| {
        let line = "bash -c 'read -s -p \"P1: \" a; sleep 0.5; echo; read -s -p \"P2: \" b; echo'";
        let asked = shell.run(line).await;
        assert_eq!(asked.0["prompt"], "P1: ", "{}", asked.0);
        for (answer, outcome) in [("one", "needs_input"), ("two", "command_done")] {
            let typing = json!({
                "text": answer, "enter": true, "wait_ms": 20_000,
                "until": {"needs_input": true, "command_done": true},
            });
            let typed = shell.call("send_text", typing).await;
            assert_eq!(typed["wait"]["outcome"], outcome, "{typed}");
            if outcome == "needs_input" {
                let last = typed["wait"]["last_rows"].as_array().unwrap().last().unwrap();
                assert!(last.as_str().unwrap().starts_with("P2:"), "{typed}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_as_wide_as_the_screen_keeps_its_last_character() {
    with_each(&MARKING, async |shell| {
        shell.must("true", 0, "").await;
        for count in [79, 80, 81, 160] {
            let wide = format!("{}Z", "0".repeat(count - 1));
            shell.call("resize", json!({"cols": 80, "rows": 24})).await;
            shell.must(&format!("printf '%0{count}d' 0 | sed 's/.$/Z/'"), 0, &wide).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_painted_elsewhere_brings_no_rows_of_others() {
    with_each(&ALL, async |shell| {
        shell.must("true", 0, "").await;
        for (command, output) in [
            ("printf '\\033[H\\033[J'; echo c2", "c2"),
            ("echo before; printf '\\033[H\\033[J'; echo after; seq 3", "after\n1\n2\n3"),
            ("printf '\\033[5A\\033[J'; echo up", "up"),
            ("printf '\\033[2J\\033[H'; echo cleared", "cleared"),
            ("printf '\\033[H\\033[2J\\033[3J'", ""),
            ("printf '\\033[H\\033[2J'; echo cleared", "cleared"),
            ("echo before; printf '\\033[H\\033[2J'; echo after", "before\nafter"),
        ] {
            shell.run("seq 60").await;
            let ended = shell.run(command).await;
            assert_eq!(ended.output().trim(), output, "{}: {command}: {}", shell.name, ended.0);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_comes_late_is_in_no_output() {
    with_each(&["bash"], async |shell| {
        for _ in 0..5 {
            let created = json!({"command": "bash", "args": ["--norc", "--noprofile"]});
            let created = shell.client.structured("create_session", created).await;
            shell.session = created["session"]["id"].as_str().unwrap().to_owned();
            for (command, output) in [("echo hi", "hi"), ("cd /tmp", ""), ("echo ho", "ho")] {
                let ended = shell.run(command).await;
                assert_eq!(ended.output(), output, "{command}: {}", ended.0);
            }
        }
    })
    .await;
}
