//! A command that was sent is the same command for every later daemon, whenever the one that sent it
//! is killed: its number, its text, who sent it and when, and what became of it.
//!
//! Each shell that is installed goes through it, those that tell marks and one that does not.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::home::furnish;
use crate::harness::waiting::soon;
use crate::outlive::client::Client;
use crate::outlive::home::Home;

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "dash"];
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Two daemons read the clocks at different moments, and tell milliseconds.
const CLOCKS_APART_MS: u64 = 5;

/// A shell of some kind, and the daemon that has it now.
struct Shell {
    home: Home,
    daemon: Daemon,
    client: Client,
    name: &'static str,
    session: String,
    lease: Value,
    /// A command ends once this is there.
    go: PathBuf,
}

impl Shell {
    async fn start(name: &'static str) -> Self {
        let home = Home::new();
        let own = home.path("own");
        furnish(&own);
        // A zsh that finds none asks people what it shall write into it.
        fs::write(own.join(".zshrc"), "").unwrap();
        let daemon = home.serve().await;
        let mut client = home.client().await;
        let shell = json!({
            "command": name, "args": ["-i"], "cwd": own,
            "env": {"HOME": own, "PATH": PATH, "HISTFILE": ""},
        });
        let created = client.must("create_session", shell).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        let lease = created["lease"]["lease_id"].clone();
        let go = home.path("go");
        let mut shell = Self { home, daemon, client, name, session, lease, go };
        // It has written its first prompt then.
        shell.run("true", 20_000).await;
        shell
    }

    /// Kills the daemon, and has the next one answer.
    async fn restart(self) -> Self {
        self.restart_after(|| {}).await
    }

    /// The same with something that happens while no daemon runs.
    async fn restart_after(self, meanwhile: impl FnOnce()) -> Self {
        let mut shell = self.restart_without_lease(meanwhile).await;
        let again = json!({"session": shell.session, "lease_id": shell.lease});
        shell.client.must("acquire_lease", again).await;
        shell
    }

    /// The same, and nobody takes the lease back.
    async fn restart_without_lease(self, meanwhile: impl FnOnce()) -> Self {
        self.daemon.kill().await;
        meanwhile();
        let daemon = self.home.serve().await;
        let client = self.home.client().await;
        Self { daemon, client, ..self }
    }

    async fn run(&mut self, command: &str, timeout_ms: u64) -> Value {
        let run = json!({
            "session": self.session, "command": command, "lease_id": self.lease,
            "timeout_ms": timeout_ms,
        });
        self.client.must("run", run).await
    }

    /// Sends a command that prints numbered lines until it is told to go, and gives back its id.
    async fn count(&mut self) -> u64 {
        let line = self.counting();
        let sent = self.run(&line, 500).await;
        assert_eq!(sent["status"], "timeout", "{}: {sent}", self.name);
        sent["command_id"].as_u64().unwrap()
    }

    /// Waits until a command has counted that far.
    async fn until_it_counts(&mut self, number: u64) {
        let far = json!({
            "session": self.session, "text": format!("tick {number}"), "timeout_ms": 20_000,
        });
        let waited = self.client.must("wait_for", far).await;
        assert_eq!(waited["outcome"], "matched", "{}: {waited}", self.name);
    }

    fn counting(&self) -> String {
        let go = self.go.display();
        format!(
            "sh -c 'i=0; while [ ! -e {go} ]; do i=$((i+1)); echo tick $i; sleep 0.02; done; exit 5'"
        )
    }

    /// What is known of a command, with its first lines.
    async fn known(&mut self, id: u64) -> Value {
        let asked = json!({"session": self.session, "id": id, "head": 2_000});
        self.client.must("read_commands", asked).await
    }

    /// What is known of a command once it has ended.
    async fn ended(&mut self, id: u64) -> Value {
        let looking = async {
            loop {
                let known = self.known(id).await;
                if known["commands"][0]["status"] != "running" {
                    return known;
                }
            }
        };
        soon("the end of a command", looking).await
    }

