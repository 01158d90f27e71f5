//! Whether clients can surely compile the schema of a tool's results. Those that do compile all schemas of a list together,
//! and lose the list for one that cannot be compiled.
//!
//! Only what is known to compile (JSON Schema of draft 7 with `ajv` 8) passes: few schemas have more, and a tool without one
//! works as well. The work is bounded, whatever a server lists.

mod pattern;

use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::output_schema::pattern::is_pattern;

/// The types of values.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The members with schemas that others refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// How many keywords and schemas a schema has at most, and how many are inside of each other.
const PARTS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;

/// The longest name of a keyword that is told, in bytes.
const TOLD_MAX: usize = 40;

/// Why a schema is not told to clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    #[error("it is no schema of an object")]
    NoObject,
    #[error("it has more than {PARTS_MAX} parts, or more than {DEPTH_MAX} levels")]
    TooLarge,
    #[error("not all clients can use `{0}` as it is there")]
    Keyword(String),
}

/// What a keyword takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeywordValue {
    Type,
    Text,
    Pattern,
    Reference,
    Number,
    Flag,
    /// `true`.
    Yes,
    Names,
    /// A list with at least one value.
    Choice,
    Schema,
    Schemas,
    /// A schema, or a list of them.
    Items,
    /// Schemas by names.
    Members,
    /// Schemas by patterns of names.
    Matches,
    /// Any value, in which nothing is looked for.
    Value,
    /// Notes for people, in which clients look for addresses of schemas.
    Note,
}

/// Checks a schema all the way down.
///
/// # Errors
/// [`SchemaFault`].
pub fn check(schema: &ExactObject) -> Result<(), SchemaFault> {
    SchemaWalk { root: schema, parts: 0 }.object(schema, 0)
}

/// A walk through a schema.
struct SchemaWalk<'a> {
    root: &'a ExactObject,
    parts: usize,
}

