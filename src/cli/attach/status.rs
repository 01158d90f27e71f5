//! The status line: the session's name, who has the keyboard, and the key that helps.

use crate::cli::attach::asked_call::PageNumber;
use crate::cli::attach::bar::{Bar, BarLook};
use crate::cli::attach::notice::Notice;
use crate::cli::attach::scrollback::HistoryPlace;
use crate::cli::attach::view::SessionView;
use crate::cli::attach::words::{columns, shortened};
use crate::core::keys::control::ControlKey;
use crate::wire::lease::{PrincipalKind, SuspendedWire};
use crate::wire::policy::ApprovalWire;
use crate::wire::word;

/// The content of the status line besides the session itself.
#[derive(Clone, Debug, Default)]
pub struct Status<'a> {
    /// The session's name; empty until it is known.
    pub name: &'a str,
    /// The person's name for others, such as `ada#p7`; empty until it is known.
    pub me: &'a str,
    /// Why this person only watches.
    pub watching: Option<Watching>,
    /// A notice, which goes before the rest.
    pub news: Option<&'a Notice>,
    /// The position in history.
    pub history: Option<HistoryPlace>,
    /// A call that waits for an approval.
    pub asks: Option<&'a ApprovalWire>,
    /// The page of that call which covers the session.
    pub page: Option<PageNumber>,
    /// Whether the person took the keyboard over.
    pub taken_over: bool,
    pub prefix: ControlKey,
    pub coloured: bool,
}

/// Why a person cannot type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// The person asked for that.
    Only,
    /// Writing is switched off.
    ReadOnly,
    /// Writing is switched off for this session, while it is on for others.
    Protected,
}

/// A part of the line with its shorter forms.
///
/// Each form has a number for how much is lost without it. The line gives up the smallest loss first.
struct StatusPart(Vec<(u8, String)>);

/// The loss of what is given up last.
const LAST: u8 = u8::MAX;

impl StatusPart {
    fn new(loss: u8, text: impl Into<String>) -> Self {
        Self(vec![(loss, text.into())])
    }

    /// Adds a shorter form, which may be empty.
    fn or(mut self, loss: u8, text: impl Into<String>) -> Self {
        self.0.push((loss, text.into()));
        self
    }

    fn text(&self) -> &str {
        self.0.first().map_or("", |(_, text)| text)
    }

    /// The loss of giving up the current form, if there is a shorter one.
    fn loss(&self) -> Option<u8> {
        (self.0.len() > 1).then(|| self.0[0].0)
    }
}

/// The parts in a text of at most so many columns.
fn fitted(parts: Vec<StatusPart>, cols: usize) -> String {
    shortened(&fitting(parts, cols), cols)
}

/// The longest forms of the parts that fit, or else the shortest.
fn fitting(mut parts: Vec<StatusPart>, cols: usize) -> String {
    loop {
        let texts: Vec<_> = parts.iter().map(StatusPart::text).collect();
        let text = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        let text = text.join(" | ");
        let next = parts.iter_mut().filter(|part| part.loss().is_some());
        match next.min_by_key(|part| part.loss()) {
            Some(part) if columns(&text) > cols => drop(part.0.remove(0)),
            Some(_) | None => return text,
        }
    }
}

