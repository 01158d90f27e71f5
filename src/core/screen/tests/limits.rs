//! Each bound at its edge, and sequences that emulators were made to fail with.

use super::*;
use crate::core::screen::emulator::settings::FLAGS_STACK_MAX;
use crate::core::screen::guard::REPEAT_MAX;

#[test]
fn a_command_of_4096_bytes_counts_and_a_longer_one_is_skipped_whole() {
    let mut terminal = Terminal::new(2, 10);
    let fill = "x".repeat(4_096 - "2;".len());
    terminal.show(format!("\x1b]2;{fill}\x1b\\a"));
    assert!(terminal.frame.title.value.starts_with('x'));
    terminal.show(format!("\x1b]2;y{fill}\x1b\\b"));
    assert!(terminal.frame.title.value.starts_with('x'));
    terminal.shows(0, &["ab", ""]);
}

#[test]
fn other_strings_are_skipped_however_long() {
    for introducer in ["\x1bP", "\x1bX", "\x1b^", "\x1b_"] {
        let mut terminal = Terminal::new(2, 10);
        terminal.show(format!("a{introducer}{}", "secret;\x07".repeat(20_000)));
        terminal.show("secret\x1b\\b");
        terminal.shows(0, &["ab", ""]);
        assert_eq!(terminal.frame.bell.value, 0);
    }
}

#[test]
fn a_string_ends_at_its_terminator_at_any_escape_and_at_a_cancel() {
    for (text, title) in [
        ("\x1b]2;t\x1b\\a", "t"),
        ("\x1b]2;t\x07a", "t"),
        ("\x1b]2;t\x1b[31ma", "t"),
        ("\x1b]2;t\x18a", ""),
        ("\x1b]2;t\x1aa", ""),
        ("\x1bPx\x1b[31ma", ""),
        ("\x1b_x\x18a", ""),
    ] {
        let mut terminal = Terminal::new(2, 10);
        terminal.show(text);
        terminal.shows(0, &["a", ""]);
        assert_eq!(&*terminal.frame.title.value, title, "{text:?}");
    }
}

#[test]
fn bytes_of_text_do_not_end_a_string() {
    let mut terminal = Terminal::new(2, 10);
    // The third byte of this character is the terminator of eight-bit terminals.
    terminal.show("\x1b]2;\u{271c}t\x07\x1bP\u{271c}q\x1b\\a");
    assert_eq!(&*terminal.frame.title.value, "\u{271c}t");
    terminal.shows(0, &["a", ""]);
}

#[test]
fn a_string_breaks_off_the_sequence_before_it() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("\x1b[3\x1b]2;t\x071ma");
    terminal.shows(0, &["1ma", ""]);
}

#[test]
fn eight_bit_controls_are_not_controls() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show("a\u{9b}31m\u{85}b");
    terminal.shows(0, &["a31mb", ""]);
}

#[test]
fn a_control_in_two_bytes_is_the_same_in_two_pieces() {
    let mut whole = Terminal::new(2, 10);
    whole.show("a\u{85}\x1b[2b\u{e9}");
    let mut cut = Terminal::new(2, 10);
    for byte in "a\u{85}\x1b[2b\u{e9}".bytes() {
        cut.feed([byte]);
    }
    cut.publish();
    whole.shows(0, &["aaaé", ""]);
    cut.shows(0, &["aaaé", ""]);
}

#[test]
fn a_title_stack_holds_sixteen() {
    let mut terminal = Terminal::new(2, 10);
    for number in 0..=16 {
        terminal.feed(format!("\x1b]2;{number}\x07\x1b[22t"));
    }
    terminal.show("\x1b[23t".repeat(16 + 1));
    assert_eq!(&*terminal.frame.title.value, "1");
}

#[test]
fn keyboard_flags_beyond_the_stack_are_taken_without_putting_aside() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b[>1u".repeat(5_000));
    terminal.feed("\x1b[>8u");
    assert_eq!(terminal.screen.modes().kitty_flags, 8);
    terminal.feed("\x1b[<u".repeat(FLAGS_STACK_MAX));
    assert_eq!(terminal.screen.modes().kitty_flags, 0);
}

#[test]
fn each_screen_has_its_own_keyboard_flags() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b[>1u\x1b[?1049h");
    assert_eq!(terminal.screen.modes().kitty_flags, 0);
    terminal.feed("\x1b[>4u\x1b[?1049l");
    assert_eq!(terminal.screen.modes().kitty_flags, 1);
}

#[test]
fn keyboard_flags_outlive_a_resize() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b[=5u");
    terminal.resize(4, 10);
    assert_eq!(terminal.screen.modes().kitty_flags, 5);
}

#[test]
fn a_cell_carries_eight_marks() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show(format!("a{}\u{6f22}{}", "\u{301}".repeat(9), "\u{302}".repeat(100)));
    let expected = format!("a{}\u{6f22}{}", "\u{301}".repeat(8), "\u{302}".repeat(8));
    terminal.shows(0, &[&expected, ""]);
}

#[test]
fn a_repetition_with_too_many_parameters_is_none() {
    for (parameters, shown) in [(31, "xxx"), (32, "xxx"), (33, "x"), (400, "x")] {
        let mut terminal = Terminal::new(2, 10);
        terminal.show(format!("x\x1b[2{}b", ";1".repeat(parameters - 1)));
        terminal.shows(0, &[shown, ""]);
    }
}

