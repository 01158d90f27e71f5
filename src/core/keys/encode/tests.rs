//! Encodings of keys, from the manuals of xterm and tmux.

use super::*;
use crate::core::keys::parse::parse_keys;

const PLAIN: InputModes = InputModes {
    application_cursor: false,
    application_keypad: false,
    bracketed_paste: false,
    line_feed_new_line: false,
    mouse: crate::core::keys::modes::MouseReporting::Off,
    mouse_encoding: crate::core::keys::modes::MouseEncoding::Bytes,
    kitty_flags: 0,
};

fn check(modes: InputModes, cases: &[(&str, &str)]) {
    for (word, bytes) in cases {
        let keys = parse_keys(word).unwrap();
        let expected = [Piece::Key(bytes.as_bytes().to_vec())];
        assert_eq!(encode_keys(&keys, &modes), expected, "{word}");
    }
}

#[test]
fn characters_are_sent_as_utf8() {
    check(PLAIN, &[("a", "a"), ("A", "A"), (":", ":"), ("Space", " "), ("é", "é"), ("漢", "漢")]);
}

// VT100 user guide, table 3-5, and the superset of it that the kitty protocol page prints.
#[test]
fn ctrl_makes_control_characters() {
    check(
        PLAIN,
        &[
            ("C-a", "\x01"),
            ("C-c", "\x03"),
            ("C-d", "\x04"),
            ("C-h", "\x08"),
            ("C-l", "\x0c"),
            ("C-r", "\x12"),
            ("C-z", "\x1a"),
            ("C-C", "\x03"),
            ("^c", "\x03"),
            ("C-Space", "\0"),
            ("C-@", "\0"),
            ("C-2", "\0"),
            ("C-[", "\x1b"),
            ("C-3", "\x1b"),
            ("C-\\", "\x1c"),
            ("C-4", "\x1c"),
            ("C-]", "\x1d"),
            ("C-5", "\x1d"),
            ("C-^", "\x1e"),
            ("C-6", "\x1e"),
            ("C-_", "\x1f"),
            ("C-7", "\x1f"),
            ("C-/", "\x1f"),
            ("C-8", "\x7f"),
            ("C-?", "\x7f"),
        ],
    );
}

#[test]
fn ctrl_leaves_a_character_alone_that_has_no_control_character() {
    check(PLAIN, &[("C-1", "1"), ("C-9", "9"), ("C-=", "="), ("C-é", "é")]);
}

#[test]
fn alt_is_an_escape_before_the_key() {
    check(
        PLAIN,
        &[
            ("M-x", "\x1bx"),
            ("M-X", "\x1bX"),
            ("M-[", "\x1b["),
            ("C-M-x", "\x1b\x18"),
            ("M-Space", "\x1b "),
            ("C-M-Space", "\x1b\0"),
            ("M-é", "\x1bé"),
        ],
    );
}

#[test]
fn shift_types_what_a_us_keyboard_has_there() {
    check(PLAIN, &[("S-a", "A"), ("S-1", "!"), ("S-;", ":"), ("M-S-3", "\x1b#"), ("S-A", "A")]);
}

// The table "C0 controls" of the kitty protocol page, which is also what xterm sends.
#[test]
fn the_keys_with_control_characters_of_their_own_keep_them() {
    check(
        PLAIN,
        &[
            ("Enter", "\r"),
            ("C-Enter", "\r"),
            ("S-Enter", "\r"),
            ("M-Enter", "\x1b\r"),
            ("Escape", "\x1b"),
            ("C-Escape", "\x1b"),
            ("M-Escape", "\x1b\x1b"),
            ("BSpace", "\x7f"),
            ("C-BSpace", "\x08"),
            ("M-BSpace", "\x1b\x7f"),
            ("C-M-BSpace", "\x1b\x08"),
            ("Tab", "\t"),
            ("C-Tab", "\t"),
            ("M-Tab", "\x1b\t"),
            ("S-Tab", "\x1b[Z"),
            ("BTab", "\x1b[Z"),
            ("C-S-Tab", "\x1b[Z"),
            ("M-S-Tab", "\x1b\x1b[Z"),
        ],
    );
}

#[test]
fn enter_adds_a_line_feed_where_the_program_asked_for_it() {
    check(InputModes { line_feed_new_line: true, ..PLAIN }, &[("Enter", "\r\n"), ("C-m", "\r")]);
}

