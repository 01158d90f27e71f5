//! What an operator switched stays switched when the daemon is killed, and not when it is ended.

use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use termgate::session::pty::held::shims::living_shims;

use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::waiting::until;

const WRITABLE: &str = "serve --allow-write";
const READ_ONLY: &str = "serve --read-only";
const AS_CONFIGURED: &str = "serve";

/// A daemon that was started by hand, and what it said before it was ready.
struct Served {
    daemon: Daemon,
    said: String,
}

impl Served {
    /// Starts a daemon and waits until it is ready.
    async fn start(home: &Home, line: &str) -> Self {
        let mut daemon = home.start(home.termgate(line));
        daemon.is_ready().await;
        until("all of it", || daemon.said().contains("newline-delimited JSON")).await;
        let said = daemon.said();
        Self { daemon, said }
    }

    /// What it tells of writing.
    fn writing(&self) -> &str {
        let line = self.said.lines().find_map(|line| line.strip_prefix("writing   "));
        line.unwrap_or_else(|| panic!("nothing of writing: {}", self.said))
    }
}

/// The switches that are on.
fn on(home: &Home) -> Value {
    home.envelope("allow-write status")["data"]["on"].take()
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
    home.printed("new --name build -- cat");
    home.printed("allow-write off");
    for _ in 0..2 {
        home.kill_daemon().await;
        served = Served::start(&home, WRITABLE).await;
        let told = served.writing();
        assert!(told.starts_with("off everywhere, as it was switched before"), "{told}");
        assert_eq!(on(&home), json!([]));
        let (code, _, refused) = home.outcome("send build x");
        assert_eq!((code, refused.contains("read_only")), (5, true), "{refused}");
    }
    let told = home.printed("allow-write status");
    assert_eq!(told, "writing is off everywhere\nthe configuration says on\n");
    home.printed("allow-write on");
    home.printed("send build x");
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_switched_on_for_a_time_is_on_for_the_rest_of_it_after_a_crash() {
    let home = Home::new();
    let _first = Served::start(&home, AS_CONFIGURED).await;
    home.printed("allow-write on --for 10m");
    let end_at_most = since_boot() + 600_000;
    home.kill_daemon().await;
    let next = Served::start(&home, AS_CONFIGURED).await;
    assert!(next.writing().starts_with("on for everything for"), "{}", next.said);
    let asked = since_boot();
    let switches = on(&home);
    assert_eq!(switches[0]["scope"], "everything");
    let left = switches[0]["closes_in_ms"].as_u64().unwrap();
    // Had the time begun anew, it would end later by all that lies between.
    assert!(left > 0 && asked + left <= end_at_most + (since_boot() - asked), "{left}");
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_passes_after_a_crash_closes_as_it_would_have() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    home.printed("allow-write off");
    home.printed("allow-write on --for 2s");
    home.kill_daemon().await;
    let _next = Served::start(&home, WRITABLE).await;
    until("the end of the time", || on(&home) == json!([])).await;
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protected_session_is_protected_after_a_crash_and_what_held_before_a_time_holds_again() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    for name in ["spared", "other"] {
        home.printed(&format!("new --name {name} -- cat"));
    }
    home.printed("allow-write off --session spared");
    home.printed("allow-write on --session spared --for 10s");
    home.kill_daemon().await;
    let next = Served::start(&home, WRITABLE).await;
    assert!(next.writing().contains("on for everything, on for"), "{}", next.said);
    assert!(next.writing().contains("protected: "), "{}", next.said);
    home.printed("send spared x");
    until("the end of the time", || on(&home) == everything()).await;
    let told = home.printed("allow-write status");
    assert!(told.contains("(spared), also while it is on for everything"), "{told}");
    let refused = home.run("send spared x");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains("allow-write on --session spared"), "{said}");
    home.printed("send other x");
    home.printed("stop");
}

