//! The sessions and their output rate, computed from one list to the next.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::duration::millis;
use crate::cli::ls::{holder, state, state_time};
use crate::cli::status::bytes;
use crate::cli::top::choice::Choosable;
use crate::core::counted::counted;
use crate::core::human_duration::rough;
use crate::core::moment::Moment;
use crate::wire::mount::MountWire;
use crate::wire::session::{SessionState, SessionWire};
use crate::wire::word;

pub(super) const HEAD: [&str; 10] = [
    "NAME",
    "STATE",
    "FOR",
    "HOLDER",
    "KIND",
    "WAITERS",
    "OBSERVERS",
    "IDLE",
    "OUTPUT/S",
    "LAST LINE",
];

/// The sessions at one moment, the busiest first.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionPicture {
    sessions: Vec<Shown>,
    mounts: Vec<MountWire>,
    taken_at: Moment,
}

#[derive(Clone, Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    session: SessionWire,
    /// The rate since the last picture.
    bytes_per_second: u64,
}

impl SessionPicture {
    /// Creates a picture of a list, with the rates of sessions in an earlier picture.
    pub(super) fn of(sessions: Vec<SessionWire>, now: Moment, before: &Self) -> Self {
        let (elapsed, known) = (now.since(before.taken_at), before.counts());
        let shown = |session: SessionWire| {
            let earlier = known.get(&*session.id);
            let bytes_per_second =
                earlier.map_or(0, |earlier| rate(session.output_bytes - earlier, elapsed));
            Shown { session, bytes_per_second }
        };
        let mut shown: Vec<Shown> = sessions.into_iter().map(shown).collect();
        shown.sort_by_cached_key(|Shown { session, bytes_per_second }| {
            let ended = session.state != SessionState::Running;
            (ended, Reverse(*bytes_per_second), session.idle_ms, session.name.clone())
        });
        Self { sessions: shown, mounts: Vec::new(), taken_at: now }
    }

    /// The same with the mounts at that moment.
    pub(super) fn with_mounts(self, mounts: Vec<MountWire>) -> Self {
        Self { mounts, ..self }
    }

    /// The same sessions at a later time, without any activity since.
    pub(super) fn still(&self, now: Moment) -> Self {
        let passed = millis(now.since(self.taken_at));
        let mut still = self.clone();
        still.taken_at = now;
        for shown in &mut still.sessions {
            let SessionWire { idle_ms, state_ms, .. } = &mut shown.session;
            for millis in std::iter::once(idle_ms).chain(state_ms) {
                *millis = millis.saturating_add(passed);
            }
            shown.bytes_per_second = 0;
        }
        still
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.sessions.iter().map(|shown| shown.session.id.as_str())
    }

    /// The sessions in the order of the rows.
    pub(super) fn named(&self) -> Vec<Choosable> {
        let named = |Shown { session, .. }: &Shown| Choosable {
            id: session.id.clone(),
            name: session.name.clone(),
            ended: session.state != SessionState::Running,
        };
        self.sessions.iter().map(named).collect()
    }

