//! Recorders beside the screen on which the same command prints, and behind what others left there.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::core::frame::{Frame, Size};
use crate::core::ids::RowNumber;
use crate::core::moment::Moment;
use crate::core::screen::tests::differential::output;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::core::shell::commands::mark::MarkNonces;
use crate::core::shell::commands::record::CommandId;
use crate::core::shell::commands::{EndsBy, Submission};

const NONCE: &str = "5ec2e7";

/// A shell that marks its commands.
struct Shell(Screen);

impl Shell {
    fn new(rows: u16, cols: u16) -> Self {
        let mut screen =
            Screen::new(Size { rows, cols }, ScreenLimits::default(), Origin::default());
        screen.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: None });
        Self(screen)
    }

    fn write(&mut self, text: &str) -> &mut Self {
        self.0.feed(Moment::default(), text.as_bytes());
        self
    }

    fn mark(&mut self, mark: &str) -> &mut Self {
        self.write(&format!("\x1b]133;{mark};nonce={NONCE}\x1b\\"))
    }

    fn begin(&mut self) -> &mut Self {
        self.mark("A").mark("B").write("x\r\n").mark("C")
    }

    fn command(&mut self, output: &str) -> &mut Self {
        self.begin().write(output).mark("D;0")
    }

    fn frame(&mut self) -> Arc<Frame> {
        self.0.publish(Moment::default(), &Facts::default());
        self.0.first_frame(Moment::default(), &Facts::default())
    }

    /// What the newest command printed so far.
    fn printed(&mut self) -> String {
        let frame = self.frame();
        let record = frame.commands.value.iter().next_back().unwrap();
        frame.output(record).text()
    }
}

