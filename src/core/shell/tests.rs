//! What follows from marks, from what the kernel says, and from what was typed.

use super::activity::Evidence;
use super::activity::Foreground;
use super::commands::Submission;
use super::commands::mark::{Mark, MarkKind};
use super::commands::record::Here;
use super::kernel_polling::{FULL_SCREEN_PATIENCE, LOOKS, OTHER_PROMPT_QUIET, SOON};
use super::readiness::ReadyPrompt;
use super::unmarked_ends::CommandEnding;
use super::*;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::keys::Piece;

/// A program in front that takes lines.
fn program() -> KernelView {
    KernelView {
        foreground: Some(Foreground { group: 7, program: Some("prog".into()) }),
        shell_in_front: false,
        canonical: true,
        echo: true,
        reading: None,
        selects: false,
        works: false,
        relaying: false,
    }
}

/// The session's shell in front, without a line editor.
fn shell() -> KernelView {
    KernelView { shell_in_front: true, ..program() }
}

fn raw(view: KernelView) -> KernelView {
    KernelView { canonical: false, echo: false, ..view }
}

fn hidden(view: KernelView) -> KernelView {
    KernelView { echo: false, ..view }
}

fn reading(view: KernelView, reading: bool) -> KernelView {
    KernelView { reading: Some(reading), ..view }
}

/// A terminal, judged.
struct Judged {
    shell: Shell,
    commands: Commands,
    now: Moment,
    cursor: Position,
    before: &'static str,
    alternate: bool,
    cursor_visible: bool,
    keypad: bool,
    painted: bool,
    exited: bool,
}

impl Judged {
    fn new() -> Self {
        let now = Moment::from_boot(Duration::from_secs(1_000));
        Self {
            shell: Shell::begin(now, false, false),
            commands: Commands::default(),
            now,
            cursor: Position::default(),
            before: "",
            alternate: false,
            cursor_visible: true,
            keypad: false,
            painted: false,
            exited: false,
        }
    }

    fn marked(kinds: &[MarkKind]) -> Self {
        let mut judged = Self::new();
        for kind in kinds {
            judged.mark(*kind);
        }
        judged
    }

    fn here(&self) -> Here {
        let top = RowNumber(0);
        Here { position: self.cursor, top, now: self.now, mark: Watermark(1) }
    }

    fn mark(&mut self, kind: MarkKind) {
        let mark = Mark { kind, text: None, untold: false, bound: true };
        let here = self.here();
        self.commands.on_mark(mark, &here, None, None, |_| String::new());
    }

    fn send(&mut self, ends_by: EndsBy) {
        let prompt = self.shell.on_command(self.now, ends_by, self.before);
        let text = "make";
        let submission =
            Submission { text, typed: text, by: None, ends_by, prompt: &prompt, echoed: true };
        let here = self.here();
        self.commands.submit(submission, &here);
        self.shell.on_typed(self.now, b"make\r");
    }

    /// Output that leaves the cursor on this row, behind this text.
    fn show(&mut self, row: u64, before: &'static str) -> &mut Self {
        self.cursor = Position { row: RowNumber(row), col: before.len() as u16 };
        self.before = before;
        self.shell.on_output(self.now);
        self
    }

    /// Asks the kernel so many times since the last output or input.
    fn look(&mut self, view: &KernelView, times: usize) -> &mut Self {
        let stirred_at = self.shell.polling.stirred_at;
        for offset in LOOKS.iter().take(times) {
            self.now = stirred_at + *offset;
            self.shell.on_look(self.now, Some(view.clone()), &self.commands);
        }
        self
    }

    fn quiet(&mut self, view: &KernelView) -> &mut Self {
        self.look(view, LOOKS.len())
    }

    fn rest(&mut self, rest: LeaderRest) -> &mut Self {
        assert!(self.shell.asks_rest(&self.commands));
        self.shell.on_rest(self.now, rest, &self.commands);
        self
    }

