//! What a person selects in `top` and asks for: keys in, wishes out. It knows no terminal and no daemon.

use crate::cli::attach::words::{columns, shortened};
use crate::core::keys::tokens::keys_of;
use crate::core::one_line::one_line;

const INTERRUPT: &[u8] = b"\x03";

/// The keys, in shorter forms for narrow screens.
const KEYS: [&str; 4] = [
    "arrows: select  Enter: attach  k: kill  q: leave",
    "Enter: attach  k: kill  q: leave",
    "k: kill  q: leave",
    "q: leave",
];

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TopWish {
    Leave,
    Attach { session: String },
    Kill { session: String },
}

/// A session that can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choosable {
    pub(super) id: String,
    pub(super) name: String,
    /// Its program has ended, so that to kill it is to remove it.
    pub(super) ended: bool,
}

/// The selected session, and what is asked or told in the last line.
#[derive(Debug, Default)]
pub(super) struct Choice {
    sessions: Vec<Choosable>,
    /// An index into the sessions; 0 where there are none.
    selected: usize,
    asked: Option<Choosable>,
    told: Option<String>,
}

impl Choice {
    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// Follows the selected session to its place among these; if it is gone, the place stays.
    pub(super) fn on_picture(&mut self, sessions: Vec<Choosable>) {
        let id = self.sessions.get(self.selected).map(|session| &session.id);
        let place = sessions.iter().position(|session| Some(&session.id) == id);
        self.selected = place.unwrap_or(self.selected).min(sessions.len().saturating_sub(1));
        self.sessions = sessions;
    }

    /// Takes the keys in order, up to the first that asks for something.
    pub(super) fn on_keys(&mut self, bytes: &[u8]) -> Option<TopWish> {
        keys_of(bytes).into_iter().find_map(|key| self.on_key(&key))
    }

    /// Tells the first line of this until the next key.
    pub(super) fn tell(&mut self, text: &str) {
        self.told = text.trim().lines().next().map(|line| one_line(line).into_owned());
    }

    /// The last line of a screen with so many columns.
    pub(super) fn bottom(&self, cols: usize) -> String {
        if let Some(Choosable { name, ended, .. }) = &self.asked {
            let verb = if *ended { "remove" } else { "kill" };
            let asked = format!("{verb} {name}? y: yes");
            let whole = format!("{asked}, any other key: no");
            return if columns(&whole) <= cols { whole } else { shortened(&asked, cols) };
        }
        if let Some(told) = &self.told {
            return shortened(told, cols);
        }
        let fitting = KEYS.into_iter().find(|keys| columns(keys) <= cols);
        fitting.unwrap_or_default().to_owned()
    }

