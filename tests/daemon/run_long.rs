//! Commands that are too long to be typed.

use std::fs;

use serde_json::json;

use crate::daemon::harness::TestDaemon;
use crate::daemon::shells::{ALL, POSIX, Shell, with_each};

const KIB: usize = 1024;

/// A here-document of about so many bytes, and how many lines of it there are.
fn here_document(command: &str, bytes: usize) -> (String, usize) {
    let line = "0123456789 abcdefghijklmnopqrstuvwxyz $((1 + 1)) `echo x` \"quoted\" 'too'\n";
    let lines = bytes / line.len();
    (format!("{command} <<'EOF'\n{}EOF", line.repeat(lines)), lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_be_longer_than_a_line_of_a_terminal() {
    let word = "x".repeat(5_000);
    with_each(&ALL, async |shell| {
        shell.must(&format!("printf %s {word} | wc -c | tr -d ' '"), 0, "5000").await;
        shell.must(&format!("true {word}; sh -c 'exit 6'"), 6, "").await;
    })
    .await;
}

/// Runs a command that writes a document, which must be this one afterwards.
async fn check_document(shell: &mut Shell, command: &str, wanted: &str) {
    shell.must(command, 0, "").await;
    let lines = wanted.lines().count().to_string();
    shell.must("wc -l < document | tr -d ' '", 0, &lines).await;
    let home = shell.run("pwd").await.output().to_owned();
    let arrived = fs::read_to_string(format!("{home}/document")).unwrap();
    assert!(arrived == wanted, "{}: {} bytes", shell.name, wanted.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_here_document_arrives_as_it_was_sent() {
    with_each(&POSIX, async |shell| {
        shell.must("cat <<EOF\none $((1 + 1))\n  two\nEOF", 0, "one 2\n  two").await;
        for bytes in [24 * KIB, 512 * KIB] {
            let (command, _) = here_document("cat > document", bytes);
            let wanted = command.split_once('\n').unwrap().1.strip_suffix("EOF").unwrap();
            check_document(shell, &command, wanted).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_many_lines_arrives_in_a_shell_that_has_no_here_documents() {
    with_each(&["fish"], async |shell| {
        shell.must("echo 'one\n  two' | cat", 0, "one\n  two").await;
        for bytes in [24 * KIB, 512 * KIB] {
            let (command, _) = here_document("cat", bytes);
            let wanted = command.split_once('\n').unwrap().1.strip_suffix("EOF").unwrap();
            let quoted = wanted.replace('\\', r"\\").replace('\'', r"\'");
            check_document(shell, &format!("printf %s '{quoted}' > document"), wanted).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_long_command_is_told_like_that_of_any_other() {
    with_each(&POSIX, async |shell| {
        let (command, lines) = here_document("cat", 24 * KIB);
        let ended = shell.run(&command).await;
        shell.check("cat", &ended, 0);
        assert_eq!(ended.number("lines_total"), lines as u64, "{}", shell.name);
        let first = command.lines().nth(1).unwrap();
        assert_eq!(ended.output().lines().next(), Some(first), "{}", shell.name);
        assert_eq!(ended.output().lines().last(), Some(first), "{}", shell.name);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_long_command_is_left_behind() {
    let daemon = TestDaemon::writable().await;
    let mut shell = Shell::start(&daemon, "bash").await;
    let files = || {
        let left = fs::read_dir(daemon.paths.shell()).unwrap().map(|entry| entry.unwrap().path());
        left.filter(|path| path.extension().is_some_and(|it| it == "command")).count()
    };
    let (command, _) = here_document("cat > document", 24 * KIB);
    shell.must(&command, 0, "").await;
    // Another command gives whoever takes the file away its turn.
    while files() > 0 {
        shell.must("true", 0, "").await;
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_above_the_limit_of_a_message_is_refused_and_says_so() {
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.connection.message_bytes = 64 * KIB;
    })
    .await;
    let mut shell = Shell::start(&daemon, "bash").await;
    let command = format!("true {}", "x".repeat(64 * KIB));
    let call = json!({"name": "run", "arguments": {"session": shell.session, "command": command}});
    let refused = shell.client.request("tools/call", call).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "too_large", "{refused}");
    shell.must("echo fine", 0, "fine").await;
    daemon.stop().await;
}