    fn ask<T>(&mut self, ask: impl FnOnce(&mut Shell, Moment, &ScreenFacts<'_>) -> T) -> T {
        let facts = ScreenFacts {
            commands: &self.commands,
            cursor: self.cursor,
            alternate: self.alternate,
            cursor_visible: self.cursor_visible,
            keypad: self.keypad,
            painted: self.painted,
            asked_above: false,
            exited: self.exited,
            before_cursor: if self.shell.settled() { self.before } else { "" },
        };
        ask(&mut self.shell, self.now, &facts)
    }

    #[track_caller]
    fn is(&mut self, state: ActivityState, evidence: Evidence) -> &mut Self {
        let (activity, _) = self.ask(|shell, now, facts| shell.judge(now, facts));
        assert_eq!((activity.state, activity.evidence), (state, evidence));
        self
    }

    fn view(&mut self) -> ShellView {
        self.ask(|shell, now, facts| shell.judge(now, facts)).1
    }

    fn ending(&mut self) -> Option<CommandEnding> {
        self.ask(|shell, now, facts| shell.next_ending(now, facts))
    }
}

fn ready(ends_by: EndsBy, edits: bool) -> Readiness {
    Readiness::Ready(ReadyPrompt { ends_by, edits })
}

const PROMPT: [MarkKind; 2] = [MarkKind::PromptStart, MarkKind::PromptEnd];
const RUNNING: [MarkKind; 3] = [MarkKind::PromptStart, MarkKind::PromptEnd, MarkKind::Started];

#[test]
fn a_program_that_ended_is_the_end_of_all_doubt() {
    let mut judged = Judged { exited: true, ..Judged::new() };
    judged.quiet(&hidden(program())).is(ActivityState::Exited, Evidence::Exit);
    assert_eq!(judged.view().readiness, Readiness::Busy);
}

#[test]
fn where_the_kernel_says_nothing_marks_decide_and_without_them_nothing_is_known() {
    Judged::marked(&PROMPT).is(ActivityState::Prompt, Evidence::Osc133);
    Judged::marked(&RUNNING).is(ActivityState::Running, Evidence::Osc133);
    Judged::new().is(ActivityState::Unknown, Evidence::Idle);
}

#[test]
fn a_line_that_is_not_shown_is_a_secret_as_soon_as_a_program_reads_it() {
    let mut judged = Judged::marked(&RUNNING);
    judged.look(&reading(hidden(program()), true), 3);
    judged.is(ActivityState::SecretPrompt, Evidence::Kernel);
    assert!(judged.view().waits);
    let mut judged = Judged::marked(&RUNNING);
    judged.look(&hidden(program()), 3).is(ActivityState::Running, Evidence::Osc133);
    judged.quiet(&hidden(program())).is(ActivityState::SecretPrompt, Evidence::Kernel);
    let mut working = Judged::marked(&RUNNING);
    working.quiet(&reading(hidden(program()), false));
    working.is(ActivityState::Running, Evidence::Osc133);
}

#[test]
fn a_secret_stays_one_while_it_is_typed_until_its_line_ends() {
    let mut judged = Judged::new();
    judged.quiet(&reading(hidden(program()), true));
    judged.is(ActivityState::SecretPrompt, Evidence::Kernel);
    judged.shell.on_typed(judged.now, b"hun");
    judged.is(ActivityState::SecretPrompt, Evidence::Kernel);
    judged.shell.on_typed(judged.now, b"ter2\r");
    judged.is(ActivityState::Running, Evidence::Kernel);
}

#[test]
fn a_program_that_waits_in_a_read_needs_input_whatever_the_screen_shows() {
    let mut judged = Judged::marked(&RUNNING);
    judged.quiet(&reading(program(), true)).is(ActivityState::NeedsInput, Evidence::Kernel);
    assert_eq!(
        judged.view(),
        ShellView { readiness: Readiness::Busy, waits: true, ..ShellView::default() }
    );
    judged.show(1, "Go on? [y/n] ").quiet(&reading(program(), false));
    judged.is(ActivityState::Running, Evidence::Osc133);
    judged.show(2, "Name: ").quiet(&reading(program(), true));
    assert_eq!(judged.view().readiness, Readiness::Asks("Name: ".into()));
}

#[test]
fn a_program_that_takes_keys_is_not_one_that_asks() {
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, "frame=  120 fps= 25").quiet(&raw(program()));
    judged.is(ActivityState::Running, Evidence::Osc133);
    judged.show(2, "Overwrite? [y/N] ").look(&raw(program()), 3);
    judged.is(ActivityState::Running, Evidence::Osc133);
    judged.quiet(&raw(program())).is(ActivityState::NeedsInput, Evidence::Pattern);
}

