//! `run` where rules ask: about what it asks, that it can be given up meanwhile, and what it leaves.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::blocking::until;
use crate::commands::seat::start;
use crate::harness::home::{Home, PATH};

/// A home whose daemon asks as the set `careful` does.
pub(crate) fn careful_home() -> Home {
    let home = Home::new();
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, home.printed("policy starter careful")).unwrap();
    home
}

/// Starts `run` with these words, which waits for an approval then.
fn waiting(home: &Home, words: &str) -> (Child, BufReader<ChildStderr>) {
    waiting_for(home, &format!("run {words}"))
}

/// Starts a command that waits for an approval then.
fn waiting_for(home: &Home, words: &str) -> (Child, BufReader<ChildStderr>) {
    asked(home.termgate(words))
}

/// The same.
pub(crate) fn asked(mut command: Command) -> (Child, BufReader<ChildStderr>) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(said.starts_with("waits for an approval: termgate approve "), "{command:?}: {said}");
    (child, stderr)
}

#[test]
fn nobody_is_asked_about_the_callers_own_environment() {
    let home = careful_home();
    let _daemon = home.daemon();
    // The last one is handed on as by `new`.
    for (name, value) in [("FROM_CALLER", "caller"), ("PATH", &*format!("/nowhere:{PATH}"))] {
        let mut command = home.termgate("run -- true");
        let output = command.env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("approval:"), "{name}: {said}");
    }
}

#[test]
fn what_changes_which_programs_run_is_asked_about_as_long_as_run_waits() {
    let home = careful_home();
    let _daemon = home.daemon();
    let mut given = home.termgate("run --timeout 10ms --env PATH=/nowhere -- true");
    let mut inherited = home.termgate("run --timeout 10ms -- true");
    for command in [&mut given, inherited.env("BASH_ENV", "/nowhere")] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("termgate approve"), "{said}");
    }
}

#[test]
fn a_signal_ends_run_while_it_waits_for_an_approval() {
    let home = careful_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let kept = home.path("home/kept");
    std::fs::create_dir(&kept).unwrap();
    for (words, signal, code) in [
        ("--env BASH_ENV=/nowhere -- true", Signal::SIGINT, 130),
        ("--env BASH_ENV=/nowhere --json -- true", Signal::SIGTERM, 143),
        ("-- rm -rf kept", Signal::SIGHUP, 129),
        ("build rm -rf kept", Signal::SIGINT, 130),
    ] {
        let (mut child, mut stderr) = waiting(&home, words);
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{words}");
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let expected = "interrupted while it waited for an approval; nothing ran\n";
        let expected = if words.contains("--json") { "" } else { expected };
        assert_eq!(said, expected, "{words}");
        until("nothing to wait", || home.printed("approve") == "nothing waits for an approval\n");
    }
    assert!(kept.exists());
}

#[test]
fn run_ends_the_session_that_it_made_or_says_why_it_was_kept() {
    let home = careful_home();
    let _daemon = home.daemon();
    let sessions = || home.envelope("ls")["data"]["sessions"].as_array().unwrap().clone();
    let ended = home.run("run -- true");
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]), "{ended:?}");
    assert!(sessions().is_empty());
    // One that was made to be kept is asked about.
    start(&home, "exec bash --norc");
    let (mut child, _) = waiting_for(&home, "kill build");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let policy = home.configure("").with_file_name("policy.toml");
    let rule = "[[rule]]\nname = 'keep'\neffect = 'deny'\ntool = 'manage_session'\n";
    std::fs::write(policy, rule).unwrap();
    home.printed("config reload");
    let ended = home.run("run -- true");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains(" was kept: ") && said.contains("`termgate kill "), "{said}");
    assert_eq!(sessions().len(), 2);
}
