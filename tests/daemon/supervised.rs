//! The daemon under a service manager: the test plays systemd's part, with its sockets, variables
//! and signals, and the program itself is what it starts.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use termgate::config::paths::RuntimePaths;
use tokio::io::AsyncReadExt;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

use crate::daemon::harness::{Era, Wire};
use crate::harness::home::Home;
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::soon;

/// Puts the descriptors where systemd does, and says whom they are for.
const HAND_OVER: &str = "exec 3<&0 4<&1 </dev/null >/dev/null
    LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=termgate.socket:termgate.socket
    export LISTEN_PID LISTEN_FDS LISTEN_FDNAMES
    exec \"$0\" serve --allow-write";

/// One who binds sockets, starts the daemon and hears what it says.
struct Manager {
    home: Home,
    paths: RuntimePaths,
    sockets: [UnixListener; 2],
    news: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let home = Home::new();
        let paths = home.paths();
        fs::DirBuilder::new().mode(0o700).create(paths.root()).unwrap();
        let sockets = [bound(paths.gateway()), bound(&paths.operator())];
        let news = UnixDatagram::bind(home.path("notify")).unwrap();
        Self { home, paths, sockets, news }
    }

    /// A command in an environment with nothing of the one that runs the tests.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::from(self.home.command(program));
        command.kill_on_drop(true).stderr(Stdio::piped());
        command
    }

    /// Starts the daemon with both sockets.
    fn activate(&self) -> Child {
        let [first, second] = self.sockets.each_ref().map(|socket| socket.try_clone().unwrap());
        let mut shell = self.command("/bin/sh");
        shell.args(["-c", HAND_OVER, PROGRAM]);
        shell.env("NOTIFY_SOCKET", self.home.path("notify"));
        shell.env("WATCHDOG_USEC", "100000");
        shell.stdin(OwnedFd::from(first)).stdout(OwnedFd::from(second));
        shell.spawn().unwrap()
    }

    /// Waits until the daemon says this, whatever else it says before.
    async fn hears(&self, wanted: &str) {
        while self.hears_of(wanted).await != wanted {}
    }

    /// The next that the daemon says which begins like this, whatever else it says before.
    async fn hears_of(&self, beginning: &str) -> String {
        soon(beginning, async {
            loop {
                let heard = self.hears_next().await;
                if heard.starts_with(beginning) {
                    return heard;
                }
            }
        })
        .await
    }

    /// What the daemon says next.
    async fn hears_next(&self) -> String {
        let mut heard = [0; 256];
        let length = soon("news", self.news.recv(&mut heard)).await.unwrap();
        String::from_utf8_lossy(&heard[..length]).into_owned()
    }

    /// Whether clients can still come to both sockets, though nobody may be there to serve them.
    fn keeps_its_sockets(&self) -> bool {
        [self.paths.gateway(), &self.paths.operator()]
            .into_iter()
            .all(|path| UnixStream::connect(path).is_ok())
    }
}

fn bound(path: &Path) -> UnixListener {
    let socket = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    socket
}

fn terminate(daemon: &Child) {
    send(daemon, Signal::SIGTERM);
}

