//! `run` in a terminal whose Enter ends no line, and with lines of all widths.

use serde_json::json;

use crate::daemon::shells::with_each;

/// A line without effect of so many characters.
fn idle_line(characters: usize) -> String {
    format!(": {}", "x".repeat(characters - 2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_runs_also_where_enter_ends_no_line() {
    for setting in ["stty -icrnl", "stty igncr"] {
        with_each(&["dash"], async |shell| {
            shell.must(setting, 0, "").await;
            shell.must("echo hi", 0, "hi").await;
            // Of more than the screen has, and of several lines, which the shell reads from a file.
            shell.must(&idle_line(2_450), 0, "").await;
            shell.must("echo a\necho b", 0, "a\nb").await;
            shell.must("stty sane", 0, "").await;
            shell.must("echo fine", 0, "fine").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_kernel_collects_no_lines_a_shell_without_a_line_editor_is_sent_no_command() {
    with_each(&["dash"], async |shell| {
        shell.must("stty raw", 0, "").await;
        let run = json!({"session": shell.session, "command": "echo hi"});
        assert_eq!(shell.client.error_code("run", run).await, "busy");
        shell.call("send_text", json!({"text": "stty sane"})).await;
        shell.press("C-j").await;
        shell.wait_for(json!({"idle_ms": 300})).await;
        shell.must("echo fine", 0, "fine").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_prints_nothing_ends_at_once_however_wide_it_is() {
    with_each(&["dash"], async |shell| {
        for prompt in ["$ ", "wide prompt: # "] {
            // Without the mark that tells codes.
            let mut lines = vec![format!("PS1='{prompt}'")];
            lines.extend(["true", "cd /", "true\ntrue"].map(str::to_owned));
            let columns = [79, 80, 81, 159, 160, 161, 2_500];
            lines.extend(columns.map(|columns| idle_line(columns - prompt.len())));
            for line in lines {
                let ended = shell.run(&line).await;
                assert_eq!((ended.status(), ended.output()), ("completed", ""), "{}", ended.0);
            }
        }
    })
    .await;
}
