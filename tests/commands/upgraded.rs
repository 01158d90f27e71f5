//! Calls that are under way while the daemon is upgraded, or followed by one that allows less: what they
//! tell is true of all the time they took.

use std::io::BufRead;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::time::Instant;

use crate::commands::blocking::until;
use crate::commands::run::{begun, run, text};
use crate::harness::home::Home;

/// Waits until so many clients are connected, of which the one that asks is another.
fn until_connected(home: &Home, clients: u64) {
    let connections = || home.envelope("ls --daemon")["data"]["connections"]["open"].as_u64();
    until("clients to come", || connections().unwrap() > clients);
}

fn told(child: Child) -> (Option<i32>, Value) {
    let ended = child.wait_with_output().unwrap();
    let envelope: Value = serde_json::from_slice(&ended.stdout).unwrap();
    (ended.status.code(), envelope["data"].clone())
}

#[test]
fn a_wait_over_an_upgrade_tells_the_time_from_its_beginning() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let mut waiting = home.termgate("wait s --text over-now --timeout 30s --json");
    let child = waiting.stdout(Stdio::piped()).spawn().unwrap();
    until_connected(&home, 1);
    let since = Instant::now();
    home.printed("upgrade");
    // It waits for the next daemon as well.
    until_connected(&home, 1);
    let before = since.elapsed();
    run(&home, "", "s", "echo over-no''w").output().unwrap();
    let (code, data) = told(child);
    assert_eq!((code, &data["outcome"]), (Some(0), &"matched".into()), "{data}");
    let elapsed = Duration::from_millis(data["elapsed_ms"].as_u64().unwrap());
    assert!(elapsed >= before - Duration::from_millis(1), "{data} {before:?}");
}

#[test]
fn who_typed_and_waits_over_an_upgrade_is_told_how_to_go_on_and_typed_once() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line = format!(
        "echo x >>typed; until [ -e {} ]; do sleep 0.05; done; echo o''ver",
        gate.display()
    );
    let mut sending = home.termgate("send s --enter --until-text over --wait 30s");
    let sending = sending.arg(&line).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = sending.spawn().unwrap();
    let typed = home.path("home/typed");
    until("something to be typed", || typed.exists());
    home.printed("upgrade");
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("do not type them again"), "{said}");
    let (_, since) = said.split_once("--since ").unwrap();
    let since: String = since.chars().take_while(char::is_ascii_digit).collect();
    std::fs::write(gate, "").unwrap();
    home.printed(&format!("wait s --text over --since {since}"));
    assert_eq!(std::fs::read_to_string(typed).unwrap(), "x\n");
}

#[test]
fn whoever_ends_run_under_a_read_only_daemon_is_told_that_it_interrupted_nothing() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line = format!(
        "echo first; until [ -e {} ]; do sleep 0.05; done; echo second; sleep 1000",
        gate.display()
    );
    let (child, mut shown) = begun(run(&home, "", "s", &line));
    daemon.killed();
    let _next = home.daemon_with("--read-only");
    std::fs::write(gate, "").unwrap();
    let mut second = String::new();
    shown.read_line(&mut second).unwrap();
    assert_eq!(second, "second\n");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert!(said.contains("interrupts nothing"), "{:?}: {said}", ended.status.code());
    let commands = home.envelope("commands s 1");
    assert_eq!(commands["data"]["commands"][0]["status"], "running", "{commands}");
}
