//! Numbers of things in texts for people and models.

use std::fmt::{self, Display};

/// The number with its noun: `1 row`, `2 rows`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> impl Display {
    let plural = if count == N::from(1) { "" } else { "s" };
    fmt::from_fn(move |f| write!(f, "{count} {noun}{plural}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let expected = [(0, "0 rows"), (1, "1 row"), (2, "2 rows")];
        for (count, text) in expected {
            assert_eq!(counted(count, "row").to_string(), text);
        }
    }
}
