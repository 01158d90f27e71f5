//! Here-documents whose text a word takes as it is: `git commit -m "$(cat <<'X' …)"`. The parser does not end with some of
//! them.

use std::borrow::Cow;

use crate::core::command_line::words::Quotes;

const BEGIN: &str = "$(cat <<";
/// A parameter that has no value of the line.
const INSTEAD: &str = "${_}";
/// Before one of these, it is not known here how a shell reads what follows.
const UNCLEAR: [&str; 12] = ["$(", "${", "$[", "$'", "$\"", "`", "\\", "#", "<<", "<(", ">(", "=("];

/// A line with a parameter instead of each such document.
pub(super) fn without_inner(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    let mut from = 0;
    while let Some((at, end)) = document(&text, from) {
        text = Cow::Owned([&text[..at], INSTEAD, &text[end..]].concat());
        from = at + INSTEAD.len();
    }
    text
}

/// Where the first document is whose text is taken as it is. What is before `from` is known to be read so.
fn document(text: &str, from: usize) -> Option<(usize, usize)> {
    let at = text.find(BEGIN)?;
    let before = &text[..at];
    if UNCLEAR.iter().any(|it| before.get(from..).is_none_or(|rest| rest.contains(it))) {
        return None;
    }
    let mut quotes = Quotes::default();
    before.chars().for_each(|letter| quotes.take(letter));
    let (delimiter, body) = text[at + BEGIN.len()..].split_once('\n')?;
    let delimiter = delimiter.trim();
    let quoted = ['\'', '"'].iter().find_map(|it| delimiter.strip_prefix(*it)?.strip_suffix(*it));
    let name = quoted.unwrap_or(delimiter);
    let is_plain =
        !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    let (inner, behind) = body.split_at(body.find(&format!("\n{name}\n"))? + 1);
    // Some shells take a line for the end that only begins so.
    let ends_before = inner.lines().any(|line| line.trim_start().starts_with(name));
    let is_expanded = quoted.is_none() && inner.contains(['$', '`', '\\']);
    let behind = behind[name.len()..].trim_start().strip_prefix(')')?;
    let is_text = is_plain && !quotes.single && !ends_before && !is_expanded;
    is_text.then_some((at, text.len() - behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_taken_as_it_is_becomes_a_parameter() {
        for (text, expected) in [
            ("a \"$(cat <<'X'\nit's `b` $(c)\nX\n)\" d", "a \"${_}\" d"),
            ("a $(cat << \"X\"\nb\nX\n  )", "a ${_}"),
            ("a \"$(cat <<X\nb (c)\nX\n)\"", "a \"${_}\""),
            ("a 'b' \"$(cat <<'X'\nb\nX\n)\" \"$(cat <<'Y'\nX\nY\n)\"", "a 'b' \"${_}\" \"${_}\""),
        ] {
            assert_eq!(without_inner(text), expected);
        }
    }

    #[test]
    fn a_document_stays_where_something_of_it_may_run() {
        for text in [
            ": '$(cat <<'X'\n'; rm -rf x; : '\nX\n)'",
            ": \\$(cat <<'X'\n; rm -rf x; :\nX\n)",
            ": # $(cat <<'X'\nrm -rf x\nX\n)",
            "cat <<Y $(cat <<'X'\nY\nrm -rf x\nX\n)",
            "a \"$(cat <<X\n$(rm -rf x)\nX\n)\"",
            "a \"$(cat <<'X'\nX)\"; rm -rf x; : \"\nX\n)\"",
            "a \"$(cat <<'X'\nb\nX\nrm -rf x\n)\"",
            "a \"$(cat <<'X' | sh\nrm -rf x\nX\n)\"",
            "a \"$(cat <<'X'\nrm -rf x\nX)\"",
        ] {
            assert_eq!(without_inner(text), text);
        }
    }
}
