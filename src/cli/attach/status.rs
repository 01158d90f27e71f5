//! The status line: the session's name, who has the keyboard, and the available keys.

use crate::cli::attach::view::{Holder, View};

/// The content of the status line besides the session itself.
#[derive(Clone, Debug, Default)]
pub struct Status<'a> {
    /// The session's name; empty until it is known.
    pub name: &'a str,
    /// The person's name for others, such as `ada#p7`; empty until it is known.
    pub me: &'a str,
    /// Why this person only watches.
    pub watching: Option<&'a str>,
    /// A notice, which goes before the rest.
    pub news: Option<&'a str>,
    /// The position in history.
    pub history: Option<&'a str>,
}

/// The second keys of chords.
const KEYS: [&str; 6] =
    ["d detach", "t take over", "h hand back", "[ history", "? these keys", "C-\\ itself"];

/// The list of keys, wrapped to this many columns.
pub fn keys(cols: u16) -> Vec<String> {
    let mut rows = vec![format!("C-\\ then: {}", KEYS[0])];
    for key in &KEYS[1..] {
        let row = rows.last_mut().expect("there is one from the beginning");
        if row.len() + " | ".len() + key.len() <= usize::from(cols) {
            row.push_str(" | ");
            row.push_str(key);
        } else {
            rows.push((*key).to_owned());
        }
    }
    rows
}

impl Status<'_> {
    /// The text, with the most important parts first, since its end may be cut off. It is empty until the
    /// session's and the person's names are known.
    pub fn text(&self, view: &View) -> String {
        if self.name.is_empty() || self.me.is_empty() {
            return String::new();
        }
        let mut parts = vec![self.name.to_owned()];
        parts.extend(self.history.map(str::to_owned));
        parts.extend(self.news.map(str::to_owned));
        parts.extend(self.watching.map(str::to_owned));
        parts.push(self.keyboard(view));
        parts.extend(view.lease.suspended.as_ref().map(waiting_holder));
        if view.lease.waiters > 0 {
            parts.push(format!("{} waiting", view.lease.waiters));
        }
        parts.push("C-\\ ? help".to_owned());
        parts.join(" | ")
    }

    fn keyboard(&self, view: &View) -> String {
        let lease = &view.lease;
        if let Some(exit) = &view.exit {
            return exit.to_string();
        }
        if !lease.held {
            return "nobody has the keyboard".to_owned();
        }
        if lease.holder.by == self.me {
            return "you have the keyboard".to_owned();
        }
        format!("{} has the keyboard{}", named(&lease.holder), doing(&lease.holder))
    }
}

fn waiting_holder(holder: &Holder) -> String {
    format!("{} waits until you hand back{}", named(holder), doing(holder))
}

/// A person's name is enough; several programs may share one, so they keep their number.
fn named(holder: &Holder) -> String {
    match holder.kind.as_str() {
        "human" => person(&holder.by).to_owned(),
        kind => format!("{kind} {}", holder.by),
    }
}

/// A person's name, without the number that the daemon appends.
pub fn person(by: &str) -> &str {
    by.rsplit_once("#p").map_or(by, |(name, _)| name)
}

fn doing(holder: &Holder) -> String {
    holder.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::attach::view::{Ended, Lease};

    fn holder(by: &str, kind: &str, reason: Option<&str>) -> Holder {
        Holder { by: by.to_owned(), kind: kind.to_owned(), reason: reason.map(str::to_owned) }
    }

    const STATUS: Status<'_> =
        Status { name: "b", me: "ada#p7", watching: None, news: None, history: None };

    fn held_by(holder: Holder) -> View {
        let mut view = View::default();
        view.lease = Lease { held: true, holder, ..Lease::default() };
        view
    }

    #[test]
    fn the_holder_and_what_it_is_doing_are_named() {
        let view = held_by(holder("claude#p3", "agent", Some("running the tests")));
        let status = Status { name: "build", me: "ada#p7", ..Status::default() };
        let expected = "build | agent claude#p3 has the keyboard: running the tests | C-\\ ? help";
        assert_eq!(status.text(&view), expected);
    }

    #[test]
    fn people_are_called_by_their_names() {
        let view = held_by(holder("ada (2)#p9", "human", None));
        assert_eq!(STATUS.text(&view), "b | ada (2) has the keyboard | C-\\ ? help");
    }

    #[test]
    fn nothing_is_told_before_it_is_known_whose_session_this_is() {
        let view = held_by(holder("ada#p7", "human", None));
        assert_eq!(Status { name: "", ..STATUS }.text(&view), "");
        assert_eq!(Status { me: "", ..STATUS }.text(&view), "");
    }

    #[test]
    fn a_person_reads_that_the_keyboard_is_its_own_and_who_waits() {
        let mut view = held_by(holder("ada#p7", "human", None));
        view.lease.suspended = Some(holder("claude#p3", "agent", None));
        view.lease.waiters = 2;
        let status = Status { name: "build", me: "ada#p7", ..Status::default() };
        let expected = "build | you have the keyboard | agent claude#p3 waits until you hand back | \
                        2 waiting | C-\\ ? help";
        assert_eq!(status.text(&view), expected);
    }

    #[test]
    fn news_come_before_the_rest() {
        let status = Status { news: Some("typed nothing"), ..STATUS };
        let told = status.text(&View::default());
        assert!(told.starts_with("b | typed nothing | nobody has the keyboard"), "{told}");
    }

    #[test]
    fn the_keys_take_as_many_rows_as_they_need() {
        let whole = "C-\\ then: d detach | t take over | h hand back | [ history | ? these keys | C-\\ itself";
        assert_eq!(keys(100), [whole]);
        assert_eq!(
            keys(60),
            [
                "C-\\ then: d detach | t take over | h hand back | [ history",
                "? these keys | C-\\ itself"
            ]
        );
        assert_eq!(keys(1).len(), 6);
    }

    #[test]
    fn why_a_person_only_watches_comes_before_who_types() {
        let view = held_by(holder("claude#p3", "agent", Some("running the tests")));
        let status = Status { watching: Some("watching only"), ..STATUS };
        assert!(status.text(&view).starts_with("b | watching only | agent claude#p3 has"));
    }

    #[test]
    fn the_end_of_the_program_is_told() {
        let mut view = View::default();
        view.exit = Some(Ended { code: Some(3), ..Ended::default() });
        assert_eq!(STATUS.text(&view), "b | ended with code 3 | C-\\ ? help");
    }
}
