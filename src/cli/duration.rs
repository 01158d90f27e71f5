//! Durations as people write them: `300ms`, `5s`, `10m`, `1h`, `30d`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The units with their milliseconds.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a duration: a whole number followed directly by its unit.
///
/// # Errors
/// The valid form of a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    let millis = unit.and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis));
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| "write a duration as 300ms, 5s, 10m, 1h or 30d".to_owned())
}

/// The whole milliseconds of a duration, for the protocol.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The milliseconds of a flag's duration, which must be within these bounds.
///
pub fn millis_within(
    flag: &str,
    duration: Duration,
    bounds: RangeInclusive<u64>,
) -> Result<u64, String> {
    let given = millis(duration);
    if bounds.contains(&given) {
        return Ok(given);
    }
    let [given, least, most] = [given, *bounds.start(), *bounds.end()].map(exact);
    Err(format!("{flag}: {given} is not between {least} and {most}"))
}

/// A duration as people write it, in the largest unit that is exact.
fn exact(millis: u64) -> String {
    let fits = |(_, unit): &&(&str, u64)| millis.is_multiple_of(*unit) && millis >= *unit;
    let (name, unit) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[1]);
    format!("{}{name}", millis / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        let expected = [
            ("300ms", 300),
            ("5s", 5_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("30d", 2_592_000_000),
            ("0s", 0),
        ];
        for (text, millis) in expected {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_duration() {
        for text in ["", "5", "s", "-5s", "1.5s", "5 s", "5S", "5w", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_duration("18446744073709551615h").is_err());
    }

    #[test]
    fn a_duration_out_of_bounds_is_refused_in_the_units_of_people() {
        let wait = |text| millis_within("--wait", parse_duration(text).unwrap(), 0..=600_000);
        assert_eq!(wait("10m"), Ok(600_000));
        assert_eq!(wait("601s").unwrap_err(), "--wait: 601s is not between 0s and 10m");
        let ttl = |text| millis_within("--ttl", parse_duration(text).unwrap(), 1_000..=600_000);
        assert_eq!(ttl("99h").unwrap_err(), "--ttl: 99h is not between 1s and 10m");
        assert_eq!(ttl("90ms").unwrap_err(), "--ttl: 90ms is not between 1s and 10m");
    }
}
