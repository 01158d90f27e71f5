//! The configuration as an operator meets it: the program itself, its files, variables and signals.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, Wire};
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::waiting::{soon, until};

/// A home with a project, in which the program is run.
struct Place(Home);

impl Place {
    fn new() -> Self {
        let home = Home::new();
        fs::create_dir(home.path("home/project")).unwrap();
        Self(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Writes the user's file.
    fn configure(&self, text: &str) -> PathBuf {
        self.0.configure(text)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.0.termgate(line);
        command.current_dir(self.path("home/project"));
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command that must succeed, and gives back what it says to programs.
    fn data(&self, line: &str) -> Value {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["data"].take()
    }

    /// Starts a daemon and waits until clients can come.
    async fn serve(&self, words: &str) -> Served<'_> {
        let mut daemon = self.0.start(self.command(&format!("serve {words}")));
        daemon.is_ready().await;
        Served { daemon, home: &self.0 }
    }
}

/// A daemon in a process of its own.
struct Served<'a> {
    daemon: Daemon,
    home: &'a Home,
}

impl Served<'_> {
    async fn operator(&self) -> Wire {
        Wire::connect(&self.home.runtime("operator.sock"), Era::Legacy).await
    }

    async fn client(&self) -> Wire {
        Wire::connect(&self.home.runtime("gateway.sock"), Era::Modern).await
    }

    /// Has the daemon read its configuration again, and gives back what it logged of that up to a
    /// line with `last`.
    async fn reload(&self, last: &str) -> String {
        let before = self.daemon.said().len();
        self.daemon.signal(Signal::SIGHUP);
        let logged = || self.daemon.said()[before..].to_owned();
        until("the daemon to log", || logged().lines().any(|line| line.contains(last))).await;
        logged()
    }

    async fn stop(self) {
        let mut operator = self.operator().await;
        operator.send("termgate/stop", json!({})).await;
        assert_eq!(self.daemon.ends().await.0, Some(0));
    }
}

const AGAIN: &str = "the configuration was read again";

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn what_holds_is_shown_with_where_it_comes_from() {
    let place = Place::new();
    let user = place.configure("[lease]\nttl_ms = 20000\nwaiters = 3\n");
    let project = place.path("home/project/.termgate.toml");
    fs::write(&project, "lease.ttl_ms = 10000\n").unwrap();
    let mut command = place.command("config show --origin --json");
    let output = command.env("TERMGATE_SCREEN__FRAME_INTERVAL_MS", "20").output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (settings, origins) = (&shown["data"]["settings"], &shown["data"]["origins"]);
    for (key, value, origin) in [
        ("lease.ttl_ms", json!(10_000), format!("{}:1:7", project.display())),
        ("lease.waiters", json!(3), format!("{}:3:1", user.display())),
        ("screen.frame_interval_ms", json!(20), "TERMGATE_SCREEN__FRAME_INTERVAL_MS".to_owned()),
        ("allow_write", json!(false), "default".to_owned()),
    ] {
        assert_eq!((&settings[key], &origins[key]), (&value, &json!(origin)), "{key}");
    }
    let text = String::from_utf8(place.run("config show").stdout).unwrap();
    assert!(text.contains("\n[lease]\nttl_ms = 10000\n") && !text.contains('#'), "{text}");
}

#[test]
fn the_files_that_count_are_listed_in_their_order() {
    let place = Place::new();
    let user = place.configure("");
    fs::write(place.path("home/project/.termgate.toml"), "").unwrap();
    let files = place.data("config path --json")["files"].clone();
    let layers: Vec<&Value> = files.as_array().unwrap().iter().map(|file| &file["layer"]).collect();
    let beside = ["system", "user"].repeat(3);
    assert_eq!(layers, [vec!["system", "user", "project"], beside].concat());
    assert_eq!(files[0]["path"], "/etc/termgate/termgate.toml");
    assert_eq!(files[1], json!({"layer": "user", "path": user, "exists": true}));
    assert_eq!(files[3]["path"], "/etc/termgate/policy.toml");
    let policy = user.with_file_name("policy.toml");
    assert_eq!(files[4], json!({"layer": "user", "path": policy, "exists": false}));
    assert_eq!(files[5]["path"], "/etc/termgate/tenants.toml");
    let tenants = user.with_file_name("tenants.toml");
    assert_eq!(files[6], json!({"layer": "user", "path": tenants, "exists": false}));
    let given = place.data("config path --config my.toml --json")["files"].clone();
    let path = place.path("home/project/my.toml");
    assert_eq!(given[0], json!({"layer": "given", "path": path, "exists": false}));
}

