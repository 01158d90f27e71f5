//! The program under test, and what the kernel says of processes.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::waiting::until;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_termgate");

/// The processes whose command lines or environments have one of these words, that of the test aside.
pub(crate) fn named(words: &[&[u8]]) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != own && lives(*pid))
        .filter(|pid| {
            let said = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let is_named = |text: Vec<u8>| words.iter().any(|word| contains(&text, word));
            is_named(said("cmdline")) || is_named(said("environ"))
        })
        .collect()
}

/// Whether `part` is in `text`.
pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|there| there == part)
}

/// The words a process was started with, with spaces between them.
pub(crate) fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Whether a process has not ended, collected or not.
pub(crate) fn lives(pid: i32) -> bool {
    state_in(Path::new(&format!("/proc/{pid}"))).is_some_and(|state| state != 'Z')
}

/// Whether a process stands still by a signal, with each of its threads: one that runs meanwhile may
/// still read and answer.
pub(crate) fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let mut threads = threads.map(|thread| thread.map(|thread| thread.path()));
    threads.all(|thread| thread.is_ok_and(|path| state_in(&path) == Some('T')))
}

/// Waits until a process has ended.
pub(crate) async fn dies(pid: i32) {
    until(&format!("the end of process {pid}"), || !lives(pid)).await;
}

/// Makes a process stand still.
pub(crate) async fn stands_still(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    until(&format!("the standstill of process {pid}"), || is_stopped(pid)).await;
}

fn state_in(directory: &Path) -> Option<char> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
