//! The words that resemble a misspelt one, for errors that help.
//!
//! It knows nothing of what the words mean. A long word resembles none, which also bounds the work.

/// Words longer than this resemble nothing.
const RESEMBLING_MAX: usize = 40;

/// The words that resemble `word`, case apart, the nearest first and at most so many.
pub fn nearest_of(
    word: &str,
    words: impl Iterator<Item = &'static str>,
    most: usize,
) -> Vec<&'static str> {
    let word: Vec<char> = word.chars().take(RESEMBLING_MAX + 1).collect();
    if word.len() > RESEMBLING_MAX {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = words
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(word.len()).max(3) / 3)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

/// How many insertions, deletions, replacements and swaps of neighbours lead from one to the other,
/// case apart.
fn distance(word: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut rows = vec![(0..=name.len()).collect::<Vec<usize>>()];
    for (at, letter) in word.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, other) in name.iter().enumerate() {
            let differs = usize::from(!letter.eq_ignore_ascii_case(other));
            let mut best = (rows[at][column] + differs).min(rows[at][column + 1] + 1);
            best = best.min(row[column] + 1);
            let swapped = at > 0
                && column > 0
                && letter.eq_ignore_ascii_case(&name[column - 1])
                && word[at - 1].eq_ignore_ascii_case(other);
            if swapped {
                best = best.min(rows[at - 1][column - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[word.len()][name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_neighbours_is_one_mistake() {
        let distance_of = |word: &str, name| distance(&word.chars().collect::<Vec<_>>(), name);
        assert_eq!(distance_of("Entre", "enter"), 1);
        assert_eq!(distance_of("", "Up"), 2);
        assert_eq!(distance_of("Escape", "Escape"), 0);
        assert_eq!(distance_of("kitten", "sitting"), 3);
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
