//! Plays a test again and again, each time in a process of its own in which another call to a file fails.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The directory whose files fail, in the process of one round.
const FAIL_IN: &str = "FAIL_IN";
const SOURCE: &str = include_str!("../../tests/harness/failing_calls.c");

/// Plays a test in a directory, once for each call that it makes to a file there; that call fails. Returns how many
/// there are. In the process of a round this plays once, and returns nothing.
pub(super) fn with_each_call_failing(test: &str, play: impl FnOnce(&Path)) -> Option<usize> {
    if let Some(directory) = env::var_os(FAIL_IN) {
        play(Path::new(&directory));
        return None;
    }
    let ground = tempfile::tempdir().unwrap();
    let (source, library) = (ground.path().join("calls.c"), ground.path().join("calls.so"));
    fs::write(&source, SOURCE).unwrap();
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.unwrap().success());
    // The last round has no call of this number any more.
    let rounds = (1..).take_while(|number| round(test, &library, *number)).count();
    eprintln!("{rounds} calls failed in turn");
    Some(rounds)
}

/// One round. Returns whether a call failed.
fn round(test: &str, library: &Path, number: usize) -> bool {
    let ground = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("LD_PRELOAD", library).env("FAIL_AT", number.to_string());
    command.env(FAIL_IN, ground.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let failed = told.lines().find(|line| line.starts_with("failed: "));
    let played = String::from_utf8_lossy(&output.stdout);
    assert!(played.contains("1 passed"), "call {number}: {failed:?}\n{played}{told}");
    failed.is_some()
}