#[test]
fn cursor_keys_follow_the_cursor_key_mode() {
    let cases = [("Up", 'A'), ("Down", 'B'), ("Right", 'C'), ("Left", 'D'), ("Home", 'H')];
    for (word, letter) in cases.into_iter().chain([("End", 'F')]) {
        check(PLAIN, &[(word, &format!("\x1b[{letter}"))]);
        let application = InputModes { application_cursor: true, ..PLAIN };
        check(application, &[(word, &format!("\x1bO{letter}"))]);
        check(application, &[(&format!("C-{word}"), &format!("\x1b[1;5{letter}"))]);
    }
}

// xterm, "PC-Style Function Keys": 2 shift, 3 alt, 4 shift alt, 5 ctrl, 6 shift ctrl, 7 alt ctrl,
// 8 all three.
#[test]
fn modifiers_of_cursor_and_editing_keys_are_a_parameter() {
    check(
        PLAIN,
        &[
            ("S-Up", "\x1b[1;2A"),
            ("M-Down", "\x1b[1;3B"),
            ("M-S-Right", "\x1b[1;4C"),
            ("C-Left", "\x1b[1;5D"),
            ("C-S-Home", "\x1b[1;6H"),
            ("C-M-End", "\x1b[1;7F"),
            ("C-M-S-Up", "\x1b[1;8A"),
            ("IC", "\x1b[2~"),
            ("DC", "\x1b[3~"),
            ("PPage", "\x1b[5~"),
            ("NPage", "\x1b[6~"),
            ("C-DC", "\x1b[3;5~"),
            ("S-PPage", "\x1b[5;2~"),
        ],
    );
}

// xterm, "PC-Style Function Keys" for F1 to F12 and "VT220-Style Function Keys" for the rest.
#[test]
fn function_keys_have_the_numbers_of_xterm() {
    check(
        PLAIN,
        &[
            ("F1", "\x1bOP"),
            ("F2", "\x1bOQ"),
            ("F3", "\x1bOR"),
            ("F4", "\x1bOS"),
            ("F5", "\x1b[15~"),
            ("F6", "\x1b[17~"),
            ("F7", "\x1b[18~"),
            ("F8", "\x1b[19~"),
            ("F9", "\x1b[20~"),
            ("F10", "\x1b[21~"),
            ("F11", "\x1b[23~"),
            ("F12", "\x1b[24~"),
            ("F13", "\x1b[25~"),
            ("F14", "\x1b[26~"),
            ("F15", "\x1b[28~"),
            ("F16", "\x1b[29~"),
            ("F17", "\x1b[31~"),
            ("F18", "\x1b[32~"),
            ("F19", "\x1b[33~"),
            ("F20", "\x1b[34~"),
            ("S-F1", "\x1b[1;2P"),
            ("C-F4", "\x1b[1;5S"),
            ("C-F5", "\x1b[15;5~"),
            ("M-F12", "\x1b[24;3~"),
        ],
    );
}

// VT100 user guide, table 3-7.
#[test]
fn the_keypad_types_digits_or_names_its_keys() {
    let numeric = [
        ("KP0", "0"),
        ("KP9", "9"),
        ("KP.", "."),
        ("KP+", "+"),
        ("KPEnter", "\r"),
        ("M-KP5", "\x1b5"),
    ];
    check(PLAIN, &numeric);
    check(
        InputModes { application_keypad: true, ..PLAIN },
        &[
            ("KP0", "\x1bOp"),
            ("KP9", "\x1bOy"),
            ("KP.", "\x1bOn"),
            ("KP-", "\x1bOm"),
            ("KP+", "\x1bOk"),
            ("KP*", "\x1bOj"),
            ("KP/", "\x1bOo"),
            ("KPEnter", "\x1bOM"),
            ("Enter", "\r"),
        ],
    );
}

#[test]
fn each_key_is_a_piece_of_its_own() {
    let keys = parse_keys("Escape : w Enter").unwrap();
    let pieces = encode_keys(&keys, &PLAIN);
    let expected = ["\x1b", ":", "w", "\r"].map(|bytes| Piece::Key(bytes.as_bytes().to_vec()));
    assert_eq!(pieces, expected);
}
