//! The 128-bit hash of Fowler, Noll and Vo. It is the same in every build, unlike the standard library's.
//!
//! It is not cryptographic: anyone can find two texts with the same hash.

use std::hash::Hasher;

/// The hash of the bytes so far.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    const PRIME: u128 = (1 << 88) + (1 << 8) + 0x3b;

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

    /// The XOR of the hash's halves.
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