    /// Asserts that a command that counted is the one that was told, and ended as it did.
    async fn must_have_counted(&mut self, id: u64, told: &Value) {
        let ended = self.ended(id).await;
        self.must_be(&ended, told);
        let known = &ended["commands"][0];
        assert_eq!(known["exit_code"], 5, "{}: {ended}", self.name);
        assert_eq!(known["status"], "completed", "{}: {ended}", self.name);
        assert_eq!(known["evidence"], "osc133", "{}: {ended}", self.name);
        let lines = ended["output"].as_str().unwrap().lines();
        let counted = lines.clone().zip(1..).all(|(line, number)| line == format!("tick {number}"));
        assert!(counted && lines.count() > 1, "{}: {ended}", self.name);
    }

    /// Asserts that what is known of a command is what was told of it before.
    fn must_be(&self, known: &Value, told: &Value) {
        let (known, told) = (&known["commands"][0], &told["commands"][0]);
        for member in ["command_id", "command", "by"] {
            assert_eq!(known[member], told[member], "{}: {member}: {known}", self.name);
        }
        // Nobody knows the directory of a command before it begins.
        assert!(told["cwd"].is_null() || known["cwd"] == told["cwd"], "{}: {known}", self.name);
        let apart = |member: &str| {
            let [known, told] = [known, told].map(|it| it[member].as_u64().unwrap());
            known.abs_diff(told)
        };
        assert!(apart("started") <= CLOCKS_APART_MS, "{}: {known}, told {told}", self.name);
        if told["status"] != "running" {
            assert_eq!(apart("duration_ms"), 0, "{}: {known}, told {told}", self.name);
            for member in ["status", "exit_code", "evidence"] {
                assert_eq!(known[member], told[member], "{}: {known}", self.name);
            }
        }
    }

    /// Asserts that the next command is another one than all before.
    async fn must_go_on_after(&mut self, id: u64) {
        let next = self.run("echo fine", 20_000).await;
        assert_eq!(next["status"], "completed", "{}: {next}", self.name);
        assert_eq!(next["output"], "fine", "{}: {next}", self.name);
        assert_eq!(next["command_id"], id + 1, "{}: {next}", self.name);
    }
}

/// Does the same with each shell that is installed.
async fn with_each(work: impl AsyncFn(Shell)) {
    let is_installed =
        |name: &&str| PATH.split(':').any(|at| PathBuf::from(at).join(name).exists());
    for name in SHELLS.iter().filter(|name| is_installed(name)) {
        work(Shell::start(name).await).await;
    }
}

#[tokio::test]
async fn a_command_is_the_same_when_the_daemon_is_killed_as_soon_as_it_has_answered() {
    with_each(async |mut shell| {
        let id = shell.count().await;
        let told = shell.known(id).await;
        let mut shell = shell.restart().await;
        let known = shell.known(id).await;
        assert_eq!(known["commands"][0]["status"], "running", "{}: {known}", shell.name);
        shell.must_be(&known, &told);
        shell.until_it_counts(2).await;
        fs::write(&shell.go, "").unwrap();
        shell.must_have_counted(id, &told).await;
        shell.must_go_on_after(id).await;
    })
    .await;
}

#[tokio::test]
async fn a_command_is_the_same_when_the_daemon_is_killed_while_it_prints_without_a_pause() {
    with_each(async |mut shell| {
        let id = shell.count().await;
        let told = shell.known(id).await;
        // It takes a second to get there, in which the screen is never still.
        shell.until_it_counts(50).await;
        let mut shell = shell.restart().await;
        fs::write(&shell.go, "").unwrap();
        shell.must_have_counted(id, &told).await;
        shell.must_go_on_after(id).await;
    })
    .await;
}

#[tokio::test]
async fn a_command_is_the_same_when_it_ends_while_no_daemon_runs() {
    with_each(async |mut shell| {
        let id = shell.count().await;
        shell.until_it_counts(2).await;
        let told = shell.known(id).await;
        let go = shell.go.clone();
        let mut shell = shell.restart_after(|| fs::write(go, "").unwrap()).await;
        shell.must_have_counted(id, &told).await;
        shell.must_go_on_after(id).await;
    })
    .await;
}

