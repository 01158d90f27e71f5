//! Measures the complexity of a JSON line before it is parsed.
//!
//! A megabyte of commas needs a hundred times as much memory once parsed.

use crate::transport::limits::DEPTH_MAX;

/// Whether a line has too many structural tokens or levels.
///
/// Characters inside strings do not count. Invalid JSON is counted, too.
pub(super) fn is_excessive(line: &[u8], tokens_max: usize) -> bool {
    let mut bytes = line.iter();
    let (mut tokens, mut depth) = (0usize, 0usize);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                tokens += 1;
                depth += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' => tokens += 1,
            _ => {}
        }
        if tokens > tokens_max || depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS_MAX: usize = 500;

    fn is_excessive(line: &[u8]) -> bool {
        super::is_excessive(line, TOKENS_MAX)
    }

    #[test]
    fn structure_is_counted_outside_strings_only() {
        let text = format!(r#"{{"text":"{}\"{}"}}"#, "[".repeat(200), ",".repeat(TOKENS_MAX));
        assert!(!is_excessive(text.as_bytes()));
    }

    #[test]
    fn a_message_may_have_as_many_tokens_as_allowed_and_no_more() {
        let list = |commas: usize| format!("[{}1]", "1,".repeat(commas));
        assert!(!is_excessive(list(TOKENS_MAX - 1).as_bytes()));
        assert!(is_excessive(list(TOKENS_MAX).as_bytes()));
    }

    #[test]
    fn a_message_may_be_as_deep_as_allowed_and_no_deeper() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_excessive(nested(DEPTH_MAX).as_bytes()));
        assert!(is_excessive(nested(DEPTH_MAX + 1).as_bytes()));
        let deepest = nested(DEPTH_MAX);
        assert!(serde_json::from_str::<serde_json::Value>(&deepest).is_ok());
    }
}
