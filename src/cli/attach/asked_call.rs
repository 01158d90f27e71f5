//! The call that a person is asked about: how much of it the terminal shows, and what the keys that decide do then.
//!
//! A key decides the call of the last picture, and approves only what that picture showed to its end.

use std::time::Duration;

use tokio::time::Instant;

use crate::cli::attach::renderer::TerminalSize;
use crate::cli::attach::words::{broken, wrapped};
use crate::wire::policy::ApprovalWire;

/// For how long no key decides a call that has taken the place of another: it may be meant for that one.
const GLANCE: Duration = Duration::from_secs(1);

/// The number of a page of the call, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageNumber {
    pub number: usize,
    pub of: usize,
}

impl PageNumber {
    pub fn is_last(self) -> bool {
        self.number == self.of
    }
}

/// A page of the whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPage {
    pub number: PageNumber,
    pub rows: Vec<String>,
}

impl CallPage {
    /// The page at this index of a call, for a session with this much room; none behind the last.
    pub fn of(call: &ApprovalWire, index: usize, room: TerminalSize) -> Option<Self> {
        let (height, cols) = (usize::from(room.rows), usize::from(room.cols));
        let place = call.directory.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
        let mut rows = wrapped(&format!("{} waits to do{place}:", call.by), cols);
        rows.extend(broken(&call.what, cols));
        if rows.len() <= height {
            let number = PageNumber { number: 1, of: 1 };
            return (index == 0).then_some(Self { number, rows });
        }
        // The first row says which page it is, where there is a second one.
        let pages = rows.chunks(height.saturating_sub(1).max(1));
        let number = PageNumber { number: index + 1, of: pages.len() };
        let title = format!("page {} of {}", number.number, number.of);
        let title = (height > 1).then_some(title);
        let page = pages.into_iter().nth(index)?;
        Some(Self { number, rows: title.into_iter().chain(page.iter().cloned()).collect() })
    }
}

/// What the last picture showed of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallExtent {
    /// The index of the page that covered the session.
    pub page: Option<usize>,
    /// Whether the picture showed the end of the call, after all before it.
    pub whole: bool,
}

/// What a key does that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKey<'a> {
    /// It decides the call with this id.
    Decides(&'a str),
    /// It shows the page at this index.
    Shows(usize),
    /// The person may have read another call.
    TooSoon,
    NothingWaits,
}

/// The call of the last picture.
#[derive(Debug, Default)]
pub struct DrawnCall {
    id: Option<String>,
    extent: CallExtent,
    /// When another call was in the picture last.
    left: Option<Instant>,
    /// Until when no key decides.
    settles: Option<Instant>,
}

impl DrawnCall {
    /// Notes the call of a new picture.
    pub fn on_drawn(&mut self, id: Option<&str>, extent: CallExtent, now: Instant) {
        if self.id.as_deref() != id {
            if self.id.is_some() {
                self.left = Some(now);
            }
            let replaces = self.left.is_some_and(|left| now < left + GLANCE);
            self.settles = replaces.then(|| now + GLANCE);
            self.id = id.map(str::to_owned);
        }
        self.extent = extent;
    }

