//! Commands as a shell marks them on a screen.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::frame::{Frame, Size};
use crate::core::ids::RowNumber;
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::core::shell::commands::mark::MarkNonces;

const NONCE: &str = "5ec2e7";
const NESTED: &str = "4e57ed";

/// A screen on which a shell marks what it does.
struct Shell {
    screen: Screen,
}

impl Shell {
    fn new(rows: u16, cols: u16) -> Self {
        let size = Size { rows, cols };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        screen.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: Some(NESTED.into()) });
        Self { screen }
    }

    fn write(&mut self, text: &str) -> &mut Self {
        self.screen.feed(Moment::default(), text.as_bytes());
        self
    }

    fn mark(&mut self, mark: &str) -> &mut Self {
        self.write(&format!("\x1b]133;{mark};nonce={NONCE}\x1b\\"))
    }

    fn prompt(&mut self) -> &mut Self {
        self.mark("A").write("$ ").mark("B")
    }

    /// A command that is typed, prints and ends.
    fn command(&mut self, text: &str, output: &str, code: i32) -> &mut Self {
        self.write(text).write("\r\n").mark("C").write(output);
        self.mark(&format!("D;{code}")).prompt()
    }

    fn frame(&mut self) -> Arc<Frame> {
        self.screen.publish(Moment::default(), &Facts::default());
        self.screen.first_frame(Moment::default(), &Facts::default())
    }

    fn submit(&mut self, text: &str, ends_by: EndsBy) -> CommandId {
        let prompt = self.screen.before_cursor();
        let by = Some("ci#t1".into());
        let submission =
            Submission { text, typed: text, by, ends_by, prompt: &prompt, echoed: true };
        self.screen.submit(Moment::default(), submission)
    }

    fn record(&self, id: u64) -> Arc<CommandRecord> {
        Arc::clone(self.screen.commands().get(CommandId(id)).unwrap())
    }

    #[track_caller]
    fn printed(&mut self, id: u64, lines: &[&str]) {
        let frame = self.frame();
        let text = frame.output(&self.record(id)).text();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[track_caller]
    fn ended(&self, id: u64, code: Option<i32>, evidence: Evidence) {
        let finish = self.record(id).finish.expect("it ended");
        assert_eq!((finish.code, finish.evidence), (code, evidence));
    }
}

#[test]
fn each_command_has_its_text_its_output_and_its_code() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().command("echo a", "a\r\n", 0).command("printf 'b\\nc'", "b\r\nc", 3);
    shell.command("true", "", 0);
    assert_eq!(&*shell.record(1).text, "echo a");
    shell.printed(1, &["a"]);
    shell.printed(2, &["b", "c"]);
    shell.printed(3, &[]);
    shell.ended(1, Some(0), Evidence::Osc133);
    shell.ended(2, Some(3), Evidence::Osc133);
}

#[test]
fn blank_lines_and_lines_wider_than_the_screen_stay_as_they_were_printed() {
    let mut shell = Shell::new(8, 10);
    shell.prompt().command("x", "\r\n0123456789abc\r\n\r\n", 0);
    shell.printed(1, &["", "0123456789abc", ""]);
}

#[test]
fn progress_shows_its_final_state() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().command("x", " 10%\r 50%\r100%\r\n", 0);
    shell.printed(1, &["100%"]);
}

#[test]
fn output_that_scrolled_away_is_read_from_history() {
    let mut shell = Shell::new(3, 20);
    let output: String = (0..50).map(|n| format!("{n}\r\n")).collect();
    shell.prompt().command("seq", &output, 0);
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    shell.printed(1, &expected);
}

#[test]
fn what_is_sent_to_a_shell_that_tells_no_commands_has_run_and_nobody_knows_how() {
    for (mark, ran) in [("A", false), ("A;untold=1", true), ("A;untold=0", false)] {
        let mut shell = Shell::new(6, 40);
        shell.prompt();
        shell.submit("make", EndsBy::Marks);
        shell.write("make\r\nout\r\n").mark(mark).write("$ ").mark("B");
        let finish = shell.record(1).finish.expect("the prompt is back");
        assert_eq!((finish.code, finish.ran), (None, ran), "{mark}");
    }
}

