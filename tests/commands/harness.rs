//! The program in directories of its own, a daemon of it, and a terminal to run it in.
//!
//! Nothing here knows a type of the program; what counts is what a person or a script would see.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long a test waits for what must come; only a broken program ever lets it pass.
pub(crate) const SAFETY: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_termgate");

/// Directories of a user who has nothing yet.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tgc").tempdir().unwrap();
        let home = Self { directory };
        for part in ["home", "run"] {
            fs::create_dir(home.path(part)).unwrap();
            fs::set_permissions(home.path(part), PermissionsExt::from_mode(0o700)).unwrap();
        }
        fs::set_permissions(home.directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        home
    }

    /// A path below the directories.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Any program, with an environment of this home and the program under test in its PATH.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let bin = Path::new(PROGRAM).parent().unwrap().display();
        let mut command = Command::new(program.as_ref());
        command.env_clear().current_dir(self.path("home")).stdin(Stdio::null());
        command
            .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            // A test that fails leaves nothing behind.
            .env("TERMGATE_SESSIONS__ORPHAN_TTL_MS", "20000")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8");
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
        self.termgate(line).output().unwrap()
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

    /// Starts a daemon that allows writing.
    pub(crate) fn daemon(&self) -> Daemon {
        self.daemon_with("--allow-write")
    }

    /// Starts a daemon with these options, and waits until it is ready.
    pub(crate) fn daemon_with(&self, options: &str) -> Daemon {
        let mut command = self.termgate(&format!("serve {options}"));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("is ready") {
            assert_ne!(log.read_line(&mut said).unwrap(), 0, "the daemon ended: {said}");
        }
        // What it says further must not stop it.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Daemon { child }
    }

    /// Starts a daemon that allows writing and logs into a file, and waits until it is ready.
    pub(crate) fn daemon_with_log(&self, log: &Path) -> Daemon {
        let mut command = self.termgate("serve --allow-write");
        let daemon = Daemon { child: command.stderr(File::create(log).unwrap()).spawn().unwrap() };
        let started = Instant::now();
        while !fs::read_to_string(log).unwrap().contains("is ready") {
            assert!(started.elapsed() < SAFETY, "the daemon does not get ready");
            std::thread::yield_now();
        }
        daemon
    }

    /// Runs a program in a terminal.
    pub(crate) fn in_terminal(&self, mut command: Command) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        for end in [&pair.master, &pair.slave] {
            // Whoever else had the master would keep the terminal from ever being closed.
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let slave = || Stdio::from(pair.slave.try_clone().unwrap());
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        Terminal { child, master: File::from(pair.master), shown: Vec::new() }
    }
}

/// A daemon; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as if the machine had: without a word.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program in a terminal; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    child: Child,
    master: File,
    shown: Vec<u8>,
}

impl Terminal {
    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads what is shown until this is among it, and forgets all up to there.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if let Some(at) = shown.find(text) {
                let end = at + text.len();
                self.shown = shown.as_bytes()[end..].to_vec();
                return shown[..end].to_owned();
            }
            assert!(self.read(), "{text:?} was not shown, but {shown:?}");
        }
    }

    /// Reads until the program has ended, and gives back what was shown and its exit code.
    pub(crate) fn wait_for_end(mut self) -> (String, Option<i32>) {
        let mut status = self.child.try_wait().unwrap();
        while status.is_none() {
            self.read_within(Duration::from_millis(20));
            status = self.child.try_wait().unwrap();
        }
        while self.read_within(Duration::ZERO) {}
        (String::from_utf8_lossy(&self.shown).into_owned(), status.unwrap().code())
    }

    /// Closes the terminal, as a person closes a window; the program is left to itself.
    pub(crate) fn close(&mut self) {
        self.master = File::open("/dev/null").unwrap();
    }

    /// Whether the terminal echoes and waits for whole lines, as it does for a shell.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = nix::sys::termios::tcgetattr(&self.master).unwrap().local_flags;
        let cooked = nix::sys::termios::LocalFlags::ECHO | nix::sys::termios::LocalFlags::ICANON;
        modes.contains(cooked)
    }

    fn read(&mut self) -> bool {
        self.read_within(SAFETY)
    }

    fn read_within(&mut self, time: Duration) -> bool {
        let time = PollTimeout::try_from(time).unwrap();
        let mut ready = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, time).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        // Once nobody has the other end any more, reading fails.
        let count = (&self.master).read(&mut buffer).unwrap_or(0);
        self.shown.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this machine has a program; tests of shells that are not there have nothing to test.
pub(crate) fn is_installed(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|bin| Path::new(bin).join(program).exists())
}
