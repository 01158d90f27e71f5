//! The list of termgate's own keys, in pages that fit the terminal.

use crate::cli::attach::renderer::TerminalSize;
use crate::cli::attach::words::{columns, wrapped};
use crate::core::keys::control::ControlKey;

/// The list to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyList {
    /// The names of the keys, while a chord is open.
    Names,
    /// This page of what the keys do, from 0.
    Explained(usize),
}

/// The second keys of chords that somebody who only watches does not have.
const TYPISTS: [&str; 2] = ["t", "h"];

/// The second keys of chords, each with what it does in a word and in a sentence.
const KEYS: [(&str, &str, &str); 7] = [
    ("d", "detach", "detach; the session goes on"),
    ("t", "take over", "take over: keep the keyboard until you hand back"),
    ("h", "hand back", "hand the keyboard back"),
    ("[", "history", "browse the history; / searches, n and N search on, q leaves"),
    (
        "y",
        "approve",
        "let the call pass that waits for an approval; show all of it first if the last line cuts it",
    ),
    ("n", "deny", "deny that call"),
    ("?", "help", "show this list"),
];

/// The last row of a page that others follow.
const MORE: &str = "? more";

impl KeyList {
    /// The rows of the list for a terminal with this much room; none behind the last page.
    pub fn rows(
        self,
        prefix: ControlKey,
        view_only: bool,
        room: TerminalSize,
    ) -> Option<Vec<String>> {
        let cols = usize::from(room.cols);
        let (rows, page) = match self {
            Self::Names => (names(prefix, view_only, cols), 0),
            Self::Explained(page) => (explained(prefix, view_only, cols), page),
        };
        paged(rows, room.rows.into()).into_iter().nth(page)
    }
}

fn keys(
    view_only: bool,
) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    KEYS.iter().filter(move |(key, ..)| !(view_only && TYPISTS.contains(key)))
}

fn names(prefix: ControlKey, view_only: bool, cols: usize) -> Vec<String> {
    let names = keys(view_only).map(|(key, word, _)| format!("{key} {word}"));
    let mut entries: Vec<_> = names.collect();
    entries[0].insert_str(0, &format!("{prefix} then: "));
    entries.extend((!view_only).then(|| format!("{prefix} itself")));
    let mut rows: Vec<String> = Vec::new();
    for entry in entries {
        match rows.last_mut() {
            Some(row) if columns(row) + " | ".len() + columns(&entry) <= cols => {
                row.push_str(" | ");
                row.push_str(&entry);
            }
            Some(_) | None => rows.extend(wrapped(&entry, cols)),
        }
    }
    rows
}

fn explained(prefix: ControlKey, view_only: bool, cols: usize) -> Vec<String> {
    let about = match view_only {
        true => "You only watch: nothing that you type reaches the program.",
        false => "Typing takes the keyboard; it goes back when you stop for ten seconds.",
    };
    let keys = keys(view_only).map(|(key, _, does)| format!("{prefix} {key} {does}"));
    let itself = (!view_only).then(|| format!("{prefix} {prefix} type {prefix}"));
    let entries = [about.to_owned()].into_iter().chain(keys).chain(itself);
    entries.flat_map(|entry| wrapped(&entry, cols)).collect()
}

/// The rows in pages of this height. All but the last end in a row that says so, unless there is no room.
fn paged(rows: Vec<String>, height: usize) -> Vec<Vec<String>> {
    if rows.len() <= height {
        return vec![rows];
    }
    let mut pages: Vec<Vec<String>> =
        rows.chunks(height.saturating_sub(1).max(1)).map(<[String]>::to_vec).collect();
    let last = pages.len() - 1;
    for page in pages[..last].iter_mut().filter(|page| page.len() < height) {
        page.push(MORE.to_owned());
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: KeyList, rows: u16, cols: u16) -> Vec<String> {
        list.rows(ControlKey::default(), false, TerminalSize { rows, cols }).unwrap_or_default()
    }

    /// All pages of the explained list.
    fn pages(height: u16, cols: u16) -> Vec<Vec<String>> {
        let pages = (0..).map(|page| rows(KeyList::Explained(page), height, cols));
        pages.take_while(|page| !page.is_empty()).collect()
    }

    #[test]
    fn the_names_take_as_many_rows_as_they_need() {
        let whole = "C-\\ then: d detach | t take over | h hand back | [ history | y approve | n deny | ? help | C-\\ itself";
        assert_eq!(rows(KeyList::Names, 9, 120), [whole]);
        let two = [
            "C-\\ then: d detach | t take over | h hand back | [ history",
            "y approve | n deny | ? help | C-\\ itself",
        ];
        assert_eq!(rows(KeyList::Names, 9, 60), two);
        let narrow = ["C-\\ then: d detach", "t take over", "h hand back", "? more"];
        assert_eq!(rows(KeyList::Names, 4, 20), narrow);
    }

    #[test]
    fn somebody_who_only_watches_is_told_no_key_for_typing() {
        let room = TerminalSize { rows: 20, cols: 100 };
        let told = |list: KeyList| list.rows(ControlKey::default(), true, room).unwrap().join(" ");
        assert_eq!(
            told(KeyList::Names),
            "C-\\ then: d detach | [ history | y approve | n deny | ? help"
        );
        let whole = told(KeyList::Explained(0));
        assert!(whole.starts_with("You only watch") && !whole.contains("keyboard"), "{whole}");
    }

    #[test]
    fn every_word_of_the_list_is_shown_on_terminals_of_any_size() {
        let whole = pages(49, 200).concat().join(" ");
        assert!(
            whole.contains("C-\\ t take over: keep the keyboard until you hand back"),
            "{whole}"
        );
        for (height, cols) in [(4, 20), (9, 40), (23, 80), (49, 200), (1, 12), (2, 20)] {
            let pages = pages(height, cols);
            for row in pages.iter().flatten() {
                assert!(columns(row) <= usize::from(cols), "{row}");
            }
            assert!(pages.iter().all(|page| page.len() <= usize::from(height)));
            let told: Vec<_> = pages.concat().into_iter().filter(|row| row != MORE).collect();
            assert_eq!(told.join(" "), whole, "{height}x{cols}");
        }
    }
}