impl Status<'_> {
    /// The line for a terminal with so many columns. It is empty until the session's and the person's names
    /// are known.
    pub fn bar(&self, view: &SessionView, cols: u16) -> Bar {
        let text = self.text(view, cols);
        let refused = self.news.is_some_and(Notice::is_refusal);
        let look = match (refused, view.exit.is_none() && view.is_held_by(self.me)) {
            (true, _) => BarLook::Refused,
            (false, _) if self.asks.is_some() => BarLook::Asking,
            (false, false) => BarLook::Plain,
            (false, true) if self.taken_over => BarLook::TakenOver,
            (false, true) => BarLook::Typing,
        };
        Bar { text, look, coloured: self.coloured }
    }

    /// Whether the line shows the whole call that waits for an approval, or the last page of it is shown.
    pub fn shows_call(&self, view: &SessionView, cols: u16) -> bool {
        match self.page {
            Some(page) => page.is_last(),
            None if self.is_empty() || self.asks.is_none() => false,
            None => columns(&fitting(self.parts(view, true), cols.into())) <= usize::from(cols),
        }
    }

    fn is_empty(&self) -> bool {
        self.name.is_empty() || self.me.is_empty()
    }

    fn text(&self, view: &SessionView, cols: u16) -> String {
        if self.is_empty() {
            return String::new();
        }
        fitted(self.parts(view, self.shows_call(view, cols)), cols.into())
    }

    fn parts(&self, view: &SessionView, shows_call: bool) -> Vec<StatusPart> {
        let mut parts = vec![StatusPart::new(8, self.name).or(LAST, "")];
        parts.extend(self.history.as_ref().map(|place| {
            match place {
                HistoryPlace::Asks(text) => StatusPart::new(LAST, text),
                HistoryPlace::Rows(rows) => {
                    StatusPart::new(4, format!("{rows}, / searches, q leaves"))
                        .or(5, "history, / searches, q leaves")
                        .or(6, "history, q leaves")
                        .or(LAST, "q leaves")
                }
            }
        }));
        // Its reason is more than everything that stands behind it.
        parts.extend(self.news.map(|news| StatusPart::new(LAST, news.text())));
        parts.extend(self.asks.map(|call| self.asking(call, shows_call)));
        parts.extend(self.watching.map(|why| watching(why, self.name)));
        parts.push(self.keyboard(view));
        parts.extend(view.lease.suspended.as_ref().map(|it| self.suspended(view, it)));
        if view.lease.waiters > 0 {
            parts.push(StatusPart::new(1, format!("{} waiting", view.lease.waiters)).or(LAST, ""));
        }
        let help = format!("{} ?", self.prefix);
        parts.push(StatusPart::new(4, format!("{help} help")).or(10, help).or(LAST, ""));
        parts
    }

    fn keyboard(&self, view: &SessionView) -> StatusPart {
        let lease = &view.lease;
        if let Some(exit) = &view.exit {
            return StatusPart::new(LAST, exit.to_string());
        }
        let (Some(by), Some(kind)) = (&lease.by, lease.kind) else {
            return match self.watching.is_some() || self.history.is_some() {
                true => StatusPart::new(7, "the keyboard is free").or(9, "free").or(LAST, ""),
                false => StatusPart::new(3, "free: type to take the keyboard")
                    .or(6, "free: type to take it")
                    .or(9, "free: type")
                    .or(LAST, "free"),
            };
        };
        match (by == self.me, self.taken_over) {
            (true, true) => StatusPart::new(3, format!("you took over until {} h", self.prefix))
                .or(LAST, "you took over"),
            (true, false) => StatusPart::new(3, "you have the keyboard while you type")
                .or(7, "you have the keyboard")
                .or(LAST, "you type"),
            (false, _) => {
                let (name, reason) = (named(by, kind), doing(lease.reason.as_ref()));
                let whole = format!("{name} has the keyboard");
                let part = StatusPart::new(3, format!("{whole}{reason}")).or(7, whole);
                part.or(9, name).or(LAST, short_name(by, kind))
            }
        }
    }

    /// What waits for an approval, and the keys that decide.
    fn asking(&self, call: &ApprovalWire, shows_call: bool) -> StatusPart {
        let ApprovalWire { what, by, .. } = call;
        let (prefix, denies) = (self.prefix, format!("{} n denies", self.prefix));
        let approves = format!("{prefix} y approves");
        match (self.page, shows_call) {
            (Some(_), true) => {
                StatusPart::new(10, format!("{approves}, {denies}")).or(LAST, approves)
            }
            (Some(_), false) => {
                let more = format!("{prefix} y shows more");
                StatusPart::new(10, format!("{more}, {denies}")).or(LAST, more)
            }
            (None, true) => {
                StatusPart::new(10, format!("{by} waits to do: {what} | {approves}, {denies}"))
                    .or(11, format!("{what} | {approves}, {denies}"))
                    .or(LAST, format!("{approves}: {what}"))
            }
            (None, false) => {
                StatusPart::new(LAST, format!("{prefix} y shows all, {denies}: {what}"))
            }
        }
    }

    fn suspended(&self, view: &SessionView, holder: &SuspendedWire) -> StatusPart {
        let SuspendedWire { by, kind, reason } = holder;
        let waits = format!("{} waits", named(by, *kind));
        let key = match view.is_held_by(self.me) {
            true => format!(" for {} h", self.prefix),
            false => String::new(),
        };
        StatusPart::new(2, format!("{waits}{key}{}", doing(reason.as_ref())))
            .or(5, format!("{waits}{key}"))
            .or(6, waits)
            .or(8, format!("{} waits", short_name(by, *kind)))
            .or(LAST, "")
    }
}

