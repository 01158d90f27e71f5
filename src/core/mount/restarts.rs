//! How soon a server that failed may start again.

use std::time::Duration;

use crate::core::moment::Moment;

const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A server that ran this long is well again.
const WELL_AFTER: Duration = Duration::from_secs(60);

/// The starts of one server.
///
/// `on_*` says what happened; [`Restarts::may_start`] when it may be started.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    /// Counts its starts; those who knew an earlier one know that its state is lost.
    generation: u64,
    started: Option<Moment>,
    failures: u32,
    not_before: Option<Moment>,
}

impl Restarts {
    /// The number of its latest start, from 1; 0 before.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Checks that it may be started.
    ///
    /// # Errors
    /// How long to wait first.
    pub fn may_start(&self, now: Moment) -> Result<(), Duration> {
        match self.not_before {
            Some(at) if now < at => Err(now.until(at)),
            Some(_) | None => Ok(()),
        }
    }

    /// It is being started.
    pub fn on_start(&mut self, now: Moment) {
        self.generation += 1;
        self.started = Some(now);
    }

    /// It failed to start, or ended by itself. The pause doubles with each failure, from half a second to a minute.
    pub fn on_failure(&mut self, now: Moment) {
        if self.started.is_some_and(|at| now.since(at) >= WELL_AFTER) {
            self.failures = 0;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + pause);
    }

    /// An operator wants it to start again.
    pub fn on_reset(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_boot(Duration::from_millis(millis))
    }

    #[test]
    fn the_pause_doubles_up_to_a_minute() {
        let mut restarts = Restarts::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            restarts.on_start(at(0));
            restarts.on_failure(at(0));
            pauses.push(restarts.may_start(at(0)).unwrap_err().as_millis());
        }
        assert_eq!(pauses[..4], [500, 1_000, 2_000, 4_000]);
        assert_eq!(pauses[11], 60_000);
        assert_eq!(restarts.may_start(at(60_000)), Ok(()));
        assert_eq!(restarts.generation(), 12);
    }

    #[test]
    fn a_server_that_ran_long_or_was_reset_begins_with_the_shortest_pause() {
        let mut restarts = Restarts::default();
        for _ in 0..5 {
            restarts.on_failure(at(0));
        }
        restarts.on_start(at(0));
        restarts.on_failure(at(60_000));
        assert_eq!(restarts.may_start(at(60_000)), Err(Duration::from_millis(500)));
        restarts.on_reset();
        assert_eq!(restarts.may_start(at(60_000)), Ok(()));
    }
}