/// The lines of the whole screen and its history that are not blank.
fn shown(frame: &Frame) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for row in frame.history.first().0..frame.end_row().0 {
        let (shown, changed) = frame.any_line(RowNumber(row)).unwrap();
        line.push_str(&shown.text);
        match frame.any_line(RowNumber(row + 1)).filter(|_| shown.wrapped) {
            Some((next, _)) => {
                let blanks = frame.omitted_blanks(&shown.text, changed, &next.text);
                line.extend(std::iter::repeat_n(' ', blanks));
            }
            None => lines.push(std::mem::take(&mut line)),
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A screen keeps a mark that follows nothing, and does not know each blank before a wide character that wraps.
fn bare(line: &str) -> String {
    line.replace(['\u{301}', ' '], "")
}

/// Whether a part means the same to a screen of the emulator's. That one differs in edits of rows, in wide characters, where
/// lines end without a return, and below rows that scroll.
fn alike(part: &str) -> bool {
    match (part.strip_prefix("\x1b["), part.strip_prefix('\x1b')) {
        (Some("1J"), _) => false,
        (Some(sequence), _) => {
            sequence.ends_with(['A', 'B', 'C', 'E', 'F', 'G', 'H', 'K', 'd', 'm'])
        }
        (None, Some(escape)) => matches!(escape, "7" | "8" | "M"),
        (None, None) => part.is_ascii() && !part.replace("\r\n", "").contains(char::is_control),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn on_a_clean_screen_the_output_is_what_stands_there(
        parts in vec(output(), 1..60),
        size in (2..9u16, 2..14u16),
    ) {
        let mut shell = Shell::new(size.0, size.1);
        shell.mark("C");
        for part in parts.iter().filter(|part| alike(part)) {
            shell.write(part);
        }
        let frame = shell.frame();
        let printed = shell.printed();
        let lines = |all: Vec<String>| {
            let lines = all.into_iter().map(|line| bare(&line));
            lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
        };
        let printed = printed.lines().map(str::to_owned).collect();
        prop_assert_eq!(lines(printed), lines(shown(&frame)));
    }

    #[test]
    fn an_output_goes_on_after_a_restart_as_it_would_have(
        before in vec(output(), 1..30), after in vec(output(), 1..30),
        alternate in any::<bool>(),
    ) {
        let mut shell = Shell::new(5, 9);
        shell.begin();
        if alternate {
            shell.write("one\x1b[?1049h");
        }
        before.iter().for_each(|part| { shell.write(part); });
        let kept = shell.0.checkpoint(RowNumber(0));
        let screen = Screen::restore(&kept.snapshot, [&kept.rows], ScreenLimits::default());
        let mut restored = Shell(screen.unwrap());
        restored.0.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: None });
        prop_assert_eq!(restored.printed(), shell.printed());
        for shell in [&mut shell, &mut restored] {
            after.iter().for_each(|part| { shell.write(part); });
            shell.write("\x1b\\\x1b[?1049l").mark("D;0");
        }
        prop_assert_eq!(restored.printed(), shell.printed());
    }
}

#[test]
fn what_others_left_on_the_screen_spoils_no_output() {
    for left in [
        "\x1b[?1049hfull\x1b[20;5H",
        "\x1b(0\x0e",
        "\x1b#8",
        "\x1b7\x1b[3;9H",
        "\x1b[2;3r\x1b[?6h",
        "\x1b[4h",
        "\x1b[?7l",
        "\x1b[?1000;1006h\x1b[>31u\x1b[?25l\x1b[31;8m",
        "\x1b[?2026h",
    ] {
        let mut shell = Shell::new(6, 20);
        shell.command(left).command("lqqk one\r\ntwo\x1b8\r\n");
        assert_eq!(shell.printed(), "lqqk one\ntwo\n", "{left:?}");
        let (frame, modes) = (shell.frame(), shell.0.modes());
        assert!(frame.cursor.value.visible, "{left:?}");
        assert_eq!((modes.kitty_flags, modes.bracketed_paste), (0, false), "{left:?}");
        assert_eq!(modes.mouse, Default::default(), "{left:?}");
        shell.begin().write("\x1b[2J\x1b[Ha\x1b[4Gb\x1b[1Gc");
        let row = shell.0.cursor_row();
        assert_eq!(&*shell.frame().line(row).unwrap().value.text, "c  b", "{left:?}");
    }
}

#[test]
fn a_program_draws_lines_if_it_says_so_itself() {
    let mut shell = Shell::new(6, 20);
    shell.command("\x1b(0lqk\x1b(B lqk\r\n");
    assert_eq!(shell.printed(), "┌─┐ lqk\n");
}

#[test]
fn the_last_words_of_a_program_that_never_left_the_alternate_screen_are_told() {
    let mut shell = Shell::new(6, 20);
    shell.begin().write("before\r\n\x1b[?1049h\x1b[H\x1b[2Jafter\r\n");
    assert_eq!(shell.printed(), "before\n");
    shell.mark("D;0");
    assert_eq!(shell.printed(), "before\nafter\n");
    assert_eq!(shell.frame().mode.value, Default::default(), "the shell has the normal screen");
}

#[test]
fn what_a_command_conceals_is_blank() {
    let mut shell = Shell::new(6, 20);
    shell.command("user \x1b[8mhunter2 漢e\u{301}\x1b[28m shown \x1b7\x1b[8mno\x1b8yes\r\n");
    assert_eq!(shell.printed(), format!("user{} shown yes\n", " ".repeat(12)));
}

#[test]
fn a_terminal_that_shrinks_takes_no_cursor_and_no_hidden_row_along() {
    for alternate in [false, true] {
        let mut shell = Shell::new(20, 60);
        shell.begin().write("a wide line of a normal screen, of forty columns\r\n");
        shell.write(if alternate { "\x1b[?1049h" } else { "" });
        shell.write("\x1b[18;50H\x1b7\x1b[1;1Hanother wide line, of more than forty columns");
        shell.0.resize(Size { rows: 4, cols: 10 });
        let kept = shell.0.checkpoint(RowNumber(0));
        let screen = Screen::restore(&kept.snapshot, [&kept.rows], ScreenLimits::default());
        let mut restored = Shell(screen.unwrap());
        restored.0.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: None });
        for shell in [&mut shell, &mut restored] {
            shell.write("\x1b8\x1b[3@x\x1b[2P\x1b[?1049l\r\nend\r\n").mark("D;0");
        }
        assert!(shell.printed().ends_with("end\n"), "{}", shell.printed());
        assert_eq!(restored.printed(), shell.printed());
    }
}

