//! `run`, `commands` and `wait`: what a script at a command line sees of commands in sessions.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::home::{Home, is_installed};

/// `run` with one line for the shell of a session.
pub(crate) fn run(home: &Home, options: &str, session: &str, line: &str) -> Command {
    let mut command = home.termgate(&format!("run {options}"));
    command.args([session, line]);
    command
}

fn ran(home: &Home, session: &str, line: &str) -> Output {
    run(home, "", session, line).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A daemon with a session of each shell that marks its commands, and their names.
fn with_shells(home: &Home) -> Vec<&'static str> {
    let shells = ["bash", "zsh", "fish"].into_iter().filter(|shell| is_installed(shell));
    shells.inspect(|shell| drop(home.printed(&format!("new --name {shell} -- {shell}")))).collect()
}

#[test]
fn a_command_of_which_nobody_reads_on_is_not_told_to_have_done_well() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name bash -- bash");
    let mut command = run(&home, "", "bash", "seq 1000; sleep 1000");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(141));
    home.printed("wait bash --command-done --since 0");
}

#[test]
fn a_command_that_failed_does_not_end_well_because_nobody_reads_on_what_it_printed() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name bash -- bash");
    for options in ["", "--json"] {
        // What is found first of the two, the end or that nobody reads on, is by chance.
        for _ in 0..10 {
            let gate = home.path("gate");
            let wait = format!("until [ -e {0} ]; do sleep 0.02; done; rm {0}", gate.display());
            let line = format!("{wait}; echo over; sh -c 'exit 7'");
            let mut command = run(&home, options, "bash", &line);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            while !home.printed("commands bash").contains("running") {}
            let pid = Pid::from_raw(child.id().cast_signed());
            kill(pid, Signal::SIGSTOP).unwrap();
            waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
            std::fs::write(gate, "").unwrap();
            while home.printed("commands bash").contains("running") {}
            drop(child.stdout.take());
            kill(pid, Signal::SIGCONT).unwrap();
            let code = child.wait().unwrap().code();
            assert!(matches!(code, Some(7 | 141)), "{options}: {code:?}");
        }
    }
}

#[test]
fn a_command_prints_what_it_prints_and_ends_with_its_code() {
    let home = Home::new();
    let _daemon = home.daemon();
    for shell in with_shells(&home) {
        let output = ran(&home, shell, "echo one; echo two; sh -c 'exit 7'");
        assert_eq!(text(&output.stdout), "one\ntwo\n", "{shell}");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(7), ""), "{shell}");
        let output = ran(&home, shell, "true");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), ""), "{shell}");
    }
}

#[test]
fn several_words_reach_the_program_as_they_are() {
    let home = Home::new();
    let _daemon = home.daemon();
    let words = ["a b", "it's", r"x\ny", "$HOME", "*", "", "--json"];
    for shell in with_shells(&home) {
        let mut command = home.termgate(&format!(r"run {shell} -- printf [%s]\n"));
        let output = command.args(words).output().unwrap();
        let expected: String = words.iter().map(|word| format!("[{word}]\n")).collect();
        assert_eq!(text(&output.stdout), expected, "{shell}: {output:?}");
    }
}

#[test]
fn output_of_any_length_comes_whole_and_once() {
    let home = Home::new();
    let _daemon = home.daemon();
    let expected: String = (1..=6_000).map(|number| format!("{number}\n")).collect();
    for shell in with_shells(&home) {
        let output = ran(&home, shell, "seq 1 3000; sleep 0.3; seq 3001 6000");
        assert!(text(&output.stdout) == expected, "{shell}: {}", output.stdout.len());
    }
}

#[test]
fn lines_are_printed_while_the_command_runs() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line =
        format!("echo first; until [ -e {} ]; do sleep 0.05; done; echo last", gate.display());
    let mut child = run(&home, "", "s", &line).stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    shown.read_line(&mut first).unwrap();
    assert_eq!(first, "first\n");
    // It cannot have ended before this.
    std::fs::write(gate, "").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("last\n", Some(0)));
}

#[test]
fn a_command_that_takes_longer_goes_on_and_its_end_can_be_waited_for() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line = format!("until [ -e {} ]; do sleep 0.05; done; echo over", gate.display());
    let output = run(&home, "--timeout 300ms", "s", &line).output().unwrap();
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert!(text(&output.stderr).contains("termgate wait s --command-done"), "{output:?}");
    let busy = ran(&home, "s", "true");
    assert_eq!(busy.status.code(), Some(1), "{busy:?}");
    assert!(text(&busy.stderr).contains("hint: Wait for it with `termgate wait"), "{busy:?}");
    std::fs::write(gate, "").unwrap();
    let waited = home.run("wait s --command-done --since 0");
    assert!(waited.status.success(), "{waited:?}");
    assert_eq!(home.printed("commands s 1"), "over\n");
}

