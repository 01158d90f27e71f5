//! What shells offer while somebody types, asked of the shells themselves.

use std::os::unix::net::UnixListener;

use crate::commands::terminal::Terminal;
use crate::harness::home::{Home, is_installed};

/// What bash offers for the last of these words.
fn offered_by_bash(home: &Home, words: &str) -> Vec<String> {
    let script = format!(
        "source <(termgate completions bash)\n\
         COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9\n\
         _clap_complete_termgate termgate \"${{COMP_WORDS[COMP_CWORD]}}\" 2>&1\n\
         [ ${{#COMPREPLY[@]}} -eq 0 ] || printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = home.command("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_sessions_wherever_one_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    home.printed("new --name bench -- cat");
    for words in [
        "termgate read b",
        "termgate send b",
        "termgate keys b",
        "termgate history b",
        "termgate watch b",
        "termgate run b",
        "termgate commands b",
        "termgate kill b",
        "termgate wait build b",
        "termgate lease acquire b",
        "termgate lease ls b",
        "termgate allow-write on --session b",
    ] {
        let mut offered = offered_by_bash(&home, words);
        offered.sort();
        assert_eq!(offered, ["bench", "build"], "{words}");
    }
}

#[test]
fn bash_offers_the_commands_that_ran_by_their_numbers() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- bash");
    home.printed("run build true");
    home.printed("run build true");
    let mut offered = offered_by_bash(&home, "termgate commands build ''");
    offered.retain(|word| !word.starts_with('-'));
    offered.sort();
    assert_eq!(offered, ["1", "2"]);
}

#[test]
fn bash_offers_tools_codes_and_commands() {
    let home = Home::new();
    let _daemon = home.daemon();
    assert_eq!(offered_by_bash(&home, "termgate call read_s"), ["read_screen"]);
    assert_eq!(offered_by_bash(&home, "termgate why lease_h"), ["lease_held"]);
    let of_clients = offered_by_bash(&home, "termgate why client_");
    assert_eq!(of_clients, ["client_config", "client_not_found"]);
    assert_eq!(offered_by_bash(&home, "termgate compl"), ["completions"]);
    assert_eq!(offered_by_bash(&home, "termgate completions z"), ["zsh"]);
}

#[test]
fn without_a_daemon_no_session_is_offered_and_none_is_started() {
    let home = Home::new();
    assert!(offered_by_bash(&home, "termgate kill b").is_empty());
    assert!(offered_by_bash(&home, "termgate call read_").is_empty());
    assert!(!home.path("run/termgate").exists(), "something was started");
    // What needs no daemon is offered all the same.
    assert_eq!(offered_by_bash(&home, "termgate why busy"), ["busy"]);
}

#[test]
fn a_daemon_that_does_not_answer_is_not_waited_for() {
    let home = Home::new();
    let socket = home.path("run/silent.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let words = format!("termgate --socket {} kill b", socket.display());
    assert!(offered_by_bash(&home, &words).is_empty());
}

#[test]
fn the_socket_that_was_typed_is_asked() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let operator = home.path("run/termgate/operator.sock");
    let elsewhere = Home::new();
    let words = format!("termgate --socket {} kill b", operator.display());
    assert_eq!(offered_by_bash(&elsewhere, &words), ["build"]);
}

#[test]
fn a_person_in_bash_completes_a_session_with_the_tabulator() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut bash = home.command("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ");
    let mut terminal = Terminal::of(bash);
    terminal.wait_for("ready> ");
    terminal.type_in("source <(termgate completions bash)\n");
    terminal.wait_for("ready> ");
    terminal.type_in("termgate kill bu\t");
    terminal.wait_for("termgate kill build");
}

#[test]
fn a_person_in_zsh_completes_a_session_with_the_tabulator() {
    if !is_installed("zsh") {
        return;
    }
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut zsh = home.command("zsh");
    zsh.args(["-f", "-i"]).env("PS1", "ready> ");
    let mut terminal = Terminal::of(zsh);
    terminal.wait_for("ready> ");
    let setup =
        "autoload -U compinit; compinit -D -u; source <(termgate completions zsh); echo se''t\n";
    terminal.type_in(setup);
    terminal.wait_for("set\r\n");
    terminal.wait_for("ready> ");
    terminal.type_in("termgate kill bu\t");
    terminal.wait_for("ild");
}

#[test]
fn fish_offers_sessions_with_what_runs_in_them() {
    if !is_installed("fish") {
        return;
    }
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let script = "termgate completions fish | source; complete -C 'termgate kill b'";
    let output = home.command("fish").args(["--no-config", "-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "build\tcat\n", "{output:?}");
}

#[test]
fn every_shell_gets_a_script_that_asks_this_program() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.printed(&format!("completions {shell}"));
        assert!(script.contains("TERMGATE_COMPLETE"), "{shell}: {script}");
    }
    assert_eq!(home.run("completions tcsh").status.code(), Some(2));
}
