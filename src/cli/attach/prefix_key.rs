//! Separates the person's input for the program from the chords for termgate.
//!
//! A chord is the prefix key and one more key, in any encoding of the person's terminal. All other input
//! stays unchanged.

use std::time::Duration;

use crate::cli::attach::key_list::KeyList;
use crate::cli::attach::pointer::PointerReport;
use crate::core::keys::control::ControlKey;
use crate::core::keys::tokens::Tokenizer;
use crate::core::keys::{ESCAPE, Piece};

/// A part of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedPart {
    /// Input for the program.
    Bytes(Vec<u8>),
    /// For the program too, but it does not count as typing: a key release, a modifier alone, or a report
    /// that the window gained or lost the focus.
    Aside(Vec<u8>),
    /// A pointer report, with a place of the person's terminal.
    Pointer(PointerReport),
    /// A command for termgate.
    Order(ChordCommand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChordCommand {
    Detach,
    TakeOver,
    HandBack,
    Scrollback,
    /// Let the call pass that waits for an approval.
    Approve,
    Deny,
    /// The second key has no command.
    Unknown,
}

/// The keys of one chord, which may both still be down.
const OURS_MAX: usize = 2;

/// How long a lone Escape waits for the rest of a sequence.
const ESCAPE_TIME: Duration = Duration::from_millis(15);
/// How long an open paste may be silent.
const PASTE_TIME: Duration = Duration::from_secs(1);

/// What covers the screen until the next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    /// This page of the list of keys, which `?` turns over.
    Keys(usize),
    /// This page of the call that waits for an approval.
    Call(usize),
}

/// Takes chords out of the input, which may be split anywhere.
#[derive(Debug, Default)]
pub struct Chords {
    prefix: ControlKey,
    tokens: Tokenizer,
    /// Whether the first key of a chord was typed.
    begun: bool,
    /// What covers the screen. A key that is no chord closes it and does nothing else.
    cover: Option<Cover>,
    /// Whether the program has an open paste.
    in_paste: bool,
    /// Keys of a chord, whose repeats and releases the program must not get.
    ours: Vec<TypedKey>,
    out: Vec<TypedPart>,
}

impl Chords {
    /// Chords that begin with this key.
    pub fn with_prefix(prefix: ControlKey) -> Self {
        Self { prefix, ..Self::default() }
    }

    pub fn prefix(&self) -> ControlKey {
        self.prefix
    }