#[test]
fn an_unknown_group_ends_a_check_and_a_start_and_is_told_how_to_make() {
    let place = Place::new();
    place.configure("sockets.observers = 'no-such-group'\n");
    for words in ["config check", "serve"] {
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let told = told(&output);
        assert!(told.contains("groupadd no-such-group"), "{words}: {told}");
    }
    assert!(!place.0.runtime("").exists(), "nothing was made");
}

#[tokio::test]
async fn who_may_connect_changes_when_the_daemon_restarts() {
    let place = Place::new();
    let served = place.serve("").await;
    let mode = |name: &str| fs::symlink_metadata(place.0.runtime(name)).unwrap().mode() & 0o777;
    place.configure("sockets.observers = '*'\n");
    let told = served.reload(AGAIN).await;
    assert!(told.contains("setting changes when the daemon restarts"), "{told}");
    assert_eq!((mode(""), mode("gateway.ro.sock")), (0o700, 0o600));
    served.stop().await;
    let served = place.serve("").await;
    assert_eq!((mode(""), mode("gateway.ro.sock")), (0o711, 0o666));
    assert_eq!((mode("gateway.sock"), mode("operator.sock")), (0o600, 0o600));
    served.stop().await;
}

#[test]
fn everything_that_is_wrong_is_told_and_ends_a_check_with_two() {
    let place = Place::new();
    assert!(place.run("config check").status.success());
    let user = place.configure("sessions.max = 0\nlease.ttl = 5\n");
    let checked = place.run("config check");
    assert_eq!(checked.status.code(), Some(2));
    let expected = [
        "termgate: the configuration has 2 problems (invalid_configuration)".to_owned(),
        format!("{}:1:16: sessions.max: 0 is not a whole number from 1 to 4096", user.display()),
        format!("{}:2:7: lease.ttl: unknown key; did you mean lease.ttl_ms?", user.display()),
    ];
    assert_eq!(told(&checked), expected.join("\n") + "\n");
    let checked = place.run("config check --json");
    let problems: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(problems["error_code"], "invalid_configuration");
    assert_eq!(problems["data"]["problems"][0]["key"], "sessions.max");
    // A single file is judged without the others.
    let fine = place.path("fine.toml");
    fs::write(&fine, "sessions.max = 1").unwrap();
    assert!(place.run(&format!("config check {}", fine.display())).status.success());
}

#[test]
fn a_project_that_would_let_clients_write_keeps_the_daemon_from_starting() {
    let place = Place::new();
    fs::write(place.path("home/project/.termgate.toml"), "allow_write = true\n").unwrap();
    let served = place.run("serve");
    assert_eq!(served.status.code(), Some(2));
    let expected = ".termgate.toml:1:1: allow_write: only the operator may set this";
    assert!(told(&served).contains(expected), "{}", told(&served));
}

#[tokio::test]
async fn a_project_that_asks_for_more_gets_what_holds_without_it_and_that_is_noted() {
    let place = Place::new();
    place.configure("lease.ttl_ms = 10000\n");
    let project = place.path("home/project/.termgate.toml");
    fs::write(&project, "lease.ttl_ms = 20000\nsessions.max = 1\n").unwrap();
    let at = format!("{}:1:7", project.display());
    let message = "not taken; the file of a project may only lower the 10000 that holds without it";
    for words in ["config show", "config check"] {
        let output = place.run(words);
        assert!(output.status.success(), "{output:?}");
        let note = format!("{at}: lease.ttl_ms: {message}");
        assert!(told(&output).lines().any(|line| line == note), "{}", told(&output));
        let noted = place.data(&format!("{words} --json"))["notes"].clone();
        assert_eq!(noted, json!([{"at": at, "key": "lease.ttl_ms", "message": message}]));
    }
    assert_eq!(place.data("config show --json")["settings"]["lease.ttl_ms"], 10_000);

    let served = place.serve("--allow-write").await;
    let log = served.daemon.said();
    let line = log.lines().find(|line| line.contains(&at)).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("WARN") && line.contains(message), "{line}");
    let mut client = served.client().await;
    client.start("exec cat").await;
    assert_eq!(client.error_code("create_session", json!({})).await, "quota_exceeded");
    served.stop().await;
}

#[test]
fn the_file_of_a_project_is_checked_against_what_holds_without_it() {
    let place = Place::new();
    place.configure("lease.ttl_ms = 60000\n");
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let file = elsewhere.join(".termgate.toml");
    let words = format!("config check {} --json", file.display());
    // Looser than what is built in, and tighter than what the user has.
    fs::write(&file, "lease.ttl_ms = 50000\n").unwrap();
    assert_eq!(place.data(&words), json!({"valid": true, "notes": []}));
    fs::write(&file, "lease.ttl_ms = 70000\n").unwrap();
    assert_eq!(place.data(&words)["notes"][0]["key"], "lease.ttl_ms");
    // What is wrong elsewhere is not this file's.
    place.configure("lease.ttl = 60000\n");
    assert!(place.run(&words).status.success());
}