#[tokio::test]
async fn commands_that_have_just_ended_are_as_they_were_told() {
    with_each(async |mut shell| {
        let mut ran = Vec::new();
        for text in ["echo one", "true", "sh -c 'echo three; exit 3'"] {
            ran.push(shell.run(text, 20_000).await);
        }
        let mut told = Vec::new();
        for ended in &ran {
            told.push(shell.known(ended["command_id"].as_u64().unwrap()).await);
        }
        // The moment of an end is kept a moment after it was told.
        let still = json!({"session": shell.session, "idle_ms": 100});
        shell.client.must("wait_for", still).await;
        let mut shell = shell.restart().await;
        for (ended, told) in ran.iter().zip(&told) {
            let id = ended["command_id"].as_u64().unwrap();
            let known = shell.ended(id).await;
            shell.must_be(&known, told);
            assert_eq!(known["output"], ended["output"], "{}: {known}", shell.name);
        }
        shell.must_go_on_after(4).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_repeated_at_the_next_daemons_follows_the_command_that_it_sent() {
    with_each(async |mut shell| {
        let keyed = json!({
            "session": shell.session, "lease_id": shell.lease, "idempotency_key": "count",
            "command": shell.counting(), "timeout_ms": 100,
        });
        let sent = shell.client.must("run", keyed.clone()).await;
        assert_eq!(sent["status"], "timeout", "{}: {sent}", shell.name);
        // The one after the next knows it as well.
        let shell = shell.restart().await;
        let mut shell = shell.restart().await;
        let again = shell.client.must("run", keyed.clone()).await;
        for told in ["command_id", "status"] {
            assert_eq!(again[told], sent[told], "{}: {again}", shell.name);
        }
        fs::write(&shell.go, "").unwrap();
        let mut patiently = keyed;
        patiently["timeout_ms"] = json!(20_000);
        let ended = shell.client.must("run", patiently).await;
        assert_eq!(ended["status"], "completed", "{}: {ended}", shell.name);
        assert_eq!(ended["command_id"], sent["command_id"], "{}: {ended}", shell.name);
        let code = json!(5);
        assert_eq!(ended["exit_code"], code, "{}: {ended}", shell.name);
        shell.must_go_on_after(sent["command_id"].as_u64().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn a_repeated_run_takes_the_lease_back_while_it_follows_its_command() {
    with_each(async |mut shell| {
        let keyed = json!({
            "session": shell.session, "lease_id": shell.lease, "idempotency_key": "count",
            "command": shell.counting(), "timeout_ms": 100,
        });
        shell.client.must("run", keyed.clone()).await;
        let mut shell = shell.restart_without_lease(|| {}).await;
        shell.client.must("run", keyed).await;
        let asked = json!({"session": shell.session});
        let listed = shell.client.must("list_sessions", asked).await;
        let lease = &listed["sessions"][0]["lease"];
        assert_eq!(lease["held"], true, "{}: {lease}", shell.name);
        assert!(lease["reclaimable"].is_null(), "{}: {lease}", shell.name);
    })
    .await;
}

#[tokio::test]
async fn what_was_typed_ahead_before_a_restart_runs_before_what_is_sent_after_it() {
    with_each(async |mut shell| {
        let id = shell.count().await;
        shell.until_it_counts(2).await;
        let ahead = json!({
            "session": shell.session, "lease_id": shell.lease, "text": "echo typed; false",
            "enter": true,
        });
        shell.client.must("send_text", ahead).await;
        let mut shell = shell.restart().await;
        fs::write(&shell.go, "").unwrap();
        let mine = shell.run("echo mine", 20_000).await;
        assert_eq!(mine["output"], "mine", "{}: {mine}", shell.name);
        let code = json!(0);
        assert_eq!(mine["exit_code"], code, "{}: {mine}", shell.name);
        assert!(mine["command_id"].as_u64().unwrap() > id, "{}: {mine}", shell.name);
    })
    .await;
}

#[tokio::test]
async fn a_long_command_keeps_its_text_when_the_daemon_is_killed_at_once() {
    with_each(async |mut shell| {
        let long = format!("echo {}; {}", "y".repeat(4_000), shell.counting());
        let sent = shell.run(&long, 500).await;
        let id = sent["command_id"].as_u64().unwrap();
        let told = shell.known(id).await;
        assert!(told["commands"][0]["command"].as_str().unwrap().starts_with("echo yyy"), "{told}");
        let mut shell = shell.restart().await;
        fs::write(&shell.go, "").unwrap();
        let ended = shell.ended(id).await;
        shell.must_be(&ended, &told);
        shell.must_go_on_after(id).await;
    })
    .await;
}
