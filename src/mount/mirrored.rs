//! Arguments that a tool of the newer era wants to be said again in headers: `x-mcp-header` in its input schema.

use crate::mount::json::{ExactJson, ExactObject};

/// How deep a schema is looked at, and how many headers a call has at most.
const DEPTH_MAX: usize = 8;
const HEADERS_MAX: usize = 32;

/// The headers of a call with these arguments: their names and what they say, before it is encoded.
pub fn mirrored(schema: Option<&ExactJson>, arguments: &ExactJson) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    if let Some(schema) = schema {
        add(schema, arguments, DEPTH_MAX, &mut headers);
    }
    headers.truncate(HEADERS_MAX);
    headers
}

fn add(
    schema: &ExactJson,
    arguments: &ExactJson,
    depth: usize,
    headers: &mut Vec<(String, String)>,
) {
    let properties = schema.get("properties").and_then(ExactJson::as_object);
    for (name, property) in properties.into_iter().flat_map(ExactObject::iter) {
        let Some(argument) = arguments.get(name) else { continue };
        let header = property.get("x-mcp-header").and_then(ExactJson::as_text);
        if let (Some(header), Some(said)) = (header, said(argument)) {
            headers.push((format!("Mcp-Param-{header}"), said));
        }
        if depth > 0 {
            add(property, argument, depth - 1, headers);
        }
    }
}

/// A value in a header, if it can be in one.
fn said(value: &ExactJson) -> Option<String> {
    match value {
        ExactJson::Text(text) => Some(text.clone()),
        ExactJson::Literal(literal) => {
            let is_integer = literal.bytes().all(|it| matches!(it, b'-' | b'0'..=b'9'));
            (is_integer || ["true", "false"].contains(&&**literal)).then(|| literal.to_string())
        }
        ExactJson::List(_) | ExactJson::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_are_given_and_primitive_have_headers_at_any_depth() {
        let named = |name: &str| json!({"x-mcp-header": name});
        let schema = json!({"properties": {
            "a": named("Text"), "b": named("Flag"), "c": named("Count"), "d": named("Missing"),
            "e": named("Null"), "f": named("Float"), "g": {"properties": {"a": named("Deep")}},
            "h": {"x-mcp-header": 1}, "i": {},
        }});
        let arguments = json!({"a": "x y", "b": true, "c": -7, "e": null, "f": 1.5,
            "g": {"a": "z"}, "h": "h", "i": "i"});
        let headers: Vec<_> = mirrored(Some(&ExactJson::of(&schema)), &ExactJson::of(&arguments));
        let headers: Vec<_> = headers.iter().map(|(name, said)| (&name[..], &said[..])).collect();
        assert_eq!(
            headers,
            [
                ("Mcp-Param-Text", "x y"),
                ("Mcp-Param-Flag", "true"),
                ("Mcp-Param-Count", "-7"),
                ("Mcp-Param-Deep", "z"),
            ]
        );
        assert!(mirrored(Some(&ExactJson::of(&true)), &ExactJson::of(&1)).is_empty());
    }
}