#[test]
fn a_menu_that_hides_the_cursor_asks_once_it_stands_still() {
    let mut judged = Judged::marked(&RUNNING);
    judged.cursor_visible = false;
    judged.show(1, "").quiet(&raw(program())).is(ActivityState::Running, Evidence::Osc133);
    judged.now = judged.shell.polling.stirred_at + OTHER_PROMPT_QUIET;
    judged.is(ActivityState::NeedsInput, Evidence::Pattern);
}

#[test]
fn a_program_that_waits_for_its_input_for_a_time_asks_if_it_shows_a_question() {
    let selecting = KernelView { selects: true, ..reading(program(), false) };
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, "working").quiet(&selecting).is(ActivityState::Running, Evidence::Osc133);
    judged.show(1, "Name: ").quiet(&selecting).is(ActivityState::NeedsInput, Evidence::Pattern);
}

#[test]
fn a_full_screen_that_is_painted_for_ever_waits_for_keys() {
    let mut judged = Judged::marked(&RUNNING);
    judged.alternate = true;
    for _ in 0..40 {
        judged.show(1, "").look(&raw(program()), 2);
        let elapsed = judged.now.since(Moment::from_boot(Duration::from_secs(1_000)));
        assert_eq!(judged.view().waits, elapsed > FULL_SCREEN_PATIENCE, "{elapsed:?}");
        judged.now = judged.now + Duration::from_millis(90);
    }
    assert!(judged.view().waits);
}

#[test]
fn where_the_kernel_does_not_say_who_reads_only_a_question_or_a_prompt_is_told_as_a_guess() {
    let relay = KernelView { relaying: true, ..raw(program()) };
    for view in [relay, program()] {
        for asking in ["Name? ", "Password: ", "me@there:~$ ", ">>> "] {
            let mut judged = Judged::marked(&RUNNING);
            judged.show(1, asking).quiet(&view);
            judged.is(ActivityState::NeedsInput, Evidence::Pattern);
        }
        for text in ["", "Compiling foo"] {
            let mut judged = Judged::marked(&RUNNING);
            judged.show(1, text).look(&view, 3).is(ActivityState::Running, Evidence::Osc133);
            judged.quiet(&view).is(ActivityState::Unknown, Evidence::Kernel);
            assert!(!judged.view().waits);
        }
    }
}

#[test]
fn a_shell_without_marks_is_at_its_prompt_when_it_reads() {
    let editing = raw(shell());
    let mut judged = Judged::new();
    let writing = KernelView { works: true, ..editing.clone() };
    judged.look(&writing, 3).is(ActivityState::Running, Evidence::Kernel);
    judged.look(&writing, 1).is(ActivityState::Prompt, Evidence::Kernel);
    let mut judged = Judged::new();
    judged.look(&editing, 2).is(ActivityState::Running, Evidence::Kernel);
    judged.look(&editing, 1).is(ActivityState::Prompt, Evidence::Kernel);
    assert_eq!(judged.view().readiness, ready(EndsBy::Kernel, true));
    let mut judged = Judged::new();
    judged.show(0, "# ").look(&reading(shell(), true), 3);
    judged.is(ActivityState::Prompt, Evidence::Kernel);
    assert_eq!(judged.view().readiness, ready(EndsBy::Kernel, false));
    judged.show(1, "Go on? ").quiet(&reading(shell(), true));
    judged.is(ActivityState::NeedsInput, Evidence::Kernel);
    let mut judged = Judged::new();
    judged.quiet(&reading(shell(), false)).is(ActivityState::Running, Evidence::Kernel);
    let mut judged = Judged::new();
    judged.quiet(&shell()).is(ActivityState::Prompt, Evidence::Idle);
}