#[test]
fn older_commands_are_listed_before_one_of_them() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    for command in ["echo one", "echo two", "echo three"] {
        assert!(ran(&home, "s", command).status.success());
    }
    let listed = home.envelope("commands s --before 3");
    let commands = listed["data"]["commands"].as_array().unwrap();
    let told: Vec<_> = commands.iter().map(|it| it["command"].as_str().unwrap()).collect();
    assert_eq!(told, ["echo one", "echo two"]);
}

#[test]
fn a_command_that_asks_is_told_with_what_it_asks_and_how_to_answer() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let output = ran(&home, "s", "echo before; read -p 'Your name: ' name; echo \"<$name>\"");
    assert_eq!(output.status.code(), Some(122), "{output:?}");
    assert_eq!(text(&output.stdout), "before\n");
    let said = text(&output.stderr);
    assert!(said.contains("Your name:") && said.contains("termgate send s TEXT --enter"), "{said}");
    assert!(home.run("wait s --needs-input --since 0").status.success());
    let mut waiting = home.termgate("send s ada --enter --until-text <ada>");
    assert!(waiting.output().unwrap().status.success());
    let secret = ran(&home, "s", "read -s -p 'Password: ' secret");
    assert_eq!(secret.status.code(), Some(122), "{secret:?}");
    assert!(text(&secret.stderr).contains("termgate attach s"), "{secret:?}");
}

#[test]
fn a_code_that_nobody_says_has_a_code_of_its_own() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- env -u ENV sh");
    let output = ran(&home, "s", "echo out");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(123), "out\n"));
    assert!(text(&output.stderr).contains("unknown"), "{output:?}");
    home.printed("new --name b -- bash");
    let output = ran(&home, "b", "echo (");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("could not read it"), "{output:?}");
}

#[test]
fn an_interrupt_at_the_command_line_interrupts_the_command() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let mut child =
        run(&home, "", "s", "echo begun; sleep 1000").stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    shown.read_line(&mut first).unwrap();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let next = ran(&home, "s", "echo free");
    assert_eq!(text(&next.stdout), "free\n", "{next:?}");
    let listed = home.envelope("commands s");
    assert_eq!(listed["data"]["commands"][0]["exit_code"], 130, "{listed}");
}

#[test]
fn programs_get_the_result_as_one_object() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let output = run(&home, "--json --max-lines 2", "s", "seq 1 10; false").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let data = &envelope["data"];
    assert_eq!((&envelope["ok"], &data["status"]), (&true.into(), &"completed".into()));
    assert_eq!((&data["lines_total"], &data["lines_left_out"]), (&10.into(), &8.into()));
    assert!(data["rest"].as_str().unwrap().ends_with("/command/1/output"), "{data}");
    // Behind the command's first word every word is its own.
    let output = home.termgate("run s echo --json").output().unwrap();
    assert_eq!(text(&output.stdout), "--json\n");
}

#[test]
fn commands_are_listed_and_their_output_is_printed() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    assert_eq!(home.printed("commands s"), "");
    ran(&home, "s", "seq 1 500");
    ran(&home, "s", "sh -c 'exit 3'");
    let table = home.printed("commands s");
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "WHEN", "TOOK", "EXIT", "BY", "CWD", "COMMAND"]);
    assert_eq!((rows[1][0], rows[1][4], &rows[1][7..]), ("1", "0", &["seq", "1", "500"][..]));
    assert_eq!((rows[2][0], rows[2][4]), ("2", "3"));
    assert_eq!(home.printed("commands s --limit 1").lines().count(), 2);
    let all: String = (1..=500).map(|number| format!("{number}\n")).collect();
    assert_eq!(home.printed("commands s 1"), all);
    let ends = home.printed("commands s 1 --head 1 --tail 1");
    assert!(ends.starts_with("1\n[… 498 lines") && ends.ends_with("\n500\n"), "{ends}");
    let one = home.envelope("commands s 1 --tail 2");
    assert!(one["data"]["output"].as_str().unwrap().ends_with("499\n500"), "{one}");
    let unknown = home.run("commands s 9");
    assert_eq!(unknown.status.code(), Some(3), "{unknown:?}");
    let said = text(&unknown.stderr);
    assert!(said.contains("1 to 2 are known") && said.contains("termgate commands s`"), "{said}");
    assert_eq!(home.run("commands s 1 --head 5000").status.code(), Some(2));
    assert_eq!(home.run("commands nobody").status.code(), Some(3));
}

