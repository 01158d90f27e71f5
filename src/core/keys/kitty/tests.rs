//! Encodings of the kitty keyboard protocol, from its specification.

use super::*;
use crate::core::keys::encode::encode_keys;
use crate::core::keys::modes::InputModes;
use crate::core::keys::parse::parse_keys;

fn check(flags: u8, cases: &[(&str, &str)]) {
    let modes = InputModes { kitty_flags: flags, application_cursor: true, ..Default::default() };
    for (word, expected) in cases {
        let pieces = encode_keys(&parse_keys(word).unwrap(), &modes);
        assert_eq!(pieces.len(), 1, "{word}");
        let bytes = String::from_utf8(pieces[0].bytes().to_vec()).unwrap();
        assert_eq!(bytes, *expected, "{word} with flags {flags}");
    }
}

#[test]
fn text_stays_text_while_only_ambiguous_keys_change() {
    check(
        DISAMBIGUATE,
        &[("a", "a"), ("A", "A"), ("S-a", "A"), ("é", "é"), ("Space", " "), ("S-1", "!")],
    );
}

#[test]
fn enter_tab_and_backspace_keep_their_bytes_only_without_modifiers() {
    check(
        DISAMBIGUATE,
        &[
            ("Enter", "\r"),
            ("Tab", "\t"),
            ("BSpace", "\x7f"),
            ("S-Enter", "\x1b[13;2u"),
            ("BTab", "\x1b[9;2u"),
            ("C-S-Tab", "\x1b[9;6u"),
            ("C-BSpace", "\x1b[127;5u"),
        ],
    );
}

#[test]
fn escape_and_keys_with_ctrl_or_alt_have_sequences_of_their_own() {
    check(
        DISAMBIGUATE,
        &[
            ("Escape", "\x1b[27u"),
            ("C-c", "\x1b[99;5u"),
            ("C-i", "\x1b[105;5u"),
            ("M-x", "\x1b[120;3u"),
            ("C-M-x", "\x1b[120;7u"),
            ("M-[", "\x1b[91;3u"),
            ("C-Space", "\x1b[32;5u"),
        ],
    );
}

#[test]
fn the_number_is_that_of_the_key_without_shift() {
    check(
        DISAMBIGUATE,
        &[
            ("C-S-a", "\x1b[97;6u"),
            ("M-X", "\x1b[120;4u"),
            ("M-!", "\x1b[49;4u"),
            ("C-?", "\x1b[47;6u"),
        ],
    );
}

#[test]
fn the_case_of_a_letter_says_nothing_with_ctrl() {
    check(DISAMBIGUATE, &[("C-C", "\x1b[99;5u"), ("Ctrl+C", "\x1b[99;5u")]);
}

#[test]
fn functional_keys_ignore_the_cursor_key_mode() {
    check(
        DISAMBIGUATE,
        &[
            ("Up", "\x1b[A"),
            ("Home", "\x1b[H"),
            ("C-End", "\x1b[1;5F"),
            ("F1", "\x1b[P"),
            ("S-F2", "\x1b[1;2Q"),
            ("F3", "\x1b[13~"),
            ("C-F3", "\x1b[13;5~"),
            ("F4", "\x1b[S"),
            ("F5", "\x1b[15~"),
            ("F12", "\x1b[24~"),
            ("F13", "\x1b[57376u"),
            ("F20", "\x1b[57383u"),
            ("DC", "\x1b[3~"),
            ("S-PPage", "\x1b[5;2~"),
        ],
    );
}

#[test]
fn keypad_keys_that_type_nothing_have_their_own_numbers() {
    check(
        DISAMBIGUATE,
        &[
            ("KP5", "5"),
            ("KP+", "+"),
            ("KPEnter", "\x1b[57414u"),
            ("C-KP0", "\x1b[57399;5u"),
            ("C-KP9", "\x1b[57408;5u"),
            ("C-KP.", "\x1b[57409;5u"),
            ("C-KP/", "\x1b[57410;5u"),
            ("C-KP*", "\x1b[57411;5u"),
            ("C-KP-", "\x1b[57412;5u"),
            ("C-KP+", "\x1b[57413;5u"),
        ],
    );
}

#[test]
fn every_key_is_a_sequence_where_the_program_asked_for_all() {
    check(
        REPORT_ALL,
        &[
            ("a", "\x1b[97u"),
            ("A", "\x1b[97;2u"),
            ("Enter", "\x1b[13u"),
            ("Tab", "\x1b[9u"),
            ("BSpace", "\x1b[127u"),
            ("KP5", "\x1b[57404u"),
        ],
    );
}

#[test]
fn text_is_told_with_the_key_where_the_program_asked_for_it() {
    let flags = REPORT_ALL | REPORT_TEXT;
    check(
        flags,
        &[
            ("a", "\x1b[97;;97u"),
            ("A", "\x1b[97;2;65u"),
            ("C-a", "\x1b[97;5u"),
            ("Up", "\x1b[A"),
            ("KP5", "\x1b[57404;;53u"),
        ],
    );
}

#[test]
fn the_shifted_key_is_told_only_with_shift() {
    let flags = DISAMBIGUATE | REPORT_ALTERNATES;
    check(
        flags,
        &[
            ("C-S-a", "\x1b[97:65;6u"),
            ("C-+", "\x1b[61:43;6u"),
            ("C-a", "\x1b[97;5u"),
            ("S-Up", "\x1b[1;2A"),
        ],
    );
}

#[test]
fn a_key_is_released_at_once_where_the_program_counts_releases() {
    let flags = DISAMBIGUATE | REPORT_EVENTS;
    check(
        flags,
        &[
            ("Up", "\x1b[A\x1b[1;1:3A"),
            ("C-c", "\x1b[99;5u\x1b[99;5:3u"),
            ("DC", "\x1b[3~\x1b[3;1:3~"),
            ("a", "a"),
            ("Enter", "\r"),
        ],
    );
    check(flags | REPORT_ALL, &[("a", "\x1b[97u\x1b[97;1:3u")]);
}

#[test]
fn flags_that_only_add_detail_leave_the_legacy_encoding() {
    let modes = InputModes { kitty_flags: REPORT_ALTERNATES, ..InputModes::default() };
    let pieces = encode_keys(&parse_keys("C-c").unwrap(), &modes);
    assert_eq!(pieces[0].bytes(), b"\x03");
}
