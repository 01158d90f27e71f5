//! Runs one test once more in a process of its own, for what cannot be undone in a shared one.
//!
//! It knows nothing of what is tested. A test asks for its [`argument`]: with one it is the other
//! process, without one it starts it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const TEST: &str = "TERMGATE_ALONE_TEST";
const ARGUMENT: &str = "TERMGATE_ALONE_ARGUMENT";
const READY: &str = "alone: ready";

/// What this process was given by [`start`] or [`command`], if it was started for this test.
pub(crate) fn argument(test: &str) -> Option<OsString> {
    let ours = std::env::var_os(TEST).is_some_and(|name| name == test);
    ours.then(|| std::env::var_os(ARGUMENT)).flatten()
}

/// Tells the starter that it may go on.
pub(crate) fn say_ready() {
    // The harness keeps what is printed by macros to itself.
    use std::io::Write;
    let mut output = std::io::stdout();
    writeln!(output, "\n{READY}").unwrap();
    output.flush().unwrap();
}

/// Tells the starter that it may go on, and ends when that one has ended, at the latest.
pub(crate) fn wait_to_be_killed() -> ! {
    say_ready();
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(1)
}

/// The command that runs a test in another process, with no mark of a session.
pub(crate) fn command(test: &str, argument: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(TEST, test).env(ARGUMENT, argument).env_remove("TERMGATE_SESSION");
    command
}

/// Starts a test in another process.
pub(crate) fn start(test: &str, argument: &Path) -> Other {
    let mut command = command(test, argument);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Other { child, output }
}

/// Runs a test in another process and passes if that one passes.
pub(crate) fn run(test: &str, argument: &Path) {
    let output = command(test, argument).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "no test of this name ran: {text}");
}

/// The other process; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Other {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Waits for [`say_ready`].
    pub(crate) fn wait_until_ready(&mut self) {
        let mut lines = self.output.by_ref().lines();
        assert!(lines.any(|line| line.unwrap() == READY), "the other process ended too early");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
