//! Suggestions for misspelt words in errors.

/// A longer word gets no suggestions, which bounds the work.
const RESEMBLING_MAX: usize = 40;

/// Returns at most `most` words similar to `word`, the nearest first. It ignores case.
pub fn nearest_of<'a>(
    word: &str,
    words: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if word.chars().count() > RESEMBLING_MAX {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = words
        .map(|name| (distance(word, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(word.len()).max(3) / 3)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

fn distance(word: &str, name: &str) -> usize {
    strsim::osa_distance(&word.to_ascii_lowercase(), &name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_neighbours_is_one_mistake() {
        assert_eq!(distance("Entre", "enter"), 1);
        assert_eq!(distance("", "Up"), 2);
        assert_eq!(distance("Escape", "Escape"), 0);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_word_is_resembled_by_those_that_a_third_of_its_letters_make() {
        let words = ["lease.ttl_ms", "lease.auto", "history.rows"];
        assert_eq!(nearest_of("lease.ttl", words.into_iter(), 1), ["lease.ttl_ms"]);
        assert!(nearest_of("colour", words.into_iter(), 1).is_empty());
        assert!(nearest_of("nope", ["core", "tui"].into_iter(), 1).is_empty());
        assert_eq!(nearest_of("ui", ["core", "tui"].into_iter(), 1), ["tui"]);
        assert!(nearest_of(&"x".repeat(1_000), words.into_iter(), 1).is_empty());
    }
}
