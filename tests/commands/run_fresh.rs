//! `run` without a session: standard input, environment and directory as a shell would have them.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::harness::home::{Home, is_installed};

/// `run` in a session of its own, with this shell.
fn run_fresh(home: &Home, shell: &str, options: &str, words: &[&str]) -> Command {
    let mut command = home.termgate(&format!("run {options} --"));
    command.args(words).env("SHELL", format!("/usr/bin/{shell}"));
    command
}

/// Runs it with this standard input, and gives back how it ended.
fn fed(mut command: Command, input: Vec<u8>) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that ends early leaves the rest unread.
    let feeding = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

fn text(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap())
}

#[test]
fn standard_input_reaches_the_command_byte_by_byte() {
    let home = Home::new();
    let _daemon = home.daemon();
    // A terminal would end the input at the first of these, and cut the line.
    let data = [b"\x04\x03\x1a".to_vec(), vec![b'x'; 9_000], b"\nlast".to_vec()].concat();
    let expected = format!("{}\n", data.len());
    for shell in ["bash", "zsh", "fish"].into_iter().filter(|shell| is_installed(shell)) {
        for words in [&["wc", "-c"][..], &["cat | wc -c"]] {
            let output = fed(run_fresh(&home, shell, "", words), data.clone());
            let (code, printed) = text(&output);
            assert_eq!((code, printed.trim_start()), (Some(0), &*expected), "{shell}: {output:?}");
        }
        let ended = run_fresh(&home, shell, "", &["sh", "-c", "exit 3"]).output().unwrap();
        assert_eq!(ended.status.code(), Some(3), "{shell}: {ended:?}");
    }
    let left = fs::read_dir(home.path("run/termgate")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("stdin")).count(), 0);
}

#[test]
fn a_large_input_arrives_and_one_that_is_not_read_stops_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    let large = vec![b'\n'; 10_000_000];
    let output = fed(run_fresh(&home, "bash", "", &["wc", "-l"]), large.clone());
    assert_eq!(text(&output), (Some(0), "10000000\n".to_owned()), "{output:?}");
    for words in [&["true"][..], &["head", "-c", "1"]] {
        let output = fed(run_fresh(&home, "bash", "", words), large.clone());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
    // Its other end stays open until the command has ended.
    let mut child = run_fresh(&home, "bash", "", &["true"]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn the_command_has_the_callers_environment_and_directory() {
    let home = Home::new();
    let _daemon = home.daemon();
    let directory = home.path("home/elsewhere");
    fs::create_dir(&directory).unwrap();
    let words = ["echo \"$FROM_CALLER,$GIVEN,$TERM\"; pwd"];
    let options = "--cwd elsewhere --env GIVEN=given --env FROM_CALLER=other";
    for (options, expected) in [("", "caller,"), (options, "other,given")] {
        let mut command = run_fresh(&home, "bash", options, &words);
        let output = command.env("FROM_CALLER", "caller").env("TERM", "dumb").output().unwrap();
        let place = if options.is_empty() { home.path("home") } else { directory.clone() };
        let place = place.canonicalize().unwrap();
        let expected = format!("{expected},xterm-256color\n{}\n", place.display());
        assert_eq!(text(&output), (Some(0), expected), "{output:?}");
    }
    home.printed("new --name build");
    let refused = home.run("run --cwd elsewhere build true");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