    /// Adds input and returns its parts.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<TypedPart> {
        for piece in self.tokens.feed(bytes) {
            self.take(&piece);
        }
        std::mem::take(&mut self.out)
    }

    /// How long incomplete input may wait before [`Chords::flush`] is due. A lone Escape looks like the
    /// start of a sequence, and the end of a paste may be lost.
    pub fn patience(&self) -> Option<Duration> {
        match (self.in_paste, self.tokens.is_holding()) {
            (true, _) => Some(PASTE_TIME),
            (false, true) => Some(ESCAPE_TIME),
            (false, false) => None,
        }
    }

    /// The list of keys to show: the person asked for it, or typed the first key of a chord.
    pub fn key_list(&self) -> Option<KeyList> {
        match self.cover {
            // Who decides a call keeps seeing it.
            Some(Cover::Call(_)) => None,
            Some(Cover::Keys(_)) | None if self.begun => Some(KeyList::Names),
            Some(Cover::Keys(page)) => Some(KeyList::Explained(page)),
            None => None,
        }
    }

    /// The page of the waiting call to show, from 0.
    pub fn call_page(&self) -> Option<usize> {
        match self.cover {
            Some(Cover::Call(page)) => Some(page),
            Some(Cover::Keys(_)) | None => None,
        }
    }

    /// Shows this page of the waiting call until the next key.
    pub fn show_call(&mut self, page: usize) {
        self.cover = Some(Cover::Call(page));
    }

    /// Closes what covers the screen, such as a list that has no such page.
    pub fn uncover(&mut self) {
        self.cover = None;
    }

    /// Treats incomplete input as complete, after the wait. This ends an open paste.
    pub fn flush(&mut self) -> Vec<TypedPart> {
        if let Some(piece) = self.tokens.flush() {
            self.take(&piece);
        }
        if self.in_paste {
            self.tokens = Tokenizer::default();
            self.take(&Piece::PasteEnd);
        }
        std::mem::take(&mut self.out)
    }

    fn take(&mut self, piece: &Piece) {
        match piece {
            Piece::PasteStart | Piece::PasteEnd => {
                self.in_paste = *piece == Piece::PasteStart;
                // A paste is not a key that closes the list, and it must not be lost.
                self.cover = None;
                self.pass(piece.bytes());
            }
            Piece::Text(text) if self.in_paste => self.pass(text),
            Piece::Text(text) => {
                for part in text.utf8_chunks() {
                    let valid = part.valid().split_inclusive(|_| true).map(str::as_bytes);
                    valid.chain(part.invalid().chunks(1)).for_each(|key| self.on_key(key));
                }
            }
            // The end of a paste that already ended has no effect.
            Piece::Key(key) if key == Piece::PASTE_END => {}
            // Escape and the prefix key arrived in one read.
            Piece::Key(key) if **key == [ESCAPE, self.prefix.byte()] => {
                self.on_key(&key[..1]);
                self.on_key(&key[1..]);
            }
            Piece::Key(key) => self.on_key(key),
        }
    }

    fn on_key(&mut self, token: &[u8]) {
        match Happening::of(token) {
            Happening::Press(key) => self.on_press(key, token),
            Happening::Repeat(key) if self.is_ours(key) => {}
            Happening::Release(key) if self.is_ours(key) => self.disown(key),
            Happening::Release(_) | Happening::Aside => self.pass_aside(token),
            Happening::Repeat(_) => self.pass(token),
            Happening::Pointer(report) if report.is_press() && self.cover.is_some() => {
                self.cover = None;
            }
            Happening::Pointer(report) => self.out.push(TypedPart::Pointer(report)),
        }
    }

    fn on_press(&mut self, key: TypedKey, token: &[u8]) {
        self.disown(key);
        let cover = std::mem::take(&mut self.cover);
        // The chord may be the one that decides the call.
        let call = cover.filter(|cover| matches!(cover, Cover::Call(_)));
        match (std::mem::take(&mut self.begun), key.is(self.prefix)) {
            (false, true) => {
                (self.begun, self.cover) = (true, call);
                self.own(key);
            }
            (false, false) if let Some(cover) = cover => {
                self.cover = match cover {
                    Cover::Keys(page) if key.meaning() == Meaning::List => {
                        Some(Cover::Keys(page + 1))
                    }
                    Cover::Keys(_) | Cover::Call(_) => None,
                };
                self.own(key);
            }
            (false, false) | (true, true) => self.pass(token),
            (true, false) => {
                self.own(key);
                match key.meaning() {
                    Meaning::List => self.cover = Some(Cover::Keys(0)),
                    Meaning::Order(order) => {
                        self.cover = call.filter(|_| order == ChordCommand::Approve);
                        self.out.push(TypedPart::Order(order));
                    }
                }
            }
        }
    }

    fn own(&mut self, key: TypedKey) {
        // Without a bound this would grow on terminals that do not report releases.
        if self.ours.len() == OURS_MAX {
            self.ours.remove(0);
        }
        self.ours.push(key);
    }

    fn disown(&mut self, key: TypedKey) {
        self.ours.retain(|our| !our.is_same_as(key));
    }

    fn is_ours(&self, key: TypedKey) -> bool {
        self.ours.iter().any(|our| our.is_same_as(key))
    }

    fn pass(&mut self, token: &[u8]) {
        match self.out.last_mut() {
            Some(TypedPart::Bytes(bytes)) => bytes.extend_from_slice(token),
            Some(TypedPart::Aside(_) | TypedPart::Pointer(_) | TypedPart::Order(_)) | None => {
                self.out.push(TypedPart::Bytes(token.to_vec()));
            }
        }
    }

    fn pass_aside(&mut self, token: &[u8]) {
        match self.out.last_mut() {
            // It is sent together with the typed input before it.
            Some(TypedPart::Bytes(bytes) | TypedPart::Aside(bytes)) => {
                bytes.extend_from_slice(token)
            }
            Some(TypedPart::Pointer(_) | TypedPart::Order(_)) | None => {
                self.out.push(TypedPart::Aside(token.to_vec()))
            }
        }
    }
}

