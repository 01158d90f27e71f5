//! Bytes that stand in a text as `%` and two hexadecimal digits, as in URLs.
//!
//! It knows no URL, and no complaint either: what is no such escape stands for itself, since what it
//! came from is a claim of some program anyway.

/// The bytes that the text stands for.
pub fn decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (byte, left) = match escaped {
            Some((high, low)) => (high << 4 | low, &rest[3..]),
            None => (*first, after),
        };
        decoded.push(byte);
        rest = left;
    }
    decoded
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_decoded_and_anything_else_stands_for_itself() {
        assert_eq!(decoded("a%20b%C3%a4"), "a bä".as_bytes());
        for plain in ["", "100%", "%zz", "%+1", "%4", "%%"] {
            assert_eq!(decoded(plain), plain.as_bytes());
        }
    }
}
