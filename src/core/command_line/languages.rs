//! Scripts of `sed` and `awk`, as far as to say whether they run or write something.

use crate::core::command_line::arguments::lists;
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// Options with a value, in the next word or behind them; the first one's value is a script.
const SED: [&str; 2] = ["e expression", "f file l line-length"];
const AWK: [&str; 2] = ["e source", "F v f i l field-separator assign file include load"];

impl ShellLineReader {
    /// Notes that a script of `sed` or `awk` may run or write something.
    pub(super) fn script_of_language(&mut self, name: &str, arguments: &[LineWord]) {
        let (options, is_plain): (_, fn(&str) -> bool) = match name {
            "sed" | "gsed" => (SED, is_plain_sed),
            _ => (AWK, is_plain_awk),
        };
        if !scripts(arguments, options).into_iter().all(is_plain) {
            self.note(UnknownPart::Wrapper);
        }
    }
}

/// The scripts that are given by options, or as the first operand. A script from a file is none of the line.
fn scripts<'a>(arguments: &'a [LineWord], [script, valued]: [&str; 2]) -> Vec<&'a str> {
    let (mut given, mut operand, mut from_file) = (Vec::new(), None, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.text() else {
            operand = operand.or(Some(""));
            continue;
        };
        let Some(option) = word.strip_prefix('-').filter(|it| !it.is_empty()) else {
            operand = operand.or(Some(word));
            continue;
        };
        let (name, mut value) = match option.strip_prefix('-') {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value)),
                None => (long.to_owned(), None),
            },
            None => {
                let takes =
                    |it: char| [script, valued].iter().any(|all| lists(all, &it.to_string()));
                // What follows `-i` is a suffix.
                match option.char_indices().find(|(_, it)| takes(*it) || *it == 'i') {
                    Some((at, letter)) => {
                        (letter.to_string(), Some(&option[at + 1..]).filter(|it| !it.is_empty()))
                    }
                    None => (String::new(), None),
                }
            }
        };
        if lists(script, &name) || lists(valued, &name) {
            value = value.or_else(|| words.next().and_then(LineWord::text));
        }
        from_file |= matches!(name.as_str(), "f" | "file");
        if lists(script, &name) {
            given.push(value.unwrap_or_default());
        }
    }
    if given.is_empty() && !from_file {
        given.extend(operand);
    }
    given
}

/// Whether a script of `sed` only shows and changes text: it has neither `e` nor `w`, and each of its commands is known.
fn is_plain_sed(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        let Some(next) = rest.chars().next() else { return true };
        let behind = &rest[next.len_utf8()..];
        let line_end = || rest.find('\n').map_or("", |end| &rest[end..]);
        rest = match next {
            '0'..='9' | '$' | ',' | '+' | '~' | '!' => behind,
            '/' => match past(behind, '/', 1) {
                Some(behind) => behind.trim_start_matches(['I', 'M']),
                None => return false,
            },
            '\\' => {
                let Some(sign) = behind.chars().next() else { return false };
                match past(&behind[sign.len_utf8()..], sign, 1) {
                    Some(behind) => behind.trim_start_matches(['I', 'M']),
                    None => return false,
                }
            }
            's' | 'y' => {
                let Some(sign) = behind.chars().next() else { return false };
                let Some(behind) = past(&behind[sign.len_utf8()..], sign, 2) else { return false };
                let flags = |it: char| "gpiImM".contains(it) || it.is_ascii_digit();
                behind.trim_start_matches(flags)
            }
            'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'l' | 'q'
            | 'Q' | 'z' | 'F' => behind,
            'a' | 'i' | 'c' | '#' | 'r' | 'R' | 'b' | 't' | 'T' | ':' => {
                // What is added may go on behind the end of a line.
                match rest.contains("\\\n") && rest.trim_end().lines().count() > 2 {
                    true => return false,
                    false if matches!(next, 'b' | 't' | 'T' | ':') => {
                        let label = behind.trim_start_matches([' ', '\t']);
                        // For some, a label ends at a blank.
                        label.find([';', '\n', '}', ' ', '\t']).map_or("", |end| &label[end..])
                    }
                    false
                        if rest.starts_with("a\\\n")
                            || rest.starts_with("i\\\n")
                            || rest.starts_with("c\\\n") =>
                    {
                        ""
                    }
                    false => line_end(),
                }
            }
            _ => return false,
        };
    }
}

