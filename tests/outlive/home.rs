//! Directories of a test's own, the daemons in them, and everything that came of them.
//!
//! What belongs to a home is found by its name in command lines and environments, so that nothing
//! that was left behind can hide; with the home all of it ends.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::line_client::{SAFETY, soon};
use crate::outlive::client::{Client, Gateway, within};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The directories of one user, and a place for the test's own files.
#[derive(Debug)]
pub(crate) struct Home {
    ground: TempDir,
    /// Where the user's directories are.
    root: PathBuf,
    daemons: AtomicUsize,
    replaced: watch::Sender<()>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with_root(|ground| ground.join("user"))
    }

    /// A home whose user's directories are where `place` says.
    pub(crate) fn with_root(place: impl FnOnce(&Path) -> PathBuf) -> Self {
        let ground = tempfile::Builder::new().prefix("tgo").tempdir().unwrap();
        fs::set_permissions(ground.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let root = place(ground.path());
        for part in ["", "home", "run", "state", "config"] {
            let directory = root.join(part);
            fs::create_dir_all(&directory).unwrap();
            fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
        }
        let (daemons, replaced) = (AtomicUsize::new(0), watch::Sender::new(()));
        Self { ground, root, daemons, replaced }
    }

    /// The directory in which all of it is.
    pub(crate) fn ground(&self) -> &Path {
        self.ground.path()
    }

    /// A place for a file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.ground.path().join(name)
    }

    /// A path below the runtime directory.
    pub(crate) fn runtime(&self, name: &str) -> PathBuf {
        self.root.join("run/termgate").join(name)
    }

    pub(crate) fn gateway(&self) -> Gateway {
        let replaced = self.replaced.subscribe();
        Gateway { path: self.runtime("gateway.sock"), replaced }
    }

    /// Has a daemon stand still, and makes way for the next one: the lock is its own for as long as it
    /// lives, and only an operator can take it away. Says no when it had none yet, so that it is one of
    /// those that come next.
    pub(crate) async fn set_aside(&self, daemon: &Daemon) -> bool {
        daemon.signal(Signal::SIGSTOP);
        within(SAFETY, "the daemon to stand still", || is_stopped(daemon.pid())).await;
        let lock = self.runtime("daemon.lock");
        let owner = fs::read_to_string(&lock).unwrap_or_default();
        let owned = owner.trim() == daemon.pid().to_string();
        if owned {
            fs::remove_file(lock).unwrap();
        }
        owned
    }

    /// Tells everybody who came by [`Self::gateway`] that daemons which were set aside are not to be waited
    /// for any more.
    pub(crate) fn tell_replaced(&self) {
        self.replaced.send_replace(());
    }

    /// Writes the configuration of daemons to come.
    pub(crate) fn configure(&self, text: &str) {
        let directory = self.root.join("config/termgate");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("termgate.toml"), text).unwrap();
    }

    /// The program with these words.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_termgate"));
        command.args(words).env_clear().current_dir(self.ground.path());
        command.env("PATH", PATH).envs(self.directories()).stdin(Stdio::null());
        command
    }

    /// The environment of its user, with no mark of a session, as words for `env`.
    pub(crate) fn clean_environment(&self) -> String {
        let said = |(name, path): (&str, PathBuf)| format!("{name}={}", path.display());
        let directories: Vec<_> = self.directories().into_iter().map(said).collect();
        format!("PATH={PATH} {}", directories.join(" "))
    }

    fn directories(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("HOME", self.root.join("home")),
            ("XDG_RUNTIME_DIR", self.root.join("run")),
            ("XDG_STATE_HOME", self.root.join("state")),
            ("XDG_CONFIG_HOME", self.root.join("config")),
        ]
    }

    /// Runs the program to its end; it must succeed.
    pub(crate) async fn run(&self, words: &[&str]) {
        let output = soon("the program to end", self.command(words).output()).await.unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// Starts a daemon that allows writing, and waits for nothing.
    pub(crate) fn spawn(&self) -> Daemon {
        self.spawn_with(&[])
    }

    /// The same with further words.
    pub(crate) fn spawn_with(&self, words: &[&str]) -> Daemon {
        self.start(&mut self.command(&[&["serve", "--allow-write"], words].concat()))
    }

    fn start(&self, command: &mut Command) -> Daemon {
        let number = self.daemons.fetch_add(1, Ordering::Relaxed);
        let log = self.file(&format!("daemon{number}.log"));
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        Daemon { child, log }
    }

    /// Starts a daemon from a shell with a limit, as words for `ulimit`, and waits until it serves.
    pub(crate) async fn serve_with_limit(&self, limit: &str) -> Daemon {
        let line = format!("ulimit {limit} && exec \"$0\" serve --allow-write");
        let mut command = Command::new("bash");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_termgate")]).env_clear();
        command.env("PATH", PATH).envs(self.directories()).stdin(Stdio::null());
        let mut daemon = self.start(command.current_dir(self.ground.path()));
        daemon.is_ready().await;
        daemon
    }

    /// Starts a daemon that allows writing, and waits until it serves.
    pub(crate) async fn serve(&self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.is_ready().await;
        daemon
    }

    /// A client of the daemon that serves now.
    pub(crate) async fn client(&self) -> Client {
        Client::find(&self.gateway().path).await
    }

    /// A client behind a bridge, which ends with it.
    pub(crate) async fn bridged_client(&self) -> Client {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut bridge = self.command(&["mcp", "--no-spawn"]);
        let input = OwnedFd::from(theirs.try_clone().unwrap());
        bridge.stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(theirs)));
        let mut bridge = bridge.spawn().unwrap();
        // Its end is that of its client.
        tokio::spawn(async move { bridge.wait().await });
        ours.set_nonblocking(true).unwrap();
        let stream = tokio::net::UnixStream::from_std(ours).unwrap();
        Client::over(stream).await.expect("there is a daemon behind it")
    }

    /// The processes of this home that have not ended, daemons and the test's own aside.
    pub(crate) fn sessions_processes(&self) -> Vec<String> {
        let is_daemon = |line: &str| line.contains(" serve --allow-write");
        self.processes()
            .into_iter()
            .map(|pid| format!("{pid}:{}", command_line(pid)))
            .filter(|line| !is_daemon(line))
            .collect()
    }

    /// The process that holds the terminal of a session.
    pub(crate) fn shim(&self, session: &str) -> i32 {
        let socket = format!("{session}.sock");
        let holds = |pid: &i32| {
            let line = command_line(*pid);
            line.contains(" shim ") && line.contains(&socket)
        };
        self.processes().into_iter().find(holds).expect("somebody holds it")
    }

    /// The processes with this word in their command lines.
    pub(crate) fn running(&self, word: &str) -> Vec<i32> {
        let said = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        self.processes().into_iter().filter(|pid| contains(&said(pid), word.as_bytes())).collect()
    }

    fn processes(&self) -> Vec<i32> {
        let names =
            [self.ground.path(), &self.root].map(|path| path.as_os_str().as_encoded_bytes());
        let own = i32::try_from(std::process::id()).unwrap();
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != own && lives(*pid))
            .filter(|pid| {
                let said = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                let named = |text: Vec<u8>| names.iter().any(|name| contains(&text, name));
                named(said("cmdline")) || named(said("environ"))
            })
            .collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.daemons.load(Ordering::Relaxed).saturating_sub(3);
            for number in last..last + 3 {
                let log = self.file(&format!("daemon{number}.log"));
                eprintln!("daemon {number}: {}", fs::read_to_string(log).unwrap_or_default());
            }
        }
        // Whoever just forked may be missed the first time.
        for _ in 0..3 {
            for pid in self.processes() {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

/// A daemon that was started, and perhaps serves.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id().expect("it was not waited for")).unwrap()
    }

    /// Waits until it serves.
    pub(crate) async fn is_ready(&mut self) {
        let (child, log) = (&mut self.child, &self.log);
        let ready = || {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "the daemon ended: {}", said(log));
            said(log).contains("is ready")
        };
        within(SAFETY, "the daemon to serve", ready).await;
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Kills it as nothing can prepare for.
    pub(crate) async fn kill(self) {
        self.signal(Signal::SIGKILL);
        self.ends().await;
    }

    /// Waits for its end and gives back its exit code, if it has one, and what it said.
    pub(crate) async fn ends(mut self) -> (Option<i32>, String) {
        let status = soon("the daemon to end", self.child.wait()).await.unwrap();
        (status.code(), said(&self.log))
    }
}

/// Waits until one of two daemons has ended, and gives back that one first.
pub(crate) async fn first_to_end(mut one: Daemon, mut other: Daemon) -> (Daemon, Daemon) {
    let one_ended = tokio::select! {
        ended = one.child.wait() => ended.map(|_| true),
        ended = other.child.wait() => ended.map(|_| false),
    };
    if one_ended.unwrap() { (one, other) } else { (other, one) }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|there| there == part)
}

fn said(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Whether a process has not ended, collected or not.
pub(crate) fn lives(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Whether a process stands still by a signal, with each of its threads.
pub(crate) fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let mut threads = threads.map(|thread| thread.map(|thread| thread.path()));
    threads.all(|thread| thread.is_ok_and(|path| state_in(&path) == Some('T')))
}

fn state(pid: i32) -> Option<char> {
    state_in(Path::new(&format!("/proc/{pid}")))
}

fn state_in(directory: &Path) -> Option<char> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Reads the number that a program wrote as a line of a file, once it is whole.
pub(crate) async fn number_in(path: &Path) -> u64 {
    let whole = || fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n'));
    within(SAFETY, &format!("a line in {}", path.display()), whole).await;
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}
