//! `termgate upgrade` and SIGUSR1: a daemon that goes and comes back, or only goes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::daemon::harness::{Era, Wire};
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::until;

const UNREACHABLE: i32 = 7;

/// How a daemon leaves its sessions to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaving {
    ByUpgrade,
    ForTheNext,
}

/// A daemon whose program is a file of its own.
pub(crate) struct Installed {
    pub(crate) home: Home,
    program: PathBuf,
    daemon: Daemon,
}

impl Installed {
    pub(crate) async fn serving(words: &[&str]) -> Self {
        Self::serving_in(Home::new(), words).await
    }

    async fn serving_in(home: Home, words: &[&str]) -> Self {
        let program = home.path("termgate");
        put(&program);
        let mut command = home.command(&program);
        command.args(["serve", "--allow-write"]).args(words);
        let daemon = home.start(command);
        let installed = Self { home, program, daemon };
        installed.client().await;
        installed
    }

    fn pid(&self) -> i32 {
        self.daemon.pid()
    }

    /// Waits for its end, which is in order.
    async fn ends(&mut self) {
        until("its end", || self.daemon.ended().is_some()).await;
        assert!(self.daemon.ended().unwrap().success());
    }

    /// A client, once the daemon lets one in.
    pub(crate) async fn client(&self) -> Wire {
        let path = self.home.runtime("gateway.sock");
        until("the daemon", || UnixStream::connect(&path).is_ok()).await;
        Wire::connect(&path, Era::Legacy).await
    }

    /// Asks for an upgrade, with the program under test, and gives back the envelope and exit code.
    fn upgrade(&self) -> (Value, i32) {
        let (code, output, _) = self.home.outcome("upgrade --json");
        (serde_json::from_str(&output).unwrap(), code)
    }

    /// Has it leave its sessions, and gives back the daemon that has them then.
    pub(crate) async fn leave(mut self, leaving: Leaving) -> Self {
        match leaving {
            Leaving::ByUpgrade => {
                let (told, code) = self.upgrade();
                assert_eq!(code, 0, "{told}");
                self
            }
            Leaving::ForTheNext => {
                self.daemon.signal(Signal::SIGUSR1);
                self.ends().await;
                Self::serving_in(self.home, &[]).await
            }
        }
    }

    /// The numbers of what the process has open and the next program would find open, too.
    fn left_open(&self) -> Vec<u32> {
        const CLOSED_BY_EXEC: u32 = 0o2_000_000;
        let entries = fs::read_dir(format!("/proc/{}/fdinfo", self.pid())).unwrap();
        let mut left = Vec::new();
        for entry in entries {
            let entry = entry.unwrap();
            // What is closed at this moment has no flags any more.
            let info = fs::read_to_string(entry.path()).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.map(|flags| u32::from_str_radix(flags.trim(), 8).unwrap());
            if flags.is_some_and(|flags| flags & CLOSED_BY_EXEC == 0) {
                left.push(entry.file_name().to_str().unwrap().parse().unwrap());
            }
        }
        left.sort_unstable();
        left
    }

    /// How often it has the lock's file open.
    fn locks(&self) -> usize {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let links = entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        links.filter(|link| *link == self.home.paths().lock()).count()
    }

    /// The sockets of the processes that hold terminals.
    fn held(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.paths().shims()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".sock")).collect()
    }

    fn words(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cmdline", self.pid())).unwrap()
    }
}

/// Puts the program under test at a path, in place of whatever was there.
fn put(path: &Path) {
    let _ = fs::remove_file(path);
    if fs::hard_link(PROGRAM, path).is_err() {
        fs::copy(PROGRAM, path).unwrap();
    }
}

