//! `doctor` where all is well, and where one thing after the other is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Output;

use serde_json::Value;

use crate::harness::home::Home;

/// What it finds of one subject.
fn check(home: &Home, name: &str) -> Value {
    let told = home.envelope("doctor");
    let checks = told["data"]["checks"].as_array().unwrap_or_else(|| panic!("{told}"));
    checks.iter().find(|check| check["name"] == name).cloned().unwrap_or_else(|| panic!("{told}"))
}

/// Whether it found this subject to be so, with advice where it is not fine, and ended by it.
fn assert_found(home: &Home, name: &str, verdict: &str, part: &str) {
    let check = check(home, name);
    assert_eq!(check["verdict"], verdict, "{check}");
    assert!(check["found"].as_str().unwrap().contains(part), "{check}");
    assert_eq!(check["advice"].is_string(), verdict != "ok", "{check}");
    let expected = if verdict == "fail" { 1 } else { 0 };
    assert_eq!(home.run("doctor").status.code(), Some(expected), "{check}");
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn where_all_is_well_nothing_fails_and_every_subject_is_told() {
    let home = Home::new();
    let daemon = home.daemon();
    let output = home.run("doctor");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = text(&output);
    assert!(!text.lines().any(|line| line.starts_with("fail")), "{text}");
    for name in [
        "runtime directory",
        "socket paths",
        "sockets",
        "daemon",
        "writing",
        "configuration",
        "log",
        "terminals",
        "descriptors",
        "shells",
        "terminfo",
        "sandbox",
        "service",
        "clients",
    ] {
        assert!(text.lines().any(|line| line[6..].starts_with(name)), "{name} is not in {text}");
    }
    assert_found(&home, "daemon", "ok", &format!("process {}", daemon.pid()));
    assert_found(&home, "sockets", "ok", "3");
    assert_found(&home, "writing", "ok", "on for everything");
}

#[test]
fn before_anything_was_started_nothing_fails_and_nothing_is_made() {
    let home = Home::new();
    assert_found(&home, "daemon", "warn", "none runs");
    assert_found(&home, "runtime directory", "ok", "not there yet");
    assert_found(&home, "configuration", "ok", "defaults");
    assert!(!home.path("run/termgate").exists());
}

#[test]
fn a_read_only_daemon_is_a_warning() {
    let home = Home::new();
    let _daemon = home.daemon_with("--read-only");
    assert_found(&home, "writing", "warn", "off everywhere");
}

#[test]
fn a_directory_that_others_can_look_into_fails_with_the_way_to_mend_it() {
    let home = Home::new();
    fs::create_dir(home.path("run/termgate")).unwrap();
    fs::set_permissions(home.path("run/termgate"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_found(&home, "runtime directory", "fail", "chmod 700");
}

#[test]
fn a_place_too_deep_for_sockets_fails() {
    let home = Home::new();
    let deep = home.path(&"deep".repeat(30));
    let mut doctor = home.termgate("doctor");
    let output = doctor.env("TERMGATE_RUNTIME_DIR", deep).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("107 is the most"), "{output:?}");
}

#[test]
fn sockets_of_a_daemon_that_was_killed_are_a_warning() {
    let home = Home::new();
    home.daemon().killed();
    assert_found(&home, "sockets", "warn", "3 stale");
    assert_found(&home, "daemon", "warn", "none runs");
}

#[test]
fn a_socket_that_others_may_use_fails() {
    let home = Home::new();
    let _daemon = home.daemon();
    let socket = home.path("run/termgate/gateway.sock");
    fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
    assert_found(&home, "sockets", "fail", "can be used by others");
}

#[test]
fn a_daemon_that_does_not_greet_fails() {
    let home = Home::new();
    for part in ["run/termgate", "run/termgate/s"] {
        fs::create_dir(home.path(part)).unwrap();
        fs::set_permissions(home.path(part), PermissionsExt::from_mode(0o700)).unwrap();
    }
    let _silent = UnixListener::bind(home.path("run/termgate/operator.sock")).unwrap();
    let found = check(&home, "daemon");
    assert_eq!(found["verdict"], "fail", "{found}");
}

#[test]
fn a_configuration_that_cannot_be_read_fails_with_its_line() {
    let home = Home::new();
    home.configure("\nno_such_key = 1\n");
    assert_found(&home, "configuration", "fail", "termgate.toml:2");
    home.configure("allow_write = true\n");
    assert_found(&home, "configuration", "ok", "is fine");
}

#[test]
fn a_file_beside_the_configuration_that_nobody_reads_is_a_warning() {
    let home = Home::new();
    fs::create_dir_all(home.path("config/termgate")).unwrap();
    fs::write(home.path("config/termgate/config.toml"), "allow_write = true\n").unwrap();
    assert_found(&home, "configuration", "warn", "config/termgate/config.toml is not read");
}

#[test]
fn a_project_that_asks_for_more_than_it_gets_is_a_warning() {
    let home = Home::new();
    fs::write(home.path("home/.termgate.toml"), "lease.ttl_ms = 40000\n").unwrap();
    assert_found(&home, "configuration", "warn", ".termgate.toml:1:7: lease.ttl_ms: not taken");
}

#[test]
fn inside_a_session_it_says_that_nothing_can_be_done_there() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut doctor = home.termgate("doctor");
    let output = doctor.env("TERMGATE_SESSION", "0123456789ab").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("inside a session"), "{output:?}");
}

#[test]
fn few_descriptors_and_a_shell_that_is_not_there_are_warnings() {
    let home = Home::new();
    let mut shell = home.command("sh");
    shell.args(["-c", "ulimit -n 256; exec termgate doctor"]).env("SHELL", "/no/such/shell");
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = text(&output);
    for part in ["256 for a daemon", "SHELL is /no/such/shell, which cannot be used"] {
        let line = text.lines().find(|line| line.contains(part));
        assert!(line.is_some_and(|line| line.starts_with("warn")), "{part}: {text}");
    }
}

#[test]
fn without_any_shell_it_fails() {
    let home = Home::new();
    let mut doctor = home.termgate("doctor");
    let output = doctor.env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("no sh in PATH"), "{output:?}");
}