/// Modifiers are encoded as one more than the sum of their bits. The locks have higher bits.
const SHIFT: u32 = 1;
const CONTROL: u32 = 4;
const LOCKS: u32 = 64 | 128;

const REPEAT: u32 = 2;
const RELEASE: u32 = 3;

/// The event in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    Press(TypedKey),
    Repeat(TypedKey),
    Release(TypedKey),
    Pointer(PointerReport),
    /// A modifier alone, or the focus of the window.
    Aside,
}

/// A key with the modifiers that were down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedKey {
    /// The key's number, and the final byte of its sequence.
    name: (u32, u8),
    /// The character that it types without Control, if any.
    character: Option<char>,
    modifiers: u32,
}

impl Happening {
    /// Parses a token. A token that is not a key counts as an unknown key.
    pub fn of(token: &[u8]) -> Self {
        match token {
            [byte @ (1..=26 | 28..=31)] => Self::Press(TypedKey::control(*byte)),
            [byte] => Self::Press(TypedKey::plain(*byte)),
            // A report without a valid place has no meaning.
            [0x1b, b'[', b'M', ..] | [0x1b, b'[', b'<', .., b'M' | b'm'] => {
                PointerReport::of(token).map_or(Self::Aside, Self::Pointer)
            }
            [0x1b, b'[', b'I' | b'O'] => Self::Aside,
            [0x1b, b'[', body @ .., last] => Self::of_sequence(&Fields::of(body), *last),
            _ => Self::Press(TypedKey { name: (0, 0), character: None, modifiers: 0 }),
        }
    }

    fn of_sequence(fields: &Fields<'_>, last: u8) -> Self {
        if last == b'u' && fields.number(0, 0).is_some_and(is_modifier) {
            return Self::Aside;
        }
        let key = TypedKey::of_sequence(fields, last);
        match fields.number(1, 1) {
            Some(REPEAT) => Self::Repeat(key),
            Some(RELEASE) => Self::Release(key),
            Some(_) | None => Self::Press(key),
        }
    }
}

/// Whether a kitty code is that of a lock or a modifier.
fn is_modifier(code: u32) -> bool {
    (57_358..=57_360).contains(&code) || (57_441..=57_454).contains(&code)
}

impl TypedKey {
    fn plain(byte: u8) -> Self {
        let character = byte.is_ascii_graphic().then_some(char::from(byte));
        Self { name: (u32::from(byte), b'u'), character, modifiers: 0 }
    }

    /// The key that sends this control character. Enter, Tab and Backspace count as keys with Control.
    fn control(byte: u8) -> Self {
        let character = (byte | 0x40).to_ascii_lowercase();
        Self { modifiers: CONTROL, ..Self::plain(character) }
    }

    fn of_sequence(fields: &Fields<'_>, last: u8) -> Self {
        let modifiers = fields.number(1, 0).unwrap_or(1).saturating_sub(1) & !LOCKS;
        let first = fields.number(0, 0).unwrap_or(1);
        if last == b'~' && first == 27 {
            let code = fields.number(2, 0).unwrap_or_default();
            return Self { name: (code, b'u'), character: char::from_u32(code), modifiers };
        }
        let typed = || {
            let shifted = fields.number(0, 1).filter(|_| modifiers & SHIFT != 0);
            // A non-Latin keyboard also reports the Latin key in the same place.
            let base = fields.number(0, 2).filter(|_| first > 127);
            let code = fields.number(2, 0).or(shifted).or(base).unwrap_or(first);
            char::from_u32(code)
        };
        let character = if last == b'u' { typed() } else { None };
        Self { name: (first, last), character, modifiers }
    }

    /// Whether it is the same key, regardless of modifiers.
    pub fn is_same_as(self, other: Self) -> bool {
        self.name == other.name
    }

    fn is(self, prefix: ControlKey) -> bool {
        let character = self.character.map(|character| character.to_ascii_lowercase());
        self.modifiers & !SHIFT == CONTROL && character == Some(prefix.character())
    }

