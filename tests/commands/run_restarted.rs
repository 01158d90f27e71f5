//! `run` whose daemon goes away: under the next one it is the same as it was, for people and programs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::time::Instant;

use crate::commands::run::{begun, run, run_fresh, text};
use crate::commands::still::Still;
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::processes::PROGRAM;

/// Below what the next daemon is looked for where the time of the command is not over.
const AT_ONCE: Duration = Duration::from_millis(9_500);

/// A line that runs until this file is there, and goes on with that.
fn until(gate: &Path, then: &str) -> String {
    format!("echo first; until [ -e {} ]; do sleep 0.05; done; {then}", gate.display())
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// The members that the result of a `run` has, and what it says.
fn result(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.output().unwrap();
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), envelope["data"].clone())
}

fn members(data: &Value) -> BTreeSet<&String> {
    data.as_object().unwrap().keys().collect()
}

/// The result for programs of a line in a shell of its own whose daemon is killed once it has begun;
/// `gate` opens under the next one.
fn restarted(
    home: &Home,
    daemon: Daemon,
    options: &str,
    line: &str,
) -> (Option<i32>, Value, Daemon) {
    let gate = home.path("gate");
    let mut child = run(home, &format!("--json {options}"), "s", &until(&gate, line));
    let child = child.stdout(Stdio::piped()).spawn().unwrap();
    assert!(home.run("wait s --until-pattern first --since 0").status.success());
    daemon.killed();
    let next = home.daemon();
    std::fs::write(&gate, "").unwrap();
    let ended = child.wait_with_output().unwrap();
    let envelope: Value = serde_json::from_slice(&ended.stdout).unwrap();
    (ended.status.code(), envelope["data"].clone(), next)
}

#[test]
fn it_waits_for_a_terminal_that_does_not_answer_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let mut child = run(&home, "", "s", &until(&gate, "(exit 5)"));
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(home.run("wait s --text first --since 0").status.success());
    let still = Still::of(&home);
    daemon.killed();
    let _next = home.daemon();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.any(|note| note.contains("its terminal does not answer")));
    drop(still);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn the_result_after_a_restart_has_the_members_of_any_other() {
    for (status, options, code, line) in [
        ("completed", "", 5, "(exit 5)"),
        ("needs_input", "", 122, "echo asks; read -p 'Sure? ' answer"),
        ("timeout", "--timeout 10s", 124, "echo late; sleep 1000"),
        ("exited", "", 3, "exit 3"),
    ] {
        let home = Home::new();
        let daemon = home.daemon();
        for name in ["s", "other"] {
            home.printed(&format!("new --name {name} -- bash"));
        }
        let line_of_other = format!("echo first; {line}");
        let other = &mut run(&home, &format!("--json {options}"), "other", &line_of_other);
        let (code_of_other, undisturbed) = result(other);
        let (code_of_this, data, _next) = restarted(&home, daemon, options, line);
        assert_eq!((code_of_this, code_of_other), (Some(code), Some(code)), "{data}");
        assert_eq!(data["status"], status, "{data}");
        assert_eq!(members(&data), members(&undisturbed), "{data} {undisturbed}");
        for member in ["exit_code", "evidence", "output", "lines_total", "prompt"] {
            assert_eq!(data[member], undisturbed[member], "{member} of {status}");
        }
    }
}

#[test]
fn whoever_ends_the_program_interrupts_the_command_also_under_the_next_daemon() {
    for (ending, restart) in [Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .flat_map(|signal| [(signal, false), (signal, true)])
    {
        let home = Home::new();
        let mut daemon = home.daemon();
        home.printed("new --name s -- bash");
        let gate = home.path("gate");
        let line = until(&gate, "echo second; sleep 1000");
        let (named, mut named_shown) = begun(run(&home, "", "s", &line));
        let (fresh, mut fresh_shown) = begun(run_fresh(&home, "", &[&line]));
        if restart {
            daemon.killed();
            daemon = home.daemon();
        }
        std::fs::write(&gate, "").unwrap();
        for (child, shown) in [(named, &mut named_shown), (fresh, &mut fresh_shown)] {
            let mut second = String::new();
            shown.read_line(&mut second).unwrap();
            assert_eq!(second, "second\n");
            signal(&child, ending);
            let ended = child.wait_with_output().unwrap();
            assert_eq!(ended.status.code(), Some(130), "{ending} {restart}: {ended:?}");
        }
        assert_eq!(home.envelope("commands s 1")["data"]["commands"][0]["exit_code"], 130);
        let listed = home.envelope("ls");
        assert_eq!(listed["data"]["sessions"].as_array().unwrap().len(), 1, "{listed}");
        drop(daemon);
    }
}

#[test]
fn who_is_killed_interrupts_the_command_also_under_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let (mut child, mut shown) =
        begun(run(&home, "", "s", &until(&gate, "echo second; sleep 1000")));
    daemon.killed();
    let _next = home.daemon();
    std::fs::write(&gate, "").unwrap();
    shown.read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(home.run("wait s --command-done --since 0").status.success());
    assert_eq!(home.envelope("commands s 1")["data"]["commands"][0]["exit_code"], 130);
}

