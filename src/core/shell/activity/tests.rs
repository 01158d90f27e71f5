//! What follows from which signs.

use super::*;

fn kernel() -> KernelView {
    KernelView {
        foreground: Some(Foreground { group: 7, program: Some("prog".into()) }),
        shell_in_front: false,
        canonical: true,
        echo: true,
        reading: None,
        relaying: false,
    }
}

fn signs(kernel: &KernelView) -> Signs<'_> {
    Signs {
        kernel: Some(kernel),
        shell: ShellPhase::Unmarked,
        alternate: false,
        exited: false,
        quiet: true,
        settled: true,
        asked_secret: false,
        before_cursor: "",
        prompt_shown: false,
        unfinished: false,
    }
}

#[track_caller]
fn check(signs: &Signs<'_>, state: ActivityState, evidence: Evidence) {
    let judged = Activity::judge(signs);
    assert_eq!((judged.state, judged.evidence), (state, evidence));
}

#[test]
fn a_program_that_ended_is_the_end_of_all_doubt() {
    let kernel = KernelView { canonical: true, echo: false, ..kernel() };
    check(&Signs { exited: true, ..signs(&kernel) }, ActivityState::Exited, Evidence::Exit);
}

#[test]
fn a_line_that_is_not_shown_is_a_secret_as_soon_as_somebody_reads_it() {
    let reading = KernelView { echo: false, reading: Some(true), ..kernel() };
    let soon = Signs { quiet: false, shell: ShellPhase::Running, ..signs(&reading) };
    check(&soon, ActivityState::SecretPrompt, Evidence::Kernel);
}

#[test]
fn before_somebody_reads_what_is_not_shown_the_question_may_not_be_all_there() {
    let unknown = KernelView { echo: false, reading: None, ..kernel() };
    let soon = Signs { quiet: false, shell: ShellPhase::Running, ..signs(&unknown) };
    check(&soon, ActivityState::Running, Evidence::Osc133);
    check(&Signs { quiet: true, ..soon }, ActivityState::SecretPrompt, Evidence::Kernel);
    let nobody = KernelView { reading: Some(false), ..unknown.clone() };
    let working = Signs { kernel: Some(&nobody), quiet: true, ..soon };
    check(&working, ActivityState::Running, Evidence::Osc133);
}

#[test]
fn whoever_hands_on_what_is_typed_asks_where_the_screen_looks_like_it_and_only_there() {
    let raw = KernelView { canonical: false, echo: false, ..kernel() };
    let relay = KernelView { relaying: true, ..raw.clone() };
    let shown =
        |before_cursor| Signs { shell: ShellPhase::Running, before_cursor, ..signs(&relay) };
    check(&shown(""), ActivityState::Running, Evidence::Osc133);
    check(&shown("Compiling foo"), ActivityState::Running, Evidence::Osc133);
    for asking in ["Name? ", "Password: ", "me@there:~$ "] {
        check(&shown(asking), ActivityState::NeedsInput, Evidence::Pattern);
    }
    let other = Signs { kernel: Some(&raw), ..shown("") };
    check(&other, ActivityState::NeedsInput, Evidence::Kernel);
}

#[test]
fn a_secret_stays_one_while_it_is_typed() {
    let typed = KernelView { echo: false, reading: None, ..kernel() };
    let typing = Signs { quiet: false, asked_secret: true, ..signs(&typed) };
    check(&typing, ActivityState::SecretPrompt, Evidence::Kernel);
    let shown = KernelView { echo: true, ..typed.clone() };
    check(&Signs { kernel: Some(&shown), ..typing }, ActivityState::Running, Evidence::Kernel);
}

#[test]
fn a_shell_that_turns_echo_off_while_it_prompts_asks_for_no_secret() {
    let kernel = KernelView { echo: false, shell_in_front: true, ..kernel() };
    let prompting = Signs { shell: ShellPhase::Prompting, ..signs(&kernel) };
    check(&prompting, ActivityState::Prompt, Evidence::Osc133);
}

#[test]
fn a_program_that_takes_keys_waits_for_them_once_it_is_quiet() {
    let kernel = KernelView { canonical: false, echo: false, ..kernel() };
    check(&Signs { quiet: false, ..signs(&kernel) }, ActivityState::Running, Evidence::Kernel);
    check(&signs(&kernel), ActivityState::NeedsInput, Evidence::Kernel);
    let marked = Signs { quiet: false, shell: ShellPhase::Running, ..signs(&kernel) };
    check(&marked, ActivityState::Running, Evidence::Osc133);
}

