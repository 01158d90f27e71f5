//! Names of keys, the bytes that they send, and pastes: bytes and pieces match, and nothing in a paste ends it.

use termgate::core::keys::encode::encode_keys;
use termgate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use termgate::core::keys::parse::{NAMES, parse_keys};
use termgate::core::keys::paste::{PasteRule, encode_text};
use termgate::core::keys::tokens::Tokenizer;
use termgate::core::keys::{KEYS_MAX, Key, KeyCode, KeyError, Modifiers, NamedKey, Piece};

use super::choices::Choices;

const ESCAPE: u8 = 0x1b;

/// The flag of the kitty protocol with which a release is a second sequence.
const REPORT_EVENTS: u8 = 1 << 1;

pub fn check(data: &[u8]) {
    let mut choices = Choices::of(data);
    check_split(data, &mut choices);
    // The first byte says which modes the program has set.
    let Some((modes, rest)) = data.split_first() else { return };
    let modes = modes_of(*modes);
    let text = String::from_utf8_lossy(rest);
    match parse_keys(&text) {
        Ok(keys) => check_keys(&keys, &modes),
        Err(error) => check_error(&error),
    }
    check_paste(&text, &modes);
}

fn modes_of(bits: u8) -> InputModes {
    let is_set = |bit: u8| bits & 1 << bit != 0;
    InputModes {
        application_cursor: is_set(0),
        application_keypad: is_set(1),
        bracketed_paste: is_set(2),
        line_feed_new_line: is_set(3),
        mouse: MouseReporting::Off,
        mouse_encoding: MouseEncoding::Bytes,
        kitty_flags: if is_set(4) { bits >> 5 | u8::from(is_set(3)) << 3 } else { 0 },
    }
}

fn check_error(error: &KeyError) {
    let told = error.to_string();
    assert!(told.len() < 1_000 && !told.contains(char::is_control), "{told:?}");
    match error {
        KeyError::Unknown { name, nearest } => {
            assert!(name.chars().count() <= KeyError::NAME_MAX && nearest.len() <= 3);
        }
        KeyError::TooMany { count } => assert!(*count > KEYS_MAX),
        KeyError::Empty => {}
    }
}

fn check_keys(keys: &[Key], modes: &InputModes) {
    assert!((1..=KEYS_MAX).contains(&keys.len()));
    let pieces = encode_keys(keys, modes);
    assert_eq!(pieces.len(), keys.len());
    for (key, piece) in keys.iter().zip(&pieces) {
        assert_eq!(parse_keys(&name_of(*key)).as_deref(), Ok(&[*key][..]));
        let Piece::Key(bytes) = piece else { panic!("{piece:?}") };
        assert!(!bytes.is_empty());
        if modes.kitty_flags == 0
            && let (KeyCode::Char(character), Modifiers::NONE) = (key.code, key.modifiers)
        {
            assert_eq!(*bytes, character.to_string().into_bytes());
        }
        let is_two = modes.line_feed_new_line && bytes.ends_with(b"\r\n")
            || modes.kitty_flags & REPORT_EVENTS != 0
            || bytes == &[ESCAPE, ESCAPE];
        let read = pieces_of(&[bytes]);
        assert!(is_two || read.len() == 1, "{key:?} sends {read:?}");
    }
}

/// A name of a key.
fn name_of(Key { code, modifiers }: Key) -> String {
    let held = [(modifiers.ctrl, "C-"), (modifiers.alt, "M-"), (modifiers.shift, "S-")];
    let mut name: String = held.iter().filter(|(held, _)| *held).map(|(_, name)| *name).collect();
    match code {
        KeyCode::Char(' ') => name.push_str("Space"),
        KeyCode::Char(character) => name.push(character),
        KeyCode::Named(named) => name.push_str(named_key(named)),
    }
    name
}

fn named_key(named: NamedKey) -> &'static str {
    let is_it = |(_, key): &&(&str, Key)| {
        key.code == KeyCode::Named(named) && key.modifiers == Modifiers::NONE
    };
    NAMES.iter().find(is_it).expect("each key has a name").0
}

fn check_paste(text: &str, modes: &InputModes) {
    let pieces = encode_text(text, PasteRule::Always, false, modes);
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
    if bytes.is_empty() {
        return;
    }
    let inside = bytes
        .strip_prefix(Piece::PASTE_START)
        .and_then(|rest| rest.strip_suffix(Piece::PASTE_END))
        .expect("a paste has a start and an end");
    let ends = |end: &[u8]| inside.windows(end.len()).any(|it| it == end);
    assert!(!ends(Piece::PASTE_END) && !ends("\u{9b}201~".as_bytes()), "{text:?}");
    assert!(!inside.contains(&b'\n'));
    let read = pieces_of(&[&bytes]);
    assert_eq!((read.first(), read.last()), (Some(&Piece::PasteStart), Some(&Piece::PasteEnd)));
    assert!(read[1..read.len() - 1].iter().all(|piece| matches!(piece, Piece::Text(_))));
}

/// Checks that bytes that a person types give the same pieces however they arrive.
fn check_split(data: &[u8], choices: &mut Choices) {
    let whole = pieces_of(&[data]);
    let cut = pieces_of(&choices.pieces(data));
    let bytes = |pieces: &[Piece]| -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()
    };
    assert_eq!(bytes(&whole), data);
    assert_eq!(bytes(&cut), data);
    // A sequence that is longer than what is held ends where the input does, and two escapes are two keys unless the
    // rest of a sequence came with them.
    let is_parameter = |byte: &u8| matches!(byte, 0x20..=0x3f);
    let mut runs = data.chunk_by(|one, other| is_parameter(one) && is_parameter(other));
    let is_short = runs.all(|run| run.len() < Tokenizer::HELD_MAX / 2);
    if is_short && !data.windows(2).any(|two| two == [ESCAPE, ESCAPE]) {
        assert_eq!(cut, whole);
    }
}

/// The pieces of an input, with texts that follow each other as one.
fn pieces_of(calls: &[&[u8]]) -> Vec<Piece> {
    let mut tokens = Tokenizer::default();
    let mut all: Vec<Piece> = Vec::new();
    let mut pieces: Vec<Piece> = calls.iter().flat_map(|bytes| tokens.feed(bytes)).collect();
    pieces.extend(tokens.flush());
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(more)) => before.extend(more),
            (_, piece) => all.push(piece),
        }
    }
    all
}
