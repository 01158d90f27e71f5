//! The marks of shell integration (OSC 133), as far as they carry the session's nonce.
//!
//! Anything that runs in a terminal can write a mark. Only the shell that was started with the
//! nonce knows it, so that no other mark is believed. The letters are those of FinalTerm, which
//! terminals agree on; `cmdline_url` is kitty's, E, `untold` and `bound` are ours.
//!
//! Shells inside of it, and shells whose prompt is all that we can change, have a nonce that every program of
//! the session can read. They are believed what no other shell contradicts: the code of what was sent to them.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

/// A mark that is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub kind: MarkKind,
    /// The command that the shell read, where it tells.
    pub text: Option<String>,
    /// What was read before this prompt may have run, though the shell told no beginning of it.
    pub untold: bool,
    /// The line editor knows the key by which it begins an empty line.
    pub bound: bool,
}

/// The values that the marks of a session carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkNonces {
    /// Of the shell that the session was started with; none when it was not asked to mark anything.
    pub own: Option<Arc<str>>,
    /// Of all other shells in it.
    pub nested: Option<Arc<str>>,
}

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A: a prompt begins.
    PromptStart,
    /// B: the prompt has ended, and a line is read.
    PromptEnd,
    /// C: the command that was read runs.
    Started,
    /// E: its output has ended, and what the shell writes next is its own.
    OutputEnd,
    /// D: it ended with this code.
    Ended(Option<i32>),
}

impl Mark {
    /// Reads the parameters of a mark, such as `D;1;nonce=…`; none unless it carries the nonce.
    pub fn parse(params: &str, nonce: &str) -> Option<Self> {
        let mut words = params.split(';');
        let kind = words.next()?;
        let (mut carried, mut code, mut text) = (None, None, None);
        let (mut untold, mut bound, mut begins) = (false, false, false);
        for word in words {
            match word.split_once('=') {
                Some(("nonce", value)) => carried = Some(value),
                Some(("cmdline_url", value)) => text = Some(text_of(value)),
                Some(("untold", value)) => untold = value == "1",
                Some(("bound", value)) => bound = value == "1",
                // A shell that has just begun has ended nothing.
                Some(("line", value)) => begins = matches!(value, "0" | "1"),
                Some(_) => {}
                None => code = code.or_else(|| word.parse().ok()),
            }
        }
        if nonce.is_empty() || carried != Some(nonce) {
            return None;
        }
        let kind = match kind {
            "A" => MarkKind::PromptStart,
            "B" => MarkKind::PromptEnd,
            "C" => MarkKind::Started,
            "D" => MarkKind::Ended(code.filter(|_| !begins)),
            "E" => MarkKind::OutputEnd,
            _ => return None,
        };
        Some(Self { kind, text, untold, bound })
    }
}

/// The text; one that was cut may end within a character.
fn text_of(escaped: &str) -> String {
    percent_decode_str(escaped).decode_utf8_lossy().trim_end_matches('\u{fffd}').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(params: &str) -> Option<MarkKind> {
        Mark::parse(params, "abc").map(|mark| mark.kind)
    }

    #[test]
    fn a_mark_with_the_nonce_is_believed_and_no_other() {
        assert_eq!(kind("A;nonce=abc"), Some(MarkKind::PromptStart));
        assert_eq!(kind("D;130;nonce=abc"), Some(MarkKind::Ended(Some(130))));
        assert_eq!(kind("D;nonce=abc"), Some(MarkKind::Ended(None)));
        for forged in ["A", "A;nonce=", "A;nonce=abd", "D;0;nonce=abcd", "Z;nonce=abc", ""] {
            assert_eq!(kind(forged), None, "{forged}");
        }
        assert_eq!(Mark::parse("A;nonce=", ""), None);
        let bound = |params| Mark::parse(params, "abc").map(|mark| mark.bound);
        assert_eq!(bound("A;bound=1;nonce=abc"), Some(true));
        assert_eq!(bound("A;nonce=abc"), Some(false));
    }

    #[test]
    fn the_command_is_told_with_escapes() {
        let text = |params| Mark::parse(params, "abc").and_then(|mark| mark.text);
        assert_eq!(text("C;nonce=abc;cmdline_url=echo%20%22a%3bb%22"), Some("echo \"a;b\"".into()));
        assert_eq!(text("C;nonce=abc;cmdline_url=%c3%a4%c3"), Some("ä".into()));
        assert_eq!(text("C;nonce=abc;cmdline_url=%"), Some("%".into()));
        assert_eq!(text("C;nonce=abc"), None);
    }
}
