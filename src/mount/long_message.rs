//! Which request a message answers that is too long to be kept, or cannot be read: it is read as it comes, in little
//! memory.

/// The longest name and value of a member that is looked at, in bytes.
const WORD_MAX: usize = 24;

/// A message of JSON of which only the id and the method are wanted.
///
/// It need not be well-formed: then what is found may be wrong, as the whole would be.
#[derive(Debug, Default)]
pub struct LongMessage {
    /// How many lists and objects are open.
    depth: usize,
    /// Its first character that is no space.
    first: Option<u8>,
    is_in_text: bool,
    is_escaped: bool,
    is_value: bool,
    /// What was read of the text or number at the first level.
    word: Vec<u8>,
    name: Vec<u8>,
    id: Option<u64>,
    has_method: bool,
}

impl LongMessage {
    /// Reads on.
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.take(*byte));
    }

    /// Whether it begins as a message does.
    pub fn may_be_one(&self) -> bool {
        self.first.is_none_or(|first| first == b'{')
    }

    /// The request that it answers, once it is whole.
    pub fn answered(&self) -> Option<u64> {
        self.id.filter(|_| !self.has_method)
    }

    fn take(&mut self, byte: u8) {
        if self.first.is_none() && !byte.is_ascii_whitespace() {
            self.first = Some(byte);
        }
        if self.is_in_text {
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_text = false,
                _ => self.add(byte),
            }
            return;
        }
        match byte {
            b'"' => {
                self.word.clear();
                // A text is no id of ours.
                self.is_in_text = true;
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.word.clear();
            }
            b':' if self.depth == 1 => {
                self.name = std::mem::take(&mut self.word);
                self.is_value = true;
                self.has_method |= self.name == b"method";
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            _ => self.add(byte),
        }
    }

    fn add(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() < WORD_MAX && !byte.is_ascii_whitespace() {
            self.word.push(byte);
        }
    }

    /// The value of a member ends.
    fn end_value(&mut self) {
        if self.depth == 1 && std::mem::take(&mut self.is_value) && self.name == b"id" {
            self.id = str::from_utf8(&self.word).ok().and_then(|word| word.parse().ok());
        }
        self.word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_answer_is_found_wherever_it_is() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"x":[{"id":9}]}}"#, Some(7)),
            (r#" { "result" : {"id":8} , "id" : 7 } "#, Some(7)),
            (r#"{"result":"\\","id":7}"#, Some(7)),
            (r#"{"result":"\"id\":8,","id":7}"#, Some(7)),
            (r#"{"result":[],"id":184467440737095516150}"#, None),
            (r#"{"id":7,"method":"roots/list","params":{}}"#, None),
            (r#"{"method":"notifications/message","params":{"id":7}}"#, None),
            (r#"{"result":{"id":7}}"#, None),
            ("", None),
        ] {
            for size in 1..=text.len().max(1) {
                let mut message = LongMessage::default();
                text.as_bytes().chunks(size).for_each(|part| message.feed(part));
                assert_eq!(message.answered(), id, "{text} {size}");
            }
        }
        let begins = |text: &str| {
            let mut message = LongMessage::default();
            message.feed(text.as_bytes());
            message.may_be_one()
        };
        let begun = ["", " {", "{}", "[", "\"", "x"].map(begins);
        assert_eq!(begun, [true, true, true, false, false, false]);
    }
}