#[test]
fn whoever_waits_in_a_read_needs_input_whatever_the_screen_shows() {
    let reading = KernelView { reading: Some(true), ..kernel() };
    check(&signs(&reading), ActivityState::NeedsInput, Evidence::Kernel);
    let busy = KernelView { reading: Some(false), ..kernel() };
    let asked = Signs { before_cursor: "Go on? [y/n] ", ..signs(&busy) };
    check(&asked, ActivityState::Running, Evidence::Kernel);
}

#[test]
fn where_the_kernel_does_not_say_a_question_on_the_screen_counts() {
    let kernel = kernel();
    for question in ["Go on? [y/n] ", "name: ", "really?", "(yes/no) ", ">>> "] {
        check(
            &Signs { before_cursor: question, ..signs(&kernel) },
            ActivityState::NeedsInput,
            Evidence::Pattern,
        );
    }
    for text in ["", "   ", "Compiling termgate", "50%"] {
        let shown = Signs { before_cursor: text, ..signs(&kernel) };
        check(&shown, ActivityState::Running, Evidence::Kernel);
    }
}

#[test]
fn a_shell_without_marks_is_at_its_prompt_when_it_reads() {
    let shell = KernelView { shell_in_front: true, ..kernel() };
    let editing = KernelView { canonical: false, echo: false, ..shell.clone() };
    check(&Signs { quiet: false, ..signs(&editing) }, ActivityState::Prompt, Evidence::Kernel);
    let starting = Signs { quiet: false, settled: false, ..signs(&editing) };
    check(&starting, ActivityState::Running, Evidence::Kernel);
    let reading = KernelView { reading: Some(true), ..shell.clone() };
    let at_prompt = Signs { before_cursor: "# ", ..signs(&reading) };
    check(&at_prompt, ActivityState::Prompt, Evidence::Kernel);
    let asking = Signs { before_cursor: "Go on? ", ..signs(&reading) };
    check(&asking, ActivityState::NeedsInput, Evidence::Kernel);
    let hiding = KernelView { echo: false, ..reading.clone() };
    check(&signs(&hiding), ActivityState::SecretPrompt, Evidence::Kernel);
    let prompted = Signs { before_cursor: "$ ", prompt_shown: true, ..signs(&hiding) };
    check(&prompted, ActivityState::Prompt, Evidence::Kernel);
    let looping = KernelView { reading: Some(false), ..shell.clone() };
    check(&signs(&looping), ActivityState::Running, Evidence::Kernel);
    check(&signs(&shell), ActivityState::Prompt, Evidence::Idle);
}

#[test]
fn marks_of_a_prompt_count_only_while_the_shell_is_in_front() {
    let shell = KernelView { shell_in_front: true, canonical: false, echo: false, ..kernel() };
    let at_prompt = Signs { shell: ShellPhase::Reading, quiet: false, ..signs(&shell) };
    check(&at_prompt, ActivityState::Prompt, Evidence::Osc133);
    let behind = KernelView { shell_in_front: false, ..shell };
    let forged = Signs { shell: ShellPhase::Reading, quiet: false, ..signs(&behind) };
    check(&forged, ActivityState::Running, Evidence::Kernel);
}

#[test]
fn a_program_on_the_alternate_screen_has_it_to_itself() {
    let raw = KernelView { canonical: false, echo: false, ..kernel() };
    let shown = Signs { alternate: true, shell: ShellPhase::Running, ..signs(&raw) };
    check(&shown, ActivityState::FullScreen, Evidence::Kernel);
    let cooked = kernel();
    let shown = Signs { alternate: true, ..signs(&cooked) };
    check(&shown, ActivityState::FullScreen, Evidence::Pattern);
}

#[test]
fn a_shell_that_reads_on_wants_the_rest_of_a_command_once_it_is_quiet() {
    let editing = KernelView { shell_in_front: true, canonical: false, ..kernel() };
    for shell in [ShellPhase::Reading, ShellPhase::Unmarked] {
        let shown = Signs { shell, unfinished: true, ..signs(&editing) };
        check(&shown, ActivityState::NeedsInput, Evidence::Pattern);
        let soon = Activity::judge(&Signs { quiet: false, ..shown });
        assert_eq!(soon.state, ActivityState::Prompt);
    }
}

#[test]
fn the_rest_of_a_command_is_read_behind_a_bracket_and_the_name_of_what_is_open() {
    for row in ["> ", "> two", "dquote> ", "if then> x"] {
        assert!(reads_on(row), "{row}");
    }
    for row in ["", "two", "$ cat > file", "user@host ~> ", "C:\\>"] {
        assert!(!reads_on(row), "{row}");
    }
}