fn put_script(path: &Path, script: &str) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&fresh, PermissionsExt::from_mode(0o755)).unwrap();
    fs::rename(fresh, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgraded_daemon_is_the_same_process_with_the_same_words_and_nothing_left_open() {
    let installed = Installed::serving(&["--linger", "1h"]).await;
    // Whoever runs the tests may have left something open, too.
    let (words, left) = (installed.words(), installed.left_open());
    for _ in 0..3 {
        put(&installed.program);
        let (told, code) = installed.upgrade();
        assert_eq!(code, 0, "{told}");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(told["data"]["from"], version);
        assert_eq!(told["data"]["to"], version);
        assert_eq!(told["data"]["pid"], installed.pid());
        let mut client = installed.client().await;
        assert_eq!(client.structured("list_sessions", json!({})).await["sessions"], json!([]));
        assert_eq!(installed.words(), words);
        assert_eq!((installed.left_open(), installed.locks()), (left.clone(), 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgraded_daemon_has_the_lock_and_gives_it_back_when_it_ends() {
    let mut installed = Installed::serving(&[]).await;
    let (told, code) = installed.upgrade();
    assert_eq!(code, 0, "{told}");
    let (code, _, said) = installed.home.outcome("serve");
    assert_eq!(code, 1);
    assert!(said.contains("another daemon is running as process"), "{said}");
    let (code, _, said) = installed.home.outcome("stop");
    assert_eq!(code, 0, "{said}");
    installed.ends().await;
    assert!(!installed.home.paths().operator().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_not_fit_leaves_the_daemon_as_it_was() {
    let installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let session = client.start("echo here; exec cat").await;
    client.structured("wait_for", json!({"session": session, "text": "here", "since": 0})).await;
    let path = &installed.program;
    let version = env!("CARGO_PKG_VERSION");
    let refusing =
        format!("[ $1 = --version ] && exec echo termgate {version}; echo bad >&2; exit 2");
    let unfit: [(&str, &dyn Fn()); 4] = [
        ("config check` failed: bad", &|| put_script(path, &refusing)),
        ("is not termgate", &|| put_script(path, "echo something else")),
        ("cannot be started: Permission denied", &|| {
            fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
        }),
        ("cannot be started: No such file", &|| fs::remove_file(path).unwrap()),
    ];
    for (why, spoil) in unfit {
        spoil();
        let (told, code) = installed.upgrade();
        assert_eq!((code, &told["error_code"]), (1, &json!("upgrade_failed")), "{told}");
        let message = told["error"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        // Neither connection nor session took notice.
        let screen = client.structured("read_screen", json!({"session": session})).await;
        assert_eq!(screen["text"].as_str().unwrap().trim_end(), "here");
    }
    put(path);
    assert_eq!(installed.upgrade().1, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_has_become_wrong_is_found_before_anything_is_given_up() {
    let home = Home::new();
    let file = home.path("home/my.toml");
    fs::write(&file, "allow_write = true\n").unwrap();
    let installed = Installed::serving_in(home, &["--config", "my.toml"]).await;
    fs::write(&file, "allow_wrote = true\n").unwrap();
    let (told, code) = installed.upgrade();
    assert_eq!((code, &told["error_code"]), (1, &json!("upgrade_failed")), "{told}");
    assert!(told["error"].as_str().unwrap().contains("allow_wrote"), "{told}");
    installed.client().await.structured("list_sessions", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_its_screen_and_its_lease_go_on_over_an_upgrade() {
    let home = Home::new();
    // So short that whoever is hung up on would have lost it before the daemon has left.
    fs::write(home.path("home/my.toml"), "[lease]\ngrace_ms = 0\n").unwrap();
    let installed = Installed::serving_in(home, &["--config", "my.toml"]).await;
    let mut client = installed.client().await;
    let session = client.start("echo here; exec cat").await;
    client.wait_for(json!({"session": session, "text": "here", "since": 0})).await;
    let lease = client.acquire(&session).await["lease_id"].clone();
    let program = |listed: &Value| listed["sessions"][0]["pid"].clone();
    let pid = program(&client.structured("list_sessions", json!({})).await);

    let (told, code) = installed.upgrade();
    assert_eq!(code, 0, "{told}");
    let mut client = installed.client().await;
    let listed = client.structured("list_sessions", json!({})).await;
    assert_eq!((&listed["sessions"][0]["id"], program(&listed)), (&json!(session), pid));
    let order = json!({"session": session, "text": "again", "lease_id": lease});
    client.structured("send_text", order).await;
    client.wait_for(json!({"session": session, "text": "again", "since": 0})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_goes_on_over_an_upgrade_also_when_a_cancel_would_interrupt_it() {
    let mut installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let bash = json!({"command": "bash", "args": ["-i"]});
    let created = client.structured("create_session", bash).await;
    let session = created["session"]["id"].clone();
    let lease = created["lease"]["lease_id"].clone();
    // Once by an upgrade, once by a daemon that leaves its sessions to the next one.
    for round in 0..2 {
        let go = installed.home.path(&format!("go{round}"));
        let command = format!(
            "echo be''gun{round}; until [ -e {} ]; do sleep 0.02; done; echo done; (exit 5)",
            go.display()
        );
        client
            .send_call(
                "run",
                json!({
                    "session": session, "command": command, "on_cancel": "interrupt", "lease_id": lease,
                }),
            )
            .await;
        let begun = json!({"session": session, "text": format!("begun{round}"), "since": 0});
        installed.client().await.wait_for(begun).await;
        if round == 0 {
            let (told, code) = installed.upgrade();
            assert_eq!(code, 0, "{told}");
        } else {
            installed.daemon.signal(Signal::SIGUSR1);
            installed.ends().await;
            let Installed { home, .. } = installed;
            installed = Installed::serving_in(home, &[]).await;
        }
        client = installed.client().await;
        fs::write(&go, "").unwrap();
        let ended = loop {
            let asked = json!({"session": session, "limit": 1});
            let known = client.structured("read_commands", asked).await["commands"][0].clone();
            if known["status"] != "running" {
                break known;
            }
        };
        assert_eq!((&ended["exit_code"], &ended["status"]), (&json!(5), &json!("completed")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_of_a_program_that_goes_on_writing_is_lost_over_upgrades() {
    let installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let line = "i=0; while [ ! -e done ]; do i=$((i+1)); echo line $i; sleep 0.002; done; echo end";
    let session = client.start(line).await;
    for _ in 0..3 {
        let (told, code) = installed.upgrade();
        assert_eq!(code, 0, "{told}");
    }
    fs::write(installed.home.path("home/done"), "").unwrap();
    let mut client = installed.client().await;
    client.wait_for_exit(&session).await;
    let (mut next, mut row) = (1, 0);
    'reading: loop {
        let ask = json!({"session": session, "start_row": row, "count": 500});
        let read = client.structured("read_history", ask).await;
        for line in read["text"].as_str().unwrap().lines() {
            if line.trim_end() == "end" {
                break 'reading;
            }
            assert_eq!(line.trim_end(), format!("line {next}"));
            (next, row) = (next + 1, row + 1);
        }
    }
    assert!(next > 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_told_to_leave_leaves_its_sessions_to_the_next_one() {
    let mut installed = Installed::serving(&[]).await;
    let session = installed.client().await.start("echo here; exec cat").await;
    installed.daemon.signal(Signal::SIGUSR1);
    installed.ends().await;
    assert_eq!(installed.held(), [format!("{session}.sock")]);

    let Installed { home, .. } = installed;
    let installed = Installed::serving_in(home, &[]).await;
    let mut client = installed.client().await;
    let screen = client.structured("read_screen", json!({"session": session})).await;
    assert_eq!(screen["text"].as_str().unwrap().trim_end(), "here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_every_session_also_those_of_before_an_upgrade() {
    let mut installed = Installed::serving(&[]).await;
    installed.client().await.start("exec cat").await;
    assert_eq!(installed.upgrade().1, 0);
    installed.client().await.start("exec cat").await;
    assert_eq!(installed.held().len(), 2);
    let (code, _, said) = installed.home.outcome("stop");
    assert_eq!(code, 0, "{said}");
    installed.ends().await;
    assert_eq!(installed.held(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_daemon_there_is_nothing_to_upgrade() {
    let (code, _, said) = Home::new().outcome("upgrade");
    assert_eq!(code, UNREACHABLE, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_cannot_ask_for_an_upgrade() {
    let installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let refused = client.request("termgate/upgrade", json!({})).await.unwrap_err();
    assert_eq!(refused["code"], -32601, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_behind_a_bridge_goes_on_after_an_upgrade() {
    let installed = Installed::serving(&[]).await;
    let mut piped = installed.home.client("mcp", Era::Legacy).await;
    piped.wire.structured("list_sessions", json!({})).await;
    let (told, code) = installed.upgrade();
    assert_eq!(code, 0, "{told}");
    piped.wire.structured("list_sessions", json!({})).await;
    assert_eq!(installed.home.daemon(), Some(installed.pid()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_a_command_started_can_be_upgraded() {
    let home = Home::new();
    let (code, _, said) = home.outcome("new --allow-write -- cat");
    assert_eq!(code, 0, "{said}");
    let daemon = home.daemon().expect("a daemon runs");
    let (code, output, said) = home.outcome("upgrade");
    assert_eq!(code, 0, "{said}");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(output.trim(), format!("termgate {version} -> {version} (pid {daemon})"));
    assert_eq!(home.daemon(), Some(daemon));
}