#[test]
fn what_prints_nothing_makes_no_frame() {
    let mut shell = Shell::new(6, 20);
    let before = shell.begin().write("text").frame().watermark;
    shell.write("\x1b[31m\x1b[m\x1b[?2026h\x1b[?2026l");
    assert_eq!(shell.frame().watermark, before);
}

#[test]
fn what_is_typed_over_several_rows_is_no_output() {
    let mut shell = Shell::new(6, 10);
    let submit = |shell: &mut Shell, typed: &str| {
        shell.write("$ ");
        let submission = Submission {
            text: typed,
            typed,
            by: None,
            ends_by: EndsBy::Kernel,
            prompt: "$ ",
            echoed: true,
        };
        shell.0.submit(Moment::default(), submission);
    };
    submit(&mut shell, "echo wider than it");
    shell.write("echo wide\x1b[Jr than it\x1b[J\r\nout\r\n");
    assert_eq!(shell.printed(), "out\n");
    // Some line editors break the row by themselves.
    for (typed, shown) in [("echo wider", "echo wid\r\r\ner\r\n"), ("echo wid", "echo wid\r\n")] {
        let mut broken = Shell::new(6, 10);
        submit(&mut broken, typed);
        broken.write(shown).write("er\r\nout\r\n");
        assert_eq!(broken.printed(), "er\nout\n", "{typed}");
    }
    let mut cleared = Shell::new(6, 10);
    submit(&mut cleared, "clear");
    cleared.write("clear\r\n\x1b[H\x1b[Jafter\r\n");
    assert_eq!(cleared.printed(), "after\n");
}

#[test]
fn text_below_the_cursor_and_behind_it_is_output() {
    let mut shell = Shell::new(6, 20);
    shell.command("one\r\ntwo\r\nthree\x1b[2A\r");
    assert_eq!(shell.printed(), "one\ntwo\nthree\n");
    shell.command("100%\r");
    assert_eq!(shell.printed(), "100%");
}

#[test]
fn an_output_outlives_the_history_of_its_screen() {
    let mut shell = Shell::new(6, 20);
    let lines: String = (0..30_000).map(|number| format!("{number}\r\n")).collect();
    shell.command(&lines);
    shell.0.clear_history();
    assert_eq!(shell.printed().lines().count(), 30_000);
}

#[test]
fn of_endless_output_the_newest_is_kept_and_the_rest_is_counted() {
    let mut shell = Shell::new(6, 20);
    shell.begin();
    let lines = "0123456789\r\n".repeat(10_000);
    (0..20).for_each(|_| {
        shell.write(&lines);
    });
    shell.mark("D;0");
    let frame = shell.frame();
    let output = frame.output(frame.commands.value.get(CommandId(1)).unwrap());
    assert_eq!(output.lines_total(), 200_000);
    assert!(output.bytes() <= 1024 * 1024 && output.bytes() > 1000 * 1024);
    assert_eq!(output.lines_trimmed(), 200_000 - output.text().lines().count() as u64);
}

#[test]
fn a_failed_emulator_loses_no_output_that_was_published() {
    let mut shell = Shell::new(6, 20);
    shell.begin().write("before\r\nhalf");
    let frame = shell.frame();
    shell.0 = Screen::after_failure(&frame, ScreenLimits::default());
    shell.0.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: None });
    shell.write("after\r\n").mark("D;0");
    assert_eq!(shell.printed(), "before\nhalf\nafter\n");
}
