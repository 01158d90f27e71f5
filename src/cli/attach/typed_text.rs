//! A text that the person types into the bar, such as a name or what to search for.

use std::borrow::Cow;

/// The longest text, in bytes.
const BYTES_MAX: usize = 200;

/// The text so far. Keys arrive by the byte, so it may end in an incomplete character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedText(Vec<u8>);

impl TypedText {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Adds the bytes of a key, if they are text and the bound permits it. Returns whether they are text.
    pub fn add(&mut self, key: &[u8]) -> bool {
        let is_text = key.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
        if is_text && self.0.len() + key.len() <= BYTES_MAX {
            self.0.extend(key);
        }
        is_text
    }

    /// Removes the last character. Returns false when there is none.
    pub fn erase(&mut self) -> bool {
        let had_text = !self.is_empty();
        let begins_character = |byte: &u8| byte & 0xc0 != 0x80;
        self.0.truncate(self.0.iter().rposition(begins_character).unwrap_or_default());
        had_text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_grows_by_keys_of_text_and_loses_whole_characters() {
        let mut typed = TypedText::default();
        for byte in "aé".bytes() {
            assert!(typed.add(&[byte]));
        }
        for key in [&b"\x1b[A"[..], b"\r", b"\x7f"] {
            assert!(!typed.add(key), "{key:?}");
        }
        assert_eq!(typed.text(), "aé");
        assert!(typed.erase());
        assert_eq!(typed.text(), "a");
        assert!(typed.erase() && typed.is_empty() && !typed.erase());
        typed.add(&[b'x'; BYTES_MAX]);
        assert!(typed.add(b"y"), "it is text, for which there is no room");
        assert_eq!(typed.text().len(), BYTES_MAX);
    }
}