#[test]
fn a_prompt_that_returned_is_one_however_it_looks() {
    let mut judged = Judged::new();
    judged.show(0, "what now? ");
    judged.shell.on_type_ahead(Some("what now? "));
    judged.shell.on_typed(judged.now, b"true\r");
    judged.show(1, "what now? ").quiet(&reading(shell(), true));
    judged.is(ActivityState::Prompt, Evidence::Kernel);
    judged.show(1, "what now? ").quiet(&reading(hidden(shell()), true));
    judged.is(ActivityState::Prompt, Evidence::Kernel);
    judged.show(2, "Secret: ").quiet(&reading(hidden(shell()), true));
    judged.is(ActivityState::SecretPrompt, Evidence::Kernel);
}

#[test]
fn marks_of_a_prompt_count_only_while_the_shell_is_in_front() {
    let mut judged = Judged::marked(&PROMPT);
    judged.look(&raw(shell()), 1).is(ActivityState::Prompt, Evidence::Osc133);
    assert_eq!(judged.view().readiness, ready(EndsBy::Marks, true));
    judged.look(&raw(program()), 1).is(ActivityState::Running, Evidence::Kernel);
    let mut prompting = Judged::marked(&PROMPT[..1]);
    prompting.quiet(&hidden(shell())).is(ActivityState::Prompt, Evidence::Osc133);
    assert_eq!(prompting.view().readiness, Readiness::Starting);
}

#[test]
fn a_program_on_the_alternate_screen_has_it_to_itself_and_waits_once_it_stands_still() {
    let mut judged = Judged { alternate: true, ..Judged::marked(&RUNNING) };
    judged.look(&raw(program()), 3).is(ActivityState::FullScreen, Evidence::Kernel);
    assert!(!judged.view().waits);
    assert!(judged.quiet(&raw(program())).view().waits);
    judged.quiet(&program()).is(ActivityState::FullScreen, Evidence::Pattern);
}

#[test]
fn a_marked_shell_that_has_read_a_line_and_waits_below_it_wants_the_rest_of_a_command() {
    let mut judged = Judged::marked(&PROMPT);
    judged.quiet(&raw(shell()));
    judged.shell.on_typed(judged.now, b"echo 'one\r");
    judged.show(1, "> ").quiet(&raw(shell()));
    judged.rest(LeaderRest::Works).is(ActivityState::Prompt, Evidence::Osc133);
    judged.rest(LeaderRest::Waits).is(ActivityState::NeedsInput, Evidence::Osc133);
    assert_eq!(judged.view().readiness, Readiness::Asks("> ".into()));
}

#[test]
fn a_long_line_behind_the_prompt_of_a_command_that_ended_at_once_wants_no_rest_of_a_command() {
    let mut judged = Judged::marked(&PROMPT);
    judged.quiet(&raw(shell()));
    judged.shell.on_type_ahead(None);
    judged.shell.on_typed(judged.now, b"true\r");
    judged.mark(MarkKind::Started);
    judged.now = judged.now + Duration::from_millis(1);
    judged.show(1, "$ ");
    PROMPT.iter().for_each(|kind| judged.mark(*kind));
    judged.quiet(&raw(shell()));
    judged.rest(LeaderRest::Waits).is(ActivityState::Prompt, Evidence::Osc133);
    judged.shell.on_type_ahead(None);
    judged.shell.on_typed(judged.now, b"echo aaaa");
    judged.show(2, "aa").quiet(&raw(shell()));
    judged.rest(LeaderRest::Waits).is(ActivityState::Prompt, Evidence::Osc133);
    judged.shell.on_typed(judged.now, b" 'b\r");
    judged.show(3, "> ").quiet(&raw(shell()));
    judged.rest(LeaderRest::Waits).is(ActivityState::NeedsInput, Evidence::Osc133);
}