    /// Whether this call is in the picture.
    pub fn is(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// What the key does that approves or, without `grants`, denies.
    pub fn on_key(&self, grants: bool, now: Instant) -> DecisionKey<'_> {
        match &self.id {
            None => DecisionKey::NothingWaits,
            Some(_) if self.settles.is_some_and(|settles| now < settles) => DecisionKey::TooSoon,
            Some(_) if grants && !self.extent.whole => {
                DecisionKey::Shows(self.extent.page.map_or(0, |page| page + 1))
            }
            Some(id) => DecisionKey::Decides(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::attach::words::columns;

    const WHOLE: CallExtent = CallExtent { page: None, whole: true };
    const CUT: CallExtent = CallExtent { page: None, whole: false };

    fn drawn(id: &str, extent: CallExtent, now: Instant) -> DrawnCall {
        let mut drawn = DrawnCall::default();
        drawn.on_drawn(Some(id), extent, now);
        drawn
    }

    #[test]
    fn what_is_shown_whole_is_approved_and_what_is_cut_is_shown_page_by_page_first() {
        let now = Instant::now();
        assert_eq!(drawn("a", WHOLE, now).on_key(true, now), DecisionKey::Decides("a"));
        let mut cut = drawn("a", CUT, now);
        assert_eq!(cut.on_key(true, now), DecisionKey::Shows(0));
        assert_eq!(cut.on_key(false, now), DecisionKey::Decides("a"));
        cut.on_drawn(Some("a"), CallExtent { page: Some(0), whole: false }, now);
        assert_eq!(cut.on_key(true, now), DecisionKey::Shows(1));
        cut.on_drawn(Some("a"), CallExtent { page: Some(1), whole: true }, now);
        assert_eq!(cut.on_key(true, now), DecisionKey::Decides("a"));
    }

    #[test]
    fn for_a_second_no_key_decides_a_call_that_took_the_place_of_another() {
        let begun = Instant::now();
        let after = |millis| begun + Duration::from_millis(millis);
        // Directly, or after a picture without any.
        for between in [Some("b"), None] {
            let mut drawn = drawn("a", WHOLE, begun);
            drawn.on_drawn(between, WHOLE, after(5_000));
            drawn.on_drawn(Some("b"), WHOLE, after(5_050));
            for grants in [true, false] {
                assert_eq!(drawn.on_key(grants, after(5_100)), DecisionKey::TooSoon);
                assert_eq!(drawn.on_key(grants, after(5_999)), DecisionKey::TooSoon);
                assert_eq!(drawn.on_key(grants, after(6_050)), DecisionKey::Decides("b"));
            }
        }
        let mut later = drawn("a", WHOLE, begun);
        later.on_drawn(None, CUT, after(10));
        assert_eq!(later.on_key(true, after(20)), DecisionKey::NothingWaits);
        later.on_drawn(Some("b"), WHOLE, after(1_010));
        assert_eq!(later.on_key(true, after(1_010)), DecisionKey::Decides("b"));
    }

    #[test]
    fn the_pages_have_every_character_of_the_call_and_fit_terminals_of_any_size() {
        let what = format!("rm -fr  build/ && {} 漢字", "echo b; ".repeat(40));
        let call = ApprovalWire {
            approval_id: "1f3a2b4c".to_owned(),
            what: what.clone(),
            tool: "run".to_owned(),
            by: "claude#p3".to_owned(),
            tenant: "uid:1000".to_owned(),
            session: None,
            session_name: None,
            directory: Some("/srv".to_owned()),
            rule: None,
            reason: None,
            expires_in_ms: 1,
        };
        for (rows, cols) in [(23, 80), (3, 40), (2, 20), (1, 30), (40, 200)] {
            let room = TerminalSize { rows, cols };
            let pages: Vec<CallPage> =
                (0..).map_while(|at| CallPage::of(&call, at, room)).collect();
            let mut shown = Vec::new();
            for (index, page) in pages.iter().enumerate() {
                let number = PageNumber { number: index + 1, of: pages.len() };
                assert_eq!(page.number, number, "{rows}x{cols}");
                assert_eq!(page.number.is_last(), index + 1 == pages.len());
                assert!(page.rows.len() <= usize::from(rows), "{rows}x{cols}");
                assert!(page.rows.iter().all(|row| columns(row) <= usize::from(cols)));
                shown.extend(page.rows.iter().filter(|row| !row.starts_with("page ")).cloned());
            }
            let head = "claude#p3 waits to do in /srv:";
            let head_rows = wrapped(head, cols.into()).len();
            assert_eq!(shown[..head_rows].join(" "), head);
            assert_eq!(shown[head_rows..].concat(), what, "{rows}x{cols}");
        }
    }
}
