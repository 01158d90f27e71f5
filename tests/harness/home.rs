//! Directories of a test's own, the program in them, and everything that came of it.
//!
//! What belongs to a home is found by its name in command lines and environments, so that nothing
//! that was left behind can hide; with the home all of it ends. Nothing here knows a type of the
//! program; what counts is what a person or a script would see.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::daemon::Daemon;
use crate::harness::processes::{PROGRAM, command_line, named};
use crate::harness::waiting::SAFETY;

/// Where programs are looked for, beside the one under test.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Gives a directory that becomes a user's home what spares its shells their first start: fish reads all
/// manuals then, in the background, and still writes when its test has ended.
pub(crate) fn furnish(home: &Path) {
    fs::create_dir_all(home.join(".local/share/fish/generated_completions")).unwrap();
}

/// The directories of a user who has nothing yet, and a place for the test's own files.
#[derive(Debug)]
pub(crate) struct Home {
    ground: TempDir,
    /// Where the user's directories are.
    root: PathBuf,
    daemons: AtomicUsize,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with_root(Path::to_path_buf)
    }

    /// A home whose user's directories are where `place` says.
    pub(crate) fn with_root(place: impl FnOnce(&Path) -> PathBuf) -> Self {
        let ground = tempfile::Builder::new().prefix("tg").tempdir().unwrap();
        let root = place(ground.path());
        // Programs run below the ground, wherever their user's directories are.
        fs::create_dir(ground.path().join("home")).unwrap();
        for part in ["", "home", "run", "state", "config"] {
            let directory = root.join(part);
            fs::create_dir_all(&directory).unwrap();
            fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
        }
        furnish(&root.join("home"));
        Self { ground, root, daemons: AtomicUsize::new(0) }
    }

    /// The directory in which all of it is.
    pub(crate) fn ground(&self) -> &Path {
        self.ground.path()
    }

    /// A path for a file of the test's own, or below the user's directories.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.ground.path().join(name)
    }

    /// A path below the runtime directory.
    pub(crate) fn runtime(&self, name: &str) -> PathBuf {
        self.root.join("run/termgate").join(name)
    }

    /// Writes the user's configuration file, and gives back where that is.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let file = self.root.join("config/termgate/termgate.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// The environment of its user, with no mark of a session. The program under test is in PATH.
    pub(crate) fn environment(&self) -> [(&'static str, String); 7] {
        let bin = Path::new(PROGRAM).parent().unwrap().display();
        let directory = |part| self.root.join(part).display().to_string();
        [
            ("PATH", format!("{bin}:{PATH}")),
            ("HOME", directory("home")),
            ("XDG_RUNTIME_DIR", directory("run")),
            ("XDG_STATE_HOME", directory("state")),
            ("XDG_CONFIG_HOME", directory("config")),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
    }

    /// Any program, with the environment of this home.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(self.environment()).stdin(Stdio::null());
        command.current_dir(self.path("home"));
        command
    }

    /// The program with these words.
    pub(crate) fn termgate(&self, line: &str) -> Command {
        let mut command = self.command(PROGRAM);
        command.args(line.split_whitespace());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, line: &str) -> Output {
        let mut command = self.termgate(line);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || tell.send(command.output().unwrap()));
        told.recv_timeout(SAFETY).unwrap_or_else(|_| panic!("waited in vain for {line} to end"))
    }

    /// Runs the program, which must succeed, and gives back what it printed.
    pub(crate) fn printed(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program with `--json` and gives back its envelope, however it ended.
    pub(crate) fn envelope(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --json"));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{line}: {output:?}"))
    }

    /// Starts a daemon that allows writing, with further words, and waits for nothing.
    pub(crate) fn spawn(&self, words: &str) -> Daemon {
        self.start(self.termgate(&format!("serve --allow-write {words}")))
    }

    /// Starts a daemon by a command of the test's own, and waits for nothing.
    pub(crate) fn start(&self, command: Command) -> Daemon {
        let number = self.daemons.fetch_add(1, Ordering::Relaxed);
        Daemon::start(command, self.log(number))
    }

    /// Starts a daemon that allows writing, and waits until it serves.
    pub(crate) async fn serve(&self) -> Daemon {
        let mut daemon = self.spawn("");
        daemon.is_ready().await;
        daemon
    }

    /// The processes of this home that have not ended, daemons and the test's own aside.
    pub(crate) fn sessions_processes(&self) -> Vec<String> {
        let is_daemon = |line: &str| line.contains(" serve --allow-write");
        let lines = self.processes().into_iter().map(|pid| format!("{pid}:{}", command_line(pid)));
        lines.filter(|line| !is_daemon(line)).collect()
    }

    /// The processes that hold the terminals of its sessions.
    pub(crate) fn shims(&self) -> Vec<i32> {
        self.processes().into_iter().filter(|pid| command_line(*pid).contains(" shim ")).collect()
    }

    /// The processes of this home that have not ended, the test's own aside.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let names =
            [self.ground.path(), &self.root].map(|path| path.as_os_str().as_encoded_bytes());
        named(&names)
    }

    fn log(&self, number: usize) -> PathBuf {
        self.path(&format!("daemon{number}.log"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let count = self.daemons.load(Ordering::Relaxed);
            for number in count.saturating_sub(3)..count {
                let log = fs::read_to_string(self.log(number)).unwrap_or_default();
                eprintln!("daemon {number}: {log}");
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

/// Whether this machine has a program; tests of shells that are not there have nothing to test.
pub(crate) fn is_installed(program: &str) -> bool {
    PATH.split(':').any(|bin| Path::new(bin).join(program).exists())
}
