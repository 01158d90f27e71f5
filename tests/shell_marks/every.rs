//! What every shell tells, whatever it is.

use std::collections::BTreeSet;
use std::fs;

use termgate::core::frame::Exit;

use crate::harness::home::is_installed;
use crate::shell_marks::harness::{File, Shell};

/// Each shell with files that leave it as it is, and how it asks for nothing at its start.
const SHELLS: [(&str, &[File]); 3] = [
    ("bash", &[(".bashrc", "PS1='> '\n")]),
    ("zsh", &[(".zshrc", "PS1='> '\n")]),
    ("fish", &[(".config/fish/config.fish", "function fish_greeting; end\n")]),
];

fn shells() -> impl Iterator<Item = (&'static str, &'static [File])> {
    SHELLS.into_iter().filter(|(program, _)| is_installed(program))
}

fn ended(code: i32) -> Vec<String> {
    vec!["C".to_owned(), format!("D {code}"), "A".to_owned(), "B".to_owned()]
}

#[tokio::test]
async fn each_command_is_told_with_its_code() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        for (line, code) in [
            ("true", 0),
            ("false", 1),
            ("sh -c 'exit 2'", 2),
            ("sh -c 'exit 7'", 7),
            ("/etc/passwd", 126),
            ("surely-no-program", 127),
            ("sh -c 'kill -INT $$'", 130),
            ("sh -c 'kill -KILL $$'", 137),
            ("false | true", 0),
            ("true | sh -c 'exit 5'", 5),
            ("echo one; false", 1),
            ("sh -c 'sleep 0.1 & exit 3'", 3),
        ] {
            assert_eq!(shell.run(line).await, ended(code), "{program}: {line}\n{}", shell.text());
        }
    }
}

#[tokio::test]
async fn what_runs_no_command_is_told_as_a_new_prompt_alone() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        assert_eq!(shell.run("").await, ["A", "B"], "{program}");
        assert_eq!(shell.run("echo )").await, ["A", "B"], "{program}: {}", shell.text());
        // fish keeps the line to be mended.
        shell.press(b"\x15").await;
        assert_eq!(shell.run("true").await, ended(0), "{program}: {}", shell.text());
    }
}

#[tokio::test]
async fn a_command_of_several_lines_is_one_command() {
    for (program, files) in shells() {
        let lines = if program == "fish" {
            "for i in 1 2\recho got$i\rend"
        } else {
            "for i in 1 2; do\recho got$i\rdone"
        };
        let mut shell = Shell::start(program, &[], files).await;
        let output = shell.output_of(lines).await;
        assert!(output.contains("got1\r\ngot2\r\n"), "{program}: {output:?}");
    }
}

#[tokio::test]
async fn an_interrupted_command_is_told_with_its_code() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        shell.type_in("sh -c 'echo rea''dy; exec sleep 60'").await;
        shell.shows("ready").await;
        shell.press(b"\x03").await;
        assert_eq!(shell.prompt().await, ended(130), "{program}: {}", shell.text());
    }
}

#[tokio::test]
async fn the_output_of_a_command_is_what_stands_between_its_marks() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        let output = shell.output_of("printf 'a\\nb'").await;
        // fish names the command in the title first, and zsh shows that no line end came.
        assert!(output.contains("a\r\nb"), "{program}: {output:?}");
        assert!(!output.contains("> "), "{program}: {output:?}");
    }
}

#[tokio::test]
async fn a_session_that_exits_tells_the_command_and_no_end() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        shell.type_in("exit 9").await;
        let (exit, marks) = shell.end().await;
        assert_eq!(exit, Exit::Code(9), "{program}");
        assert_eq!(marks.first().map(String::as_str), Some("C"), "{program}: {marks:?}");
        assert!(!marks.iter().any(|mark| mark == "A"), "{program}: {marks:?}");
    }
}

#[tokio::test]
async fn a_shell_in_the_shell_is_silent_and_the_outer_one_goes_on() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        shell.type_in(program).await;
        shell.type_in("echo in''ner; exit 4").await;
        let marks = shell.prompt().await;
        assert_eq!(marks, ended(4), "{program}: {}", shell.text());
        assert!(shell.text().contains("inner"), "{program}");
    }
}

