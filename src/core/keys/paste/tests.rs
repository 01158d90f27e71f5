//! Pastes, bracketed and not, and what must not end them.

use proptest::prelude::*;

use super::*;

const PLAIN: PasteRule = PasteRule::Never;

fn asked() -> InputModes {
    InputModes { bracketed_paste: true, ..InputModes::default() }
}

fn text(bytes: &str) -> Piece {
    Piece::Text(bytes.as_bytes().to_vec())
}

fn enter() -> Piece {
    Piece::Key(b"\r".to_vec())
}

fn sent(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()
}

fn pasted(typed: &str) -> String {
    let bytes = sent(&encode_text(typed, PasteRule::Always, false, &asked()));
    let inside = bytes.strip_prefix(Piece::PASTE_START).unwrap();
    String::from_utf8(inside.strip_suffix(Piece::PASTE_END).unwrap().to_vec()).unwrap()
}

#[test]
fn brackets_follow_the_rule_and_the_program() {
    let bracketed = [Piece::PasteStart, text("ls"), Piece::PasteEnd];
    let typed = [text("ls")];
    let quiet = InputModes::default();
    for several in ["a\rb", "a\tb"] {
        let bracketed = [Piece::PasteStart, text(several), Piece::PasteEnd];
        assert_eq!(encode_text(several, PasteRule::Auto, false, &asked()), bracketed);
        assert_eq!(encode_text(several, PasteRule::Auto, false, &quiet), [text(several)]);
    }
    assert_eq!(encode_text("ls", PasteRule::Auto, false, &asked()), typed);
    assert_eq!(encode_text("ls", PasteRule::Always, false, &quiet), bracketed);
    assert_eq!(encode_text("ls", PasteRule::Never, false, &asked()), typed);
}

#[test]
fn line_ends_go_out_as_carriage_returns_inside_brackets_and_outside() {
    let many = "a\nb\r\nc\rd\n\n";
    assert_eq!(encode_text(many, PLAIN, false, &asked()), [text("a\rb\rc\rd\r\r")]);
    assert_eq!(pasted(many), "a\rb\rc\rd\r\r");
}

#[test]
fn enter_is_a_key_after_the_end_of_the_paste() {
    let pieces = encode_text("ls", PasteRule::Always, true, &asked());
    assert_eq!(pieces, [Piece::PasteStart, text("ls"), Piece::PasteEnd, enter()]);
    assert_eq!(encode_text("ls", PLAIN, true, &asked()), [text("ls"), enter()]);
}

#[test]
fn enter_is_the_key_the_program_knows() {
    let modes = InputModes { kitty_flags: 8, ..InputModes::default() };
    let pieces = encode_text("", PLAIN, true, &modes);
    assert_eq!(pieces, [Piece::Key(b"\x1b[13u".to_vec())]);
}

#[test]
fn no_text_makes_no_paste() {
    assert_eq!(encode_text("", PasteRule::Always, false, &asked()), []);
    assert_eq!(encode_text("", PasteRule::Always, true, &asked()), [enter()]);
    assert_eq!(encode_text("\x1b[201~", PasteRule::Always, false, &asked()), []);
}

#[test]
fn what_would_end_the_paste_is_taken_out_of_it() {
    assert_eq!(pasted("a\x1b[201~b"), "ab");
    assert_eq!(pasted("a\u{9b}201~b"), "ab");
}

#[test]
fn an_end_that_forms_when_another_is_taken_out_goes_too() {
    assert_eq!(pasted("a\x1b[20\x1b[201~1~b"), "ab");
    assert_eq!(pasted("\x1b\x1b[201~[201~x"), "x");
    assert_eq!(pasted("\u{9b}2\x1b[201~01~x"), "x");
}

#[test]
fn other_sequences_of_the_text_stay() {
    let colours = "\x1b[31mred\x1b[0m \x1b[200~ [201~ \x1b[201";
    assert_eq!(pasted(colours), colours);
}

#[test]
fn an_end_of_a_paste_is_plain_text_where_there_are_no_brackets() {
    assert_eq!(encode_text("\x1b[201~", PLAIN, false, &asked()), [text("\x1b[201~")]);
}

#[test]
fn bytes_go_out_as_they_are() {
    let bytes = b"\xff\x00\n\x1b[201~";
    assert_eq!(encode_bytes(bytes), [Piece::Text(bytes.to_vec())]);
    assert_eq!(encode_bytes(b""), []);
}

#[test]
fn the_longest_line_is_counted_between_line_ends() {
    let pieces = encode_text("four\nseventy\n\nx", PLAIN, false, &asked());
    assert_eq!(longest_line(&pieces), 7);
    assert_eq!(longest_line(&encode_bytes(b"ab\ncde")), 3);
    assert_eq!(longest_line(&[]), 0);
}

#[test]
fn a_line_goes_on_from_one_piece_to_the_next() {
    assert_eq!(longest_line(&[text("ab"), text("cd"), enter(), text("e")]), 4);
}

#[test]
fn a_line_that_the_kernel_keeps_whole_and_one_that_it_cuts() {
    let line = |length| longest_line(&encode_text(&"x".repeat(length), PLAIN, true, &asked()));
    assert!(line(4_095) <= CANONICAL_LINE_MAX);
    assert!(line(4_096) > CANONICAL_LINE_MAX);
}

proptest! {
    #[test]
    fn a_bracketed_paste_ends_once_and_at_its_end(
        text in "(\x1b|\\[|2|0|1|~|\u{9b}|\x1b\\[201~|\u{9b}201~|a|\n|é){0,40}",
    ) {
        let bytes = sent(&encode_text(&text, PasteRule::Always, false, &asked()));
        if !bytes.is_empty() {
            let end = Piece::PASTE_END;
            let ends = bytes.windows(end.len()).filter(|window| *window == end).count();
            prop_assert_eq!(ends, 1);
            prop_assert!(bytes.ends_with(end));
            let spoken = String::from_utf8(bytes).unwrap();
            let other_end = "\u{9b}201~";
            prop_assert!(!spoken.contains(other_end));
        }
    }

    #[test]
    fn text_without_escapes_is_pasted_as_it_is(text in "[ -~é漢\r]{1,80}") {
        prop_assert_eq!(pasted(&text), text);
    }
}