#[test]
fn a_daemon_that_is_read_only_runs_nothing() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    home.printed("allow-write off");
    let output = ran(&home, "s", "true");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    drop(daemon);
    let output = run(&home, "--no-spawn", "s", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

/// `run` with these words, in a session of its own; the user's shell is bash.
pub(crate) fn run_fresh(home: &Home, options: &str, words: &[&str]) -> Command {
    let mut command = home.termgate(&format!("run {options} --"));
    command.args(words).env("SHELL", "/bin/bash");
    command
}

#[test]
fn a_command_without_a_session_runs_in_one_of_its_own_which_is_gone_with_it() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut output = run_fresh(&home, "", &["sh", "-c", "echo \"$1\"; pwd; exit 7", "-", "a  b"]);
    let output = output.output().unwrap();
    let here = home.path("home").canonicalize().unwrap();
    assert_eq!(text(&output.stdout), format!("a  b\n{}\n", here.display()));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(7), ""));
    let output = run_fresh(&home, "", &["seq 3 | tail -n 1; (exit 3)"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), "3\n"), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    let listed = home.envelope("ls");
    assert_eq!(listed["data"]["sessions"], serde_json::json!([]), "{listed}");
}

#[test]
fn a_session_of_its_own_is_left_to_a_command_that_goes_on() {
    let home = Home::new();
    let _daemon = home.daemon();
    let asking = ["printf 'Sure? '; read -r answer </dev/tty; echo \"<$answer>\""];
    let output = run_fresh(&home, "", &asking).output().unwrap();
    assert_eq!(output.status.code(), Some(122), "{output:?}");
    let listed = home.envelope("ls");
    let name = listed["data"]["sessions"][0]["name"].as_str().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains(&format!("termgate send {name} TEXT --enter")), "{said}");
    assert!(said.contains(&format!("session `{name}` was kept")), "{said}");
    home.printed(&format!("send {name} yes --enter --until-text <yes>"));
    let late = run_fresh(&home, "--timeout 300ms", &["sleep", "1000"]).output().unwrap();
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    assert_eq!(home.envelope("ls")["data"]["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn an_interrupt_ends_a_session_of_its_own_too() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut child = run_fresh(&home, "", &["echo begun; sleep 1000"]);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    shown.read_line(&mut first).unwrap();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(home.envelope("ls")["data"]["sessions"], serde_json::json!([]));
}

#[test]
fn running_starts_a_daemon_which_writes_only_when_that_is_said() {
    let home = Home::new();
    let refused = run_fresh(&home, "--no-spawn", &["true"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
    let refused = run_fresh(&home, "", &["touch", "ran"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(text(&refused.stderr).contains("termgate allow-write on"), "{refused:?}");
    assert!(!home.path("home/ran").exists());
    home.printed("stop");
    let output = run_fresh(&home, "--allow-write", &["echo", "written"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "written\n"), "{output:?}");
    home.printed("stop");
}

#[test]
fn a_command_needs_a_session_or_two_dashes_before_it() {
    let home = Home::new();
    for words in ["run", "run --", "run true", "run --lease-file x -- true"] {
        assert_eq!(home.run(words).status.code(), Some(2), "{words}");
    }
}

/// A command that runs until this file is there, between two lines.
pub(crate) fn gated(gate: &std::path::Path) -> String {
    format!("echo first; until [ -e {} ]; do sleep 0.05; done; echo last; (exit 5)", gate.display())
}

/// Starts `run` of such a command, and waits until it is on its way.
pub(crate) fn begun(mut command: Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    shown.read_line(&mut first).unwrap();
    assert_eq!(first, "first\n");
    (child, shown)
}

#[test]
fn a_command_is_followed_to_its_end_under_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    for (fresh, gate) in [(false, "gate"), (true, "other gate")] {
        let gate = home.path(&gate.replace(' ', "-"));
        let line = gated(&gate);
        let command =
            if fresh { run_fresh(&home, "", &[&line]) } else { run(&home, "", "s", &line) };
        let (child, mut shown) = begun(command);
        assert!(home.run("upgrade").status.success());
        std::fs::write(gate, "").unwrap();
        let mut rest = String::new();
        shown.read_to_string(&mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!((rest.as_str(), ended.status.code()), ("last\n", Some(5)), "{ended:?}");
        assert_eq!(text(&ended.stderr), "", "{fresh}");
    }
    // The session of its own is gone with the command.
    assert_eq!(home.envelope("ls")["data"]["sessions"].as_array().unwrap().len(), 1);
    drop(daemon);
}

#[test]
fn programs_get_the_result_of_a_command_that_outlived_its_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let mut child = run(&home, "--json", "s", &gated(&gate));
    let child = child.stdout(Stdio::piped()).spawn().unwrap();
    assert!(home.run("wait s --text first --since 0").status.success());
    daemon.killed();
    let _next = home.daemon();
    std::fs::write(gate, "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(5), "{ended:?}");
    let envelope: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let data = &envelope["data"];
    assert_eq!((&data["status"], &data["output"]), (&"completed".into(), &"first\nlast".into()));
    assert_eq!((&data["command_id"], &data["exit_code"]), (&1.into(), &5.into()));
}

#[test]
fn a_command_that_asks_under_the_next_daemon_is_told_with_what_it_asks() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line = format!(
        "echo first; until [ -e {} ]; do sleep 0.05; done; read -p 'Sure? ' x",
        gate.display()
    );
    let (child, _shown) = begun(run(&home, "", "s", &line));
    daemon.killed();
    let _next = home.daemon();
    std::fs::write(gate, "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(122), "{ended:?}");
    assert!(text(&ended.stderr).contains("the command is waiting for input: Sure?"), "{ended:?}");
}

#[test]
fn an_interrupt_reaches_a_command_that_outlived_its_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let gate = home.path("gate");
    let line = format!(
        "echo first; until [ -e {} ]; do sleep 0.05; done; echo second; sleep 1000",
        gate.display()
    );
    let (child, mut shown) = begun(run(&home, "", "s", &line));
    daemon.killed();
    let _next = home.daemon();
    std::fs::write(gate, "").unwrap();
    let mut second = String::new();
    shown.read_line(&mut second).unwrap();
    assert_eq!(second, "second\n");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(home.envelope("commands s 1")["data"]["commands"][0]["exit_code"], 130);
}

#[test]
fn without_another_daemon_a_command_that_goes_on_is_told_and_never_to_be_run_again() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name s -- bash");
    let (child, _shown) = begun(run(&home, "", "s", "echo first; sleep 1000"));
    daemon.killed();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    let said = text(&ended.stderr);
    // The signal may be seen before the end of the daemon.
    let told = ["the command keeps running", "the command may still run"];
    assert!(told.iter().any(|words| said.contains(words)), "{said}");
    assert!(said.contains("do not run it again"), "{said}");
    assert!(said.contains("`termgate commands s 1`"), "{said}");
}

#[test]
fn a_command_whose_session_ended_with_the_daemon_is_not_waited_for() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let (child, _shown) = begun(run(&home, "", "s", "echo first; sleep 1000"));
    home.printed("stop");
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert!(!said.contains("keeps running") && !said.contains("run it again"), "{said}");
    assert_ne!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn how_many_lines_are_told_is_for_programs_alone() {
    let home = Home::new();
    let output = run(&home, "--max-lines 3", "s", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("--json"), "{output:?}");
}

#[test]
fn hints_name_commands_and_the_session_that_was_meant() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build --lease -- cat");
    let held = ["send build x", "keys build C-c", "lease acquire build"];
    for line in held {
        // The lease is one of the command line's, which shows its id or stands in line.
        let output = home.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{line}: {output:?}");
        assert!(said.contains("termgate lease acquire build"), "{line}: {said}");
    }
    let unknown = home.run("keys build Ctrl-Nonsense");
    assert!(!text(&unknown.stderr).contains("send_text"), "{unknown:?}");
    assert!(text(&unknown.stderr).contains("`termgate send build`"), "{unknown:?}");
}

#[test]
fn text_is_sent_as_a_paste_or_not_as_was_said() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut create = home.termgate("new --name raw -- sh -c");
    create.arg("stty raw -echo; printf ready; cat -v");
    assert!(create.output().unwrap().status.success());
    assert!(home.run("wait raw --text ready --since 0").status.success());
    home.printed("send raw never --paste never --until-text never");
    let told = home.printed("send raw always --paste always --until-text 201~");
    assert!(told.contains("^[[200~always^[[201~"), "{told}");
}

#[test]
fn a_client_inside_a_session_is_told_that_it_is_inside() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name s -- bash");
    let ended = run(&home, "", "s", "termgate ls --json").output().unwrap();
    let envelope: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(envelope["error_code"], "policy_denied", "{envelope}");
    assert!(envelope["hint"].as_str().unwrap().contains("outside"), "{envelope}");
    assert_eq!(ended.status.code(), Some(5), "{envelope}");
}