#[test]
fn what_ran_has_ended_where_a_shell_reads_again_behind_the_end_of_the_output() {
    let mut shell = Shell::new(6, 40);
    shell.prompt().write("precmd_functions=()\r\n").mark("C").write("out\r\n");
    assert!(!shell.screen.commands().output_has_ended());
    shell.mark("E").write("$ ");
    assert!(shell.screen.commands().output_has_ended());
    shell.screen.on_reading(Moment::default());
    shell.ended(1, None, Evidence::Osc133);
    shell.printed(1, &["out"]);
    let phase = shell.screen.commands().phase();
    assert_eq!(phase, ShellPhase::Unmarked, "it may not tell of the next either");
}

/// A shell that reads again behind the end of the output, and has told of no prompt.
fn one_that_lost_its_marks() -> Shell {
    let mut shell = Shell::new(8, 40);
    shell.prompt().write("precmd_functions=()\r\n").mark("C").mark("E").write("$ ");
    shell.screen.on_reading(Moment::default());
    shell
}

#[test]
fn a_command_for_a_shell_that_lost_its_marks_ends_without_them() {
    let mut shell = one_that_lost_its_marks();
    shell.submit("echo out", EndsBy::Kernel);
    shell.write("echo out\r\nout\r\n$ ");
    shell.screen.finish_sent(Moment::default(), Evidence::Kernel);
    shell.ended(2, None, Evidence::Kernel);
    shell.printed(2, &["out"]);
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Unmarked);
}

#[test]
fn a_command_of_which_a_shell_that_lost_its_marks_tells_is_told_by_them_alone() {
    let mut shell = one_that_lost_its_marks();
    let sent = shell.submit("echo out", EndsBy::Kernel);
    shell.write("echo out\r\n").mark("C").write("out\r\n").mark("D;3").prompt();
    shell.ended(sent.0, Some(3), Evidence::Osc133);
    shell.printed(sent.0, &["out"]);
    assert_eq!(shell.screen.commands().last(), sent, "it is one command");
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Reading);
}

#[test]
fn marks_without_the_nonce_are_not_believed() {
    let mut shell = Shell::new(6, 40);
    shell.prompt().write("cat fake\r\n").mark("C");
    shell.write("\x1b]133;D;0\x1b\\\x1b]133;D;0;nonce=other\x1b\\\x1b]133;A\x1b\\");
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Running);
    assert_eq!(shell.record(1).finish, None);
    shell.mark("D;7");
    shell.ended(1, Some(7), Evidence::Osc133);
}

#[test]
fn a_line_that_the_shell_could_not_read_never_ran() {
    let mut shell = Shell::new(6, 40);
    shell.prompt();
    let id = shell.submit("echo (", EndsBy::Marks);
    shell.write("echo (\r\nsyntax error\r\n").prompt();
    let finish = shell.record(id.0).finish.unwrap();
    assert_eq!((finish.code, finish.ran), (None, false));
    assert_eq!(shell.screen.commands().sent(), None);
}

#[test]
fn a_prompt_that_is_painted_again_ends_nothing() {
    let mut shell = Shell::new(6, 40);
    shell.prompt();
    let id = shell.submit("true", EndsBy::Marks);
    shell.write("\r").prompt().write("true\r\n").mark("C").mark("D;0").prompt();
    shell.ended(id.0, Some(0), Evidence::Osc133);
    assert_eq!(shell.record(id.0).by.as_deref(), Some("ci#t1"));
    assert_eq!(shell.screen.commands().last(), id);
}

#[test]
fn a_command_that_was_sent_began_when_it_was_sent_however_late_its_mark_is_read() {
    let at = |seconds| Moment::from_boot(Duration::from_secs(seconds));
    let mut shell = Shell::new(6, 40);
    shell.prompt();
    let (text, ends_by) = ("make", EndsBy::Marks);
    let submission =
        Submission { text, typed: text, by: None, ends_by, prompt: "$ ", echoed: true };
    let sent = shell.screen.submit(at(5), submission);
    let marks = format!("make\r\n\x1b]133;C;nonce={NONCE}\x1b\\");
    shell.screen.feed(at(60), marks.as_bytes());
    assert_eq!(shell.record(sent.0).started, at(5));
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Running);
}

