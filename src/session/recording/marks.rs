//! Keeps the nonce of a session's shell out of its recording: whoever knows it can imitate the shell's marks.

use std::sync::Arc;

/// How each mark begins.
const MARK: &str = "\x1b]133;";

/// The longest mark that is waited for, in bytes.
const HELD_MAX: usize = 64 * 1024;

/// Takes the nonce out of output, also where a mark comes in pieces.
#[derive(Debug, Default)]
pub(super) struct MarkFilter {
    nonce: Option<Arc<str>>,
    /// The beginning of a mark whose end has not come.
    held: String,
}

impl MarkFilter {
    pub(super) fn new(nonce: Option<Arc<str>>) -> Self {
        Self { nonce, held: String::new() }
    }

    /// How much output waits for the end of its mark, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held.len() as u64
    }

    /// What may be recorded now.
    pub(super) fn pass(&mut self, output: String) -> String {
        let Some(nonce) = &self.nonce else { return output };
        let mut text = match self.held.is_empty() {
            true => output,
            false => std::mem::take(&mut self.held) + &output,
        };
        if text.contains(&**nonce) {
            text = text.replace(&**nonce, "");
        }
        if let Some(begins) = unfinished_mark(&text) {
            self.held = text.split_off(begins);
        }
        text
    }

    /// Waits for nothing any more: what follows is something else.
    pub(super) fn forget(&mut self) {
        self.held.clear();
    }
}

/// Where the text ends within a mark, or within what may become one.
fn unfinished_mark(text: &str) -> Option<usize> {
    let begins = text.rfind('\x1b')?;
    let rest = &text[begins..];
    let is_mark = rest.starts_with(MARK) && !rest.contains('\x07');
    ((is_mark || MARK.starts_with(rest)) && rest.len() <= HELD_MAX).then_some(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nonce_is_taken_out_wherever_a_mark_is_cut() {
        let nonce = "5ec2e75ec2e7";
        for end in ["\x07", "\x1b\\"] {
            let text = format!("one \x1b]133;D;3;nonce={nonce}{end}two \x1b[31mthree");
            let expected = format!("one \x1b]133;D;3;nonce={end}two \x1b[31mthree");
            for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let mut filter = MarkFilter::new(Some(nonce.into()));
                let first = filter.pass(text[..cut].to_owned());
                assert!(!first.contains("5e"), "{cut}: {first:?}");
                assert_eq!(first + &filter.pass(text[cut..].to_owned()), expected, "{cut}");
                assert_eq!(filter.held_bytes(), 0);
            }
        }
    }

    #[test]
    fn what_is_shown_never_waits() {
        let mut filter = MarkFilter::new(Some("5ec2e7".into()));
        for text in ["$ ", "5ec2", "\x1b[1m", "a\x1b]0;title"] {
            assert_eq!(filter.pass(text.to_owned()), text);
        }
        assert_eq!(filter.pass("a\x1b]133;C".to_owned()), "a");
        let long = "x".repeat(HELD_MAX);
        assert_eq!(filter.pass(long.clone()), format!("\x1b]133;C{long}"));
    }
}
