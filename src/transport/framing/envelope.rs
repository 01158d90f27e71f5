//! Finds the id of a message that is too long to keep, while its bytes pass.

use rmcp::model::RequestId;

/// The longest id that is found, in bytes of JSON.
const ID_BYTES_MAX: usize = 256;

/// The current position in the message object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Key,
    Value,
}

/// Finds the id of one message, piece by piece.
#[derive(Debug, Default)]
pub(super) struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    place: Place,
    /// The start of the current key or id.
    text: Vec<u8>,
    /// Whether the next value is the id.
    is_id: bool,
    found: Option<RequestId>,
}

impl IdFinder {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.found.is_some() {
                return;
            }
            self.take(*byte);
        }
    }

    pub(super) fn into_id(self) -> Option<RequestId> {
        self.found
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            self.collect(byte);
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            b':' if self.depth == 1 && self.place == Place::Key => {
                self.is_id = self.text == br#""id""#;
                self.place = Place::Value;
                self.text.clear();
            }
            _ => {
                self.in_string = byte == b'"';
                self.collect(byte);
            }
        }
    }

    /// Keeps a byte that may belong to a top-level key or to the id.
    fn collect(&mut self, byte: u8) {
        let wanted = self.depth == 1 && (self.place == Place::Key || self.is_id);
        if wanted && !byte.is_ascii_whitespace() && self.text.len() < ID_BYTES_MAX {
            self.text.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.is_id {
            self.found = serde_json::from_slice(&self.text).ok();
        }
        (self.is_id, self.place) = (false, Place::Key);
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(message: &str) -> Option<RequestId> {
        let whole = find(message.bytes().map(|byte| vec![byte]));
        assert_eq!(whole, find([message.as_bytes().to_vec()]), "in pieces and at once");
        whole
    }

    fn find(pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<RequestId> {
        let mut finder = IdFinder::default();
        pieces.into_iter().for_each(|piece| finder.feed(&piece));
        finder.into_id()
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let number = Some(RequestId::Number(3));
        assert_eq!(id_of(r#"{"jsonrpc":"2.0","id":3,"method":"m"}"#), number);
        assert_eq!(id_of(r#"{"params":{"id":7,"a":[{"id":8}]}, "id" : 3 }"#), number);
        let text = Some(RequestId::String("a\"b".into()));
        assert_eq!(id_of(r#"{"id":"a\"b","x":1}"#), text);
    }

    #[test]
    fn what_only_looks_like_an_id_is_none() {
        for message in [
            r#"{"params":{"id":3}}"#,
            r#"{"x":"\"id\":3,"}"#,
            r#"{"x":"id","y":3}"#,
            r#"{"id":null}"#,
            r#"{"id":{"a":1}}"#,
            r#"{"id":3"#,
            r#"[{"id":3}]"#,
            "xxx",
            "",
        ] {
            assert_eq!(id_of(message), None, "{message}");
        }
    }

    #[test]
    fn an_id_that_is_too_long_is_none() {
        assert_eq!(id_of(&format!(r#"{{"id":"{}"}}"#, "x".repeat(ID_BYTES_MAX))), None);
    }
}