/// The line while the session's shim does not answer. `lost` says whether typed input is dropped.
pub fn silent(name: &str, lost: bool, cols: u16) -> String {
    let silence = "its terminal does not answer";
    let what = StatusPart::new(9, silence).or(LAST, "no answer");
    let what = match lost {
        true => StatusPart::new(4, format!("{silence}, and what you type is lost"))
            .or(LAST, "what you type is lost"),
        false => what,
    };
    let leave = StatusPart::new(2, "waiting, C-c leaves").or(LAST, "C-c leaves");
    fitted(vec![StatusPart::new(3, name).or(LAST, ""), what, leave], cols.into())
}

/// The bar of the list of sessions to choose from: the keys, or what was typed, or why that names no session.
pub fn choosing(typed: &str, problem: Option<&str>, cols: u16) -> String {
    let parts = match (problem, typed) {
        (None, "") => vec![
            StatusPart::new(3, "choose with arrows, a number or a name")
                .or(5, "choose")
                .or(LAST, ""),
            StatusPart::new(LAST, "Enter attaches"),
            StatusPart::new(LAST, "q leaves"),
        ],
        (None, typed) => vec![
            StatusPart::new(LAST, format!("{typed}_")),
            StatusPart::new(4, "Enter attaches").or(LAST, ""),
            StatusPart::new(3, "Esc clears").or(LAST, ""),
        ],
        (Some(problem), _) => {
            vec![StatusPart::new(LAST, problem), StatusPart::new(3, "Esc clears").or(LAST, "")]
        }
    };
    fitted(parts, cols.into())
}

fn watching(why: Watching, session: &str) -> StatusPart {
    let until = |on: &str| {
        StatusPart::new(8, format!("read-only until `termgate allow-write {on}`"))
            .or(LAST, "read-only")
    };
    match why {
        Watching::Only => StatusPart::new(LAST, "watching only"),
        Watching::ReadOnly => until("on"),
        Watching::Protected => until(&format!("on --session {session}")),
    }
}

/// A person's name is enough; several programs may share one, so they keep their number.
pub fn named(by: &str, kind: PrincipalKind) -> String {
    match kind {
        PrincipalKind::Human => person(by).to_owned(),
        PrincipalKind::Agent | PrincipalKind::Operator => format!("{} {by}", word(&kind)),
    }
}

fn short_name(by: &str, kind: PrincipalKind) -> String {
    match kind {
        PrincipalKind::Human => person(by).to_owned(),
        PrincipalKind::Agent | PrincipalKind::Operator => word(&kind).to_string(),
    }
}

/// A person's name, without the number that the daemon appends.
pub fn person(by: &str) -> &str {
    by.rsplit_once("#p").map_or(by, |(name, _)| name)
}

