//! Choices that follow from the input alone, such as where to split it.

use std::hash::Hasher;

use termgate::core::fnv::Fnv;

/// A source of numbers; the same input always gives the same ones.
#[derive(Debug)]
pub struct Choices(u64);

impl Choices {
    pub fn of(data: &[u8]) -> Self {
        let mut hash = Fnv::default();
        hash.write(data);
        Self(hash.finish() | 1)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    /// Splits bytes into pieces, all of them tiny or some of them long.
    pub fn pieces<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let longest = [1, 3, 16, 300, 5_000][self.below(5)];
        let (mut rest, mut pieces) = (bytes, Vec::new());
        while !rest.is_empty() {
            let length = (1 + self.below(longest)).min(rest.len());
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
