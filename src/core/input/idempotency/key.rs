//! The key by which a caller repeats a call without a second effect.

use std::sync::Arc;

/// The name a caller gives to one call, so that asking again has no second effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    text: Arc<str>,
    fingerprint: u64,
}

impl IdempotencyKey {
    /// How many bytes a key may have.
    pub const LEN_MAX: usize = 128;

    /// The key of a call whose tool and arguments hash to `fingerprint`; none when it is empty or
    /// too long.
    pub fn new(text: &str, fingerprint: u64) -> Option<Self> {
        let fits = (1..=Self::LEN_MAX).contains(&text.len());
        fits.then(|| Self { text: Arc::from(text), fingerprint })
    }

    /// The text, as the caller gave it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What tells calls with the same text apart.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether both are the same text, be it for different calls.
    pub fn has_text_of(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
