//! zsh among files of its user that have their own way with prompts.

use crate::harness::home::is_installed;
use crate::shell_marks::harness::{File, Shell};

async fn check(files: &[File], lines: &[(&str, i32)]) -> Option<Shell> {
    if !is_installed("zsh") {
        return None;
    }
    let mut shell = Shell::start("zsh", &[], files).await;
    for (line, code) in lines {
        let ended = ["C", &format!("D {code}"), "A", "B"].map(str::to_owned);
        assert_eq!(shell.run(line).await, ended, "{line}\n{}", shell.text());
    }
    Some(shell)
}

#[tokio::test]
async fn a_prompt_that_is_made_anew_each_time_keeps_its_mark() {
    let rc = "make() { PS1=\"[$?|$pipestatus] \"; RPROMPT=right; }; precmd_functions=(make)\n";
    let shell = check(&[(".zshrc", rc)], &[("true", 0), ("(exit 2) | (exit 3)", 3)]).await;
    let Some(shell) = shell else { return };
    assert!(shell.text().contains("[3|2 3] "), "{}", shell.text());
}

#[tokio::test]
async fn hooks_that_are_taken_away_at_the_start_come_back() {
    let rc = "PS1='> '; precmd_functions=(); preexec_functions=(); precmd() { PS1='new> ' }\n";
    check(&[(".zshrc", rc)], &[("true", 0), ("false", 1)]).await;
}

#[tokio::test]
async fn hooks_that_are_taken_away_later_come_back_with_the_next_command() {
    let Some(mut shell) = check(&[(".zshrc", "PS1='> '\n")], &[("true", 0)]).await else { return };
    shell.type_in("precmd_functions=(); echo do''ne").await;
    shell.shows("done").await;
    let marks = shell.run("false").await;
    assert_eq!(marks, ["C", "C", "D 1", "A", "B"], "{}", shell.text());
}

#[tokio::test]
async fn strict_and_odd_options_do_not_end_the_shell() {
    let rc = "setopt ksh_arrays no_unset err_exit noclobber prompt_subst warn_create_global\n\
              IFS=01234567; export PS1=$'two\\nlines> '\n\
              alias print='echo alias' builtin='echo alias'; print() { echo function }\n";
    let lines = [("true", 0), ("! true", 1), ("cd /", 0)];
    let Some(mut shell) = check(&[(".zshrc", rc)], &lines).await else { return };
    assert!(!shell.text().contains("function"), "{}", shell.text());
    let environment = shell.output_of("env").await;
    assert!(environment.contains("PS1="), "{environment}");
    assert!(!shell.is_secret_in(&environment), "{environment}");
}

#[tokio::test]
async fn a_prompt_in_which_no_mark_has_a_place_is_left_alone() {
    for rc in ["PS1='fixed> '; readonly PS1\n", "setopt no_prompt_percent; PS1='> '\n", "PS1='%'\n"]
    {
        let Some(shell) = check(&[(".zshrc", rc)], &[("false", 1)]).await else { return };
        assert!(!shell.text().contains("%{"), "{rc}: {}", shell.text());
        assert!(!shell.text().contains("read-only"), "{rc}: {}", shell.text());
    }
}

#[tokio::test]
async fn files_elsewhere_are_found_as_zsh_finds_them() {
    let files = [
        (".zshenv", "ZDOTDIR=~/else\n"),
        (".zshrc", "echo wro''ng\n"),
        ("else/.zshrc", "echo ri''ght; PS1='> '\n"),
    ];
    let Some(shell) = check(&files, &[("[[ $ZDOTDIR == ~/else ]]", 0)]).await else { return };
    assert!(shell.text().contains("right") && !shell.text().contains("wrong"), "{}", shell.text());
}

#[tokio::test]
async fn what_is_kept_back_while_a_prompt_is_made_keeps_back_no_mark() {
    let rc = "PS1='> '; exec {out}>&1 >~/kept; show() { exec >&$out }; precmd_functions+=(show)\n";
    check(&[(".zshrc", rc)], &[("true", 0)]).await;
}

#[tokio::test]
async fn a_mark_takes_no_room_in_the_prompt() {
    let rc = "PS1='> '; RPROMPT='|'\n";
    let Some(shell) = check(&[(".zshrc", rc)], &[("true", 0)]).await else { return };
    // The right prompt ends one short of the last of 80 columns: 2 are taken, 76 skipped.
    assert!(shell.text().contains("\u{1b}[76C|"), "{}", shell.text());
}

#[tokio::test]
async fn the_end_of_the_output_is_told_before_the_sign_for_a_missing_line_end() {
    for (rc, sign) in [
        ("PS1='> '\n", "\u{1b}[1m\u{1b}[7m"),
        ("PS1='> '; PROMPT_EOL_MARK='<none>'\n", "<none>"),
        ("PS1='> '; PROMPT_EOL_MARK=\n", ""),
        ("PS1='> '; export PROMPT_EOL_MARK='<none>'\n", "<none>"),
    ] {
        let Some(mut shell) = check(&[(".zshrc", rc)], &[("true", 0)]).await else { return };
        for time in 1..=2 {
            assert_eq!(shell.output_of("printf 'no%s' end").await, "noend", "{rc}");
            let text = shell.text();
            let (_, after) = text.rsplit_once("noend\u{1b}]133;E;nonce=").unwrap();
            let (_, after) = after.split_once("\u{1b}\\").unwrap();
            assert!(after.starts_with(sign), "{rc}: {after:?}");
            // Each command has one, that of the check as well.
            assert_eq!(text.matches("133;E;").count(), time + 1, "{rc}: {text}");
        }
    }
}

#[tokio::test]
async fn a_sign_that_nobody_may_change_stays_as_it_is() {
    let rc = "PROMPT_EOL_MARK='<none>'; readonly PROMPT_EOL_MARK\n";
    let Some(mut shell) = check(&[(".zshrc", rc)], &[("true", 0)]).await else { return };
    let output = shell.output_of("env; printf 'no%s' end").await;
    assert!(output.contains("noend<none>") && !shell.is_secret_in(&output), "{output:?}");
}
