//! Parses `name=value` pairs.

use serde_json::Value;

/// Parses `NAME=VALUE` as text; the value may contain `=`.
///
/// # Errors
/// The valid form of a pair.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write a pair as name=value".to_owned()),
    }
}

/// Parses `name=value`. The value is JSON if it is valid JSON, otherwise text.
///
/// # Errors
/// The valid form of a pair.
pub fn parse_argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = parse_pair(text)?;
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pair_is_split_at_its_first_sign() {
        assert_eq!(parse_pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("A="), Ok(("A".to_owned(), String::new())));
    }

    #[test]
    fn a_pair_without_a_name_or_a_sign_is_refused() {
        assert!(parse_pair("=b").is_err());
        assert!(parse_pair("b").is_err());
    }

    #[test]
    fn a_value_that_is_json_is_taken_as_json_and_any_other_as_text() {
        let expected = [
            ("n=5", json!(5)),
            ("n=true", json!(true)),
            (r#"n={"idle_ms": 5}"#, json!({"idle_ms": 5})),
            (r#"n="5""#, json!("5")),
            ("n=hello world", json!("hello world")),
            ("n={broken", json!("{broken")),
            ("n=", json!("")),
        ];
        for (text, value) in expected {
            assert_eq!(parse_argument(text), Ok(("n".to_owned(), value)), "{text}");
        }
    }
}