impl SchemaWalk<'_> {
    fn count(&mut self, depth: usize) -> Result<(), SchemaFault> {
        self.parts += 1;
        let fits = self.parts <= PARTS_MAX && depth <= DEPTH_MAX;
        if fits { Ok(()) } else { Err(SchemaFault::TooLarge) }
    }

    /// Says whether a value is a schema.
    fn value(&mut self, schema: &ExactJson, depth: usize) -> Result<bool, SchemaFault> {
        self.count(depth)?;
        match schema {
            ExactJson::Object(schema) => self.object(schema, depth).map(|()| true),
            ExactJson::Literal(literal) => Ok(is_flag(literal)),
            ExactJson::Text(_) | ExactJson::List(_) => Ok(false),
        }
    }

    fn values<'b>(
        &mut self,
        schemas: impl IntoIterator<Item = &'b ExactJson>,
        depth: usize,
    ) -> Result<bool, SchemaFault> {
        for schema in schemas {
            if !self.value(schema, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn object(&mut self, schema: &ExactObject, depth: usize) -> Result<(), SchemaFault> {
        for (keyword, value) in schema.iter() {
            self.count(depth)?;
            let is_right = match kind(keyword, schema) {
                Some(kind) => self.keyword(kind, value, depth + 1)?,
                None => false,
            };
            if !is_right {
                let told = &keyword[..keyword.floor_char_boundary(TOLD_MAX)];
                return Err(SchemaFault::Keyword(told.to_owned()));
            }
        }
        Ok(())
    }

    /// Says whether a keyword may have this value.
    fn keyword(
        &mut self,
        kind: KeywordValue,
        value: &ExactJson,
        depth: usize,
    ) -> Result<bool, SchemaFault> {
        let (text, literal) = (value.as_text(), value.as_literal());
        let list = matches!(value, ExactJson::List(_));
        Ok(match kind {
            KeywordValue::Type => {
                let is_type = |it: &ExactJson| it.as_text().is_some_and(|it| TYPES.contains(&it));
                is_type(value) || (list && value.items().iter().all(is_type))
            }
            KeywordValue::Text => text.is_some(),
            KeywordValue::Pattern => text.is_some_and(is_pattern),
            KeywordValue::Number => literal.is_some_and(is_number),
            KeywordValue::Flag => literal.is_some_and(is_flag),
            KeywordValue::Yes => literal == Some("true"),
            KeywordValue::Names => list && value.items().iter().all(|it| it.as_text().is_some()),
            KeywordValue::Choice => !value.items().is_empty(),
            KeywordValue::Value => true,
            KeywordValue::Note => !has_object(value),
            KeywordValue::Reference => text.is_some_and(|to| self.resolves(to)),
            KeywordValue::Items if !list => self.value(value, depth)?,
            KeywordValue::Schema => self.value(value, depth)?,
            KeywordValue::Items | KeywordValue::Schemas => {
                list && self.values(value.items(), depth)?
            }
            KeywordValue::Members | KeywordValue::Matches => {
                let Some(members) = value.as_object() else { return Ok(false) };
                let is_named = |name: &str| kind == KeywordValue::Members || is_pattern(name);
                members.iter().all(|(name, _)| is_named(name))
                    && self.values(members.iter().map(|(_, schema)| schema), depth)?
            }
        })
    }

    /// Whether a reference leads to a schema that is more than a reference back to it.
    fn resolves(&self, to: &str) -> bool {
        let mut to = to;
        // What leads on further than this is a circle, or as odd.
        for _ in 0..DEPTH_MAX {
            let Some(schema) = self.referred(to) else { return false };
            match schema.as_object().and_then(|it| it.text("$ref")) {
                None => return true,
                Some(next) => to = next,
            }
        }
        false
    }

    /// The definition that a reference names.
    fn referred(&self, to: &str) -> Option<&ExactJson> {
        let (member, name) = to.strip_prefix("#/")?.split_once('/')?;
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
        let is_known = DEFINITIONS.contains(&member) && name.bytes().all(is_plain);
        if is_known { self.root.get(member)?.get(name) } else { None }
    }
}

/// What this keyword of a schema takes; `None` if not all clients know what to do with it.
fn kind(keyword: &str, schema: &ExactObject) -> Option<KeywordValue> {
    Some(match keyword {
        "type" => KeywordValue::Type,
        "format" | "title" | "description" | "contentEncoding" | "contentMediaType"
        | "$comment" | "$schema" => KeywordValue::Text,
        "pattern" => KeywordValue::Pattern,
        "$ref" => KeywordValue::Reference,
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" | "multipleOf"
        | "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties"
        | "minProperties" => KeywordValue::Number,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => KeywordValue::Flag,
        "required" => KeywordValue::Names,
        "enum" => KeywordValue::Choice,
        "const" | "default" => KeywordValue::Value,
        "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "additionalProperties"
        | "additionalItems"
        | "unevaluatedProperties"
        | "unevaluatedItems" => KeywordValue::Schema,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => KeywordValue::Schemas,
        "items" => KeywordValue::Items,
        "properties" | "$defs" | "definitions" => KeywordValue::Members,
        "patternProperties" => KeywordValue::Matches,
        // With `false`, it depends on the types.
        "nullable" => schema.get("type").map(|_| KeywordValue::Yes)?,
        _ if keyword == "examples" || keyword.starts_with("x-") => KeywordValue::Note,
        _ => return None,
    })
}

/// Whether there is an object in a value, which may have an address.
fn has_object(value: &ExactJson) -> bool {
    match value {
        ExactJson::Object(_) => true,
        ExactJson::List(values) => values.iter().any(has_object),
        ExactJson::Literal(_) | ExactJson::Text(_) => false,
    }
}

fn is_flag(literal: &str) -> bool {
    ["true", "false"].contains(&literal)
}

fn is_number(literal: &str) -> bool {
    literal.starts_with(|it: char| it == '-' || it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(member: &str) -> Option<String> {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{member}}}}}"#);
        let schema = serde_json::from_str::<ExactObject>(&schema).unwrap();
        check(&schema).err().map(|it| it.to_string())
    }

    // What `ajv` 8 compiles and what not, with the options of the TypeScript library.

    #[test]
    fn what_clients_compile_is_right() {
        for member in [
            "true",
            "{}",
            r#"{"type":["string","null"],"nullable":true}"#,
            r#"{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}"#,
            r#"{"format":"nope","title":"x","default":{"type":"x"},"const":{"$ref":"x"}}"#,
            r#"{"maxItems":-1,"multipleOf":1e400,"examples":[5,["a"]],"x-order":[1]}"#,
            r#"{"items":[{"type":"string"},true],"additionalItems":false}"#,
            r#"{"properties":{"type":{"type":"string"},"id":{"enum":[null]}}}"#,
            r#"{"pattern":"^[a-z]{2,4}(?:-\\d+)?$","patternProperties":{"^x":{}}}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"null"}],"required":["a"]}"#,
        ] {
            assert_eq!(fault(member), None, "{member}");
        }
    }

    #[test]
    fn what_clients_may_not_compile_is_told_by_its_keyword() {
        for (member, keyword) in [
            (r#"{"type":"text"}"#, "type"),
            (r#"{"type":null}"#, "type"),
            (r#"{"type":["string","file"]}"#, "type"),
            (r#"{"items":{"anyOf":[{},{"type":"text"}]}}"#, "type"),
            (r#"{"nullable":true}"#, "nullable"),
            (r#"{"type":"null","nullable":false}"#, "nullable"),
            (r#"{"type":["string","null"],"nullable":false}"#, "nullable"),
            (r#"{"enum":[]}"#, "enum"),
            (r#"{"pattern":"\\-"}"#, "pattern"),
            (r#"{"pattern":"[(]\\1"}"#, "pattern"),
            (r#"{"pattern":"(?<a>x)(?<a>y)"}"#, "pattern"),
            (r#"{"pattern":"\\p{Nope}"}"#, "pattern"),
            (r#"{"patternProperties":{"(":{}}}"#, "patternProperties"),
            (r#"{"id":"x"}"#, "id"),
            (r#"{"$id":"x"}"#, "$id"),
            (r#"{"$anchor":"x"}"#, "$anchor"),
            (r#"{"$async":true}"#, "$async"),
            (r#"{"dependencies":{"a":{"type":"nope"}}}"#, "dependencies"),
            (r#"{"formatMinimum":"a"}"#, "formatMinimum"),
            (r#"{"examples":[{"$id":"x"}]}"#, "examples"),
            (r#"{"maximum":"5"}"#, "maximum"),
            (r#"{"minLength":null}"#, "minLength"),
            (r#"{"items":5}"#, "items"),
            (r#"{"required":"a"}"#, "required"),
        ] {
            let told = fault(member).unwrap_or_default();
            assert!(told.contains(&format!("`{keyword}`")), "{member}: {told}");
        }
    }

    #[test]
    fn a_reference_leads_to_a_definition_and_not_round_in_a_circle() {
        let check = |reference: &str| {
            let definitions = r##"{"x":{"type":"object","properties":{"more":{"$ref":"#/$defs/x"}}},
                "a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"},"to":{"$ref":"#/$defs/x"},"a b":{}}"##;
            let schema = format!(
                r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}},"$defs":{definitions}}}"#
            );
            let mut schema: ExactObject = serde_json::from_str(&schema).unwrap();
            if !["#/$defs/a", "#/$defs/b"].contains(&reference) {
                // The circle is a fault by itself.
                let Some(ExactJson::Object(definitions)) = schema.get_mut("$defs") else {
                    panic!()
                };
                definitions.remove("a");
                definitions.remove("b");
            }
            super::check(&schema).is_ok()
        };
        for reference in ["#/$defs/x", "#/$defs/to"] {
            assert!(check(reference), "{reference}");
        }
        for reference in [
            "#",
            "#/$defs/a",
            "#/$defs/none",
            "#/$defs/a%20b",
            "#/properties/a",
            "#/$defs/x/properties/more",
            "x",
            "https://a.example/x",
        ] {
            assert!(!check(reference), "{reference}");
        }
    }

    #[test]
    fn a_schema_has_only_so_many_parts_and_levels() {
        let of = |member: String| fault(&member).unwrap_or_default();
        let names: Vec<String> = (0..9_000).map(|number| format!(r#""{number}":{{}}"#)).collect();
        assert_eq!(of(format!(r#"{{"properties":{{{}}}}}"#, names.join(","))), "");
        let twice = [names.join(","), names.join(",").replace(r#"":"#, r#"x":"#)].join(",");
        let told = of(format!(r#"{{"properties":{{{twice}}}}}"#));
        assert!(told.contains("more than 10000 parts"), "{told}");
        let deep = |levels| format!("{}{{}}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
        assert_eq!(of(deep(60)), "");
        assert!(of(deep(70)).contains("64 levels"));
    }
}