#[tokio::test]
async fn a_shell_that_takes_the_place_of_the_first_is_silent() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        shell.type_in(&format!("exec {program}")).await;
        shell.type_in("echo in''ner; exit 4").await;
        let (exit, marks) = shell.end().await;
        assert_eq!((exit, marks), (Exit::Code(4), vec!["C".to_owned()]), "{program}");
    }
}

#[tokio::test]
async fn no_program_finds_the_nonce_or_any_trace_but_the_session() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        let output = shell.output_of("env").await;
        let ours: Vec<&str> = output.lines().filter(|line| line.contains("ermgate")).collect();
        let names = ours.into_iter().map(|line| line.split('=').next().unwrap());
        let names: BTreeSet<&str> = names.collect();
        // What shells that are started from here look at, and where scripts are.
        let nested = ["ENV", "PS0", "XDG_DATA_DIRS", "PWD", "OLDPWD", "TERM_PROGRAM"];
        assert!(names.iter().all(|name| nested.contains(name)), "{program}: {names:?}");
        let marked = output.lines().filter_map(|line| line.strip_prefix("TERMGATE_"));
        let mut marked: Vec<&str> = marked.map(|line| line.split('=').next().unwrap()).collect();
        marked.sort_unstable();
        assert_eq!(marked, ["NESTED_BASH", "NESTED_NONCE", "SESSION"], "{program}");
        assert!(!output.contains("ZDOTDIR"), "{program}");
        assert!(!shell.is_secret_in(&output), "{program}");
        let began_with = "sh -c 'tr \"\\\\0\" \"\\\\n\" < /proc/$PPID/environ'";
        let began_with = shell.output_of(began_with).await;
        assert!(began_with.contains("TERMGATE_SHELL_NONCE="), "{program}: {began_with}");
        assert!(!shell.is_secret_in(&began_with), "{program}: {began_with}");
    }
}

#[tokio::test]
async fn directories_are_told_in_the_form_of_a_path() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        fs::create_dir(shell.path("a b%ü~")).unwrap();
        shell.run("cd 'a b%ü~'").await;
        let home = shell.path("").canonicalize().unwrap();
        let directories = shell.directories();
        let expected = format!("{}/a%20b%25%C3%BC~", home.display());
        assert!(directories.last().unwrap().ends_with(&expected), "{program}: {directories:?}");
        assert!(!directories.last().unwrap().starts_with('/'), "{program}: a host comes first");
        assert!(directories[0].ends_with(home.to_str().unwrap()), "{program}: {directories:?}");
    }
}

#[tokio::test]
async fn a_shell_that_knows_the_command_tells_its_text() {
    for (program, files) in shells().filter(|(program, _)| *program != "bash") {
        let mut shell = Shell::start(program, &[], files).await;
        shell.run("echo 'ü'; true").await;
        assert_eq!(shell.command_texts(), ["echo%20%27%C3%BC%27%3B%20true"], "{program}");
        shell.run(&format!("true {}", "ü".repeat(300))).await;
        let text = shell.command_texts().pop().unwrap();
        assert!((998..=1_000).contains(&text.len()), "{program}: {}", text.len());
        let escapes = text.strip_prefix("true%20").unwrap();
        assert_eq!(escapes.replace("%C3%BC", "").replace("%C3", ""), "", "{program}: {escapes}");
    }
}

#[tokio::test]
async fn the_files_of_the_user_stay_as_they_are() {
    for (program, files) in shells() {
        let mut shell = Shell::start(program, &[], files).await;
        shell.run("true").await;
        for (path, text) in files {
            assert_eq!(fs::read_to_string(shell.path(path)).unwrap(), *text, "{program}");
        }
    }
}

#[tokio::test]
async fn a_login_shell_marks_its_commands_as_well() {
    let login: [(&str, File); 3] = [
        ("bash", (".profile", "echo the pro''file; PS1='> '\n")),
        ("zsh", (".zlogin", "echo the pro''file; PS1='> '\n")),
        ("fish", SHELLS[2].1[0]),
    ];
    for (program, file) in login.into_iter().filter(|(program, _)| is_installed(program)) {
        let mut shell = Shell::start(program, &["-l"], &[file]).await;
        assert_eq!(shell.run("false").await, ended(1), "{program}");
        let is_login = match program {
            "bash" => "shopt -q login_shell",
            "zsh" => "[[ -o login ]]",
            _ => "status is-login",
        };
        assert_eq!(shell.run(is_login).await, ended(0), "{program}");
        assert_eq!(shell.text().contains("the profile"), program != "fish", "{program}");
    }
}
