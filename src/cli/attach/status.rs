//! The status line: the session's name, who has the keyboard, and the available keys.

use std::time::Duration;

use tokio::time::Instant;

use crate::cli::attach::view::SessionView;
use crate::wire::lease::{LeaseWire, PrincipalKind, SuspendedWire};
use crate::wire::word;

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
    pub fn text(&self, view: &SessionView) -> String {
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

    fn keyboard(&self, view: &SessionView) -> String {
        let lease = &view.lease;
        if let Some(exit) = &view.exit {
            return exit.to_string();
        }
        let (Some(by), Some(kind)) = (&lease.by, lease.kind) else {
            return "the keyboard is free".to_owned();
        };
        if by == self.me {
            return "you have the keyboard".to_owned();
        }
        format!("{} has the keyboard{}", named(by, kind), doing(lease.reason.as_ref()))
    }
}

fn waiting_holder(SuspendedWire { by, kind, reason }: &SuspendedWire) -> String {
    format!("{} waits until you hand back{}", named(by, *kind), doing(reason.as_ref()))
}

/// A person's name is enough; several programs may share one, so they keep their number.
fn named(by: &str, kind: PrincipalKind) -> String {
    match kind {
        PrincipalKind::Human => person(by).to_owned(),
        PrincipalKind::Agent | PrincipalKind::Operator => format!("{} {by}", word(&kind)),
    }
}

/// A person's name, without the number that the daemon appends.
pub fn person(by: &str) -> &str {
    by.rsplit_once("#p").map_or(by, |(name, _)| name)
}

fn doing(reason: Option<&String>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// The longest time that a notice is shown.
const NOTICE_TIME: Duration = Duration::from_secs(5);

/// Why a notice is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeReason {
    /// An event, which stays true.
    News,
    /// Typing is refused, and no message reports the end of it.
    Refused,
    /// Typing is refused while this principal has the keyboard.
    HeldBy(String),
    /// Typing is refused while writing is switched off.
    ReadOnly,
    /// The daemon does not answer.
    Silence,
}

/// The current state, to check a notice against.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    pub lease: &'a LeaseWire,
    pub read_only: bool,
    /// The daemon does not answer.
    pub silent: bool,
}

/// A text with its reason.
#[derive(Clone, Debug)]
pub struct Notice {
    text: String,
    ground: NoticeReason,
    until: Instant,
    /// Whether the lease has matched the notice. The notice may precede the lease's delta.
    seen: bool,
}

