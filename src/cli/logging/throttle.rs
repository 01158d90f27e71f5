//! Limits repeated log lines, so that clients and programs cannot make the log grow at will.
//!
//! It groups lines by their place in the code and by session, party or peer, which no client can vary at
//! will. Lines that only an operator causes stay far below the bounds.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The time over which lines are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// In that time, the most lines of one kind about one source, and of one kind in total.
const SAME_MAX: u32 = 10;
const KIND_MAX: u32 = 200;
/// The most groups at a time.
const KEYS_MAX: usize = 1_024;
/// The fields with a line's source.
const SOURCES: [&str; 4] = ["session", "party", "peer", "key"];
/// The longest text kept of a line, in bytes.
const TEXT_MAX: usize = 120;

/// The target of this module's own lines, which are never suppressed.
const OWN: &str = module_path!();

/// Suppresses repeated lines and reports how many. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttle(Arc<Mutex<Counts>>);

impl Throttle {
    /// Reports all suppressed lines that are not reported yet.
    pub(super) fn tell_rest(&self) {
        let counts = std::mem::take(&mut *self.lock());
        tell(counts.0.into_iter().filter_map(left_of));
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for Throttle {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // An operator who raises the log level wants every line.
        if *metadata.level() > Level::INFO || metadata.target() == OWN {
            return true;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let verdict = self.lock().take(Instant::now(), metadata.callsite(), said);
        tell(verdict.told);
        if let Some(text) = verdict.begins {
            tracing::warn!("more like this is left out for a minute: {text}");
        }
        verdict.logged
    }
}

fn tell(left: impl IntoIterator<Item = Left>) {
    for Left { count, text, source } in left {
        tracing::warn!(source, "{count} more like this were left out: {text}");
    }
}

/// The decision about a line.
#[derive(Debug, Default)]
struct LineVerdict {
    logged: bool,
    /// The text of the line, if it is the first suppressed one of its group.
    begins: Option<String>,
    /// Suppressed lines of ended windows, to report now.
    told: Vec<Left>,
}

/// Suppressed lines of one group.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    count: u32,
    text: String,
    source: String,
}

/// A line's place in the code, and its source; none for all sources together.
type Key = (Identifier, Option<String>);

#[derive(Debug, Default)]
struct Counts(HashMap<Key, Count>);

#[derive(Debug)]
struct Count {
    since: Instant,
    logged: u32,
    left_out: u32,
    text: String,
}

impl Counts {
    /// Counts a line and decides whether to log it.
    fn take(&mut self, now: Instant, kind: Identifier, said: Said) -> LineVerdict {
        let told = self.take_ended(now);
        let Said { text, source } = said;
        // With too many groups, all sources of a kind are counted together.
        let apart = Some(source.unwrap_or_default()).filter(|_| self.0.len() < KEYS_MAX);
        let begun = || Count { since: now, logged: 0, left_out: 0, text: text.clone() };
        let has_room = |key: &Key, most| self.0.get(key).is_none_or(|count| count.logged < most);
        let (of_kind, same) = ((kind.clone(), None), (kind, apart));
        let is_apart = same != of_kind;
        if has_room(&of_kind, KIND_MAX) && (!is_apart || has_room(&same, SAME_MAX)) {
            // A suppressed line does not count towards the total of its kind.
            for key in [Some(of_kind), is_apart.then_some(same)].into_iter().flatten() {
                self.0.entry(key).or_insert_with(begun).logged += 1;
            }
            return LineVerdict { logged: true, begins: None, told };
        }
        let same = self.0.entry(same).or_insert_with(begun);
        same.left_out += 1;
        let begins = (same.left_out == 1).then(|| same.text.clone());
        LineVerdict { logged: false, begins, told }
    }

    /// Removes ended windows and returns their suppressed lines.
    fn take_ended(&mut self, now: Instant) -> Vec<Left> {
        let ended = self.0.extract_if(|_, count| now.duration_since(count.since) >= WINDOW);
        ended.filter_map(left_of).collect()
    }
}

/// The suppressed lines of this group, if any.
fn left_of(((_, source), count): (Key, Count)) -> Option<Left> {
    let Count { left_out, text, .. } = count;
    let source = source.unwrap_or_default();
    (left_out > 0).then_some(Left { count: left_out, text, source })
}

/// The text and the source of a line.
#[derive(Debug, Default)]
struct Said {
    text: String,
    source: Option<String>,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut short = Short::default();
        if field.name() == "message" {
            // The write fails when the text is full, which is intended.
            let _ = write!(short, "{value:?}");
            self.text = short.0;
        } else if SOURCES.contains(&field.name()) {
            let _ = write!(short, "{value:?}");
            self.source = Some(short.0);
        }
    }
}