    fn on_key(&mut self, key: &[u8]) -> Option<TopWish> {
        self.told = None;
        if let Some(Choosable { id: session, .. }) = self.asked.take() {
            return match key {
                b"y" | b"Y" => Some(TopWish::Kill { session }),
                INTERRUPT => Some(TopWish::Leave),
                _ => None,
            };
        }
        let last = self.sessions.len().saturating_sub(1);
        match key {
            b"\x1b[A" | b"\x1bOA" => self.selected = self.selected.saturating_sub(1),
            b"\x1b[B" | b"\x1bOB" => self.selected = (self.selected + 1).min(last),
            b"\r" | b"\n" => {
                let session = self.sessions.get(self.selected)?.id.clone();
                return Some(TopWish::Attach { session });
            }
            b"k" | b"K" => self.asked = self.sessions.get(self.selected).cloned(),
            b"q" | b"Q" | INTERRUPT => return Some(TopWish::Leave),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(ids: &[&str]) -> Vec<Choosable> {
        let session = |id: &&str| Choosable {
            id: (*id).to_owned(),
            name: id.to_uppercase(),
            ended: *id == "ended",
        };
        ids.iter().map(session).collect()
    }

    fn attach(session: &str) -> Option<TopWish> {
        Some(TopWish::Attach { session: session.to_owned() })
    }

    #[test]
    fn arrows_select_and_enter_attaches() {
        let mut choice = Choice::default();
        assert_eq!(choice.on_keys(b"\r"), None);
        choice.on_picture(sessions(&["a", "b", "c"]));
        assert_eq!(choice.on_keys(b"\r"), attach("a"));
        assert_eq!(choice.on_keys(b"\x1b[B\r"), attach("b"));
        assert_eq!(choice.on_keys(b"\x1bOB\x1b[B\r"), attach("c"));
        assert_eq!(choice.on_keys(b"\x1b[A\x1b[A\x1b[A\r"), attach("a"));
    }

    #[test]
    fn the_selection_follows_its_session_and_keeps_its_place_when_that_is_gone() {
        let mut choice = Choice::default();
        choice.on_picture(sessions(&["a", "b", "c"]));
        choice.on_keys(b"\x1b[B\x1b[B");
        choice.on_picture(sessions(&["c", "a", "b"]));
        assert_eq!(choice.on_keys(b"\r"), attach("c"));
        choice.on_picture(sessions(&["a", "b"]));
        assert_eq!(choice.on_keys(b"\x1b[B\r"), attach("b"));
        choice.on_picture(sessions(&["a"]));
        assert_eq!(choice.on_keys(b"\r"), attach("a"));
    }

    #[test]
    fn a_session_is_killed_after_a_question_only() {
        let mut choice = Choice::default();
        choice.on_picture(sessions(&["a", "ended"]));
        for no in [&b"n"[..], b"\r", b"q", b"k", b"\x1b[A"] {
            assert_eq!(choice.on_keys(b"k"), None);
            assert_eq!(choice.bottom(80), "kill A? y: yes, any other key: no");
            assert_eq!(choice.on_keys(no), None);
        }
        assert_eq!(choice.on_keys(b"y"), None);
        assert_eq!(choice.on_keys(b"ky"), Some(TopWish::Kill { session: "a".to_owned() }));
        choice.on_keys(b"\x1b[Bk");
        assert!(choice.bottom(80).starts_with("remove ENDED?"));
        // Which one was asked about counts, whatever comes to its place.
        choice.on_picture(sessions(&["a", "b"]));
        assert_eq!(choice.on_keys(b"y"), Some(TopWish::Kill { session: "ended".to_owned() }));
    }

    #[test]
    fn what_is_told_stands_until_the_next_key() {
        let mut choice = Choice::default();
        choice.tell("[detached from a]\nmore");
        assert_eq!(choice.bottom(80), "[detached from a]");
        assert_eq!(choice.on_keys(b"x"), None);
        assert!(choice.bottom(80).contains("Enter: attach"));
    }

    #[test]
    fn the_last_line_is_whole_on_screens_of_any_width() {
        let mut choice = Choice::default();
        for (cols, keys) in [(48, KEYS[0]), (47, KEYS[1]), (20, KEYS[2]), (10, KEYS[3]), (4, "")] {
            assert_eq!(choice.bottom(cols), keys, "{cols}");
        }
        choice.on_picture(sessions(&["build"]));
        choice.on_keys(b"k");
        assert_eq!(choice.bottom(20), "kill BUILD? y: yes");
        assert_eq!(choice.bottom(12), "kill BUILD?…");
        choice.tell("[detached from build]");
        choice.on_keys(b"n");
        choice.tell("[detached from build]");
        assert_eq!(choice.bottom(20), "[detached from…");
    }

    #[test]
    fn leaving_keys_leave_and_sequences_of_other_keys_do_nothing() {
        let mut choice = Choice::default();
        for leaving in [&b"q"[..], b"Q", b"\x03", b"k\x03"] {
            assert_eq!(choice.on_keys(leaving), Some(TopWish::Leave), "{leaving:?}");
        }
        for other in [&b"\x1b[1;5q"[..], b"\x1b[", b"\x1b", b"x", b"\x1b[15~", b"\x1bOQ"] {
            assert_eq!(choice.on_keys(other), None, "{other:?}");
        }
    }
}
