//! Notices of the status line: a text that is shown for a while, and as long as its reason holds.

use std::time::Duration;

use tokio::time::Instant;

use crate::wire::lease::LeaseWire;

/// The longest time that a notice is shown.
const NOTICE_TIME: Duration = Duration::from_secs(5);

/// Why a notice is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeReason {
    /// An event, which stays true.
    News,
    /// This person has the keyboard, or does not have it.
    Keyboard { mine: bool },
    /// A search in history found nothing, and the person still looks at it.
    NotFound,
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
    /// The lease is this person's.
    pub mine: bool,
    pub read_only: bool,
    pub in_history: bool,
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
            NoticeReason::Refused
            | NoticeReason::HeldBy(_)
            | NoticeReason::ReadOnly
            | NoticeReason::Silence => true,
            NoticeReason::News | NoticeReason::Keyboard { .. } | NoticeReason::NotFound => false,
        }
    }

    /// Whether it is about a search, which the next key in history ends.
    pub fn is_of_search(&self) -> bool {
        self.ground == NoticeReason::NotFound
    }

    /// Whether its reason still holds.
    pub fn holds(&mut self, now: Now<'_>) -> bool {
        let of_lease = match &self.ground {
            NoticeReason::News | NoticeReason::Refused => return true,
            NoticeReason::NotFound => return now.in_history,
            NoticeReason::ReadOnly => return now.read_only,
            NoticeReason::Silence => return now.silent,
            NoticeReason::HeldBy(by) => now.lease.by.as_ref() == Some(by),
            NoticeReason::Keyboard { mine } => now.mine == *mine,
        };
        self.seen |= of_lease;
        of_lease || !self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(ground: NoticeReason) -> Notice {
        Notice::new("told".to_owned(), ground, Instant::now())
    }

    fn lease_of(by: &str) -> LeaseWire {
        LeaseWire { held: !by.is_empty(), by: Some(by.to_owned()), ..LeaseWire::default() }
    }

    fn holds(notice: &mut Notice, by: &str, read_only: bool, silent: bool) -> bool {
        let (mine, in_history) = (by == "me", false);
        notice.holds(Now { lease: &lease_of(by), mine, read_only, silent, in_history })
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
    fn whether_the_person_has_the_keyboard_is_told_while_it_is_so() {
        for (mine, so, otherwise) in [(true, "me", "ada#p1"), (false, "ada#p1", "me")] {
            let mut notice = notice(NoticeReason::Keyboard { mine });
            assert!(holds(&mut notice, otherwise, false, false), "the delta is on its way");
            assert!(holds(&mut notice, so, false, false));
            assert!(!holds(&mut notice, otherwise, false, false));
        }
    }

    #[test]
    fn what_was_not_found_is_told_in_history_alone() {
        let mut notice = notice(NoticeReason::NotFound);
        assert!(notice.is_of_search() && !notice.is_refusal());
        assert!(!holds(&mut notice, "", false, false));
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