fn send(daemon: &Child, signal: Signal) {
    let pid = daemon.id().unwrap().cast_signed();
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// Waits for the end of a daemon that must not run, and gives back what it said.
async fn refusal(mut daemon: Child) -> String {
    let status = soon("the end of the daemon", daemon.wait()).await.unwrap();
    assert_eq!(status.code(), Some(1));
    let mut told = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut told).await.unwrap();
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_came_before_the_daemon_is_served_by_it() {
    let manager = Manager::new();
    let mut early = Wire::silent(manager.paths.gateway(), Era::Legacy).await;
    let mut daemon = manager.activate();
    assert_eq!(manager.hears_next().await, "READY=1");
    early.greet().await;
    let session = early.start("exec cat").await;
    manager.hears("STATUS=1 session, 0 leased; writing is on").await;
    assert!(manager.paths.session(session.parse().unwrap()).exists());
    terminate(&daemon);
    manager.hears("STOPPING=1").await;
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_managers_sockets_outlive_the_daemon_and_the_next_one_gets_them() {
    let manager = Manager::new();
    for _ in 0..2 {
        let mut daemon = manager.activate();
        manager.hears("READY=1").await;
        let mut client = Wire::connect(manager.paths.gateway(), Era::Modern).await;
        client.structured("list_sessions", json!({})).await;
        terminate(&daemon);
        assert!(soon("its end", daemon.wait()).await.unwrap().success());
        assert!(manager.keeps_its_sockets());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watchdog_hears_from_a_daemon_again_and_again() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    for _ in 0..3 {
        manager.hears("WATCHDOG=1").await;
    }
    terminate(&daemon);
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manager_hears_when_a_reload_begins_and_ends() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    let mut client = Wire::connect(manager.paths.gateway(), Era::Legacy).await;
    for _ in 0..2 {
        send(&daemon, Signal::SIGHUP);
        let begun = manager.hears_of("RELOADING=1").await;
        assert!(begun.contains("\nMONOTONIC_USEC="), "{begun}");
        assert_eq!(manager.hears_of("READY=1").await, "READY=1");
    }
    client.structured("list_sessions", json!({})).await;
    terminate(&daemon);
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_sessions_know_nothing_of_the_manager() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    let mut client = Wire::connect(manager.paths.gateway(), Era::Legacy).await;
    let line = "env | grep -E 'LISTEN|NOTIFY|WATCHDOG'; ls -l /proc/$$/fd | grep socket; echo done";
    let session = client.start(line).await;
    client.wait_for_exit(&session).await;
    let screen = client.structured("read_screen", json!({"session": session})).await;
    assert_eq!(screen["text"].as_str().unwrap().trim_end(), "done");
    terminate(&daemon);
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgraded_daemon_has_the_managers_sockets_and_says_when_it_is_ready_again() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    for _ in 0..2 {
        let upgrade = manager.command(PROGRAM).arg("upgrade").output();
        let upgraded = soon("the command", upgrade).await.unwrap();
        assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
        manager.hears_of("RELOADING=1").await;
        manager.hears("READY=1").await;
        manager.hears("WATCHDOG=1").await;
        let mut client = Wire::connect(manager.paths.gateway(), Era::Legacy).await;
        client.structured("list_sessions", json!({})).await;
    }
    terminate(&daemon);
    manager.hears("STOPPING=1").await;
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
    assert!(manager.keeps_its_sockets());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_told_to_leave_says_that_it_stops() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    send(&daemon, Signal::SIGUSR1);
    manager.hears("STOPPING=1").await;
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
    assert!(manager.keeps_its_sockets());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_a_daemon_whose_sockets_stay() {
    let manager = Manager::new();
    let mut daemon = manager.activate();
    manager.hears("READY=1").await;
    let stop = manager.command(PROGRAM).arg("stop").output();
    let stopped = soon("the command", stop).await.unwrap();
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert!(soon("its end", daemon.wait()).await.unwrap().success());
    assert!(manager.keeps_its_sockets());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_started_by_hand_does_not_take_the_managers_place() {
    let manager = Manager::new();
    let by_hand = manager.command(PROGRAM).arg("serve").spawn().unwrap();
    let told = refusal(by_hand).await;
    assert!(told.contains("systemctl --user start termgate"), "{told}");
    assert!(manager.keeps_its_sockets());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_for_which_there_is_no_door_ends_the_daemon_before_it_begins() {
    let mut manager = Manager::new();
    manager.sockets[1] = bound(&manager.home.path("other.sock"));
    let told = refusal(manager.activate()).await;
    assert!(told.contains("other.sock, where this daemon has no door"), "{told}");
    assert!(!manager.paths.lock().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_a_command_started_says_nothing_to_the_manager_of_that_command() {
    let manager = Manager::new();
    for socket in [manager.paths.gateway(), &manager.paths.operator()] {
        fs::remove_file(socket).unwrap();
    }
    for words in [&["new", "--allow-write", "--", "cat"][..], &["stop"]] {
        let mut command = manager.command(PROGRAM);
        command.args(words).env("NOTIFY_SOCKET", manager.home.path("notify"));
        let output = soon("the command", command.output()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let heard = manager.news.try_recv(&mut [0; 64]).unwrap_err();
    assert_eq!(heard.kind(), std::io::ErrorKind::WouldBlock);
}

/// Where a home has the program that the service starts.
fn installed(home: &Path) -> PathBuf {
    home.join(".cargo/bin/termgate")
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let manager_there = std::process::Command::new("systemd-analyze").arg("--version").output();
    if manager_there.is_err() {
        eprintln!("systemd-analyze is not there, so nobody has judged the units");
        return;
    }
    let home = Home::new();
    let program = installed(&home.path("home"));
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(PROGRAM, program).unwrap();
    let verdict = home
        .command("systemd-analyze")
        .args(["--user", "verify", "config/termgate.service", "config/termgate.socket"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&verdict.stderr);
    assert!(verdict.status.success() && told.is_empty(), "{told}");
}
