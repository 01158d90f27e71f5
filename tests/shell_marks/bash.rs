//! bash among files of its user that have their own way with prompts.

use crate::shell_marks::harness::Shell;

async fn bash(rc: &'static str) -> Shell {
    Shell::start("bash", &[], &[(".bashrc", rc)]).await
}

/// Runs lines that end with these codes, and checks that each is told.
async fn check(shell: &mut Shell, lines: &[(&str, i32)]) {
    for (line, code) in lines {
        let ended = ["C", &format!("D {code}"), "A", "B"].map(str::to_owned);
        assert_eq!(shell.run(line).await, ended, "{line}\n{}", shell.text());
    }
}

#[tokio::test]
async fn a_prompt_that_is_made_anew_each_time_keeps_its_mark() {
    let mut shell =
        bash("make() { PS1=\"[$?] \"; PS2='more '; PROMPT_COMMAND=make; }\nPROMPT_COMMAND=make\n")
            .await;
    check(&mut shell, &[("(exit 3)", 3), ("true", 0)]).await;
    assert!(shell.text().contains("[3] "), "{}", shell.text());
}

#[tokio::test]
async fn the_users_prompt_commands_see_what_the_last_command_left() {
    const LOOK: &str = "look() { PS1=\"<$?|${PIPESTATUS[*]}|$_> \"; }\n";
    for setting in ["PROMPT_COMMAND=look", "PROMPT_COMMAND=(look)", "PROMPT_COMMAND=(true look)"] {
        let rc: &'static str = Box::leak(format!("{LOOK}{setting}\n").into_boxed_str());
        let mut shell = bash(rc).await;
        check(&mut shell, &[("false last", 1)]).await;
        assert!(shell.text().contains("<1|1|last> "), "{setting}: {}", shell.text());
        check(&mut shell, &[("(exit 2) | (exit 3)", 3)]).await;
        assert!(shell.text().contains("<3|2 3|last> "), "{setting}: {}", shell.text());
    }
}

#[tokio::test]
async fn strict_options_and_another_ifs_do_not_end_the_shell() {
    let mut shell = bash("set -eu; IFS=01234567; PS1='> '; PROMPT_COMMAND='x=$?'\n").await;
    check(&mut shell, &[("true", 0), ("! true", 1), ("cd /", 0)]).await;
    assert!(shell.directories().last().unwrap().ends_with('/'));
}

#[tokio::test]
async fn aliases_and_functions_that_are_named_like_builtins_are_not_taken_for_them() {
    let mut shell = bash(
        "PS1='> '; printf() { echo function; }; local() { printf; }; eval() { printf; }\n\
         alias printf='echo alias' builtin='echo alias' local='echo alias'\n",
    )
    .await;
    check(&mut shell, &[("true", 0), ("false", 1)]).await;
    assert!(!shell.text().contains("alias"), "{}", shell.text());
    assert!(!shell.text().contains("function"), "{}", shell.text());
}

#[tokio::test]
async fn a_prompt_that_cannot_be_changed_is_left_alone() {
    let mut shell = bash("PS1='fixed> '; readonly PS1\n").await;
    check(&mut shell, &[("false", 1)]).await;
    assert!(!shell.text().contains("readonly variable"), "{}", shell.text());
}

#[tokio::test]
async fn a_debug_trap_sees_the_users_commands_and_nothing_after_the_prompt() {
    let mut shell = bash(
        "PS1='> '; trap 'first=${first-$BASH_COMMAND}' DEBUG\n\
         stop() { PS1=\"<$first> \"; unset first; }; PROMPT_COMMAND=stop\n",
    )
    .await;
    check(&mut shell, &[("false one", 1), ("true two", 0)]).await;
    assert!(shell.text().contains("<true two> "), "{}", shell.text());
}

#[tokio::test]
async fn what_is_run_before_each_command_stays() {
    let mut shell = bash("PS1='> '; PS0='before\\n'\n").await;
    check(&mut shell, &[("true", 0)]).await;
    assert!(shell.text().contains("\rbefore"), "{}", shell.text());
}

#[tokio::test]
async fn files_that_are_read_again_change_nothing_for_the_marks() {
    let mut shell = bash("PS1='> '; PROMPT_COMMAND='PS1=\"<$?> \"'\n").await;
    let lines = [
        (". ~/.bashrc", 0),
        ("false", 1),
        ("PROMPT_COMMAND=\"$PROMPT_COMMAND; y=1\"", 0),
        ("(exit 4)", 4),
        ("PROMPT_COMMAND=\"z=1; $PROMPT_COMMAND\"", 0),
        ("(exit 5)", 5),
        ("PROMPT_COMMAND=(hook \"${PROMPT_COMMAND[@]}\"); hook() { hooked=$?; }", 0),
        ("(exit 6)", 6),
        ("(exit $(( hooked + 1 )))", 7),
        ("PROMPT_COMMAND=; PS1='> '", 0),
        ("(exit 7)", 7),
        ("set -o vi", 0),
        ("set -x", 0),
        ("(exit 8)", 8),
    ];
    check(&mut shell, &lines).await;
}

#[tokio::test]
async fn prompt_commands_and_ps0_that_are_set_at_a_prompt_leave_no_command_without_its_marks() {
    for setting in [
        "PROMPT_COMMAND= PS0=",
        "PROMPT_COMMAND=: PS0=",
        "PROMPT_COMMAND='history -a'; PS0='[%t] '",
        "PROMPT_COMMAND+=(:); PS0=",
        "PROMPT_COMMAND=(: \"${PROMPT_COMMAND[@]}\"); PS0=",
        "PROMPT_COMMAND=\"$PROMPT_COMMAND; y=1\" PS0=",
        "PROMPT_COMMAND=\"z=1; $PROMPT_COMMAND\"; unset PS0",
        "unset 'PROMPT_COMMAND[0]' PS0",
    ] {
        let mut shell = bash("PS1='> '\n").await;
        let again = [(setting, 0), ("(exit 4)", 4), ("false", 1), (setting, 0), ("(exit 5)", 5)];
        check(&mut shell, &again).await;
    }
}

