//! A write on its way into the terminal: what has gone out, and where it may be cut.

use std::ops::Deref;
use std::slice;

use crate::core::keys::{PieceKind, Unit};

/// A piece, by the place where it ends.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    kind: PieceKind,
    start: usize,
    end: usize,
}

/// One write and how far it has got.
#[derive(Debug)]
pub(super) struct PieceProgress {
    bytes: Vec<u8>,
    stretches: Stretches,
    sent: usize,
}

/// Most writes are one piece, which needs no list.
#[derive(Debug)]
enum Stretches {
    One(Stretch),
    Listed(Vec<Stretch>),
}

impl Deref for Stretches {
    type Target = [Stretch];

    fn deref(&self) -> &[Stretch] {
        match self {
            Self::One(stretch) => slice::from_ref(stretch),
            Self::Listed(stretches) => stretches,
        }
    }
}

impl Stretches {
    fn push(&mut self, stretch: Stretch) {
        match self {
            Self::Listed(stretches) if stretches.is_empty() => *self = Self::One(stretch),
            Self::Listed(stretches) => stretches.push(stretch),
            Self::One(first) => *self = Self::Listed(vec![*first, stretch]),
        }
    }

    fn end_at(&mut self, end: usize) {
        match self {
            Self::One(only) if only.start >= end => *self = Self::Listed(Vec::new()),
            Self::One(only) => only.end = only.end.min(end),
            Self::Listed(stretches) => stretches.retain_mut(|stretch| {
                stretch.end = stretch.end.min(end);
                stretch.start < stretch.end
            }),
        }
    }
}

/// One end of a bracketed paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PasteEdge {
    Start,
    End,
}

impl PieceProgress {
    pub(super) fn new(unit: Unit) -> Self {
        let mut bytes = Vec::new();
        let mut stretches = Stretches::Listed(Vec::new());
        for piece in unit.pieces {
            let (kind, start) = (piece.kind(), bytes.len());
            match start {
                0 => bytes = piece.into_bytes(),
                _ => bytes.extend_from_slice(piece.bytes()),
            }
            stretches.push(Stretch { kind, start, end: bytes.len() });
        }
        Self { bytes, stretches, sent: 0 }
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.bytes.len());
    }

    /// Whether something else may go out here: between two pieces, and not inside a paste; `inside`
    /// is whether the write begins inside one.
    pub(super) fn may_pause(&self, inside: bool) -> bool {
        let begun = self.current().is_some_and(|stretch| stretch.start < self.sent);
        !begun && !self.is_in_paste(inside)
    }

    /// What is left up to the next place where something else may go out.
    pub(super) fn rest_until_pause(&self, inside: bool) -> &[u8] {
        let left = self.stretches.iter().filter(|stretch| stretch.end > self.sent);
        let mut open = self.is_in_paste(inside);
        for stretch in left {
            open = match stretch.kind {
                PieceKind::PasteStart => true,
                PieceKind::PasteEnd => false,
                PieceKind::Text | PieceKind::Key => open,
            };
            if !open {
                return &self.bytes[self.sent..stretch.end];
            }
        }
        self.rest()
    }

    /// Takes off all that can be left unsent without splitting a key or a character; says how many
    /// bytes that were. A second cut finds nothing to take.
    pub(super) fn cut(&mut self) -> usize {
        self.end_at(self.first_harmless_end())
    }

    /// The last end of a paste that goes out with it.
    pub(super) fn last_mark(&self) -> Option<PasteEdge> {
        self.last_mark_before(self.bytes.len())
    }

    /// How many bytes a cut would leave to be sent.
    pub(super) fn tail(&self) -> usize {
        self.first_harmless_end() - self.sent
    }

    /// Takes off all that has not gone out; says how many bytes that were.
    pub(super) fn drop_rest(&mut self) -> usize {
        self.end_at(self.sent)
    }

    /// Shortens the bytes and what they are made of as one; says by how many bytes.
    fn end_at(&mut self, end: usize) -> usize {
        let dropped = self.bytes.len() - end;
        self.bytes.truncate(end);
        self.stretches.end_at(end);
        dropped
    }

    fn current(&self) -> Option<&Stretch> {
        let index = self.stretches.partition_point(|stretch| stretch.end <= self.sent);
        self.stretches.get(index)
    }

    fn is_in_paste(&self, inside: bool) -> bool {
        self.last_mark_before(self.sent).map_or(inside, |mark| mark == PasteEdge::Start)
    }

    fn last_mark_before(&self, at: usize) -> Option<PasteEdge> {
        let begun = self.stretches.partition_point(|stretch| stretch.start < at);
        self.stretches[..begun].iter().rev().find_map(|stretch| match stretch.kind {
            PieceKind::PasteStart => Some(PasteEdge::Start),
            PieceKind::PasteEnd => Some(PasteEdge::End),
            PieceKind::Text | PieceKind::Key => None,
        })
    }

    fn first_harmless_end(&self) -> usize {
        match self.current() {
            Some(stretch) if stretch.start < self.sent => match stretch.kind {
                PieceKind::Text => end_of_character(&self.bytes[..stretch.end], self.sent),
                PieceKind::Key | PieceKind::PasteStart | PieceKind::PasteEnd => stretch.end,
            },
            Some(_) | None => self.sent,
        }
    }
}

