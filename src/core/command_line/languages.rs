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
            '/' | '\\' => {
                let Some(behind) = past_parts(if next == '/' { rest } else { behind }, &[true])
                else {
                    return false;
                };
                behind.trim_start_matches(['I', 'M'])
            }
            's' | 'y' => {
                let Some(behind) = past_parts(behind, &[next == 's', false]) else { return false };
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

/// What follows as many parts, each ended by the sign at the beginning. A backslash escapes one, and so do the brackets of a
/// pattern.
fn past_parts<'a>(text: &'a str, are_patterns: &[bool]) -> Option<&'a str> {
    let sign = text.chars().next().filter(|it| !matches!(it, '[' | '\\' | '\n'))?;
    let mut rest = &text[sign.len_utf8()..];
    for is_pattern in are_patterns {
        loop {
            let letter = rest.chars().next()?;
            rest = &rest[letter.len_utf8()..];
            match letter {
                _ if letter == sign => break,
                '\\' => rest = &rest[rest.chars().next()?.len_utf8()..],
                '[' if *is_pattern => rest = past_class(rest)?,
                _ => {}
            }
        }
    }
    Some(rest)
}

/// What follows a choice of characters in brackets, of which the first one is open; none if that is not clear.
fn past_class(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let (inner, behind) = rest.split_once(']')?;
        let names = |sign: char| {
            let name =
                inner.rfind(&['[', sign].iter().collect::<String>()).map(|at| &inner[at + 2..]);
            name.is_some_and(|name| name.ends_with(sign))
        };
        // A class that is named, in brackets of its own.
        let is_named = [':', '.', '='].into_iter().any(names);
        let may_be_named = inner.contains('[') && inner.ends_with([':', '.', '=']);
        match is_named {
            true => rest = behind,
            false if may_be_named || inner.ends_with('\\') => return None,
            false => return Some(behind),
        }
    }
}

/// Whether a script of `awk` runs and writes nothing.
fn is_plain_awk(script: &str) -> bool {
    let Some(code) = without_texts(script) else { return false };
    let bare = code.replace("||", "");
    let writes = code.match_indices('>').any(|(at, sign)| {
        let behind = code[at + sign.len()..].trim_start();
        behind.starts_with('"') || statement_before(&code[..at]).contains("print")
    });
    !(bare.contains(['|', '@']) || code.contains("system") || writes)
}

/// The statement that goes on behind this code.
fn statement_before(code: &str) -> &str {
    let begins = |at: usize, sign: &str| match sign {
        "\n" => !code[..at].trim_end().ends_with([',', '\\', '&', '|']),
        _ => true,
    };
    let mut ends = code.rmatch_indices([';', '{', '}', '\n']);
    ends.find(|(at, sign)| begins(*at, sign)).map_or(code, |(at, _)| &code[at + 1..])
}

/// A script of `awk` with its strings and patterns empty and without comments; none if it is not clear where they end.
fn without_texts(script: &str) -> Option<String> {
    let (mut code, mut rest) = (String::new(), script);
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let line = behind.split('\n').next().unwrap_or_default();
        rest = match letter {
            '#' => &behind[line.len()..],
            '"' => {
                code.push_str("\"\"");
                past_text(behind, '"')?
            }
            '/' if begins_pattern(&code) => {
                code.push_str("//");
                past_text(behind, '/')?
            }
            // It divides, or begins a pattern in which other signs have another meaning.
            '/' if line.contains('/') => {
                if line.contains(['"', '#']) {
                    return None;
                }
                code.extend(["/", line]);
                &behind[line.len()..]
            }
            _ => {
                code.push(letter);
                behind
            }
        };
    }
    Some(code)
}

/// Whether a `/` behind this code surely begins a pattern: it stands behind no value.
fn begins_pattern(code: &str) -> bool {
    code.trim_end().chars().next_back().is_none_or(|it| "({,;!~&|=<>?:}*%^".contains(it))
}

/// What follows a string or pattern of `awk` that ends at this sign on its line.
fn past_text(text: &str, sign: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let letter = rest.chars().next()?;
        rest = &rest[letter.len_utf8()..];
        match letter {
            _ if letter == sign => return Some(rest),
            '\n' => return None,
            '\\' => rest = &rest[rest.chars().next()?.len_utf8()..],
            '[' if sign == '/' => {
                let behind = past_class(rest)?;
                // For some, it ends there.
                if rest[..rest.len() - behind.len()].contains(sign) {
                    return None;
                }
                rest = behind;
            }
            _ => {}
        }
    }
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
            "s/[^/]*$//",
            "s/[]/]/x/;s/[[:space:]/]*$//",
            "/[/]/p",
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
            "s/[/]/p;/w ./x",
            "y/[/]/;w ./x",
            "/[/p;/]/w ./x",
            "s/[a[:]/]/p/w ./x",
            "s/[\\]/]/p/w ./x",
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
            "NR==FNR { a[$1]; next } $1 in a",
            "{ if ($1 > 3) print $0 } # it's a \"comment",
            "{ s += $3 / 2 } END { print s / NR }",
            "{ print $1 }\n$1 > 5",
            "/[[:space:]]\"x/ { print }",
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
            "# \"\n{ print > \"f\" }",
            "/[/\"]/ { print > \"f\" }",
            "{ x = y++ / 2; print > \"f\" } # /",
            "{ x = \"4\" / 2; print > \"f\" } # /",
            "{ print /\"/; print > \"f\" }",
            "{ x = a / b; if (/\"/) print > \"f\" }",
            "{ f = \"/etc/hosts\"; print > f }",
            "{ print $1,\n$2 > $3 }",
            "{ print /x/ > f }",
        ] {
            assert!(!is_plain_awk(other), "{other}");
        }
    }
}
