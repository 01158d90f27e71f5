//! The hash of Fowler, Noll and Vo with 128 bits: the same in every build, which the standard library
//! does not promise of its own.
//!
//! It is no secret and keeps nobody from finding two texts of one hash.

use std::hash::Hasher;

/// What was taken in so far.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    const PRIME: u128 = (1 << 88) + (1 << 8) + 0x3b;

    /// The whole hash.
    pub fn hash(self) -> u128 {
        self.0
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// The halves of the hash, one over the other.
    fn finish(&self) -> u64 {
        (self.0 >> u64::BITS) as u64 ^ self.0 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_was_published() {
        let mut hash = Fnv::default();
        hash.write(b"a");
        assert_eq!(hash.hash(), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash.finish(), 0xd228_cb69_6f1a_8caf ^ 0x7891_2b70_4e4a_8964);
    }
}