/// The end of the UTF-8 character that `at` lies inside, or `at` itself between two characters and
/// in bytes that are no UTF-8.
fn end_of_character(text: &[u8], at: usize) -> usize {
    const CHARACTER_MAX: usize = 4;
    let is_inner = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let earliest = at.saturating_sub(CHARACTER_MAX - 1);
    let Some(back) = text[earliest..at].iter().rev().position(|byte| !is_inner(byte)) else {
        return at;
    };
    let start = at - 1 - back;
    let length = match text[start] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let end = (start + length).min(text.len());
    let inner = text[at..end.max(at)].iter().take_while(|byte| is_inner(byte)).count();
    at + inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::keys::Piece;

    /// What is left to send of a text when it is cut after `sent` bytes.
    fn left_after_cut(text: &[u8], sent: usize) -> Vec<u8> {
        let mut progress = PieceProgress::new(Unit { pieces: vec![Piece::Text(text.to_vec())] });
        progress.advance(sent);
        progress.cut();
        progress.rest().to_vec()
    }

    #[test]
    fn a_text_is_cut_between_characters_at_once() {
        assert_eq!(left_after_cut(b"abc", 1), b"");
        assert_eq!(left_after_cut("\u{e9}b".as_bytes(), 2), b"");
    }

    #[test]
    fn a_character_of_any_length_is_completed() {
        assert_eq!(left_after_cut("\u{e9}b".as_bytes(), 1), [0xa9]);
        assert_eq!(left_after_cut("\u{20ac}b".as_bytes(), 1), [0x82, 0xac]);
        assert_eq!(left_after_cut("\u{1f600}b".as_bytes(), 1), [0x9f, 0x98, 0x80]);
        assert_eq!(left_after_cut("\u{1f600}b".as_bytes(), 3), [0x80]);
    }

    #[test]
    fn bytes_that_are_no_characters_are_cut_anywhere() {
        assert_eq!(left_after_cut(&[0x80; 8], 2), b"");
        assert_eq!(left_after_cut(&[0xff, 0x80, 0x80], 1), b"");
        assert_eq!(left_after_cut(&[0xe2, b'a', b'b'], 1), b"");
    }

    #[test]
    fn a_character_that_the_text_itself_breaks_off_ends_with_the_text() {
        let pieces = vec![Piece::Text(vec![0xe2, 0x82]), Piece::Key(vec![b'k'])];
        let mut progress = PieceProgress::new(Unit { pieces });
        progress.advance(1);
        assert_eq!(progress.cut(), 1);
        assert_eq!(progress.rest(), [0x82]);
    }

    #[test]
    fn cutting_twice_is_cutting_once_wherever_the_terminal_stopped() {
        let texts: [&[u8]; 3] =
            ["a\u{e9}\u{20ac}\u{1f600}".as_bytes(), &[0xff, 0xe2, 0x82, b'a'], &[0x80; 5]];
        let units = texts.into_iter().flat_map(|text| {
            let (text, key) = (Piece::Text(text.to_vec()), Piece::Key(b"\x1b[A".to_vec()));
            let pasted = [Piece::PasteStart, text.clone(), Piece::PasteEnd, key.clone()];
            [vec![text.clone()], vec![key, text], pasted.to_vec()]
        });
        for unit in units.map(|pieces| Unit { pieces }) {
            for sent in 0..=unit.len() {
                let mut progress = PieceProgress::new(unit.clone());
                progress.advance(sent);
                let tail = progress.tail();
                assert_eq!(progress.cut(), unit.len() - sent - tail);
                for _ in 0..2 {
                    assert_eq!((progress.tail(), progress.rest().len()), (tail, tail));
                    assert_eq!(progress.rest_until_pause(true).len(), tail);
                    assert_eq!(progress.cut(), 0, "{unit:?} after {sent}");
                }
                let dropped = progress.drop_rest();
                assert_eq!((dropped, progress.cut(), progress.tail()), (tail, 0, 0));
            }
        }
    }
}
