//! Key names as people and models write them.

use proptest::prelude::*;

use super::*;
use crate::core::keys::{FunctionKey, KeyCode, NamedKey};

const CTRL_ALT: Modifiers = Modifiers { ctrl: true, alt: true, shift: false };
const CTRL_SHIFT: Modifiers = Modifiers { ctrl: true, alt: false, shift: true };

fn character(character: char, modifiers: Modifiers) -> Key {
    Key { code: KeyCode::Char(character), modifiers }
}

fn named(named: NamedKey, modifiers: Modifiers) -> Key {
    Key { code: KeyCode::Named(named), modifiers }
}

fn function(number: u8) -> NamedKey {
    NamedKey::Function(FunctionKey::new(number).unwrap())
}

fn keypad(name: &str) -> Key {
    Key::named(name, Modifiers::NONE).unwrap()
}

fn check(cases: &[(&str, Key)]) {
    for (word, key) in cases {
        assert_eq!(parse_keys(word), Ok(vec![*key]), "{word}");
    }
}

fn nearest(word: &str) -> Vec<&'static str> {
    match parse_keys(word) {
        Err(KeyError::Unknown { nearest, .. }) => nearest,
        other => panic!("{word} gave {other:?}"),
    }
}

#[test]
fn keys_are_named_as_in_tmux() {
    check(&[
        ("C-c", character('c', Modifiers::CTRL)),
        ("c-c", character('c', Modifiers::CTRL)),
        ("C-M-x", character('x', CTRL_ALT)),
        ("M-x", character('x', Modifiers::ALT)),
        ("M-X", character('X', Modifiers::ALT)),
        ("S-Up", named(NamedKey::Up, Modifiers::SHIFT)),
        ("C-Space", character(' ', Modifiers::CTRL)),
        ("C-@", character('@', Modifiers::CTRL)),
        ("BTab", named(NamedKey::Tab, Modifiers::SHIFT)),
        ("BSpace", named(NamedKey::Backspace, Modifiers::NONE)),
        ("DC", named(NamedKey::Delete, Modifiers::NONE)),
        ("IC", named(NamedKey::Insert, Modifiers::NONE)),
        ("NPage", named(NamedKey::PageDown, Modifiers::NONE)),
        ("PgDn", named(NamedKey::PageDown, Modifiers::NONE)),
        ("PPage", named(NamedKey::PageUp, Modifiers::NONE)),
        ("PgUp", named(NamedKey::PageUp, Modifiers::NONE)),
        ("F1", named(function(1), Modifiers::NONE)),
        ("C-F20", named(function(20), Modifiers::CTRL)),
        ("KPEnter", keypad("KPEnter")),
        ("KP/", keypad("KPDivide")),
        ("KP-", keypad("KPSubtract")),
        ("KP+", keypad("KPAdd")),
    ]);
}

#[test]
fn keys_are_named_as_in_silc() {
    check(&[
        ("ctrl+c", character('c', Modifiers::CTRL)),
        ("Ctrl+D", character('D', Modifiers::CTRL)),
        ("alt+x", character('x', Modifiers::ALT)),
        ("shift+tab", named(NamedKey::Tab, Modifiers::SHIFT)),
        ("ctrl+shift+up", named(NamedKey::Up, CTRL_SHIFT)),
        ("ctrl-alt-delete", named(NamedKey::Delete, CTRL_ALT)),
        ("enter", Key::ENTER),
        ("escape", named(NamedKey::Escape, Modifiers::NONE)),
        ("esc", named(NamedKey::Escape, Modifiers::NONE)),
        ("backspace", named(NamedKey::Backspace, Modifiers::NONE)),
        ("del", named(NamedKey::Delete, Modifiers::NONE)),
        ("home", named(NamedKey::Home, Modifiers::NONE)),
        ("Page_Down", named(NamedKey::PageDown, Modifiers::NONE)),
    ]);
}

#[test]
fn a_caret_before_a_key_is_ctrl_and_alone_is_itself() {
    check(&[
        ("^c", character('c', Modifiers::CTRL)),
        ("^[", character('[', Modifiers::CTRL)),
        ("^^", character('^', Modifiers::CTRL)),
        ("^", character('^', Modifiers::NONE)),
    ]);
}

#[test]
fn single_characters_are_themselves_and_keep_their_case() {
    check(&[
        ("a", character('a', Modifiers::NONE)),
        ("A", character('A', Modifiers::NONE)),
        (":", character(':', Modifiers::NONE)),
        ("-", character('-', Modifiers::NONE)),
        ("+", character('+', Modifiers::NONE)),
        ("_", character('_', Modifiers::NONE)),
        ("é", character('é', Modifiers::NONE)),
        ("漢", character('漢', Modifiers::NONE)),
    ]);
}

