//! What an operator switched stays switched when the daemon is killed, and not when it is ended.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use termgate::session::pty::held::shims::living_shims;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::daemon::program::Home;
use crate::line_client::soon;

const WRITABLE: &[&str] = &["serve", "--allow-write"];
const READ_ONLY: &[&str] = &["serve", "--read-only"];
const AS_CONFIGURED: &[&str] = &["serve"];

/// A daemon that was started by hand, and what it said before it was ready.
struct Served {
    child: Child,
    said: String,
}

impl Served {
    /// Starts a daemon and waits until it is ready.
    async fn start(home: &Home, words: &[&str]) -> Self {
        let mut child = home.command(words).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let reading = async {
            while !said.contains("newline-delimited JSON") {
                let line = lines.next_line().await.unwrap();
                said += &line.unwrap_or_else(|| panic!("it ended: {said}"));
                said.push('\n');
            }
        };
        soon("the daemon", reading).await;
        // Whatever it says later is nobody's, and it does not wait for anybody to read it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, said }
    }

    /// What it tells of writing.
    fn writing(&self) -> &str {
        let line = self.said.lines().find_map(|line| line.strip_prefix("writing   "));
        line.unwrap_or_else(|| panic!("nothing of writing: {}", self.said))
    }
}

/// Runs a command that must succeed, and gives back what it printed.
async fn runs(home: &Home, words: &[&str]) -> String {
    let (code, printed, said) = home.run(words).await;
    assert_eq!(code, 0, "{words:?}: {said}");
    printed
}

/// The switches that are on.
async fn on(home: &Home) -> Value {
    let printed = runs(home, &["allow-write", "status", "--json"]).await;
    let told: Value = serde_json::from_str(&printed).unwrap();
    told["data"]["on"].clone()
}

fn everything() -> Value {
    json!([{"scope": "everything"}])
}

