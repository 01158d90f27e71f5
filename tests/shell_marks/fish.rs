//! fish among files of its user that have their own way with prompts.

use crate::harness::home::is_installed;
use crate::shell_marks::harness::Shell;

const QUIET: &str = "function fish_greeting; end\n";

async fn check(config: &str, lines: &[(&str, i32)]) -> Option<Shell> {
    if !is_installed("fish") {
        return None;
    }
    let config: &'static str = Box::leak(format!("{QUIET}{config}").into_boxed_str());
    let mut shell = Shell::start("fish", &[], &[(".config/fish/config.fish", config)]).await;
    for (line, code) in lines {
        let ended = ["C", &format!("D {code}"), "A", "B"].map(str::to_owned);
        assert_eq!(shell.run(line).await, ended, "{line}\n{}", shell.text());
    }
    Some(shell)
}

#[tokio::test]
async fn the_users_prompt_sees_what_the_last_command_left() {
    let prompt = "function fish_prompt; echo -n \"<$status|$pipestatus> \"; end\n";
    let shell = check(prompt, &[("true", 0), ("sh -c 'exit 2' | false", 1)]).await;
    let Some(shell) = shell else { return };
    assert!(shell.text().contains("<1|2 1> "), "{}", shell.text());
}

#[tokio::test]
async fn a_prompt_that_is_made_anew_keeps_its_mark_and_is_nobody_elses() {
    let lines = [
        ("function fish_prompt; echo -n 'new> '; end", 0),
        ("functions fish_prompt | grep -q new", 0),
        ("functions fish_prompt | grep -q termgate", 1),
    ];
    check("", &lines).await;
}

#[tokio::test]
async fn prompts_on_all_sides_and_keys_of_vi_change_nothing() {
    let config = "fish_vi_key_bindings\nfunction fish_right_prompt; echo right; end\n\
                  function fish_prompt; echo one; echo -n 'two> '; end\n";
    check(config, &[("true", 0), ("false", 1)]).await;
}
