//! `run` in a terminal whose Enter ends no line, and in one where it does: only what a shell has read
//! can have ended.

use serde_json::json;

use crate::daemon::shells::{Ended, Shell, with_each};

/// A line without effect of so many characters.
fn idle_line(characters: usize) -> String {
    format!(": {}", "x".repeat(characters - 2))
}

impl Shell {
    /// Runs what the terminal shows, and the shell does not read.
    async fn run_unread(&mut self, command: &str) -> Ended {
        let ended = self.run_with(command, json!({"timeout_ms": 20_000})).await;
        assert_eq!(ended.status(), "needs_input", "{command}: {}", ended.0);
        let prompt = ended.0["prompt"].as_str().unwrap();
        assert!(prompt.ends_with("^M"), "{command}: {}", ended.0);
        assert_eq!(ended.output(), "", "{command}");
        ended
    }

    /// Ends the line as the terminal lets it be ended, and waits for its command.
    async fn end_line(&mut self, ended: &Ended) {
        self.press("C-j").await;
        let since = ended.number("watermark");
        self.wait_for(json!({"command_done": true, "since": since})).await;
        let record = self.record(ended.number("command_id")).await;
        assert_eq!(record["commands"][0]["status"], "completed", "{record}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_enter_does_not_end_has_not_ended() {
    for setting in ["stty raw", "stty -icrnl"] {
        with_each(&["dash"], async |shell| {
            shell.must("true", 0, "").await;
            // Of one row, and of more than the screen has.
            for line in ["echo hi".to_owned(), idle_line(2_450)] {
                shell.must(setting, 0, "").await;
                let ended = shell.run_unread(&line).await;
                shell.end_line(&ended).await;
                shell.call("send_text", json!({"text": "stty sane"})).await;
                shell.press("C-j").await;
                shell.wait_for(json!({"idle_ms": 300})).await;
                shell.must("echo fine", 0, "fine").await;
            }
            // The shell reads several from a file.
            shell.must(setting, 0, "").await;
            shell.run_unread("echo a\necho b").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_whose_enter_is_not_even_shown_has_not_ended() {
    with_each(&["dash"], async |shell| {
        shell.must("stty igncr", 0, "").await;
        let ended = shell.run_with("echo hi", json!({"timeout_ms": 1_500})).await;
        assert_eq!(ended.status(), "timeout", "{}", ended.0);
        shell.end_line(&ended).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_that_is_only_shown_ends_no_line() {
    with_each(&["dash"], async |shell| {
        shell.must("stty raw", 0, "").await;
        let ended = shell.run_unread("echo hi").await;
        shell.press("C-c").await;
        shell.wait_for(json!({"pattern": "^M^C", "since": 0})).await;
        let status = &shell.record(ended.number("command_id")).await["commands"][0]["status"];
        assert_eq!(*status, "running");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_prints_nothing_ends_at_once_however_wide_it_is() {
    with_each(&["dash"], async |shell| {
        for prompt in ["$ ", "wide prompt: # "] {
            shell.must(&format!("PS1='{prompt}'"), 0, "").await;
            for line in ["true", "cd /", "true\ntrue"] {
                shell.must(line, 0, "").await;
            }
            for columns in [79, 80, 81, 159, 160, 161, 2_500] {
                shell.must(&idle_line(columns - prompt.len()), 0, "").await;
            }
        }
    })
    .await;
}
