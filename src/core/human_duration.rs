//! Durations in texts for people and models; structured answers have milliseconds.

/// A duration rounded for people: to the nearest second, and above a minute to the largest whole
/// unit.
pub fn rough(millis: u64) -> String {
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    match millis.saturating_add(500) / 1_000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds @ 86_400.. => format!("{}d", seconds / 86_400),
    }
}

/// A measured duration, exact enough to compare: `509ms`, `12.3s`, `1m30s`.
pub fn measured(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => {
            let (minutes, seconds) = (millis / 60_000, millis % 60_000 / 1_000);
            format!("{minutes}m{seconds}s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_whole_seconds_and_above_a_minute_whole_units() {
        let expected = [
            (999, "999ms"),
            (1_499, "1s"),
            (29_993, "30s"),
            (119_990, "2m"),
            (179_000, "2m"),
            (86_399_000, "23h"),
            (90_000_000, "1d"),
        ];
        for (millis, text) in expected {
            assert_eq!(rough(millis), text, "{millis}");
        }
        assert!(rough(u64::MAX).ends_with('d'));
    }

    #[test]
    fn a_measured_time_keeps_what_a_reader_compares() {
        let expected = [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (59_999, "59.9s"),
            (60_000, "1m0s"),
            (600_000, "10m0s"),
        ];
        for (millis, text) in expected {
            assert_eq!(measured(millis), text, "{millis}");
        }
    }
}