#[test]
fn no_number_up_to_one_that_was_given_is_given_again() {
    let mut shell = Shell::new(6, 40);
    shell.prompt();
    shell.screen.number_commands_after(CommandId(7));
    assert_eq!(shell.submit("true", EndsBy::Marks), CommandId(8));
    shell.screen.number_commands_after(CommandId(3));
    assert_eq!(shell.screen.commands().last(), CommandId(8));
}

#[test]
fn a_screen_that_was_cleared_meanwhile_belongs_to_the_output_from_its_top() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().command("a", "one\r\ntwo\r\n", 0);
    shell.command("clear", "\x1b[H\x1b[Jafter\r\n", 0);
    shell.printed(2, &["after"]);
}

#[test]
fn what_was_shown_before_is_no_output_of_a_command_that_clears_the_screen() {
    for (clear, printed) in [
        ("\x1b[H\x1b[2J\x1b[3J", vec![]),
        ("\x1b[H\x1b[2Jafter\r\n", vec!["after"]),
        ("mine\r\n\x1b[H\x1b[2Jafter\r\n", vec!["mine", "after"]),
        ("mine\r\n\x1b[2J\x1b[Hafter\r\n", vec!["mine", "after"]),
        ("\r\n\r\n\x1b[Hover\x1b[2J\x1b[Hafter\r\n", vec!["over", "after"]),
        ("\x1b[H\x1b[2Jafter\r\n\x1b[H\x1b[2Jagain\r\n", vec!["after", "again"]),
    ] {
        let mut shell = Shell::new(6, 20);
        shell.prompt().command("a", "one\r\ntwo\r\n", 0);
        shell.command("clear", clear, 0);
        shell.printed(2, &printed);
        shell.command("b", "next\r\n", 0);
        shell.printed(3, &["next"]);
    }
}

#[test]
fn a_change_of_width_neither_doubles_nor_loses_output() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().write("x\r\n").mark("C").write("one\r\ntwo wide enough\r\nthr");
    shell.screen.resize(Size { rows: 6, cols: 9 });
    shell.write("ee\r\nfour\r\n").mark("D;0").prompt();
    shell.printed(1, &["one", "two wide enough", "three", "four"]);
}

#[test]
fn what_a_full_screen_program_shows_is_no_output() {
    let mut shell = Shell::new(4, 20);
    shell.prompt().write("vim\r\n").mark("C");
    shell.write("\x1b[?1049h\x1b[2Jtext\x1b[?1049l").mark("D;0").prompt();
    assert!(shell.record(1).full_screen);
    shell.printed(1, &[]);
}

#[test]
fn what_was_printed_before_a_pager_is_told_while_it_is_shown() {
    let mut shell = Shell::new(4, 20);
    let before: String = (0..6).map(|number| format!("{number}\r\n")).collect();
    shell.prompt().write("less\r\n").mark("C").write(&before);
    shell.write("\x1b[?1049h\x1b[2Jtext\r\nof a pager");
    shell.printed(1, &["0", "1", "2", "3", "4", "5"]);
    shell.write("\x1b[?1049l").mark("D;0").prompt();
    shell.printed(1, &["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn a_line_as_wide_as_the_screen_ends_behind_its_last_column() {
    let mut shell = Shell::new(4, 5);
    shell.prompt().write("x\r\n").mark("C").write("abcde").mark("D;0").write("\r\n").prompt();
    shell.printed(1, &["abcde"]);
}

#[test]
fn what_goes_up_to_write_tells_the_rows_from_there_on() {
    let mut shell = Shell::new(8, 20);
    shell.prompt().command("a", "1\r\n2\r\n3\r\n", 0).write("x\r\n").mark("C");
    shell.write("\x1b[3A\x1b[Jup\r\n").mark("D;0").prompt();
    shell.printed(2, &["up"]);
}

#[test]
fn a_prompt_that_no_end_came_before_ends_what_ran_once_the_shell_waits_there() {
    let mut shell = Shell::new(8, 20);
    shell.prompt().write("x\r\n").mark("C").write("out\r\n$ ").mark("B");
    assert_eq!(shell.screen.commands().prompted_at(), Some(shell.screen.cursor()));
    shell.screen.on_prompted(Moment::default());
    shell.ended(1, None, Evidence::Osc133);
    shell.printed(1, &["out"]);
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Reading);
}

#[test]
fn a_shell_that_reads_after_half_a_prompt_takes_the_next_command() {
    let mut shell = Shell::new(8, 20);
    shell.prompt().write("x\r\n").mark("C").mark("D;130").mark("A").write("^C");
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Prompting);
    shell.screen.on_reading(Moment::default());
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Reading);
    shell.command("y", "out\r\n", 0);
    shell.printed(2, &["out"]);
}

