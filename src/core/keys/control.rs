//! A character key typed with Control, by the name that tmux gives it.

use std::fmt;
use std::str::FromStr;

/// A key such as `C-a`. Control with `i`, `m` or `[` is none, since terminals send them as Tab, Enter and
/// Escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlKey(char);

impl ControlKey {
    /// The accepted names, for messages.
    pub const NAMES: &'static str = "C-a to C-z, without C-i and C-m, or C-\\, C-], C-^ or C-_";

    /// The character that is typed with Control, in lower case.
    pub fn character(self) -> char {
        self.0
    }

    /// The byte that terminals send for it.
    pub fn byte(self) -> u8 {
        self.0 as u8 & 0x1f
    }
}

impl Default for ControlKey {
    fn default() -> Self {
        Self('\\')
    }
}

impl fmt::Display for ControlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C-{}", self.0)
    }
}

/// Why a name is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", ControlKey::NAMES)]
pub struct NoControlKey;

impl FromStr for ControlKey {
    type Err = NoControlKey;

    fn from_str(name: &str) -> Result<Self, NoControlKey> {
        let mut characters = name.strip_prefix("C-").unwrap_or_default().chars();
        match (characters.next().map(|first| first.to_ascii_lowercase()), characters.next()) {
            (Some('i' | 'm'), None) => Err(NoControlKey),
            (Some(key @ ('a'..='z' | '\\' | ']' | '^' | '_')), None) => Ok(Self(key)),
            (_, _) => Err(NoControlKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_has_the_byte_of_its_key() {
        for (name, byte) in [("C-a", 1), ("C-z", 26), ("C-\\", 28), ("C-]", 29), ("C-_", 31)] {
            let key: ControlKey = name.parse().unwrap();
            assert_eq!((key.to_string().as_str(), key.byte()), (name, byte));
        }
        assert_eq!("C-A".parse(), "C-a".parse::<ControlKey>());
    }

    #[test]
    fn what_terminals_send_for_other_keys_is_no_name() {
        for name in ["", "a", "C-", "C-[", "C-i", "C-M", "C-1", "C-ab", "M-a", "C-ä"] {
            assert_eq!(name.parse::<ControlKey>(), Err(NoControlKey), "{name}");
        }
    }
}
