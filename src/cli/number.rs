//! Numbers of flags.

use std::str::FromStr;

/// Parses a whole number.
///
/// # Errors
/// What to write instead.
pub fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "write a whole number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_whole_number_says_what_to_write() {
        assert_eq!(number::<u64>("12"), Ok(12));
        for text in ["", "x", "-1", "1.5"] {
            assert_eq!(number::<u64>(text).unwrap_err(), "write a whole number", "{text}");
        }
    }
}
