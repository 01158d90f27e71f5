//! Characters that arrive in pieces.

/// The first bytes of a character, three at most, or a whole one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    bytes: [u8; 4],
    length: usize,
}

impl Fragment {
    /// The start of a character at the end of these bytes; empty when they end in a whole one.
    pub(super) fn at_end_of(bytes: &[u8]) -> Self {
        let tail = &bytes[bytes.len().saturating_sub(3)..];
        let Some(first) = tail.iter().rposition(|byte| !is_continuation(*byte)) else {
            return Self::default();
        };
        let mut begun = Self { length: tail.len() - first, ..Self::default() };
        begun.bytes[..begun.length].copy_from_slice(&tail[first..]);
        if begun.is_whole() { Self::default() } else { begun }
    }

    /// These bytes as a fragment, if they are exactly the start of one character.
    pub(super) fn exactly(bytes: &[u8]) -> Option<Self> {
        let found = Self::at_end_of(bytes);
        (found.bytes() == bytes).then_some(found)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether all the bytes that the first one announces are present.
    pub(super) fn is_whole(&self) -> bool {
        let announced = match self.bytes[0] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        self.length >= announced
    }

    /// Takes the bytes of the character from the start of the input. Returns true when no more can
    /// follow, because it is whole or something else follows.
    pub(super) fn complete(&mut self, rest: &mut &[u8]) -> bool {
        while !self.is_whole() {
            let Some((next, after)) = rest.split_first() else { return false };
            if !is_continuation(*next) {
                break;
            }
            self.bytes[self.length] = *next;
            self.length += 1;
            *rest = after;
        }
        true
    }
}

fn is_continuation(byte: u8) -> bool {
    (0x80..=0xbf).contains(&byte)
}
