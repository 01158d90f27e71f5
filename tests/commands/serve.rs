//! A daemon in a terminal, and what becomes of it when the terminal goes.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::blocking::until;
use crate::commands::terminal::Terminal;
use crate::harness::home::Home;

const AGAIN: &str = "the configuration was read again";

fn operator(home: &Home) -> PathBuf {
    home.runtime("operator.sock")
}

/// Runs these words as the first program of a terminal of their own.
fn in_own_terminal(home: &Home, words: &[&str]) -> Terminal {
    let mut command = home.command("setsid");
    command.arg("--ctty").args(words);
    Terminal::of(command)
}

/// The process that serves there.
fn serving(home: &Home) -> Pid {
    let status = home.envelope("ls --daemon");
    Pid::from_raw(status["data"]["pid"].as_i64().expect("a daemon answers") as i32)
}

/// Waits until nobody serves any more.
fn until_ended(home: &Home) {
    until("the daemon to end", || !operator(home).exists());
}

/// What is left of a daemon that has ended, in the order of the names.
fn left_behind(home: &Home) -> Vec<String> {
    let mut left = Vec::new();
    for directory in ["run/termgate", "run/termgate/s"] {
        for entry in fs::read_dir(home.path(directory)).unwrap() {
            left.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    left.sort();
    left
}

#[test]
fn what_serves_a_client_on_standard_input_says_so_at_a_terminal() {
    let home = Home::new();
    let _daemon = home.daemon();
    for words in [&["termgate", "mcp"][..], &["termgate", "serve", "--stdio"]] {
        let mut terminal = in_own_terminal(&home, words);
        terminal.wait_for("an MCP client is expected on standard input");
        terminal.type_in("\x04");
        assert_eq!(terminal.wait_for_end().1, Some(0), "{words:?}");
    }
}

#[test]
fn a_daemon_ends_when_the_terminal_it_runs_in_is_closed() {
    let home = Home::new();
    let mut terminal = in_own_terminal(&home, &["termgate", "serve"]);
    terminal.wait_for("is ready");
    terminal.close();
    assert_eq!(terminal.wait_for_end().1, Some(0));
    until_ended(&home);
}

#[test]
fn a_daemon_started_from_a_shell_ends_when_the_terminal_is_closed() {
    let home = Home::new();
    let mut terminal = in_own_terminal(&home, &["bash", "--norc", "--noprofile", "-i"]);
    terminal.type_in("termgate serve\n");
    terminal.wait_for("is ready");
    terminal.close();
    until_ended(&home);
}

#[test]
fn a_daemon_in_a_terminal_reads_its_configuration_again_when_it_is_sent_the_signal() {
    let home = Home::new();
    let mut terminal = in_own_terminal(&home, &["termgate", "serve"]);
    terminal.wait_for("is ready");
    for _ in 0..2 {
        kill(serving(&home), Signal::SIGHUP).unwrap();
        terminal.wait_for(AGAIN);
    }
    home.printed("stop");
    assert_eq!(terminal.wait_for_end().1, Some(0));
}

/// Starts a daemon under nohup, does something with it, and closes its terminal.
fn outlives_its_terminal(meanwhile: impl Fn(&Home)) {
    let home = Home::new();
    let log = home.path("log");
    let line = format!("exec nohup termgate serve 2>{}", log.display());
    let mut terminal = in_own_terminal(&home, &["sh", "-c", &line]);
    until("the daemon", || UnixStream::connect(operator(&home)).is_ok());
    meanwhile(&home);
    terminal.close();
    // The kernel sends the signal to the first program of a terminal that is closed.
    until("the signal", || fs::read_to_string(&log).unwrap().contains(AGAIN));
    home.printed("stop");
    assert_eq!(terminal.wait_for_end().1, Some(0));
}

#[test]
fn a_daemon_that_was_told_not_to_hang_up_outlives_its_terminal() {
    outlives_its_terminal(|_| {});
}

#[test]
fn a_daemon_that_was_told_not_to_hang_up_outlives_its_terminal_after_an_upgrade_as_well() {
    outlives_its_terminal(|home| drop(home.printed("upgrade")));
}

#[test]
fn a_daemon_that_was_started_for_a_session_it_may_not_create_waits_for_the_switch_and_ends() {
    let home = Home::new();
    let refused = home.run("new -- cat");
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("termgate allow-write on"), "{told}");

    // Whoever follows the advice at once still finds it.
    let daemon = serving(&home);
    let words = fs::read_to_string(format!("/proc/{daemon}/cmdline")).unwrap();
    assert!(words.contains("--linger\x001m"), "{words:?}");
    home.printed("allow-write on");
    home.printed("new -- cat");
    home.printed("stop");
    until_ended(&home);
    assert_eq!(left_behind(&home), ["daemon.lock", "h", "s", "shell"]);
}

#[test]
fn a_daemon_that_refused_a_session_ends_by_itself_once_nobody_needs_it() {
    let home = Home::new();
    let mut serve = home.termgate("serve --linger 1s").spawn().unwrap();
    until("the daemon", || UnixStream::connect(operator(&home)).is_ok());
    assert_eq!(home.run("new --no-spawn -- cat").status.code(), Some(5));
    assert!(serve.wait().unwrap().success());
    assert_eq!(left_behind(&home), ["daemon.lock", "h", "s", "shell"]);
}