    /// Its meaning as the second key of a chord.
    pub fn meaning(self) -> Meaning {
        const PAGE_UP: (u32, u8) = (5, b'~');
        if self.name == PAGE_UP {
            return Meaning::Order(ChordCommand::Scrollback);
        }
        let shift = self.modifiers & SHIFT != 0;
        let character = self.character.filter(|_| self.modifiers & !SHIFT == 0);
        Meaning::Order(match character.map(|character| character.to_ascii_lowercase()) {
            Some('?') => return Meaning::List,
            // Some terminals do not report the shifted character of a key.
            Some('/') if shift => return Meaning::List,
            Some('d') => ChordCommand::Detach,
            Some('t') => ChordCommand::TakeOver,
            Some('h') => ChordCommand::HandBack,
            Some('[') => ChordCommand::Scrollback,
            Some('y') => ChordCommand::Approve,
            Some('n') => ChordCommand::Deny,
            Some(_) | None => ChordCommand::Unknown,
        })
    }
}

/// The meaning of the second key of a chord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Show the list of keys.
    List,
    Order(ChordCommand),
}

struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn of(body: &'a [u8]) -> Self {
        Self(std::str::from_utf8(body).unwrap_or_default())
    }

    fn number(&self, field: usize, part: usize) -> Option<u32> {
        self.0.split(';').nth(field)?.split(':').nth(part)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> TypedPart {
        TypedPart::Bytes(bytes.to_vec())
    }

    fn aside(bytes: &[u8]) -> TypedPart {
        TypedPart::Aside(bytes.to_vec())
    }

    fn pointer(token: &[u8]) -> TypedPart {
        TypedPart::Pointer(PointerReport::of(token).expect("a report"))
    }

    /// What the pieces mean, with neighbours joined.
    fn fed(pieces: &[&[u8]]) -> Vec<TypedPart> {
        let mut chords = Chords::default();
        let mut all: Vec<TypedPart> = Vec::new();
        let fed = pieces.iter().flat_map(|piece| chords.feed(piece)).collect::<Vec<_>>();
        for typed in fed.into_iter().chain(chords.flush()) {
            match (all.last_mut(), typed) {
                (
                    Some(TypedPart::Bytes(before)),
                    TypedPart::Bytes(more) | TypedPart::Aside(more),
                )
                | (Some(TypedPart::Aside(before)), TypedPart::Aside(more)) => before.extend(more),
                (_, typed) => all.push(typed),
            }
        }
        all
    }

    /// The same whole, cut at every byte, and byte by byte.
    fn check(typed: &[u8], means: &[TypedPart]) {
        assert_eq!(fed(&[typed]), means, "{typed:?}");
        for at in 0..=typed.len() {
            assert_eq!(fed(&[&typed[..at], &typed[at..]]), means, "{typed:?} cut at {at}");
        }
        let single: Vec<&[u8]> = typed.chunks(1).collect();
        assert_eq!(fed(&single), means, "{typed:?} byte by byte");
    }

    #[test]
    fn a_character_is_passed_on_as_a_whole_and_what_is_none_at_last_too() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed("a€".as_bytes().split_at(3).0), [bytes(b"a")]);
        assert_eq!(chords.feed(b"\xacb"), [bytes("€b".as_bytes())]);
        assert_eq!(chords.feed(b"\x1b[200~\xf0\x9f\xa6"), [bytes(b"\x1b[200~")]);
        assert_eq!(chords.feed(b"\x80\x1b[201~"), [bytes("🦀\x1b[201~".as_bytes())]);
        assert_eq!(chords.feed(b"\xe9"), []);
        assert_eq!(chords.patience(), Some(ESCAPE_TIME));
        assert_eq!(chords.flush(), [bytes(b"\xe9")]);
        assert_eq!(chords.feed(b"\x80\x80\x80\x80"), [bytes(b"\x80\x80\x80\x80")]);
    }

    #[test]
    fn each_chord_is_known_in_every_encoding() {
        const FIRST: [&[u8]; 9] = [
            b"\x1c",
            b"\x1b[92;5u",
            b"\x1b[92;5:1u",
            b"\x1b[92:124;5u",
            // With caps lock and num lock on.
            b"\x1b[92;69u",
            b"\x1b[92;133u",
            b"\x1b[27;5;92~",
            // On a keyboard of another script, and on one where it takes Shift.
            b"\x1b[1101::92;5u",
            b"\x1b[39:92;6u",
        ];
        const SECOND: [(&[u8], ChordCommand); 11] = [
            (b"d", ChordCommand::Detach),
            (b"\x1b[100u", ChordCommand::Detach),
            (b"\x1b[100;1:1u", ChordCommand::Detach),
            (b"t", ChordCommand::TakeOver),
            (b"h", ChordCommand::HandBack),
            (b"[", ChordCommand::Scrollback),
            (b"\x1b[5~", ChordCommand::Scrollback),
            (b"x", ChordCommand::Unknown),
            // With caps lock on.
            (b"D", ChordCommand::Detach),
            (b"\x1b[100;65u", ChordCommand::Detach),
            (b"\x1b[100;5u", ChordCommand::Unknown),
        ];
        for first in FIRST {
            for (second, order) in SECOND {
                let typed = [b"a", first, second, b"b"].concat();
                check(&typed, &[bytes(b"a"), TypedPart::Order(order), bytes(b"b")]);
            }
        }
    }

    #[test]
    fn the_first_key_twice_is_typed_once() {
        for key in [&b"\x1c"[..], b"\x1b[92;5u"] {
            let twice = [key, key].concat();
            check(&twice, &[bytes(key)]);
        }
    }

    #[test]
    fn the_program_is_not_told_that_keys_of_a_chord_are_held_or_come_up() {
        let detach = [TypedPart::Order(ChordCommand::Detach)];
        check(b"\x1b[92;5u\x1b[92;5:3ud", &detach);
        check(b"\x1b[92;5u\x1b[92;5:2u\x1b[92;5:2ud", &detach);
        check(b"\x1b[92;5:1u\x1b[100;1:1u\x1b[92;1:3u\x1b[100;1:2u\x1b[100;1:3u", &detach);
        check(b"\x1cd\x1b[100;1:3u", &detach);
    }

    #[test]
    fn a_key_of_a_chord_is_the_programs_again_when_it_is_pressed_anew() {
        let again = b"\x1b[100;1:1u\x1b[100;1:3u";
        check(
            &[&b"\x1cd"[..], again].concat(),
            &[TypedPart::Order(ChordCommand::Detach), bytes(again)],
        );
        let literal = b"\x1b[92;5:1u\x1b[92;5:3u";
        check(&[&literal[..], literal].concat(), &[bytes(literal)]);
    }

    #[test]
    fn what_is_not_meant_to_be_typed_is_told_apart() {
        for apart in [
            // A key that comes up, and Control going down.
            &b"\x1b[97;1:3u"[..],
            b"\x1b[57442;5u",
            b"\x1b[57442;5:3u",
            // The window gained the focus, and lost it.
            b"\x1b[I",
            b"\x1b[O",
        ] {
            check(apart, &[aside(apart)]);
        }
        let moves = |token| PointerReport::of(token).expect("a report").hovers();
        for apart in [&b"\x1b[<35;10;20M"[..], b"\x1b[<39;10;20M", b"\x1b[MC!!"] {
            check(apart, &[pointer(apart)]);
            assert!(moves(apart), "{apart:?}");
        }
        for meant in [&b"\x1b[<0;10;20M"[..], b"\x1b[<32;1;1M", b"\x1b[<67;1;1M", b"\x1b[M !!"] {
            check(meant, &[pointer(meant)]);
            assert!(!moves(meant), "{meant:?}");
        }
    }

    #[test]
    fn a_chord_waits_for_its_key_whatever_the_pointer_and_modifiers_do() {
        let click = b"\x1b[<0;1;1M";
        check(
            &[&b"\x1c"[..], click, b"d"].concat(),
            &[pointer(click), TypedPart::Order(ChordCommand::Detach)],
        );
        let shift = b"\x1b[57441;2u";
        check(&[&b"\x1b[92;5u"[..], shift, b"\x1b[47;2u"].concat(), &[aside(shift)]);
    }

    /// What is typed while the list is shown, and whether it is shown then.
    fn while_listing(typed: &[u8]) -> (Vec<TypedPart>, bool) {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1c?"), []);
        assert!(chords.key_list().is_some());
        let mut out = chords.feed(typed);
        out.extend(chords.flush());
        (out, chords.key_list().is_some())
    }

    #[test]
    fn a_question_mark_turns_the_page_of_the_list_and_the_list_closes_behind_its_last() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1c"), []);
        assert_eq!(chords.key_list(), Some(KeyList::Names));
        for page in 0..3 {
            assert_eq!(chords.feed(b"?"), []);
            assert_eq!(chords.key_list(), Some(KeyList::Explained(page)));
        }
        chords.uncover();
        assert_eq!((chords.feed(b"?"), chords.key_list()), (vec![bytes(b"?")], None));
    }

    #[test]
    fn a_call_is_shown_until_a_key_that_is_not_about_approving_it() {
        let approve = || vec![TypedPart::Order(ChordCommand::Approve)];
        let deny = || vec![TypedPart::Order(ChordCommand::Deny)];
        for (typed, means, is_shown) in [
            (&b"\x1c"[..], vec![], true),
            (b"\x1cy", approve(), true),
            (b"\x1cn", deny(), false),
            (b"q", vec![], false),
            (b"?", vec![], false),
            (b"\x1c?", vec![], false),
            (b"\x1b[<0;1;1M", vec![], false),
            (b"\x1c\x1c", vec![bytes(b"\x1c")], false),
        ] {
            let mut chords = Chords::default();
            chords.show_call(2);
            assert_eq!((chords.call_page(), chords.key_list()), (Some(2), None));
            assert_eq!(chords.feed(typed), means, "{typed:?}");
            assert_eq!(chords.call_page().is_some(), is_shown, "{typed:?}");
        }
    }

    #[test]
    fn another_prefix_begins_chords_instead_and_is_typed_when_it_comes_twice() {
        let mut chords = Chords::with_prefix("C-a".parse().unwrap());
        for typed in [&b"\x01d"[..], b"\x1b[97;5ud", b"\x1b[65;6ud", b"\x1b[27;5;97~d"] {
            assert_eq!(chords.feed(typed), [TypedPart::Order(ChordCommand::Detach)], "{typed:?}");
        }
        assert_eq!(chords.feed(b"\x01\x01\x1cd\x02"), [bytes(b"\x01\x1cd\x02")]);
        assert_eq!(chords.feed(b"\x1b\x01d")[1..], [TypedPart::Order(ChordCommand::Detach)]);
    }

    #[test]
    fn the_list_of_keys_is_asked_for_in_every_encoding() {
        // What Shift makes of the key is told as another key of it, as its text, or not at all.
        for asked in [&b"?"[..], b"\x1b[47:63;2u", b"\x1b[223;2;63u", b"\x1b[47;2u"] {
            let mut chords = Chords::default();
            assert_eq!(chords.feed(&[b"\x1c", asked].concat()), [], "{asked:?}");
            assert!(chords.key_list().is_some(), "{asked:?}");
        }
    }

    #[test]
    fn the_next_key_closes_the_list_and_is_typed_to_nobody() {
        for key in [
            &b"q"[..],
            b"\r",
            b"\x1b[A",
            b"\x1bOA",
            b"\x1bx",
            "\u{e9}".as_bytes(),
            "\u{1f600}".as_bytes(),
            b"\x1b[97;1:1u\x1b[97;1:3u",
            b"\x1b[<0;1;1M",
        ] {
            assert_eq!(while_listing(key), (vec![], false), "{key:?}");
            let more = [key, b"z"].concat();
            assert_eq!(while_listing(&more), (vec![bytes(b"z")], false), "{key:?}");
        }
    }

    #[test]
    fn escape_closes_the_list_and_the_key_after_it_is_typed() {
        let mut chords = Chords::default();
        chords.feed(b"\x1c?\x1b");
        assert_eq!((chords.flush(), chords.key_list().is_some()), (vec![], false));
        assert_eq!(chords.feed(b"z"), [bytes(b"z")]);
    }

    #[test]
    fn a_chord_acts_while_the_list_is_shown_and_closes_it() {
        assert_eq!(while_listing(b"\x1cd"), (vec![TypedPart::Order(ChordCommand::Detach)], false));
        assert_eq!(
            while_listing(b"\x1c["),
            (vec![TypedPart::Order(ChordCommand::Scrollback)], false)
        );
        assert_eq!(while_listing(b"\x1c?"), (vec![], true));
        assert_eq!(while_listing(b"\x1c\x1c"), (vec![bytes(b"\x1c")], false));
    }

    #[test]
    fn a_paste_closes_the_list_and_is_not_lost() {
        let paste = b"\x1b[200~ls\r\x1b[201~";
        assert_eq!(while_listing(paste), (vec![bytes(paste)], false));
    }

    #[test]
    fn what_nobody_means_to_type_leaves_the_list_open() {
        let moved = b"\x1b[<35;1;1M";
        assert_eq!(while_listing(moved), (vec![pointer(moved)], true));
        assert_eq!(while_listing(b"\x1b[57442;5u"), (vec![aside(b"\x1b[57442;5u")], true));
    }

    #[test]
    fn a_report_of_the_pointer_holds_no_key() {
        for report in [&b"\x1b[Mddd"[..], b"\x1b[M \xc3\xa9t", b"\x1b[M \xc3\xa9\xc3\xa9"] {
            check(&[b"\x1c", report].concat(), &[pointer(report)]);
        }
    }

    #[test]
    fn a_paste_is_never_taken_for_a_chord() {
        check(
            b"\x1b[200~a\x1cd\x1bb\x1b[201~\x1cd",
            &[bytes(b"\x1b[200~a\x1cd\x1bb\x1b[201~"), TypedPart::Order(ChordCommand::Detach)],
        );
    }

    #[test]
    fn everything_else_stays_as_it_was_typed() {
        for typed in [
            &b"hello\r"[..],
            "h\u{e9}llo\u{1f600}".as_bytes(),
            b"\x1b",
            b"\x1b\x1b[A",
            b"\x1b[A\x1bOB\x1b[1;5C",
            b"\x1bd\x1b[\x1b[B",
            b"\x1b[92u\\",
        ] {
            check(typed, &[bytes(typed)]);
        }
    }

    #[test]
    fn a_lone_escape_is_held_only_until_nothing_follows() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1b"), []);
        assert_eq!(chords.patience(), Some(ESCAPE_TIME));
        assert_eq!(chords.flush(), [bytes(b"\x1b")]);
        assert_eq!(chords.patience(), None);
    }

    #[test]
    fn the_end_of_a_paste_may_come_late() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1b[200~a\x1b[20"), [bytes(b"\x1b[200~a")]);
        assert_eq!(chords.patience(), Some(PASTE_TIME));
        let rest = chords.feed(b"1~\x1cd");
        assert_eq!(rest, [bytes(b"\x1b[201~"), TypedPart::Order(ChordCommand::Detach)]);
        assert_eq!(chords.patience(), None);
    }

    #[test]
    fn a_paste_that_stays_without_its_end_is_ended_and_chords_work_again() {
        let mut chords = Chords::default();
        assert_eq!(chords.feed(b"\x1b[200~a\x1cd"), [bytes(b"\x1b[200~a\x1cd")]);
        assert_eq!(chords.flush(), [bytes(b"\x1b[201~")]);
        assert_eq!(chords.patience(), None);
        assert_eq!(chords.feed(b"\x1cd"), [TypedPart::Order(ChordCommand::Detach)]);
        // What comes too late is not the end of anything.
        assert_eq!(chords.feed(b"\x1b[201~x"), [bytes(b"x")]);
    }

    #[test]
    fn a_sequence_without_end_is_not_held_for_ever() {
        let mut chords = Chords::default();
        let long = [b"\x1b[".as_slice(), &[b'1'; Tokenizer::HELD_MAX]].concat();
        assert_eq!(chords.feed(&long), [bytes(&long)]);
    }
}
