//! The words of texts, as the full-text tables have them and as searches ask for them.
//!
//! They begin and end as `core::wait::line_matcher` says, which compares each line that the tables propose.

use std::collections::HashSet;

/// The words of a text in lower case, each once and with blanks between them: the tables do not say where in an entry a
/// word is, so to add it again costs time for nothing.
pub(super) fn distinct_words(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut seen = HashSet::new();
    let mut words = String::with_capacity(lower.len() / 2);
    for word in parts(&lower).filter(|word| seen.insert(*word)) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

/// Asks the tables for these words, which are in lower case. A word of several parts, such as a path, must have them
/// all; the last may be the beginning of a longer one. `None` if the tables have none of them, because they consist of
/// signs.
pub(super) fn match_expression(words: &[String]) -> Option<String> {
    let asked = words.iter().filter_map(|word| {
        // Parts have no quotes.
        let parts: Vec<String> = parts(word).map(|part| format!("\"{part}\"")).collect();
        let ends_whole = word.ends_with(|last: char| !last.is_alphanumeric());
        let last = if ends_whole { "" } else { "*" };
        (!parts.is_empty()).then(|| format!("{}{last}", parts.join(" AND ")))
    });
    let expression = asked.collect::<Vec<_>>().join(" AND ");
    (!expression.is_empty()).then_some(expression)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Option<String> {
        match_expression(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_text_has_each_word_once_and_in_lower_case() {
        assert_eq!(distinct_words("Error: src/a.rs:3\nerror (a)"), "error src a rs 3");
        assert_eq!(distinct_words("‘Größe’ │größe│ 日本 …"), "größe 日本");
        assert_eq!(distinct_words(" -- "), "");
    }

    #[test]
    fn the_parts_of_a_word_are_asked_for_and_the_last_by_its_beginning() {
        let expected = r#""warn"* AND "src" AND "a" AND "rs" AND "3"*"#;
        assert_eq!(asked(&["warn", "src/a.rs:3"]).as_deref(), Some(expected));
        assert_eq!(asked(&["error:", "--"]).as_deref(), Some(r#""error""#));
        assert_eq!(asked(&["\"\"", "*"]), None);
    }
}