#[test]
fn lines_that_are_edited_below_each_other_want_no_rest_of_a_command() {
    let mut judged = Judged::marked(&PROMPT);
    judged.quiet(&raw(shell()));
    judged.shell.on_typed(judged.now, b"\x1b[200~echo 'one\rtwo\x1b[201~");
    judged.show(1, "two").quiet(&raw(shell())).is(ActivityState::Prompt, Evidence::Osc133);
    assert_eq!(judged.view().readiness, ready(EndsBy::Marks, true));
}

#[test]
fn a_shell_without_marks_that_goes_on_behind_its_second_prompt_wants_the_rest_of_a_command() {
    let waiting = reading(shell(), true);
    let mut judged = Judged::new();
    judged.show(0, "$ ").quiet(&waiting);
    judged.send(EndsBy::Kernel);
    judged.show(1, "> ").quiet(&waiting).is(ActivityState::NeedsInput, Evidence::Pattern);
    assert_eq!(judged.ending(), None);
    judged.show(2, "$ ").look(&waiting, 3);
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Kernel)));
}

#[test]
fn what_was_typed_before_is_read_before_a_command_is_sent() {
    let mut judged = Judged::marked(&PROMPT);
    judged.shell.on_type_ahead(None);
    judged.quiet(&raw(shell()));
    assert_eq!(judged.view().readiness, Readiness::Starting);
    judged.rest(LeaderRest::Unread);
    assert_eq!(judged.view().readiness, Readiness::Starting);
    judged.rest(LeaderRest::Waits);
    assert_eq!(judged.view().readiness, ready(EndsBy::Marks, true));
}

#[test]
fn half_a_line_stays_one_whatever_key_removes_a_character_of_it_or_hands_it_over() {
    let lines = |pieces: &[&[u8]]| {
        let mut judged = Judged::marked(&PROMPT);
        for piece in pieces {
            let unit = Unit { pieces: vec![Piece::Text(piece.to_vec())] };
            judged.shell.on_queued(judged.shell.line_with(&unit, &judged.commands));
            judged.shell.on_typed(judged.now, piece);
        }
        let view = judged.quiet(&raw(shell())).view();
        assert_ne!(view.at_empty_line, judged.shell.line().text() != Some(""));
        !view.at_empty_line
    };
    assert!(!lines(&[]));
    for key in [&b"\x04"[..], b"\x1c", b"\x1c\x04"] {
        assert!(!lines(&[key]));
        assert!(!lines(&[b"cat\r", key]));
        assert!(!lines(&[b"xrm", b"\x03", key]));
        assert!(lines(&[b"xrm -rf build", b"\x1b[H", key]));
        assert!(lines(&[&[b"cat\rxrm", key].concat()]));
    }
}

#[test]
fn a_shell_that_has_yet_to_come_to_its_first_prompt_is_starting() {
    for marks_expected in [true, false] {
        let mut judged = Judged::new();
        judged.shell = Shell::begin(judged.now, marks_expected, false);
        judged.quiet(&reading(shell(), false));
        judged.now = judged.now + SOON * 10;
        assert_eq!(judged.view().readiness, Readiness::Starting);
    }
}

