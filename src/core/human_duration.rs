//! Durations in texts for people and models; structured answers have milliseconds.

/// A duration rounded for people: to the nearest second, and to its two largest units: `1m30s`, `2h`.
pub fn rough(millis: u64) -> String {
    // The lease of a second that was granted a moment ago lasts a second.
    if millis < 900 {
        return format!("{millis}ms");
    }
    let two = |large: u64, unit: char, small: u64, next: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{next}"),
    };
    match millis.saturating_add(500) / 1_000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => two(seconds / 60, 'm', seconds % 60, 's'),
        seconds @ 3_600..86_400 => two(seconds / 3_600, 'h', seconds % 3_600 / 60, 'm'),
        seconds @ 86_400.. => two(seconds / 86_400, 'd', seconds % 86_400 / 3_600, 'h'),
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
    fn what_is_shown_is_whole_seconds_in_the_two_largest_units() {
        let expected = [
            (899, "899ms"),
            (987, "1s"),
            (1_499, "1s"),
            (29_993, "30s"),
            (89_996, "1m30s"),
            (119_990, "2m"),
            (5_399_982, "1h30m"),
            (86_399_000, "23h59m"),
            (90_000_000, "1d1h"),
        ];
        for (millis, text) in expected {
            assert_eq!(rough(millis), text, "{millis}");
        }
        assert!(rough(u64::MAX).contains('d'));
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
