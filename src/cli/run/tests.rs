//! How a command that was run ends for a shell, and what people are told.

use super::*;
use crate::cli::run::line::line_with_input;

#[test]
fn it_ends_with_the_code_of_the_command() {
    for (code, number) in [(0, 0), (7, 7), (255, 255), (256, 1), (-1, 1)] {
        let ended = exit(&json!({"status": "completed", "exit_code": code}));
        assert_eq!(ended.number(), number, "{code}");
    }
    assert_eq!(exit(&json!({"status": "exited", "exit_code": 3})).number(), 3);
}

#[test]
fn an_end_without_a_code_has_a_code_of_its_own() {
    for (status, number) in [
        ("timeout", 124),
        ("needs_input", 122),
        ("completed", 123),
        ("exited", 123),
        ("not_run", 2),
        ("lease_lost", 4),
        ("lease_suspended", 4),
    ] {
        let ended = exit(&json!({"status": status, "exit_code": null}));
        assert_eq!(ended.number(), number, "{status}");
    }
}

#[test]
fn what_it_asks_is_told_with_the_way_to_answer() {
    let mut run = json!({
        "status": "needs_input", "exit_code": null, "prompt": "Name: ",
        "activity": {"state": "needs_input"},
    });
    let told = notes(&run, "build");
    assert!(
        told[0].starts_with(
            "the command is waiting for input: Name:\nanswer with `termgate send build "
        ),
        "{told:?}"
    );
    run["activity"]["state"] = json!("secret_prompt");
    let told = notes(&run, "build");
    assert!(told[0].starts_with("the command is waiting for a secret: Name:\n"), "{told:?}");
    assert!(told[0].contains("`termgate attach build`"), "{told:?}");
}

#[test]
fn an_unknown_code_is_told_with_the_reason() {
    let mut run = json!({"status": "completed", "exit_code": null, "evidence": "osc133"});
    assert_eq!(notes(&run, "s"), ["exit code unknown: the shell did not report it"]);
    run["evidence"] = json!("exit");
    run["status"] = json!("exited");
    let told = notes(&run, "s");
    assert_eq!(told[1], "exit code unknown: the shell did not report it");
    run["status"] = json!("completed");
    run["evidence"] = json!("kernel");
    let told = notes(&run, "s");
    assert!(
        told[0].starts_with("exit code unknown: the program in front reports no codes"),
        "{told:?}"
    );
    let run = json!({"status": "completed", "exit_code": 0, "evidence": "osc133"});
    assert!(notes(&run, "s").is_empty());
}

#[test]
fn a_lease_that_ended_and_one_that_comes_back_are_told_apart() {
    let told = |status: &str| {
        notes(&json!({"status": status, "exit_code": null, "command_id": 7}), "build")[0].clone()
    };
    assert!(told("lease_lost").starts_with("your lease ended;"));
    assert!(told("lease_suspended").contains("your lease comes back by itself"));
    for status in ["lease_lost", "lease_suspended"] {
        assert!(told(status).ends_with("`termgate commands build 7`"), "{}", told(status));
    }
}

fn line(words: &[&str]) -> String {
    line_of(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

#[test]
fn one_word_is_a_line_as_it_stands() {
    assert_eq!(line(&["make && echo $?"]), "make && echo $?");
}

#[test]
fn several_words_reach_a_program_as_they_are() {
    assert_eq!(line(&["make", "-j4", "CC=gcc"]), "make -j4 CC=gcc");
    assert_eq!(line(&["echo", "a b", "", "$x;*"]), "echo 'a b' '' '$x;*'");
    assert_eq!(line(&["echo", "it's"]), r"echo 'it'\''s'");
    assert_eq!(line(&["echo", r"a\n"]), r"echo 'a'\\'n'");
    assert_eq!(line(&["echo", "=ls", "~"]), "echo '=ls' '~'");
}

#[test]
fn standard_input_is_that_of_the_whole_command() {
    let line = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        line_with_input(&words, "/run/a b/stdin")
    };
    assert_eq!(line(&["wc", "-c"]), "wc -c < '/run/a b/stdin'");
    assert_eq!(line(&["cat"]), "cat < '/run/a b/stdin'");
    assert_eq!(line(&["read x; echo $x # one"]), "eval 'read x; echo $x # one' < '/run/a b/stdin'");
}