#[test]
fn a_terminal_is_busy_when_it_was_not_ready_for_a_while_after_input_and_after_an_interrupt() {
    let mut judged = Judged::marked(&RUNNING);
    judged.shell.on_typed(judged.now, b"x");
    judged.quiet(&reading(program(), false));
    assert_eq!(judged.view().readiness, Readiness::Soon);
    judged.now = judged.now + SOON;
    assert_eq!(judged.view().readiness, Readiness::Busy);
    judged.shell.on_signal(judged.now);
    assert_eq!(judged.view().readiness, Readiness::Soon);
}

/// A program that has shown this prompt, was sent a command there, and has answered it.
fn sent_to_prompt(before: &'static str) -> Judged {
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, before).quiet(&raw(program()));
    assert_eq!(judged.view().readiness, ready(EndsBy::Prompt, true));
    judged.send(EndsBy::Prompt);
    judged
}

#[test]
fn what_is_sent_to_a_program_ends_when_its_prompt_returns() {
    let mut judged = sent_to_prompt(">>> ");
    judged.quiet(&raw(program())).is(ActivityState::Running, Evidence::Pattern);
    assert_eq!(judged.ending(), None, "it has yet to be read");
    judged.show(3, ">>> ").look(&raw(program()), 3);
    assert_eq!(judged.ending(), None, "more may come");
    judged.quiet(&raw(program()));
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Pattern)));
}

#[test]
fn another_prompt_of_a_program_is_believed_when_it_stands_still() {
    let mut judged = sent_to_prompt("db=> ");
    judged.show(3, "other=> ").quiet(&raw(program()));
    judged.is(ActivityState::Running, Evidence::Pattern);
    assert_eq!(judged.ending(), None);
    judged.now = judged.shell.polling.stirred_at + OTHER_PROMPT_QUIET;
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Pattern)));
}

#[test]
fn a_question_of_what_was_sent_to_a_program_is_no_end() {
    let mut judged = sent_to_prompt(">>> ");
    judged.show(3, "Name? ").quiet(&raw(program()));
    judged.is(ActivityState::NeedsInput, Evidence::Pattern);
    assert_eq!(judged.ending(), None);
}

#[test]
fn a_prompt_that_counts_is_the_one_before() {
    let mut judged = sent_to_prompt("In [1]: ");
    judged.show(3, "In [2]: ").quiet(&raw(program()));
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Pattern)));
}

#[test]
fn the_rest_of_a_command_is_asked_for_and_taken() {
    let mut judged = sent_to_prompt("sqlite> ");
    judged.show(2, "   ...> ").quiet(&raw(program()));
    judged.is(ActivityState::NeedsInput, Evidence::Pattern);
    judged.now = judged.shell.polling.stirred_at + 2 * OTHER_PROMPT_QUIET;
    assert_eq!(judged.ending(), None);
    assert_eq!(judged.view().readiness, ready(EndsBy::Prompt, true));
    assert!(judged.shell.accepts(EndsBy::Prompt, &judged.commands));
    judged.send(EndsBy::Prompt);
    assert_eq!(judged.commands.iter().filter(|record| record.finish.is_none()).count(), 2);
    judged.show(4, "sqlite> ").quiet(&raw(program()));
    judged.now = judged.shell.polling.stirred_at + OTHER_PROMPT_QUIET;
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Pattern)));
}

#[test]
fn an_interpreter_without_a_prompt_takes_a_command_when_it_reads() {
    let named = |program: &str| KernelView {
        foreground: Some(Foreground { group: 7, program: Some(program.into()) }),
        ..reading(self::program(), true)
    };
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, "").quiet(&named("cat"));
    assert_eq!(judged.view().readiness, Readiness::Busy);
    judged.quiet(&named("bc"));
    assert_eq!(judged.view().readiness, ready(EndsBy::Prompt, false));
    judged.send(EndsBy::Prompt);
    judged.show(2, "").quiet(&reading(named("bc"), false));
    assert_eq!(judged.ending(), None, "it works");
    judged.show(3, "").quiet(&named("bc"));
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Pattern)));
}

