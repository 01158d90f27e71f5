//! Shells that are told what to run: their sessions, and what came of each command.
//!
//! Each has a home of its own with nothing in it.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::harness::home::{PATH, furnish, is_installed};

/// The shells that are tested, where they are installed; the scripts that run the tests say which
/// are not.
pub(crate) const ALL: [&str; 4] = ["bash", "zsh", "fish", "dash"];

/// Those of them that tell how commands ended.
pub(crate) const MARKING: [&str; 3] = ["bash", "zsh", "fish"];

/// Those of them that read what POSIX says.
pub(crate) const POSIX: [&str; 3] = ["bash", "zsh", "dash"];

/// A session with a shell, and a client that holds its lease.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) client: Wire,
    pub(crate) session: String,
    pub(crate) name: &'static str,
}

impl Shell {
    /// Starts a shell, and waits for nothing.
    pub(crate) async fn start(daemon: &TestDaemon, name: &'static str) -> Self {
        let client = daemon.client(Era::Legacy).await;
        Self::start_by(client, daemon, name).await
    }

    /// Starts a shell for this client.
    pub(crate) async fn start_by(
        mut client: Wire,
        daemon: &TestDaemon,
        name: &'static str,
    ) -> Self {
        let home = daemon.file("home");
        fs::create_dir_all(&home).unwrap();
        // A zsh that finds none asks people what it shall write into it.
        fs::write(home.join(".zshrc"), "").unwrap();
        furnish(&home);
        let shell = json!({
            "command": name, "args": ["-i"], "cwd": home,
            "env": {"HOME": home, "PATH": PATH, "HISTFILE": ""},
        });
        let created = client.structured("create_session", shell).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        Self { client, session, name }
    }

    /// Calls a tool on the session; it must succeed.
    pub(crate) async fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["session"] = json!(self.session);
        self.client.structured(tool, arguments).await
    }

    /// Runs a command.
    pub(crate) async fn run(&mut self, command: &str) -> Ended {
        self.run_with(command, json!({})).await
    }

    /// Runs a command with further arguments. Where they do not say how much of its output is told, much is.
    pub(crate) async fn run_with(&mut self, command: &str, mut arguments: Value) -> Ended {
        arguments["command"] = json!(command);
        if arguments["max_lines"].is_null() {
            arguments["max_lines"] = json!(2_000);
        }
        Ended(self.call("run", arguments).await)
    }

    /// Presses keys.
    pub(crate) async fn press(&mut self, keys: &str) {
        self.call("send_keys", json!({"keys": keys})).await;
    }

    /// Waits for something to happen; it must happen.
    pub(crate) async fn wait_for(&mut self, mut wanted: Value) -> Value {
        wanted["session"] = json!(self.session);
        self.client.wait_for(wanted).await
    }

    /// Interrupts a command, and waits until it has ended.
    pub(crate) async fn interrupt(&mut self, id: u64) {
        self.press("C-c").await;
        while self.record(id).await["commands"][0]["status"] == "running" {}
    }

    /// What is known of a command.
    pub(crate) async fn record(&mut self, id: u64) -> Value {
        self.call("read_commands", json!({"id": id})).await
    }

    /// Asserts that a command ended with this code.
    pub(crate) fn check(&self, command: &str, ended: &Ended, code: i32) {
        let (name, told) = (self.name, &ended.0);
        assert_eq!(told["status"], "completed", "{name}: {command}: {told}");
        assert_eq!(told["exit_code"], code, "{name}: {command}: {told}");
        assert_eq!(told["evidence"], "osc133", "{name}: {command}: {told}");
    }

    /// Runs a command that must end with this code and print this.
    pub(crate) async fn must(&mut self, command: &str, code: i32, output: &str) -> Ended {
        let ended = self.run(command).await;
        self.check(command, &ended, code);
        assert_eq!(ended.output(), output, "{}: {command}", self.name);
        ended
    }
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Value);

impl Ended {
    pub(crate) fn output(&self) -> &str {
        self.0["output"].as_str().unwrap()
    }

    pub(crate) fn status(&self) -> &str {
        self.0["status"].as_str().unwrap()
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// How many lines it printed, told or not.
    pub(crate) fn lines_of_all(&self) -> u64 {
        self.number("lines_total")
    }
}

/// Does the same with each of these shells that is installed, in sessions of one daemon.
pub(crate) async fn with_each(names: &[&'static str], act: impl AsyncFn(&mut Shell)) {
    let daemon = TestDaemon::writable().await;
    for name in names.iter().filter(|name| is_installed(name)) {
        let mut shell = Shell::start(&daemon, name).await;
        act(&mut shell).await;
    }
    daemon.stop().await;
}