fn doing(reason: Option<&String>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::cli::attach::notice::NoticeReason;
    use crate::wire::lease::LeaseWire;
    use crate::wire::session::ExitWire;

    fn holder(by: &str, kind: PrincipalKind, reason: Option<&str>) -> SuspendedWire {
        SuspendedWire { by: by.to_owned(), kind, reason: reason.map(str::to_owned) }
    }

    fn status() -> Status<'static> {
        Status { name: "build", me: "ada#p7", ..Status::default() }
    }

    fn held_by(SuspendedWire { by, kind, reason }: SuspendedWire) -> SessionView {
        let (by, kind) = (Some(by), Some(kind));
        let lease = LeaseWire { held: true, by, kind, reason, ..LeaseWire::default() };
        let mut view = SessionView::default();
        view.lease = lease;
        view
    }

    fn by_agent() -> SessionView {
        held_by(holder("claude#p3", PrincipalKind::Agent, Some("running the tests")))
    }

    /// The person has the keyboard, and an agent waits.
    fn by_me() -> SessionView {
        let mut view = held_by(holder("ada#p7", PrincipalKind::Human, None));
        view.lease.suspended = Some(holder("claude#p3", PrincipalKind::Agent, Some("building")));
        view.lease.waiters = 2;
        view
    }

    #[track_caller]
    fn check(status: &Status<'_>, view: &SessionView, lines: &[(u16, &str)]) {
        for (cols, line) in lines {
            assert_eq!(status.text(view, *cols), *line, "{cols} columns");
        }
    }

    #[test]
    fn a_free_keyboard_says_how_to_take_it_at_any_width() {
        let lines = [
            (200, "build | free: type to take the keyboard | C-\\ ? help"),
            (80, "build | free: type to take the keyboard | C-\\ ? help"),
            (40, "build | free: type to take it | C-\\ ?"),
            (20, "free: type | C-\\ ?"),
            (8, "free"),
        ];
        check(&status(), &SessionView::default(), &lines);
        let watching = Status { watching: Some(Watching::Only), ..status() };
        let lines = [
            (80, "build | watching only | the keyboard is free | C-\\ ? help"),
            (20, "watching only"),
        ];
        check(&watching, &SessionView::default(), &lines);
        for (watching, on) in
            [(Watching::ReadOnly, "on"), (Watching::Protected, "on --session build")]
        {
            let told =
                format!("build | read-only until `termgate allow-write {on}` | free | C-\\ ?");
            let status = Status { watching: Some(watching), ..status() };
            check(
                &status,
                &SessionView::default(),
                &[(columns(&told) as u16, &told), (9, "read-only")],
            );
        }
    }

    #[test]
    fn the_holder_and_what_it_is_doing_are_named() {
        let lines = [
            (80, "build | agent claude#p3 has the keyboard: running the tests | C-\\ ? help"),
            (60, "build | agent claude#p3 has the keyboard | C-\\ ? help"),
            (40, "build | agent claude#p3 | C-\\ ?"),
            (20, "agent | C-\\ ?"),
        ];
        check(&status(), &by_agent(), &lines);
        let view = held_by(holder("ada (2)#p9", PrincipalKind::Human, None));
        check(&status(), &view, &[(80, "build | ada (2) has the keyboard | C-\\ ? help")]);
    }

    #[test]
    fn typing_and_taking_over_differ_in_words_and_in_look() {
        let lines = [
            (
                200,
                "build | you have the keyboard while you type | \
                 agent claude#p3 waits for C-\\ h: building | 2 waiting | C-\\ ? help",
            ),
            (80, "build | you have the keyboard | agent claude#p3 waits for C-\\ h | C-\\ ? help"),
            (40, "build | you type | agent waits | C-\\ ?"),
            (20, "you type | C-\\ ?"),
        ];
        check(&status(), &by_me(), &lines);
        let taken = Status { taken_over: true, prefix: "C-a".parse().unwrap(), ..status() };
        let lines = [
            (
                80,
                "build | you took over until C-a h | agent claude#p3 waits for C-a h | C-a ? help",
            ),
            (20, "you took over"),
        ];
        check(&taken, &by_me(), &lines);
        assert_eq!(status().bar(&by_me(), 80).look, BarLook::Typing);
        assert_eq!(taken.bar(&by_me(), 80).look, BarLook::TakenOver);
        assert_eq!(taken.bar(&by_agent(), 80).look, BarLook::Plain);
        let looks = [
            BarLook::Plain,
            BarLook::Typing,
            BarLook::TakenOver,
            BarLook::Refused,
            BarLook::Asking,
        ];
        let styles = looks.map(|look| Bar { look, coloured: true, ..Bar::plain("") }.line(9));
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[..index].contains(style), "{index}");
        }
    }

    #[test]
    fn a_key_that_was_not_taken_is_told_first_and_in_a_look_of_its_own() {
        let text = "not typed: ben has taken over, C-\\ t takes over".to_owned();
        let notice = Notice::new(text, NoticeReason::Refused, Instant::now());
        let status = Status { news: Some(&notice), ..status() };
        assert_eq!(status.bar(&by_agent(), 80).look, BarLook::Refused);
        let lines = [
            (80, "not typed: ben has taken over, C-\\ t takes over | agent claude#p3 | C-\\ ?"),
            (40, "not typed: ben has taken over, C-\\ t…"),
            (20, "not typed: ben has…"),
        ];
        check(&status, &by_agent(), &lines);
    }

    fn call(what: &str) -> ApprovalWire {
        ApprovalWire {
            approval_id: "1f3a2b4c".to_owned(),
            what: what.to_owned(),
            tool: "run".to_owned(),
            by: "claude#p3".to_owned(),
            tenant: "uid:1000".to_owned(),
            session: None,
            session_name: None,
            directory: None,
            rule: None,
            reason: None,
            expires_in_ms: 1,
        }
    }

    #[test]
    fn a_call_that_waits_is_shown_with_the_keys_that_decide() {
        let call = call("rm -fr build/");
        let status = Status { asks: Some(&call), ..status() };
        assert_eq!(status.bar(&by_agent(), 80).look, BarLook::Asking);
        let lines = [
            (
                200,
                "build | claude#p3 waits to do: rm -fr build/ | C-\\ y approves, C-\\ n denies | \
                 agent claude#p3 has the keyboard: running the tests | C-\\ ? help",
            ),
            (
                84,
                "claude#p3 waits to do: rm -fr build/ | C-\\ y approves, C-\\ n denies | agent | C-\\ ?",
            ),
            (80, "rm -fr build/ | C-\\ y approves, C-\\ n denies | agent | C-\\ ?"),
            (56, "rm -fr build/ | C-\\ y approves, C-\\ n denies | agent"),
            (40, "C-\\ y approves: rm -fr build/ | agent"),
            (32, "C-\\ y shows all, C-\\ n denies:…"),
        ];
        check(&status, &by_agent(), &lines);
        for (cols, whole) in [(200, true), (40, true), (32, false)] {
            assert_eq!(status.shows_call(&by_agent(), cols), whole, "{cols} columns");
        }
        // A notice takes the place of the call.
        let notice = Notice::new("a".repeat(20), NoticeReason::News, Instant::now());
        let crowded = Status { news: Some(&notice), ..status.clone() };
        assert!(!crowded.shows_call(&by_agent(), 40));
        let unknown = Status { name: "", ..status };
        assert!(!unknown.shows_call(&by_agent(), 200));
    }

    #[test]
    fn a_call_that_the_line_cuts_is_said_to_be_shown_first_and_page_by_page() {
        let call = ApprovalWire {
            what: format!("rm -fr build/ && echo {}", "a".repeat(300)),
            ..call("rm")
        };
        let cut = Status { asks: Some(&call), ..status() };
        let lines = [(60, "C-\\ y shows all, C-\\ n denies: rm -fr build/ && echo…")];
        check(&cut, &by_agent(), &lines);
        let at = |number| Some(PageNumber { number, of: 2 });
        let first = Status { page: at(1), ..cut.clone() };
        assert!(!first.shows_call(&by_agent(), 200));
        let lines = [
            (80, "build | C-\\ y shows more, C-\\ n denies | agent claude#p3 | C-\\ ?"),
            (20, "C-\\ y shows more…"),
        ];
        check(&first, &by_agent(), &lines);
        let last = Status { page: at(2), ..cut };
        assert!(last.shows_call(&by_agent(), 200));
        let lines = [(
            80,
            "build | C-\\ y approves, C-\\ n denies | agent claude#p3 has the keyboard | C-\\ ?",
        )];
        check(&last, &by_agent(), &lines);
    }

    #[test]
    fn a_silent_session_tells_how_to_leave_at_any_width() {
        assert_eq!(
            silent("b", false, 80),
            "b | its terminal does not answer | waiting, C-c leaves"
        );
        let lost = "b | its terminal does not answer, and what you type is lost | C-c leaves";
        assert_eq!(silent("b", true, 80), lost);
        assert_eq!(silent("b", true, 40), "what you type is lost | C-c leaves");
        assert_eq!(silent("b", false, 24), "no answer | C-c leaves");
    }

    #[test]
    fn nothing_is_told_before_it_is_known_whose_session_this_is() {
        check(&Status { name: "", ..status() }, &by_agent(), &[(80, "")]);
        check(&Status { me: "", ..status() }, &by_agent(), &[(80, "")]);
    }

    #[test]
    fn the_end_of_the_program_is_told() {
        let mut view = SessionView::default();
        view.exit = Some(ExitWire { code: Some(3), ..ExitWire::default() });
        let lines = [
            (80, "build | exited with code 3 | C-\\ ? help"),
            (20, "exited with code 3"),
            (12, "exited with…"),
        ];
        check(&status(), &view, &lines);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_or_ends_in_the_middle_of_a_word() {
        let notice =
            Notice::new("the daemon is gone".to_owned(), NoticeReason::News, Instant::now());
        let place = Some(HistoryPlace::Rows("history 90-100 of 30-120".to_owned()));
        let busy = Status { news: Some(&notice), history: place, ..status() };
        for (status, view) in
            [(&status(), by_agent()), (&status(), by_me()), (&busy, by_me()), (&busy, by_agent())]
        {
            // Shorter forms have a few words of their own.
            let whole = format!("{} type history, you", status.text(&view, 1_000));
            for cols in 12..200 {
                let text = status.text(&view, cols);
                assert!(columns(&text) <= usize::from(cols), "{text}");
                let mut words = text.split([' ', ':', '…']).filter(|word| !word.is_empty());
                assert!(
                    words.all(|word| whole
                        .split([' ', ':', ','])
                        .any(|known| known == word.trim_end_matches(','))),
                    "{text}"
                );
            }
        }
    }
}