#[test]
fn the_time_of_a_command_is_kept_while_no_daemon_is_there() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let line = "echo first; sleep 1000";
    home.printed("new --name t -- bash");
    let (people, _shown) = begun(run(&home, "--timeout 6s", "s", line));
    let (fresh, _shown_of_fresh) = begun(run_fresh(&home, "--timeout 6s", &[line]));
    let mut programs = run(&home, "--timeout 6s --json", "t", line);
    let programs = programs.stdout(Stdio::piped()).spawn().unwrap();
    assert!(home.run("wait t --text first --since 0").status.success());
    daemon.killed();
    let killed = Instant::now();
    let ended = people.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(124), "{ended:?}");
    let said = text(&ended.stderr);
    assert!(said.contains("`termgate wait s --command-done --since 0`"), "{said}");
    let ended = fresh.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(124), "{ended:?}");
    assert!(text(&ended.stderr).contains("` was kept"), "{ended:?}");
    let ended = programs.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(124), "{ended:?}");
    let envelope: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let data = &envelope["data"];
    assert_eq!((&data["status"], &data["exit_code"]), (&"timeout".into(), &Value::Null));
    assert!(data["warning"].as_str().unwrap().contains("the command keeps running"), "{data}");
    assert!(killed.elapsed() < AT_ONCE, "{:?}", killed.elapsed());
    let _next = home.daemon();
}

#[test]
fn a_command_that_ended_with_its_daemon_is_told_so_at_once() {
    // A daemon whose lock was taken away leaves what another may have kept.
    for lock_removed in [false, true] {
        let home = Home::new();
        let _daemon = home.daemon();
        home.printed("new --name s -- bash");
        let (people, _shown) = begun(run(&home, "", "s", "echo first; exec sleep 1000"));
        let (fresh, _shown_of_fresh) =
            begun(run_fresh(&home, "", &["echo first; exec sleep 1000"]));
        if lock_removed {
            std::fs::remove_file(lock_of(&home)).unwrap();
        }
        let stopped = Instant::now();
        home.printed("stop");
        for ended in [people, fresh].map(|child| child.wait_with_output().unwrap()) {
            let said = text(&ended.stderr);
            // The daemon may be gone before it could tell how the session ended.
            let told = ["the program of the session ended", "the session and the command with it"];
            assert!(told.iter().any(|words| said.contains(words)), "{lock_removed}: {said}");
            assert!(matches!(ended.status.code(), Some(123 | 7)), "{lock_removed}: {ended:?}");
            assert!(!said.contains("keeps running"), "{said}");
        }
        assert!(stopped.elapsed() < AT_ONCE, "{:?}", stopped.elapsed());
    }
}

fn lock_of(home: &Home) -> PathBuf {
    home.path("run/termgate/daemon.lock")
}

/// A socket behind which the daemon is, until it has told of a session that it created.
fn hanging_up_after_creation(home: &Home) -> PathBuf {
    let (socket, daemon) = (home.path("proxy.sock"), home.path("run/termgate/operator.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let daemon = UnixStream::connect(daemon).unwrap();
        let (mut asked, mut to_daemon) = (client.try_clone().unwrap(), daemon.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut asked, &mut to_daemon));
        for line in BufReader::new(daemon).lines() {
            let line = line.unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            writeln!(client, "{line}").unwrap();
            if message["result"]["structuredContent"]["session"]["name"].is_string() {
                client.shutdown(Shutdown::Both).unwrap();
                return;
            }
        }
    });
    socket
}

#[test]
fn a_session_whose_command_was_never_sent_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let socket = hanging_up_after_creation(&home);
    let mut command = home.command(PROGRAM);
    command.arg("--socket").arg(&socket).args(["run", "--", "touch", "ran"]);
    let ended = command.env("SHELL", "/bin/bash").output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    let said = text(&ended.stderr);
    let listed = home.envelope("ls");
    let name = listed["data"]["sessions"][0]["name"].as_str().unwrap();
    assert!(said.contains(&format!("session {name} is left with a shell")), "{said}");
    assert!(!home.path("home/ran").exists());
}

/// A socket beside that of the daemon, which hangs up instead of passing on that a request is cancelled.
fn hanging_up_at_cancellation(home: &Home) -> PathBuf {
    let (socket, daemon) =
        (home.path("run/termgate/proxy.sock"), home.path("run/termgate/operator.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut daemon = UnixStream::connect(daemon).unwrap();
        let (mut told, mut to_client) = (daemon.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut told, &mut to_client));
        for line in BufReader::new(&client).lines() {
            let line = line.unwrap();
            if line.contains("notifications/cancelled") {
                client.shutdown(Shutdown::Both).unwrap();
                return;
            }
            writeln!(daemon, "{line}").unwrap();
        }
    });
    socket
}

#[test]
fn an_interrupt_that_arrives_as_the_daemon_ends_tells_that_the_command_may_still_run() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let socket = hanging_up_at_cancellation(&home);
    let line = "echo first; sleep 1000";
    let options = format!("--socket {}", socket.display());
    let (child, _shown) = begun(run(&home, &options, "s", line));
    signal(&child, Signal::SIGINT);
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("the command may still run"), "{said}");
    assert!(said.contains("`termgate commands s 1`"), "{said}");
}