#[test]
fn a_prompt_that_a_command_prints_is_its_output() {
    let mut shell = Shell::new(8, 20);
    shell.prompt().write("x\r\n").mark("C").write("$ ").mark("B").write("\r\nmore\r\n");
    shell.mark("D;3").prompt();
    shell.ended(1, Some(3), Evidence::Osc133);
    shell.printed(1, &["$", "more"]);
}

#[test]
fn of_more_commands_than_are_kept_what_runs_stays() {
    let mut shell = Shell::new(8, 20);
    shell.prompt().write("x\r\n").mark("C").write("> ");
    for _ in 0..Commands::KEPT_MAX {
        shell.submit("inner", EndsBy::Prompt);
        shell.write("inner\r\n> ");
        shell.screen.finish_sent(Moment::default(), Evidence::Pattern);
    }
    assert_eq!(shell.record(1).finish, None);
    assert_eq!(shell.screen.commands().iter().count(), Commands::KEPT_MAX);
}

#[test]
fn of_a_shell_without_marks_the_echo_and_the_prompt_are_left_out() {
    let mut shell = Shell::new(6, 20);
    shell.write("# ");
    let id = shell.submit("printf 'a\\nb'", EndsBy::Kernel);
    shell.write("printf 'a\\nb'\r\na\r\nb# ");
    shell.screen.finish_sent(Moment::default(), Evidence::Kernel);
    shell.printed(id.0, &["a", "b"]);
    shell.ended(id.0, None, Evidence::Kernel);
}

#[test]
fn of_a_command_that_is_read_from_a_file_only_the_line_that_was_typed_is_left_out() {
    let mut shell = Shell::new(8, 20);
    shell.write("# ");
    let prompt = shell.screen.before_cursor();
    let text = "echo a\necho b\necho c";
    let typed = " . '/run/a-name-that-is-wider-than-this'";
    let submission = Submission {
        text,
        typed,
        by: None,
        ends_by: EndsBy::Kernel,
        prompt: &prompt,
        echoed: true,
    };
    let id = shell.screen.submit(Moment::default(), submission);
    shell.write(typed).write("\r\na\r\nb\r\nc\r\n# ");
    shell.screen.finish_sent(Moment::default(), Evidence::Kernel);
    shell.printed(id.0, &["a", "b", "c"]);
}

#[test]
fn the_end_of_the_shell_ends_what_ran_in_it() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().write("exit 3\r\n").mark("C").write("bye\r\n");
    shell.screen.end_commands(Moment::default(), Some(3));
    shell.ended(1, Some(3), Evidence::Exit);
    shell.printed(1, &["bye"]);
}

#[test]
fn the_shells_own_sign_of_a_missing_line_end_is_no_output() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().write("x\r\n").mark("C").write("foo").mark("E").write("%      \r\n");
    shell.mark("D;0").prompt();
    shell.printed(1, &["foo"]);
}

#[test]
fn of_more_commands_than_are_kept_the_newest_are() {
    let mut shell = Shell::new(6, 20);
    shell.prompt();
    for _ in 0..=Commands::KEPT_MAX {
        shell.command("x", "", 0);
    }
    assert_eq!(shell.screen.commands().iter().count(), Commands::KEPT_MAX);
    assert_eq!(shell.screen.commands().get(CommandId(1)), None);
    assert!(shell.screen.commands().get(CommandId(2)).is_some());
}