/// Ends what holds the terminal of a session, and leaves nothing by which it is found.
async fn end_shim(home: &Home, session: &str) {
    let session = session.parse().unwrap();
    let shim = || living_shims(&home.paths().shims()).unwrap().get(&session).copied();
    let pid = nix::unistd::Pid::from_raw(shim().unwrap().0);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("its end", || shim().is_none()).await;
    fs::remove_file(home.paths().shims().join(format!("{session}.sock"))).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_a_session_stays_with_the_session_and_goes_with_it() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    for name in ["kept", "gone"] {
        home.printed(&format!("new --name {name} -- cat"));
    }
    home.printed("allow-write off");
    for name in ["kept", "gone"] {
        home.printed(&format!("allow-write on --session {name}"));
    }
    let before = on(&home);
    assert_eq!(before.as_array().unwrap().len(), 2, "{before}");
    let listed = home.envelope("ls");
    let sessions = listed["data"]["sessions"].as_array().unwrap();
    let id_of = |name: &str| {
        let found = sessions.iter().find(|session| session["name"] == name);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    home.kill_daemon().await;
    end_shim(&home, &id_of("gone")).await;
    let _next = Served::start(&home, WRITABLE).await;
    assert_eq!(on(&home), json!([{"scope": id_of("kept")}]));
    home.printed("send kept x");
    home.printed("kill kept");
    home.kill_daemon().await;
    let _last = Served::start(&home, WRITABLE).await;
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_daemon_ended_in_order_the_next_is_as_it_is_configured() {
    for end in ["stop", ""] {
        let home = Home::new();
        let first = Served::start(&home, WRITABLE).await;
        home.printed("allow-write off");
        assert!(home.paths().switches().exists());
        match end {
            "" => first.daemon.signal(nix::sys::signal::Signal::SIGTERM),
            words => drop(home.printed(words)),
        }
        first.daemon.ends().await;
        assert!(!home.paths().switches().exists());
        let next = Served::start(&home, WRITABLE).await;
        assert!(next.writing().starts_with("on;"), "{}", next.said);
        assert_eq!(on(&home), everything());
        home.printed("stop");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_nobody_switched_keeps_nothing() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    home.printed("new --name short -- true");
    home.printed("kill short");
    home.kill_daemon().await;
    let next = Served::start(&home, AS_CONFIGURED).await;
    assert!(next.writing().starts_with("off;"), "{}", next.said);
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_on_the_command_line_is_read_only_whatever_was_switched() {
    let home = Home::new();
    let _first = Served::start(&home, AS_CONFIGURED).await;
    home.printed("allow-write on");
    home.kill_daemon().await;
    let next = Served::start(&home, READ_ONLY).await;
    assert!(next.writing().starts_with("off;"), "{}", next.said);
    assert_eq!(on(&home), json!([]));
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_understood_switches_off_and_the_log_says_what_to_do() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    home.printed("allow-write on");
    home.kill_daemon().await;
    let whole = fs::read_to_string(home.paths().switches()).unwrap();
    fs::write(home.paths().switches(), &whole[..whole.len() / 2]).unwrap();
    let next = Served::start(&home, WRITABLE).await;
    assert!(next.writing().starts_with("off: the setting from before"), "{}", next.said);
    let warned = next.said.lines().any(|line| {
        let path = home.paths().switches().display().to_string();
        line.contains("WARN") && line.contains(&path) && line.contains("termgate allow-write on")
    });
    assert!(warned, "{}", next.said);
    assert_eq!(on(&home), json!([]));
    home.printed("allow-write on");
    home.kill_daemon().await;
    let _last = Served::start(&home, AS_CONFIGURED).await;
    assert_eq!(on(&home), everything());
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_succeeds_where_nothing_can_be_kept_and_the_next_daemon_is_read_only() {
    let home = Home::new();
    let _first = Served::start(&home, WRITABLE).await;
    home.printed("allow-write on");
    // Stands for a disk that is full.
    fs::create_dir(home.paths().switches().with_extension("new")).unwrap();
    home.printed("allow-write off");
    assert_eq!(on(&home), json!([]));
    home.kill_daemon().await;
    let next = Served::start(&home, WRITABLE).await;
    assert!(next.writing().starts_with("off:"), "{}", next.said);
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_of_many_changes_is_what_the_next_daemon_finds() {
    let home = Home::new();
    let mut _served = Served::start(&home, WRITABLE).await;
    for _ in 0..5 {
        home.printed("allow-write off");
        std::thread::scope(|scope| {
            for tenant in 70_000..70_008 {
                let line = format!("allow-write on --tenant uid:{tenant}");
                scope.spawn(|| home.printed(&{ line }));
            }
        });
        let before = on(&home);
        assert_eq!(before.as_array().unwrap().len(), 8, "{before}");
        home.kill_daemon().await;
        _served = Served::start(&home, WRITABLE).await;
        assert_eq!(on(&home), before);
    }
    home.printed("stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_switches_is_told_when_that_is_not_kept() {
    let home = Home::new();
    let _served = Served::start(&home, AS_CONFIGURED).await;
    let told = home.printed("allow-write on");
    assert!(!told.contains("not kept"), "{told}");
    // Nothing can take its place, as on a disk that is full.
    fs::remove_file(home.paths().switches()).unwrap();
    fs::create_dir(home.paths().switches()).unwrap();
    let told = home.printed("allow-write on --for 1h");
    assert!(told.contains("not kept: all of it is off after the daemon was killed"), "{told}");
    assert_eq!(on(&home)[0]["scope"], "everything", "it counts all the same");
}