#[test]
fn a_separator_can_be_the_key_that_is_modified() {
    check(&[
        ("C--", character('-', Modifiers::CTRL)),
        ("ctrl++", character('+', Modifiers::CTRL)),
        ("ctrl+-", character('-', Modifiers::CTRL)),
    ]);
}

#[test]
fn a_list_keeps_its_order_whatever_blanks_separate_it() {
    let keys = parse_keys("  Escape\t: w q\nEnter ").unwrap();
    let escape = named(NamedKey::Escape, Modifiers::NONE);
    let typed = [':', 'w', 'q'].map(|letter| character(letter, Modifiers::NONE));
    assert_eq!(keys, [escape, typed[0], typed[1], typed[2], Key::ENTER]);
}

#[test]
fn a_word_that_is_no_key_is_refused_and_never_typed() {
    for word in ["ls", "C-", "M-C-", "ctrl+", "C-cc", "F0", "F21", "F99", "C-ls", "\u{7f}", "^^^"] {
        let refused = parse_keys(&format!("a {word} b"));
        assert!(matches!(refused, Err(KeyError::Unknown { .. })), "{word} gave {refused:?}");
    }
}

#[test]
fn an_unknown_name_comes_with_the_nearest_ones() {
    assert_eq!(nearest("Entr").first(), Some(&"Enter"));
    assert_eq!(nearest("C-Entre").first(), Some(&"Enter"));
    assert_eq!(nearest("pagedwon").first(), Some(&"PageDown"));
    assert_eq!(nearest("ctlr+c"), ["ctrl"]);
    assert_eq!(nearest("supercalifragilistic"), Vec::<&str>::new());
}

#[test]
fn the_message_of_an_unknown_name_names_the_nearest_key() {
    let error = parse_keys("Entr").unwrap_err().to_string();
    assert_eq!(error, "unknown key \"Entr\" (did you mean Enter?)");
}

#[test]
fn a_long_unknown_word_is_not_repeated_in_full() {
    let error = parse_keys(&"x".repeat(100_000)).unwrap_err().to_string();
    assert!(error.len() < 200, "{error}");
}

#[test]
fn an_empty_list_is_refused() {
    assert_eq!(parse_keys(""), Err(KeyError::Empty));
    assert_eq!(parse_keys(" \t\n"), Err(KeyError::Empty));
    assert_eq!(parse_keys(" "), parse_keys("Space"));
}

#[test]
fn a_thousand_keys_are_taken_and_one_more_is_too_many() {
    let most = "a ".repeat(KEYS_MAX);
    assert_eq!(parse_keys(&most).map(|keys| keys.len()), Ok(KEYS_MAX));
    let refused = parse_keys(&format!("{most} a"));
    assert_eq!(refused, Err(KeyError::TooMany { count: KEYS_MAX + 1 }));
}

#[test]
fn the_list_form_takes_a_name_or_a_character_with_modifiers() {
    let up = Key::named("up", CTRL_SHIFT);
    assert_eq!(up, Ok(named(NamedKey::Up, CTRL_SHIFT)));
    let x = Key::character('x', Modifiers::ALT);
    assert_eq!(x, Ok(character('x', Modifiers::ALT)));
    assert!(matches!(Key::named("C-c", Modifiers::NONE), Err(KeyError::Unknown { .. })));
}

#[test]
fn a_control_character_is_no_key_but_names_the_one_that_sends_it() {
    let refused = Key::character('\n', Modifiers::NONE);
    let Err(KeyError::Unknown { nearest, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(nearest, ["Enter"]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".*") {
        let _ = parse_keys(&text);
    }

    #[test]
    fn nothing_that_looks_like_a_key_makes_the_parser_panic(
        text in "(\\^|C-|M-|S-|ctrl\\+|alt-|shift\\+|[a-zA-Z+_^-]|Enter|KP|F[0-9]| |é){0,12}",
    ) {
        let _ = parse_keys(&text);
    }

    #[test]
    fn a_single_character_with_tmux_modifiers_is_that_character(
        letter in "[!-~]",
        prefix in "(C-)?(M-)?(S-)?",
    ) {
        let word = format!("{prefix}{letter}");
        let keys = parse_keys(&word).unwrap();
        prop_assert_eq!(keys.len(), 1);
        let code = KeyCode::Char(letter.chars().next().unwrap());
        prop_assert_eq!(keys[0].code, code);
        prop_assert_eq!(keys[0].modifiers.ctrl, prefix.contains('C'));
        prop_assert_eq!(keys[0].modifiers.alt, prefix.contains('M'));
        prop_assert_eq!(keys[0].modifiers.shift, prefix.contains('S'));
    }
}

#[test]
fn no_spelling_stands_for_two_keys() {
    for (name, key) in NAMES {
        assert_eq!(lookup(name), Some(key), "{name}");
        assert_eq!(lookup(&name.to_lowercase()), Some(key), "{name}");
        assert_eq!(lookup(&name.to_uppercase()), Some(key), "{name}");
    }
}