#[test]
fn a_shell_that_took_the_place_of_the_marked_one_is_one_without_marks() {
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, "root@vm:~# ").quiet(&raw(shell())).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), Some(CommandEnding::Reading));
}

#[test]
fn a_shell_without_a_line_editor_that_took_the_place_of_the_marked_one_is_known_by_its_name() {
    let named = |name: &str| {
        let foreground = Some(Foreground { group: 7, program: Some(name.into()) });
        reading(KernelView { foreground, ..shell() }, true)
    };
    let mut judged = Judged::marked(&RUNNING);
    judged.shell.marks_expected = true;
    judged.show(1, "# ").quiet(&named("bash")).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), None, "its command `read` asks");
    judged.show(1, "Name: ").quiet(&named("dash")).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), None, "no prompt");
    judged.show(1, "# ").quiet(&named("dash")).rest(LeaderRest::Works);
    assert_eq!(judged.ending(), None, "what it runs reads");
    judged.show(1, "# ").quiet(&KernelView { reading: None, ..named("dash") });
    judged.rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), None, "the kernel does not say who reads");
    judged.show(1, "# ").quiet(&named("dash")).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), Some(CommandEnding::Reading));
    let here = judged.here();
    judged.commands.on_reading(&here);
    judged.is(ActivityState::Prompt, Evidence::Kernel);
    assert_eq!(judged.view().readiness, ready(EndsBy::Kernel, false), "no marks are waited for");
}

#[test]
fn an_answer_that_a_program_left_unread_is_taken_back_before_the_next_command() {
    let mut judged = Judged::marked(&RUNNING);
    judged.shell.on_answer(&judged.commands);
    judged.mark(MarkKind::Ended(Some(0)));
    judged.mark(MarkKind::PromptStart);
    judged.mark(MarkKind::PromptEnd);
    judged.quiet(&raw(shell()));
    assert_eq!(judged.view().readiness, Readiness::Starting);
    judged.rest(LeaderRest::Waits);
    assert_eq!(judged.view().readiness, ready(EndsBy::Marks, true));
    assert!(!judged.shell.emptying(&judged.commands, judged.cursor).is_empty());
    let mut asking = Judged::marked(&PROMPT);
    asking.shell.on_answer(&asking.commands);
    assert!(asking.shell.emptying(&asking.commands, asking.cursor).is_empty(), "its own");
}

#[test]
fn a_prompt_whose_marks_are_missing_is_one_when_the_shell_waits_with_its_line_editor() {
    let mut judged = Judged::marked(&PROMPT[..1]);
    judged.quiet(&shell()).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), None, "what makes the prompt reads");
    judged.quiet(&raw(shell())).rest(LeaderRest::Waits);
    assert_eq!(judged.ending(), Some(CommandEnding::Reading));
    let mut judged = Judged::marked(&RUNNING);
    judged.mark(MarkKind::PromptEnd);
    judged.look(&raw(shell()), 3);
    assert_eq!(judged.ending(), Some(CommandEnding::Prompted));
}

#[test]
fn a_shell_inside_of_another_is_at_its_prompt_however_that_looks() {
    let mut judged = Judged::marked(&RUNNING);
    let nested = reading(raw(program()), true);
    let told = |judged: &mut Judged, code| {
        judged.now = judged.now + Duration::from_secs(1);
        let here = judged.here();
        judged.commands.on_told_code(Some(code), &here);
    };
    told(&mut judged, 0);
    judged.show(3, "in here, please ").look(&nested, 3);
    judged.is(ActivityState::NeedsInput, Evidence::Osc133);
    assert_eq!(judged.view().readiness, ready(EndsBy::Prompt, true));
    // What was entered there runs until it tells again.
    judged.now = judged.now + Duration::from_secs(1);
    judged.send(EndsBy::Prompt);
    judged.show(4, "in here, please ").quiet(&nested);
    assert_eq!(judged.ending(), None);
    told(&mut judged, 3);
    judged.show(5, "in there, please ").look(&nested, 3);
    assert_eq!(judged.ending(), Some(CommandEnding::Finished(Evidence::Osc133)));
}