/// What bash says it does while commands are traced, but for the commands that are run here.
async fn trace(rc: &'static str) -> Vec<String> {
    let mut shell = bash(rc).await;
    check(&mut shell, &[("set -x", 0), ("false", 1), ("! cd /", 1), ("set +x", 0)]).await;
    let text = shell.text();
    // Marks may stand before what is shown of a line.
    let lines = text.lines().filter_map(|line| line.rsplit("\u{1b}\\").next());
    let (ours, own): (Vec<_>, Vec<_>) =
        lines.filter(|line| line.starts_with('+')).partition(|line| line.starts_with("++"));
    assert_eq!(own, ["+ false", "+ cd /", "+ set +x"], "{text}");
    ours.into_iter().map(|line| line.trim_start_matches('+').trim_start().to_owned()).collect()
}

#[tokio::test]
async fn where_commands_are_traced_no_more_of_ours_is_shown_than_what_is_called() {
    for rc in ["PS1='> '\n", "PS1='> '; IFS=x\n", "PS1='> '; IFS=_-\n"] {
        // One prompt each after `set -x`, `false` and `! cd /`, whose last words are given to ours.
        let calls = ["-x", "false", "/"]
            .map(|last| [format!("__termgate_firstx {last}"), format!("__termgate_againx {last}")]);
        assert_eq!(trace(rc).await, calls.concat(), "{rc}");
    }
    let traced = trace("PS1='> '; PROMPT_COMMAND='mine=1'\n").await;
    let calls = ["firstx -x", "againx -x", "last", "eval"].map(|call| format!("__termgate_{call}"));
    let evaluated = ["builtin eval mine=1", "mine=1", "__termgate_finish"].map(str::to_owned);
    assert_eq!(traced[..7], [&calls[..], &evaluated[..]].concat(), "{traced:?}");
    assert_eq!(traced.len(), 3 * 7, "{traced:?}");
}

#[tokio::test]
async fn where_prompts_are_not_expanded_it_is_said_that_commands_are_not_told() {
    let mut shell = bash("PS1='> '\n").await;
    check(&mut shell, &[("shopt -u promptvars", 0)]).await;
    assert_eq!(shell.run("false").await, ["A untold=1", "B"], "{}", shell.text());
    assert_eq!(shell.run("shopt -s promptvars").await, ["A untold=1", "B"], "{}", shell.text());
    check(&mut shell, &[("false", 1)]).await;
}

#[tokio::test]
async fn prompt_commands_that_end_early_end_no_marks() {
    let mut shell = bash(
        "PS1='> '; long() { sh -c 'echo waiting; exec sleep 60'; }\n\
         PROMPT_COMMAND='case $stop in now) stop=; long ;; \
         bad) stop=; : ${nothing?} ;; back) stop=; return 3 ;; esac'\n",
    )
    .await;
    shell.type_in("stop=now").await;
    shell.shows("waiting").await;
    shell.press(b"\x03").await;
    // One prompt that was not written, and one that was.
    assert_eq!(shell.prompt().await, ["C", "D 0", "A", "A", "B"], "{}", shell.text());
    let lines = [("false", 1), ("stop=bad", 0), ("false", 1), ("stop=back", 0), ("false", 1)];
    check(&mut shell, &lines).await;
    let output = shell.output_of("echo \"${PROMPT_COMMAND[*]}\"").await;
    assert_eq!(output.matches("__termgate_again").count(), 1, "{output}");
}

#[tokio::test]
async fn an_exported_prompt_tells_programs_nothing() {
    let mut shell = bash("export PS1='> ' PS0= PROMPT_COMMAND='x=1'\n").await;
    let environment = shell.output_of("env").await;
    assert!(environment.contains("PS1="), "{environment}");
    assert!(!shell.is_secret_in(&environment), "{environment}");
}

#[tokio::test]
async fn without_a_file_of_the_user_the_marks_are_there() {
    let mut shell = Shell::start("bash", &["-i"], &[]).await;
    check(&mut shell, &[("false", 1)]).await;
}

#[tokio::test]
async fn a_login_shell_leaves_no_trace_of_how_it_was_started() {
    let file = (".bash_profile", "PS1='> '\n");
    let mut shell = Shell::start("bash", &["--login"], &[file]).await;
    let lines = [
        ("[[ ! -o posix ]]", 0),
        ("[[ ! ${ENV+set}${POSIXLY_CORRECT+set} ]]", 0),
        ("[[ $HISTFILE == ~/.bash_history ]]", 0),
        ("shopt -q inherit_errexit", 1),
    ];
    check(&mut shell, &lines).await;
}

#[tokio::test]
async fn a_shell_that_is_no_bash_of_people_marks_no_commands() {
    for (program, args) in
        [("sh", &["-i"][..]), ("bash", &["--posix", "-i"]), ("bash", &["--norc"])]
    {
        let mut shell = Shell::begin(program, args, &[(".bashrc", "PS1='> '\n")]);
        shell.type_in("echo do''ne; exit 3").await;
        shell.shows("done").await;
        for mark in ["133;A", "133;B", "133;C"] {
            assert!(!shell.text().contains(mark), "{program} {args:?}");
        }
    }
}
