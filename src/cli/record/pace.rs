//! How fast a recording is played.

use std::time::Duration;

use clap::Args;

use crate::cli::duration::parse_duration;

/// How recorded pauses become those that are seen.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct PlaybackPace {
    /// Play faster by this factor, 0.01 to 1000
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_speed)]
    pub(in crate::cli) speed: f64,
    /// Shorten longer pauses to this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(in crate::cli) idle_limit: Option<Duration>,
}

impl PlaybackPace {
    /// A recorded pause as it is played.
    pub(in crate::cli) fn pause(&self, recorded: Duration) -> Duration {
        let most = self.idle_limit.unwrap_or(Duration::MAX);
        recorded.min(most).div_f64(self.speed)
    }
}

pub(in crate::cli) fn parse_speed(given: &str) -> Result<f64, String> {
    let speed = given.parse().ok().filter(|speed| (0.01..=1_000.0).contains(speed));
    speed.ok_or_else(|| "a number from 0.01 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_cut_to_the_limit_and_shortened_by_the_speed() {
        let pace = |speed, idle_limit| PlaybackPace { speed, idle_limit };
        let (long, second) = (Duration::from_secs(60), Duration::from_secs(1));
        assert_eq!(pace(1.0, None).pause(long), long);
        assert_eq!(pace(2.0, None).pause(long), Duration::from_secs(30));
        assert_eq!(pace(2.0, Some(second)).pause(long), Duration::from_millis(500));
        assert!(
            parse_speed("0").is_err() && parse_speed("x").is_err() && parse_speed("NaN").is_err()
        );
    }
}