#[test]
fn a_shell_without_marks_that_tells_codes_is_at_its_prompt_though_that_ends_like_a_question() {
    let mut judged = Judged::new();
    let dash = reading(shell(), true);
    judged.now = judged.now + Duration::from_secs(1);
    let here = judged.here();
    judged.commands.on_told_code(Some(0), &here);
    judged.show(1, "yes? ").quiet(&dash);
    judged.is(ActivityState::Prompt, Evidence::Kernel);
    // Its command `read` tells nothing.
    judged.now = judged.now + Duration::from_secs(1);
    judged.shell.on_typed(judged.now, b"read x\r");
    judged.show(2, "yes? ").quiet(&dash);
    judged.is(ActivityState::NeedsInput, Evidence::Kernel);
    // That of ksh reads with its line editor.
    judged.show(3, "yes? ").quiet(&raw(dash.clone()));
    judged.is(ActivityState::NeedsInput, Evidence::Pattern);
    // It works, and has left the modes to others.
    judged.show(3, "").quiet(&reading(raw(dash), false));
    judged.is(ActivityState::Running, Evidence::Kernel);
}

#[test]
fn a_program_is_idle_once_it_waits_for_input_alone_or_sleeps_for_a_while() {
    let mut judged = Judged::marked(&RUNNING);
    judged.shell.on_typed(judged.now, b"j");
    let typed = judged.now;
    let look = |judged: &mut Judged, millis: u64, idleness: Idleness| {
        judged.now = typed + Duration::from_millis(millis);
        judged.shell.on_idle_look(judged.now, idleness);
        judged.view().idle_after
    };
    // No program can have read it yet.
    assert_eq!(judged.shell.idle_due(), Some(typed + Duration::from_millis(1)));
    assert_eq!(look(&mut judged, 1, Idleness::Works), None);
    assert_eq!(judged.shell.idle_due(), Some(typed + Duration::from_millis(2)));
    assert_eq!(look(&mut judged, 2, Idleness::Sleeps), None);
    assert_eq!(look(&mut judged, 30, Idleness::Sleeps), Some(typed));
    assert_eq!(judged.shell.idle_due(), None);
    judged.show(1, "more");
    assert_eq!(judged.view().idle_after, None);
    assert_eq!(look(&mut judged, 31, Idleness::Waits), Some(typed + Duration::from_millis(30)));
}

#[test]
fn after_an_escape_no_program_is_idle_before_it_writes() {
    let mut judged = Judged::marked(&RUNNING);
    judged.shell.on_typed(judged.now, b"\x1b");
    assert_eq!(judged.shell.idle_due(), None);
    judged.show(1, "normal");
    assert_eq!(judged.shell.idle_due(), Some(judged.now));
    judged.shell.on_typed(judged.now, b"\x1b[A");
    assert!(judged.shell.idle_due().is_some());
}

#[test]
fn a_program_that_works_is_looked_at_for_a_tenth_of_a_second_and_then_left_to_quiet() {
    let mut judged = Judged::marked(&RUNNING);
    judged.show(1, "compiling");
    let begun = judged.now;
    while let Some(due) = judged.shell.idle_due() {
        judged.now = due;
        judged.shell.on_idle_look(due, Idleness::Works);
    }
    assert_eq!(judged.now.since(begun), Duration::from_millis(64));
}

#[test]
fn a_full_screen_stands_still_only_while_its_program_does() {
    let mut judged = Judged { alternate: true, ..Judged::marked(&RUNNING) };
    let works = KernelView { works: true, ..reading(raw(program()), false) };
    judged.quiet(&works);
    assert!(!judged.view().waits);
    judged.quiet(&reading(raw(program()), false));
    assert!(judged.view().waits);
}
