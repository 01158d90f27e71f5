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
            NoticeReason::Refused
            | NoticeReason::HeldBy(_)
            | NoticeReason::ReadOnly
            | NoticeReason::Silence => true,
            NoticeReason::News => false,
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