#[test]
fn all_of_it_is_there_after_a_restart() {
    let mut shell = Shell::new(4, 20);
    shell.write("\x1b]7;file:///tmp\x1b\\").prompt().command("a", "1\r\n2\r\n3\r\n4\r\n", 1);
    shell.submit("sleep", EndsBy::Marks);
    shell.write("sleep\r\n").mark("C").write("half");
    let kept = shell.screen.checkpoint(RowNumber(0));
    let screen = Screen::restore(&kept.snapshot, [&kept.rows], ScreenLimits::default()).unwrap();
    // Prompts are counted from here on.
    let before = Commands { prompts: 0, ..Commands::clone(shell.screen.commands()) };
    assert_eq!(**screen.commands(), before);
    let mut after = Shell { screen };
    after.screen.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: Some(NESTED.into()) });
    after.mark("D;2").prompt();
    after.printed(1, &["1", "2", "3", "4"]);
    after.printed(2, &["half"]);
    after.ended(2, Some(2), Evidence::Osc133);
    assert_eq!(after.record(2).directory.as_deref(), Some("/tmp"));
}

impl Shell {
    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    /// What a shell that tells codes and no more writes before its prompt.
    fn told(&mut self, seconds: u64, code: i32, prompt: &str) {
        let text = format!("\x1b]133;D;{code};nonce={NESTED}\x07{prompt}");
        self.screen.feed(Self::at(seconds), text.as_bytes());
    }
}

#[test]
fn a_shell_inside_of_another_tells_the_code_and_the_end_of_what_was_sent_to_it() {
    let mut shell = Shell::new(9, 20);
    shell.prompt().write("dash\r\n").mark("C");
    shell.told(1, 0, "first\r\nsecond> ");
    let started = Shell::at(2);
    let id = shell.screen.submit(
        started,
        Submission {
            text: "false",
            typed: "false",
            by: None,
            ends_by: EndsBy::Prompt,
            prompt: "second> ",
            echoed: true,
        },
    );
    assert!(!shell.screen.commands().is_told(shell.screen.commands().sent().unwrap()));
    shell.write("false\r\nout");
    // Of several lines that were pasted each may end so.
    shell.told(3, 7, "\r\nmore\r\n");
    shell.told(4, 1, "first\r\nsecond> ");
    assert!(shell.screen.commands().is_told(shell.screen.commands().sent().unwrap()));
    shell.screen.finish_sent(Shell::at(5), Evidence::Osc133);
    shell.ended(id.0, Some(1), Evidence::Osc133);
    shell.printed(id.0, &["out", "more"]);
}

#[test]
fn whoever_knows_no_more_than_programs_do_ends_no_command_of_the_shell() {
    let mut shell = Shell::new(6, 20);
    shell.prompt();
    let id = shell.submit("make", EndsBy::Marks);
    shell.write("make\r\n").mark("C");
    for letter in ["D;0", "A", "B", "C", "E"] {
        shell.write(&format!("\x1b]133;{letter};nonce={NESTED}\x07"));
    }
    assert_eq!(shell.screen.commands().phase(), ShellPhase::Running);
    assert!(!shell.screen.commands().is_told(shell.screen.commands().sent().unwrap()));
    shell.write("out\r\nmore\r\n").mark("D;9").prompt();
    shell.ended(id.0, Some(9), Evidence::Osc133);
    shell.printed(id.0, &["out", "more"]);
}

#[test]
fn what_a_program_asked_before_it_ended_is_not_answered_to_its_shell() {
    let mut shell = Shell::new(6, 20);
    shell.prompt().mark("C").write("\x1b[6n");
    assert_eq!(shell.screen.take_answers(), b"\x1b[1;3R");
    let ended = format!("\x1b[6n\x1b]133;D;0;nonce={NONCE}\x1b\\");
    shell.write(&ended);
    assert_eq!(shell.screen.take_answers(), b"");
    // What the shell asks itself is for it.
    shell.prompt().write("\x1b[6n");
    assert_ne!(shell.screen.take_answers(), b"");
}