/// How long ago the machine was booted, in milliseconds.
fn since_boot() -> u64 {
    let time = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
    time.as_millis().try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_switched_off_is_off_after_a_crash_though_the_configuration_says_on() {
    let home = Home::new();
    let mut served = Served::start(&home, WRITABLE).await;
    assert!(served.writing().starts_with("on;"), "{}", served.said);
    runs(&home, &["new", "--name", "build", "--", "cat"]).await;
    runs(&home, &["allow-write", "off"]).await;
    for _ in 0..2 {
        home.kill_daemon().await;
        served = Served::start(&home, WRITABLE).await;
        let told = served.writing();
        assert!(told.starts_with("off everywhere, as it was switched before"), "{told}");
        assert_eq!(on(&home).await, json!([]));
        let (code, _, refused) = home.run(&["send", "build", "x"]).await;
        assert_eq!((code, refused.contains("read_only")), (5, true), "{refused}");
    }
    let told = runs(&home, &["allow-write", "status"]).await;
    assert_eq!(told, "writing is off everywhere\nthe configuration says on\n");
    runs(&home, &["allow-write", "on"]).await;
    runs(&home, &["send", "build", "x"]).await;
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_switched_on_for_a_time_is_on_for_the_rest_of_it_after_a_crash() {
    let home = Home::new();
    let _first = Served::start(&home, AS_CONFIGURED).await;
    runs(&home, &["allow-write", "on", "--for", "10m"]).await;
    let end_at_most = since_boot() + 600_000;
    home.kill_daemon().await;
    let next = Served::start(&home, AS_CONFIGURED).await;
    assert!(next.writing().starts_with("on for everything for"), "{}", next.said);
    let asked = since_boot();
    let switches = on(&home).await;
    assert_eq!(switches[0]["scope"], "everything");
    let left = switches[0]["closes_in_ms"].as_u64().unwrap();
    // Had the time begun anew, it would end later by all that lies between.
    assert!(left > 0 && asked + left <= end_at_most + (since_boot() - asked), "{left}");
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_passes_after_a_crash_closes_as_it_would_have() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    runs(&home, &["allow-write", "off"]).await;
    runs(&home, &["allow-write", "on", "--for", "2s"]).await;
    home.kill_daemon().await;
    let _next = Served::start(&home, WRITABLE).await;
    soon("the end of the time", async { while on(&home).await != json!([]) {} }).await;
    runs(&home, &["stop"]).await;
}

/// Ends what holds the terminal of a session, and leaves nothing by which it is found.
async fn end_shim(home: &Home, session: &str) {
    let session = session.parse().unwrap();
    let shim = || living_shims(&home.paths.shims()).unwrap().get(&session).copied();
    let pid = nix::unistd::Pid::from_raw(shim().unwrap().0);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let ended = async {
        while shim().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    fs::remove_file(home.paths.shims().join(format!("{session}.sock"))).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_a_session_stays_with_the_session_and_goes_with_it() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    for name in ["kept", "gone"] {
        runs(&home, &["new", "--name", name, "--", "cat"]).await;
    }
    runs(&home, &["allow-write", "off"]).await;
    for name in ["kept", "gone"] {
        runs(&home, &["allow-write", "on", "--session", name]).await;
    }
    let before = on(&home).await;
    assert_eq!(before.as_array().unwrap().len(), 2, "{before}");
    let listed = runs(&home, &["ls", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let sessions = listed["data"]["sessions"].as_array().unwrap();
    let id_of = |name: &str| {
        let found = sessions.iter().find(|session| session["name"] == name);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    home.kill_daemon().await;
    end_shim(&home, &id_of("gone")).await;
    let _next = Served::start(&home, WRITABLE).await;
    assert_eq!(on(&home).await, json!([{"scope": id_of("kept")}]));
    runs(&home, &["send", "kept", "x"]).await;
    runs(&home, &["kill", "kept"]).await;
    home.kill_daemon().await;
    let _last = Served::start(&home, WRITABLE).await;
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_daemon_ended_in_order_the_next_is_as_it_is_configured() {
    for end in [&["stop"][..], &[]] {
        let home = Home::new();
        let mut first = Served::start(&home, WRITABLE).await;
        runs(&home, &["allow-write", "off"]).await;
        assert!(home.paths.switches().exists());
        match end {
            [] => {
                let pid = home.daemon().unwrap();
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
            }
            words => drop(runs(&home, words).await),
        }
        soon("the end of the daemon", first.child.wait()).await.unwrap();
        assert!(!home.paths.switches().exists());
        let next = Served::start(&home, WRITABLE).await;
        assert!(next.writing().starts_with("on;"), "{}", next.said);
        assert_eq!(on(&home).await, everything());
        runs(&home, &["stop"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_nobody_switched_keeps_nothing() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    runs(&home, &["new", "--name", "short", "--", "true"]).await;
    runs(&home, &["kill", "short"]).await;
    home.kill_daemon().await;
    let next = Served::start(&home, AS_CONFIGURED).await;
    assert!(next.writing().starts_with("off;"), "{}", next.said);
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_on_the_command_line_is_read_only_whatever_was_switched() {
    let home = Home::new();
    let _first = Served::start(&home, AS_CONFIGURED).await;
    runs(&home, &["allow-write", "on"]).await;
    home.kill_daemon().await;
    let next = Served::start(&home, READ_ONLY).await;
    assert!(next.writing().starts_with("off;"), "{}", next.said);
    assert_eq!(on(&home).await, json!([]));
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_understood_switches_off_and_the_log_says_what_to_do() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    runs(&home, &["allow-write", "on"]).await;
    home.kill_daemon().await;
    let whole = fs::read_to_string(home.paths.switches()).unwrap();
    fs::write(home.paths.switches(), &whole[..whole.len() / 2]).unwrap();
    let next = Served::start(&home, WRITABLE).await;
    assert!(next.writing().starts_with("off: the setting from before"), "{}", next.said);
    let warned = next.said.lines().any(|line| {
        let path = home.paths.switches().display().to_string();
        line.contains("WARN") && line.contains(&path) && line.contains("termgate allow-write on")
    });
    assert!(warned, "{}", next.said);
    assert_eq!(on(&home).await, json!([]));
    runs(&home, &["allow-write", "on"]).await;
    home.kill_daemon().await;
    let _last = Served::start(&home, AS_CONFIGURED).await;
    assert_eq!(on(&home).await, everything());
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_succeeds_where_nothing_can_be_kept_and_the_next_daemon_is_read_only() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    runs(&home, &["allow-write", "on"]).await;
    // Stands for a disk that is full.
    fs::create_dir(home.paths.switches().with_extension("new")).unwrap();
    runs(&home, &["allow-write", "off"]).await;
    assert_eq!(on(&home).await, json!([]));
    home.kill_daemon().await;
    let next = Served::start(&home, WRITABLE).await;
    assert!(next.writing().starts_with("off:"), "{}", next.said);
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_of_many_changes_is_what_the_next_daemon_finds() {
    let home = Home::new();
    let mut _served = Served::start(&home, WRITABLE).await;
    for _ in 0..5 {
        runs(&home, &["allow-write", "off"]).await;
        let tenants: Vec<String> = (0..8).map(|n| format!("uid:{}", 70_000 + n)).collect();
        let switching = tenants.iter().map(|tenant| {
            let command = home.command(&["allow-write", "on", "--tenant", tenant]).output();
            async move { assert!(command.await.unwrap().status.success()) }
        });
        for one in switching.map(tokio::spawn).collect::<Vec<_>>() {
            soon("a switch", one).await.unwrap();
        }
        let before = on(&home).await;
        assert_eq!(before.as_array().unwrap().len(), 8, "{before}");
        home.kill_daemon().await;
        _served = Served::start(&home, WRITABLE).await;
        assert_eq!(on(&home).await, before);
    }
    runs(&home, &["stop"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_switches_is_told_when_that_is_not_kept() {
    let home = Home::new();
    let _served = Served::start(&home, AS_CONFIGURED).await;
    let told = runs(&home, &["allow-write", "on"]).await;
    assert!(!told.contains("not kept"), "{told}");
    // Nothing can take its place, as on a disk that is full.
    fs::remove_file(home.paths.switches()).unwrap();
    fs::create_dir(home.paths.switches()).unwrap();
    let told = runs(&home, &["allow-write", "on", "--for", "1h"]).await;
    assert!(told.contains("not kept: all of it is off after the daemon was killed"), "{told}");
    assert_eq!(on(&home).await[0]["scope"], "everything", "it counts all the same");
}
