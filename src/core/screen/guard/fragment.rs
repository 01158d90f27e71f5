//! Characters split between two inputs: the bytes so far and the expected length.
//!
//! Only the shape of UTF-8 matters here; the parser decides whether the bytes are a valid character.

/// The first bytes of a character, three at most, or a whole one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    bytes: [u8; 4],
    length: usize,
}

impl Fragment {
    /// The start of a character at the end of these bytes; empty when they end in a whole one.
    pub(crate) fn at_end_of(bytes: &[u8]) -> Self {
        let tail = &bytes[bytes.len().saturating_sub(3)..];
        let first = tail.iter().rposition(|byte| !is_continuation(*byte));
        let begun = first.map(|at| Self::of(&tail[at..]));
        begun.filter(|begun| !begun.is_whole()).unwrap_or_default()
    }

    /// These bytes as a fragment, if they are exactly the start of one character.
    pub(crate) fn exactly(bytes: &[u8]) -> Option<Self> {
        let found = Self::at_end_of(bytes);
        (found.bytes() == bytes).then_some(found)
    }

    fn of(bytes: &[u8]) -> Self {
        let mut fragment = Self { length: bytes.len(), ..Self::default() };
        fragment.bytes[..bytes.len()].copy_from_slice(bytes);
        fragment
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether all the bytes that the first one announces are present.
    fn is_whole(&self) -> bool {
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
    pub(crate) fn complete(&mut self, rest: &mut &[u8]) -> bool {
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
