//! The sessions as they are and how much each of them does, from one list to the next.
//!
//! Values in, values out: it asks nobody and knows no terminal.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::duration::{millis, rough};
use crate::cli::ls::{holder, is_silent, state};
use crate::cli::status::bytes;
use crate::core::moment::Moment;

/// The head of the table.
pub(super) const HEAD: [&str; 9] =
    ["NAME", "STATE", "HOLDER", "KIND", "WAITERS", "OBSERVERS", "IDLE", "OUTPUT/S", "LAST LINE"];

/// The sessions at one moment, the busiest first.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    sessions: Vec<Shown>,
    taken_at: Moment,
}

#[derive(Clone, Debug)]
struct Shown {
    session: Value,
    output_bytes: u64,
    /// Since the picture before.
    bytes_per_second: u64,
}

impl Picture {
    /// Takes a picture of a list, after an earlier one.
    pub(super) fn of(sessions: &[Value], now: Moment, before: Option<&Self>) -> Self {
        let elapsed = before.map(|before| now.since(before.taken_at));
        let known = before.map(Self::counts).unwrap_or_default();
        let mut shown: Vec<Shown> = sessions
            .iter()
            .map(|session| {
                let output_bytes = session["output_bytes"].as_u64().unwrap_or_default();
                let earlier = known.get(session["id"].as_str().unwrap_or_default());
                let bytes_per_second = match (earlier, elapsed) {
                    (Some(earlier), Some(elapsed)) => rate(output_bytes - earlier, elapsed),
                    (None, _) | (_, None) => 0,
                };
                Shown { session: session.clone(), output_bytes, bytes_per_second }
            })
            .collect();
        shown.sort_by_cached_key(|shown| {
            let session = &shown.session;
            let ended = session["state"] != "running";
            let name = session["name"].as_str().unwrap_or_default().to_owned();
            (ended, Reverse(shown.bytes_per_second), session["idle_ms"].as_u64(), name)
        });
        Self { sessions: shown, taken_at: now }
    }

    /// The same sessions some time later, in which nothing happened.
    pub(super) fn still(&self, now: Moment) -> Self {
        let passed = millis(now.since(self.taken_at));
        let mut still = self.clone();
        still.taken_at = now;
        for shown in &mut still.sessions {
            let idle = shown.session["idle_ms"].as_u64().unwrap_or_default();
            shown.session["idle_ms"] = json!(idle.saturating_add(passed));
            shown.bytes_per_second = 0;
        }
        still
    }

    /// The ids of the sessions.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.sessions.iter().filter_map(|shown| shown.session["id"].as_str())
    }

    /// A line for all of them together.
    pub(super) fn summary(&self) -> String {
        let count = |test: fn(&Value) -> bool| {
            self.sessions.iter().filter(|shown| test(&shown.session)).count()
        };
        let running = count(|session| session["state"] == "running");
        let held = count(|session| session["lease"]["held"] == true);
        let output = self.sessions.iter().map(|shown| shown.bytes_per_second).sum();
        format!(
            "{} sessions, {running} running, {held} held, {}/s",
            self.sessions.len(),
            bytes(output)
        )
    }

    /// The rows of the table.
    pub(super) fn rows(&self) -> Vec<[String; 9]> {
        self.sessions.iter().map(row).collect()
    }

    /// The picture for programs.
    pub(super) fn data(&self) -> Value {
        let sessions = self.sessions.iter().map(|shown| {
            let mut session = shown.session.clone();
            session["bytes_per_second"] = json!(shown.bytes_per_second);
            session
        });
        json!({"sessions": sessions.collect::<Vec<_>>()})
    }

    /// How much each session wrote, where that is known.
    fn counts(&self) -> HashMap<&str, u64> {
        let counts = self.ids().zip(&self.sessions).filter(|(_, it)| !is_silent(&it.session));
        counts.map(|(id, shown)| (id, shown.output_bytes)).collect()
    }
}

fn row(shown: &Shown) -> [String; 9] {
    let session = &shown.session;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let count = |value: &Value| value.as_u64().unwrap_or_default().to_string();
    [
        text(&session["name"]),
        state(session),
        holder(session),
        text(&session["lease"]["kind"]),
        count(&session["lease"]["waiters"]),
        count(&session["observers"]),
        rough(session["idle_ms"].as_u64().unwrap_or_default()),
        bytes(shown.bytes_per_second),
        text(&session["last_line"]),
    ]
}

fn rate(count: u64, elapsed: Duration) -> u64 {
    let per_second = u128::from(count) * 1_000 / u128::from(millis(elapsed).max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn session(name: &str, output_bytes: u64) -> Value {
        json!({
            "id": name, "name": name, "state": "running", "idle_ms": 500, "observers": 1,
            "lease": {"held": true, "by": "ada#p2", "kind": "agent", "waiters": 3},
            "last_line": "done", "output_bytes": output_bytes,
        })
    }

    #[test]
    fn the_output_of_a_session_is_counted_by_the_second_from_one_picture_to_the_next() {
        let first = Picture::of(&[session("a", 100)], at(10), None);
        assert_eq!(first.rows()[0][7], "0 B");
        let second = Picture::of(&[session("a", 4_196)], at(12), Some(&first));
        let row = ["a", "running", "ada#p2", "agent", "3", "1", "500ms", "2.0 KiB", "done"];
        assert_eq!(second.rows(), [row.map(str::to_owned)]);
        assert_eq!(second.data()["sessions"][0]["bytes_per_second"], 2_048);
        assert_eq!(second.summary(), "1 sessions, 1 running, 1 held, 2.0 KiB/s");
    }

    #[test]
    fn a_session_that_is_new_has_done_nothing_yet() {
        let first = Picture::of(&[session("a", 100)], at(10), None);
        let second = Picture::of(&[session("b", 5_000)], at(11), Some(&first));
        assert_eq!(second.data()["sessions"][0]["bytes_per_second"], 0);
    }

    #[test]
    fn while_nothing_happens_only_the_time_goes_on() {
        let first = Picture::of(&[session("a", 0)], at(10), None);
        let busy = Picture::of(&[session("a", 9)], at(11), Some(&first));
        let still = busy.still(at(20));
        assert_eq!((still.rows()[0][6].as_str(), still.rows()[0][7].as_str()), ("10s", "0 B"));
    }

    #[test]
    fn the_busiest_comes_first_and_those_that_ended_last() {
        let quiet = [session("a", 0), session("b", 0), session("c", 0)];
        let first = Picture::of(&quiet, at(10), None);
        let mut ended = session("a", 90);
        ended["state"] = json!("exited");
        let second =
            Picture::of(&[ended, session("b", 10), session("c", 50)], at(11), Some(&first));
        assert_eq!(second.ids().collect::<Vec<_>>(), ["c", "b", "a"]);
    }
}