    /// A line about all sessions and mounts together. What is wrong comes first, since a narrow terminal cuts the end off.
    pub(super) fn summary(&self) -> String {
        let count = |test: fn(&SessionWire) -> bool| {
            self.sessions.iter().filter(|shown| test(&shown.session)).count()
        };
        let running = count(|session| session.state == SessionState::Running);
        let held = count(|session| session.lease.held);
        let output = self.sessions.iter().map(|shown| shown.bytes_per_second).sum();
        let sessions = counted(self.sessions.len(), "session");
        let sessions = format!("{sessions}, {running} running, {held} held, {}/s", bytes(output));
        let (problems, mounts) = self.of_mounts();
        [problems, Some(sessions), mounts].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// What is wrong with the mounts, and what else is to be known of them, if there are any.
    fn of_mounts(&self) -> (Option<String>, Option<String>) {
        if self.mounts.is_empty() {
            return (None, None);
        }
        let count = |test: fn(&MountWire) -> bool| self.mounts.iter().filter(|it| test(it)).count();
        let running = count(|mount| mount.servers > 0);
        let held = count(|mount| mount.lease.as_ref().is_some_and(|lease| lease.held));
        let odd = count(|mount| mount.problem.is_some() || mount.changed);
        let problems = (odd > 0).then(|| format!("{} with a problem", counted(odd, "mount")));
        let mounts = counted(self.mounts.len(), "mount");
        (problems, Some(format!("{mounts}, {running} running, {held} held")))
    }

    pub(super) fn rows(&self) -> Vec<[String; 10]> {
        self.sessions.iter().map(row).collect()
    }

    /// The picture for programs.
    pub(super) fn data(&self) -> Value {
        json!({"sessions": self.sessions, "mounts": self.mounts})
    }

    /// The output bytes of each session, where they are known.
    fn counts(&self) -> HashMap<&str, u64> {
        let known = self.sessions.iter().map(|shown| &shown.session);
        let known = known.filter(|session| !session.activity.is_silent());
        known.map(|session| (session.id.as_str(), session.output_bytes)).collect()
    }
}

fn row(shown: &Shown) -> [String; 10] {
    let session = &shown.session;
    [
        session.name.clone(),
        state(session),
        state_time(session),
        holder(session),
        session.lease.kind.as_ref().map(|kind| word(kind).to_string()).unwrap_or_default(),
        session.lease.waiters.to_string(),
        session.observers.to_string(),
        rough(session.idle_ms),
        bytes(shown.bytes_per_second),
        session.last_line.clone(),
    ]
}

fn rate(count: u64, elapsed: Duration) -> u64 {
    let per_second = u128::from(count) * 1_000 / u128::from(millis(elapsed).max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::lease::{LeaseWire, PrincipalKind};

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn session(name: &str, output_bytes: u64) -> SessionWire {
        let lease = LeaseWire {
            held: true,
            by: Some("ada#p2".to_owned()),
            kind: Some(PrincipalKind::Agent),
            waiters: 3,
            ..LeaseWire::default()
        };
        SessionWire {
            id: name.to_owned(),
            name: name.to_owned(),
            idle_ms: 500,
            observers: 1,
            lease,
            last_line: "done".to_owned(),
            output_bytes,
            ..SessionWire::example()
        }
    }

    #[test]
    fn the_output_of_a_session_is_counted_by_the_second_from_one_picture_to_the_next() {
        let first = SessionPicture::of(vec![session("a", 100)], at(10), &SessionPicture::default());
        assert_eq!(first.rows()[0][8], "0 B");
        let second = SessionPicture::of(vec![session("a", 4_196)], at(12), &first);
        let row =
            ["a", "running", "1m30s", "ada#p2", "agent", "3", "1", "500ms", "2.0 KiB", "done"];
        assert_eq!(second.rows(), [row.map(str::to_owned)]);
        assert_eq!(second.data()["sessions"][0]["bytes_per_second"], 2_048);
        assert_eq!(second.summary(), "1 session, 1 running, 1 held, 2.0 KiB/s");
    }

    #[test]
    fn mounts_are_counted_where_there_are_any() {
        let mount = |servers, problem: Option<&str>| {
            let told = json!({
                "name": "a", "server": "x", "trust": "trusted", "status": "running", "generation": 1,
                "servers": servers, "changed": false, "problem": problem, "lease": {"held": true},
            });
            serde_json::from_value::<MountWire>(told).unwrap()
        };
        let picture = SessionPicture::default();
        assert_eq!(picture.summary(), "0 sessions, 0 running, 0 held, 0 B/s");
        let well = picture.clone().with_mounts(vec![mount(2, None)]);
        assert!(well.summary().ends_with(" B/s; 1 mount, 1 running, 1 held"), "{}", well.summary());
        assert!(well.summary().starts_with("0 sessions, "), "{}", well.summary());
        // An 80-column terminal shows this much of the longest line.
        let picture = picture.with_mounts(vec![mount(2, None), mount(0, Some("it ended"))]);
        let expected = "1 mount with a problem; 0 sessions, 0 running, 0 held, 0 B/s; 2 mounts, 1 running, 2 held";
        assert_eq!(picture.summary(), expected);
    }

    #[test]
    fn a_session_that_is_new_has_done_nothing_yet() {
        let first = SessionPicture::of(vec![session("a", 100)], at(10), &SessionPicture::default());
        let second = SessionPicture::of(vec![session("b", 5_000)], at(11), &first);
        assert_eq!(second.data()["sessions"][0]["bytes_per_second"], 0);
    }

    #[test]
    fn while_nothing_happens_only_the_time_goes_on() {
        let first = SessionPicture::of(vec![session("a", 0)], at(10), &SessionPicture::default());
        let busy = SessionPicture::of(vec![session("a", 9)], at(11), &first);
        let still = busy.still(at(20));
        let row = &still.rows()[0];
        assert_eq!([&row[2], &row[7], &row[8]], ["1m39s", "10s", "0 B"]);
    }

    #[test]
    fn the_busiest_comes_first_and_those_that_ended_last() {
        let quiet = vec![session("a", 0), session("b", 0), session("c", 0)];
        let first = SessionPicture::of(quiet, at(10), &SessionPicture::default());
        let ended = SessionWire { state: SessionState::Exited, ..session("a", 90) };
        let second =
            SessionPicture::of(vec![ended, session("b", 10), session("c", 50)], at(11), &first);
        assert_eq!(second.ids().collect::<Vec<_>>(), ["c", "b", "a"]);
    }
}