#[test]
fn a_character_is_repeated_a_thousand_times_at_most() {
    for (asked, given) in
        [("999", 999), ("1000", REPEAT_MAX), ("1001", REPEAT_MAX), ("9999999", REPEAT_MAX)]
    {
        let mut terminal = Terminal::new(11, 100);
        terminal.show(format!("x\x1b[{asked}b"));
        let shown = terminal.frame.lines.iter().map(|line| line.value.text.len()).sum::<usize>();
        assert_eq!(shown, 1 + given, "{asked}");
    }
}

#[test]
fn the_larger_the_screen_the_less_output_it_takes_at_once() {
    assert_eq!(Terminal::new(24, 80).screen.slice_bytes(), 64 * 1024);
    assert_eq!(Terminal::new(50, 80).screen.slice_bytes(), 32 * 1024);
    assert_eq!(Terminal::new(200, 1_000).screen.slice_bytes(), 655);
}

#[test]
fn a_control_sequence_of_more_than_256_bytes_is_dropped_whole() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show(format!("x\x1b[{:0255}by\x1b[{:0256}bz", 2, 2));
    terminal.shows(0, &["xxxyyyz", ""]);
    terminal.show(format!("\r\x1b[{:0257}b\x1b[{:0257}CX", 2, 2));
    terminal.shows(0, &["Xxxyyyz", ""]);
}

#[test]
fn a_sequence_with_too_many_parameters_is_dropped_whole() {
    let mut terminal = Terminal::new(2, 10);
    terminal.show(format!("\x1b[{}31ma", "1;".repeat(100)));
    terminal.shows(0, &["a", ""]);
    assert_eq!(*terminal.frame.lines[0].value.runs, []);
}

#[test]
fn an_update_of_more_than_2_mib_withholds_no_frames() {
    let mut terminal = Terminal::new(2, 10);
    terminal.feed("\x1b[?2026h");
    terminal.feed(vec![b'\r'; 2 * 1024 * 1024]);
    assert!(terminal.screen.hold_until().is_some());
    terminal.feed("\r");
    assert_eq!(terminal.screen.hold_until(), None);
}

#[test]
fn limits_that_were_set_hold_in_the_place_of_the_usual_ones() {
    let limits = ScreenLimits {
        slice_bytes_max: 4_096,
        command_bytes_max: 10,
        titles_max: 1,
        answers_per_second_max: 2,
        sync_time_max: Duration::from_millis(10),
        sync_bytes_max: 100,
        ..ScreenLimits::default()
    };
    let mut terminal = Terminal::with(limits, Origin::default(), 2, 10);
    assert_eq!(terminal.screen.slice_bytes(), 4_096);
    terminal.show("\x1b]2;12345678\x07\x1b]2;123456789\x07");
    assert_eq!(&*terminal.frame.title.value, "12345678");
    terminal.show("\x1b[22t\x1b]2;b\x07\x1b[22t\x1b]2;c\x07\x1b[23t\x1b[23t");
    assert_eq!(&*terminal.frame.title.value, "b");
    assert_eq!(terminal.answers("\x1b[6n\x1b[6n\x1b[6n"), "\x1b[1;1R\x1b[1;1R");
    terminal.feed("\x1b[?2026h");
    assert_eq!(terminal.screen.hold_until(), Some(terminal.now + Duration::from_millis(10)));
    terminal.feed(vec![b'\r'; 101]);
    assert_eq!(terminal.screen.hold_until(), None);
}

#[test]
fn the_newest_reports_are_kept() {
    let mut terminal = Terminal::new(2, 10);
    for number in 0..=Report::QUEUED_MAX {
        terminal.feed(format!("\x1b]9;{number}\x07"));
    }
    let (reports, dropped) = terminal.screen.take_reports();
    assert_eq!(dropped, 1);
    assert_eq!(reports.len(), Report::QUEUED_MAX);
    let newest = Report::Notification { title: None, body: Report::QUEUED_MAX.to_string() };
    assert_eq!(reports.last(), Some(&newest));
}

#[test]
fn counts_and_positions_beyond_the_screen_act_at_its_edge() {
    for count in ["65535", "999999999999999999999"] {
        let mut terminal = Terminal::new(2, 4);
        terminal.show(format!("\x1b[{count};{count}Hx\x1b[{count}A\x1b[{count}D\x1b[{count}Cy"));
        terminal.shows(0, &["   y", "   x"]);
        terminal.show(format!("\x1b[{count}P\x1b[{count}@\x1b[{count}X\x1b[{count}Z\x1b[{count}I"));
        terminal.show(format!("\x1b[{count}L\x1b[{count}M\x1b[{count}T\x1b[{count}S"));
        terminal.show(format!("\x1b[{count};{count}r\x1b[{count}d\x1b[{count}G\x1b[{count}E"));
        assert_eq!(terminal.frame.lines.len(), 2);
    }
}

#[test]
fn tabs_back_without_tab_stops_do_no_work() {
    let mut terminal = Terminal::new(2, 1_000);
    terminal.show(format!("\x1b[3g\x1b[999C{}x", "\x1b[65535Z".repeat(1_000)));
    assert_eq!(terminal.frame.lines[0].value.text.len(), 1_000);
}

#[test]
fn the_smallest_and_the_largest_screen_take_anything() {
    let bytes: Vec<u8> =
        (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (rows, cols) in [(2, 2), (2, 1_000), (1_000, 2), (200, 1_000), (1_000, 200)] {
        let mut terminal = Terminal::new(rows, cols);
        terminal.show(&bytes);
        terminal.resize(cols, rows.min(200));
        terminal.show(&bytes);
        assert_eq!(terminal.frame.lines.len(), usize::from(cols));
    }
}