#[test]
fn a_variable_that_is_misspelt_keeps_the_daemon_from_starting_and_the_nearest_is_told() {
    let place = Place::new();
    for (wrong, right) in [
        ("TERMGATE_ALOW_WRITE", "TERMGATE_ALLOW_WRITE"),
        ("TERMGATE_LEASE_TTL_MS", "TERMGATE_LEASE__TTL_MS"),
        ("TERMGATE_AUTO_START", "TERMGATE_AUTOSTART"),
    ] {
        let output = place.command("serve").env(wrong, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let expected = format!("{wrong}: unknown variable; did you mean {right}?");
        assert!(told(&output).contains(&expected), "{}", told(&output));
    }
    let mut inside = place.command("config check");
    inside.env("TERMGATE_SESSION", "0123456789ab").env("TERMGATE_AUTOSTART", "0");
    assert!(inside.output().unwrap().status.success());
}

async fn may_write(served: &Served<'_>) -> bool {
    let mut client = served.client().await;
    let listed = client.structured("list_sessions", json!({})).await;
    listed["write_allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn the_right_to_write_is_given_by_file_variable_and_flag_and_taken_by_a_flag() {
    let place = Place::new();
    let served = place.serve("").await;
    assert!(!may_write(&served).await);
    served.stop().await;
    let served = place.serve("--allow-write").await;
    assert!(may_write(&served).await);
    served.stop().await;
    place.configure("allow_write = true");
    let served = place.serve("").await;
    assert!(may_write(&served).await);
    served.stop().await;
    let served = place.serve("--read-only").await;
    assert!(!may_write(&served).await);
    served.stop().await;
}

#[tokio::test]
async fn a_running_daemon_takes_over_what_its_files_say_now() {
    let place = Place::new();
    let served = place.serve("--allow-write").await;
    let mut client = served.client().await;
    let typing = |session: &str| json!({"session": session, "text": "x"});
    let session = client.start("exec cat").await;
    assert_eq!(client.error_code("send_text", typing(&session)).await, "lease_required");

    place.configure("lease.auto = true\nsessions.max = 1\nconnections.parsing_bytes = 5000000\n");
    let log = served.reload(AGAIN).await;
    for (words, key) in [
        (&["INFO", "setting changed", "before=false after=true"][..], "lease.auto"),
        (&["INFO", "setting changed", "before=512 after=1"], "sessions.max"),
        (&["WARN", "when the daemon restarts"], "connections.parsing_bytes"),
    ] {
        let line = log.lines().find(|line| line.contains(key)).unwrap();
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    client.structured("send_text", typing(&session)).await;
    assert_eq!(client.error_code("create_session", json!({})).await, "quota_exceeded");

    place.configure("calls.per_second = 1\n");
    served.reload(AGAIN).await;
    let refusal = async {
        while client.call("list_sessions", json!({})).await["structuredContent"]["error_code"]
            != "rate_limited"
        {}
    };
    soon("a refusal", refusal).await;
    served.stop().await;
}

#[tokio::test]
async fn a_file_with_a_mistake_changes_nothing_in_a_running_daemon() {
    let place = Place::new();
    place.configure("sessions.max = 1");
    let served = place.serve("--allow-write").await;
    let mut client = served.client().await;
    client.start("exec cat").await;
    let path = place.configure("sessions.max = 5\nlease.tll_ms = 1\n");
    let log = served.reload("the configuration is unchanged").await;
    let expected = format!("{}:2:7: lease.tll_ms: unknown key", path.display());
    assert!(log.contains(&expected), "{log}");
    assert_eq!(client.error_code("create_session", json!({})).await, "quota_exceeded");
    served.stop().await;
}

#[tokio::test]
async fn reading_again_neither_gives_the_right_to_write_nor_takes_it() {
    let place = Place::new();
    let served = place.serve("").await;
    place.configure("allow_write = true");
    let log = served.reload(AGAIN).await;
    assert!(log.contains("allow_write") && log.contains("when the daemon restarts"), "{log}");
    assert!(!may_write(&served).await);

    let mut operator = served.operator().await;
    operator.structured("set_write", json!({"state": "on"})).await;
    place.configure("allow_write = false");
    served.reload(AGAIN).await;
    assert!(may_write(&served).await);
    served.stop().await;
}

#[test]
fn asking_for_the_configuration_starts_and_makes_nothing() {
    let place = Place::new();
    place.data("config show --json");
    for directory in ["state", "run"] {
        assert_eq!(fs::read_dir(place.path(directory)).unwrap().count(), 0, "{directory}");
    }
}