/// A text of at most [`TEXT_MAX`] bytes.
#[derive(Debug, Default)]
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = TEXT_MAX - self.0.len();
        let fits = more.floor_char_boundary(room.min(more.len()));
        self.0.push_str(&more[..fits]);
        if fits < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// What is logged meanwhile, line by line.
    fn logged(say: impl FnOnce()) -> Vec<String> {
        logged_by(Throttle::default(), say)
    }

    fn logged_by(throttle: Throttle, say: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt::layer().with_ansi(false).without_time();
        let log = log.with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(throttle).with(log);
        tracing::subscriber::with_default(subscriber, say);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn speak(session: u32, pid: u32) {
        tracing::warn!(session, pid, "it came again");
    }

    #[test]
    fn what_is_said_too_often_is_left_out() {
        let lines = logged(|| (0..1_000).for_each(|pid| speak(1, pid)));
        let said = lines.iter().filter(|line| line.contains("pid=")).count();
        assert_eq!(said, SAME_MAX as usize, "{lines:?}");
    }

    #[test]
    fn what_one_peer_repeats_takes_no_lines_from_others() {
        let speak = |peer: u32| tracing::info!(peer, "a token was rejected");
        let lines = logged(|| {
            (0..100).for_each(|_| speak(1));
            (0..5).for_each(|_| speak(2));
        });
        assert_eq!(lines.iter().filter(|line| line.contains("peer=2")).count(), 5, "{lines:?}");
    }

    #[test]
    fn how_much_was_left_out_is_said_at_the_end_too() {
        let throttle = Throttle::default();
        let lines = logged_by(throttle.clone(), || {
            (0..25).for_each(|pid| speak(1, pid));
            throttle.tell_rest();
            throttle.tell_rest();
        });
        let told = lines.iter().filter(|line| line.contains("15 more like this were left out"));
        assert_eq!(told.count(), 1, "{lines:?}");
    }

    #[test]
    fn one_session_takes_no_lines_from_another_and_all_together_are_bounded() {
        let lines = logged(|| {
            (0..1_000).for_each(|pid| speak(1, pid));
            (0..5).for_each(|pid| speak(2, pid));
        });
        assert_eq!(lines.iter().filter(|line| line.contains("session=2")).count(), 5);
        let lines = logged(|| (0..5_000).for_each(|session| speak(session, 0)));
        assert!(lines.len() < 2 * KEYS_MAX, "{}", lines.len());
        let said = lines.iter().filter(|line| line.contains("pid=")).count();
        assert_eq!(said, KIND_MAX as usize);
    }

    #[test]
    fn what_only_an_operator_who_asks_for_it_sees_is_never_left_out() {
        let lines = logged(|| (0..1_000).for_each(|number| tracing::debug!(number, "a step")));
        assert_eq!(lines.len(), 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn how_much_was_left_out_is_said_when_the_minute_is_over() {
        let mut counts = Counts::default();
        let kind = || {
            static CALLSITE: tracing::callsite::DefaultCallsite =
                tracing::callsite::DefaultCallsite::new(&META);
            static META: tracing::Metadata<'static> = tracing::metadata! {
                name: "x",
                target: "x",
                level: Level::INFO,
                fields: &[],
                callsite: &CALLSITE,
                kind: tracing::metadata::Kind::EVENT
            };
            META.callsite()
        };
        let said = || Said { text: "it came".to_owned(), source: Some("1".to_owned()) };
        let begin = Instant::now();
        let verdicts: Vec<LineVerdict> =
            (0..25).map(|_| counts.take(begin, kind(), said())).collect();
        let logged = verdicts.iter().filter(|verdict| verdict.logged).count();
        assert_eq!(logged, SAME_MAX as usize);
        let begins: Vec<&str> = verdicts.iter().filter_map(|it| it.begins.as_deref()).collect();
        assert_eq!(begins, ["it came"], "said once, with the first that is left out");
        let just_before = begin + WINDOW - Duration::from_millis(1);
        assert!(!counts.take(just_before, kind(), said()).logged);
        let after = counts.take(begin + WINDOW, kind(), said());
        let left = Left { count: 16, text: "it came".to_owned(), source: "1".to_owned() };
        assert_eq!((after.logged, after.told), (true, vec![left]));
    }

    #[test]
    fn a_long_line_is_kept_in_part() {
        let mut short = Short::default();
        assert!(write!(short, "{}", "é".repeat(1_000)).is_err());
        assert_eq!(short.0, "é".repeat(TEXT_MAX / 2));
    }
}