/// What follows the given number of further signs. A backslash escapes one, and so do brackets.
fn past(text: &str, sign: char, mut count: usize) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next(),
            _ if letter == sign => {
                count -= 1;
                if count == 0 {
                    return Some(&text[at + letter.len_utf8()..]);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a script of `awk` runs and writes nothing.
fn is_plain_awk(script: &str) -> bool {
    let code = without_texts(script);
    let bare = code.replace("||", "");
    let writes = code.split('>').skip(1).any(|behind| behind.trim_start().starts_with('"'));
    !(bare.contains(['|', '@']) || code.contains("system") || writes)
}

/// A script of `awk` with its strings and patterns empty.
fn without_texts(script: &str) -> String {
    let mut code = String::new();
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        code.push(letter);
        let before = code[..code.len() - letter.len_utf8()].trim_end().chars().next_back();
        // Behind a value, it divides.
        let is_pattern = letter == '/'
            && before
                .is_none_or(|it| !(it.is_alphanumeric() || matches!(it, '_' | ')' | ']' | '$')));
        if letter == '"' || is_pattern {
            let mut is_open = true;
            while let Some(inner) = is_open.then(|| letters.next()).flatten() {
                match inner {
                    '\\' => _ = letters.next(),
                    _ => is_open = inner != letter,
                }
            }
            code.push(letter);
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_sed_is_plain_if_it_only_changes_text() {
        for plain in [
            "p",
            "1,20p",
            "/begin/,/end/{p;d}",
            "$!d",
            "s/a/b/",
            "s|/usr|/opt|gI",
            "s/a\\/e/b/2;s,x,y,",
            "/^#/d",
            "\\,x,p",
            "y/abc/xyz/",
            "1i header e",
            "$a\\\nlast",
            ":a;N;$!ba;s/\\n/ /g",
            "# w x\np",
            "5q",
            "0~3d",
        ] {
            assert!(is_plain_sed(plain), "{plain}");
        }
        for other in [
            "e",
            "1e ls",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/w f",
            "w f",
            "p;e",
            "p\ne ls",
            "/a/e",
            "s/a/b",
            "1!e",
            "{e}",
            "$e ls",
            "s/a/b/;1e ls",
            "y/a/b/;e",
            ":a;e",
            "i x\ne ls",
            "s,a,b,e",
            "\\,a,e",
            "a\\\nx\ne ls",
        ] {
            assert!(!is_plain_sed(other), "{other}");
        }
    }

    #[test]
    fn a_script_of_awk_is_plain_if_it_only_prints() {
        for plain in [
            "{ print $1 }",
            "/a|b/ { print }",
            "$3 > 50 || /x/ { n += $2 / 3 } END { print n }",
            "BEGIN { FS = \"|\" } { print $2 }",
            "{ gsub(/system/, \"\"); print }",
        ] {
            assert!(is_plain_awk(plain), "{plain}");
        }
        for other in [
            "BEGIN { system(\"ls\") }",
            "{ print | \"sh\" }",
            "{ \"ls\" | getline }",
            "{ print > \"f\" }",
            "{ print >> \"/etc/hosts\" }",
            "@load \"x\"",
            "{ x = 1 / 2; print | \"sh\" } # /",
            "{ f = \"system\"; @f(\"ls\") }",
        ] {
            assert!(!is_plain_awk(other), "{other}");
        }
    }
}