impl Notice {
    pub fn new(text: String, ground: NoticeReason, now: Instant) -> Self {
        Self { text, ground, until: now + NOTICE_TIME, seen: false }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// When the notice expires.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Whether it reports that typing is refused. Successful typing ends such a notice.
    pub fn is_refusal(&self) -> bool {
        match self.ground {
            NoticeReason::Refused | NoticeReason::HeldBy(_) | NoticeReason::ReadOnly => true,
            NoticeReason::News | NoticeReason::Silence => false,
        }
    }

    /// Whether its reason still holds.
    pub fn holds(&mut self, now: Now<'_>) -> bool {
        match &self.ground {
            NoticeReason::News | NoticeReason::Refused => true,
            NoticeReason::HeldBy(by) => {
                let held = now.lease.by.as_ref() == Some(by);
                self.seen |= held;
                held || !self.seen
            }
            NoticeReason::ReadOnly => now.read_only,
            NoticeReason::Silence => now.silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::session::ExitWire;

    fn holder(by: &str, kind: PrincipalKind, reason: Option<&str>) -> SuspendedWire {
        SuspendedWire { by: by.to_owned(), kind, reason: reason.map(str::to_owned) }
    }

    const STATUS: Status<'_> =
        Status { name: "b", me: "ada#p7", watching: None, news: None, history: None };

    fn held_by(SuspendedWire { by, kind, reason }: SuspendedWire) -> SessionView {
        let (by, kind) = (Some(by), Some(kind));
        let lease = LeaseWire { held: true, by, kind, reason, ..LeaseWire::default() };
        let mut view = SessionView::default();
        view.lease = lease;
        view
    }

    #[test]
    fn the_holder_and_what_it_is_doing_are_named() {
        let view = held_by(holder("claude#p3", PrincipalKind::Agent, Some("running the tests")));
        let status = Status { name: "build", me: "ada#p7", ..Status::default() };
        let expected = "build | agent claude#p3 has the keyboard: running the tests | C-\\ ? help";
        assert_eq!(status.text(&view), expected);
    }

    #[test]
    fn people_are_called_by_their_names() {
        let view = held_by(holder("ada (2)#p9", PrincipalKind::Human, None));
        assert_eq!(STATUS.text(&view), "b | ada (2) has the keyboard | C-\\ ? help");
    }

    #[test]
    fn nothing_is_told_before_it_is_known_whose_session_this_is() {
        let view = held_by(holder("ada#p7", PrincipalKind::Human, None));
        assert_eq!(Status { name: "", ..STATUS }.text(&view), "");
        assert_eq!(Status { me: "", ..STATUS }.text(&view), "");
    }

    #[test]
    fn a_person_reads_that_the_keyboard_is_its_own_and_who_waits() {
        let mut view = held_by(holder("ada#p7", PrincipalKind::Human, None));
        view.lease.suspended = Some(holder("claude#p3", PrincipalKind::Agent, None));
        view.lease.waiters = 2;
        let status = Status { name: "build", me: "ada#p7", ..Status::default() };
        let expected = "build | you have the keyboard | agent claude#p3 waits until you hand back | \
                        2 waiting | C-\\ ? help";
        assert_eq!(status.text(&view), expected);
    }

    #[test]
    fn news_come_before_the_rest() {
        let status = Status { news: Some("typed nothing"), ..STATUS };
        let told = status.text(&SessionView::default());
        assert!(told.starts_with("b | typed nothing | the keyboard is free"), "{told}");
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
        let view = held_by(holder("claude#p3", PrincipalKind::Agent, Some("running the tests")));
        let status = Status { watching: Some("watching only"), ..STATUS };
        assert!(status.text(&view).starts_with("b | watching only | agent claude#p3 has"));
    }

    #[test]
    fn the_end_of_the_program_is_told() {
        let mut view = SessionView::default();
        view.exit = Some(ExitWire { code: Some(3), ..ExitWire::default() });
        assert_eq!(STATUS.text(&view), "b | exited with code 3 | C-\\ ? help");
    }

    fn notice(ground: NoticeReason) -> Notice {
        Notice::new("told".to_owned(), ground, Instant::now())
    }

    fn lease_of(by: &str) -> LeaseWire {
        LeaseWire { held: !by.is_empty(), by: Some(by.to_owned()), ..LeaseWire::default() }
    }

    fn holds(notice: &mut Notice, by: &str, read_only: bool, silent: bool) -> bool {
        notice.holds(Now { lease: &lease_of(by), read_only, silent })
    }

    #[test]
    fn who_has_the_keyboard_is_told_until_somebody_else_has_it() {
        for next in ["", "ada#p1"] {
            let mut notice = notice(NoticeReason::HeldBy("ben#p2".to_owned()));
            assert!(holds(&mut notice, "ada#p1", false, false), "the delta is on its way");
            assert!(holds(&mut notice, "ben#p2", false, false));
            assert!(!holds(&mut notice, next, false, false));
        }
    }

    #[test]
    fn what_is_switched_off_is_told_until_it_is_on() {
        let mut off = notice(NoticeReason::ReadOnly);
        assert!(holds(&mut off, "", true, false));
        assert!(!holds(&mut off, "", false, false));
        let mut silence = notice(NoticeReason::Silence);
        assert!(holds(&mut silence, "", false, true));
        assert!(!holds(&mut silence, "", false, false));
    }

    #[test]
    fn what_happened_is_told_for_its_time_and_only_refusals_end_by_typing() {
        let mut news = notice(NoticeReason::News);
        assert!(holds(&mut news, "ada#p1", true, true) && !news.is_refusal());
        assert!(notice(NoticeReason::Refused).is_refusal());
    }
}
