//! Decides when to end a program after no daemon has connected for a long time.

use std::time::Duration;

/// How long the program has to end after the hang-up.
const GRACE: Duration = Duration::from_secs(1);

/// How long the shim has been without a daemon, and the limit for that.
#[derive(Debug)]
pub struct Solitude {
    most: Option<Duration>,
    since: Option<Duration>,
    told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanStep {
    Nothing,
    /// Send a hang-up to the program.
    HangUp,
    /// End the session.
    End,
}

impl Solitude {
    /// `most` is the longest time without a daemon; `None` sets no limit.
    pub fn new(most: Option<Duration>) -> Self {
        Self { most, since: None, told: false }
    }

    /// Records whether the shim is without a daemon.
    pub fn set(&mut self, now: Duration, alone: bool) {
        match (alone, self.since) {
            (true, None) => self.since = Some(now),
            (true, Some(_)) => {}
            (false, _) => (self.since, self.told) = (None, false),
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        let end = self.since?.saturating_add(self.most?);
        Some(if self.told { end.saturating_add(GRACE) } else { end })
    }

    pub fn on_time(&mut self, now: Duration) -> OrphanStep {
        match self.deadline() {
            Some(deadline) if deadline <= now && self.told => OrphanStep::End,
            Some(deadline) if deadline <= now => {
                self.told = true;
                OrphanStep::HangUp
            }
            Some(_) | None => OrphanStep::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn who_is_alone_too_long_is_told_and_then_ended() {
        let mut solitude = Solitude::new(Some(second(10)));
        solitude.set(second(5), true);
        solitude.set(second(8), true);
        assert_eq!(solitude.deadline(), Some(second(15)));
        assert_eq!(solitude.on_time(second(14)), OrphanStep::Nothing);
        assert_eq!(solitude.on_time(second(15)), OrphanStep::HangUp);
        assert_eq!(solitude.on_time(second(15)), OrphanStep::Nothing);
        assert_eq!(solitude.on_time(second(16)), OrphanStep::End);
    }

    #[test]
    fn who_is_not_alone_any_more_begins_anew() {
        let mut solitude = Solitude::new(Some(second(10)));
        solitude.set(second(0), true);
        assert_eq!(solitude.on_time(second(10)), OrphanStep::HangUp);
        solitude.set(second(10), false);
        assert_eq!(solitude.deadline(), None);
        solitude.set(second(20), true);
        assert_eq!(solitude.deadline(), Some(second(30)));
    }

    #[test]
    fn without_a_bound_nobody_is_ended() {
        let mut solitude = Solitude::new(None);
        solitude.set(second(0), true);
        assert_eq!(solitude.deadline(), None);
        assert_eq!(solitude.on_time(Duration::MAX), OrphanStep::Nothing);
    }
}
