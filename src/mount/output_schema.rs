//! Whether clients can compile the schema of a tool's results. Those that do compile all schemas of a list together, and
//! lose the list for one that cannot be compiled.
//!
//! It knows the rules of the validators in use (JSON Schema of draft 7 and later), which leave out what they do not know.

mod pattern;
mod references;

use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::output_schema::pattern::is_pattern;
use crate::mount::output_schema::references::SchemaNames;

/// The types of values.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Why a schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    #[error("it is no schema of an object")]
    NoObject,
    #[error("{0} is no schema")]
    NoSchema(String),
    #[error("{0} has a value that it cannot have")]
    Value(String),
    #[error("{0} refers to what is not in it: {1}")]
    Reference(String, String),
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
    List,
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
    /// Nothing: a keyword of an older draft, or one that needs another one.
    Unknown,
}

/// Checks a schema all the way down.
///
/// # Errors
/// [`SchemaFault`].
pub fn check(schema: &ExactObject) -> Result<(), SchemaFault> {
    SchemaWalk { names: &SchemaNames::of(schema), base: schema }.object(schema, "")
}

/// A walk through a schema.
#[derive(Clone, Copy)]
struct SchemaWalk<'n, 'a> {
    names: &'n SchemaNames<'a>,
    /// The schema with an address of its own in which references begin.
    base: &'a ExactObject,
}

impl<'a> SchemaWalk<'_, 'a> {
    fn value(self, schema: &'a ExactJson, path: &str) -> Result<(), SchemaFault> {
        match schema {
            ExactJson::Object(schema) => self.object(schema, path),
            ExactJson::Literal(literal) if is_flag(literal) => Ok(()),
            ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_) => {
                Err(SchemaFault::NoSchema(shown(path)))
            }
        }
    }

    fn object(mut self, schema: &'a ExactObject, path: &str) -> Result<(), SchemaFault> {
        if schema.text("$id").is_some_and(|id| !id.starts_with('#')) {
            self.base = schema;
        }
        for (keyword, value) in schema.iter() {
            let path = format!("{path}/{keyword}");
            let Some(kind) = kind(keyword, schema) else { continue };
            self.keyword(kind, value, &path)?;
        }
        Ok(())
    }

    fn keyword(
        self,
        kind: KeywordValue,
        value: &'a ExactJson,
        path: &str,
    ) -> Result<(), SchemaFault> {
        let text = value.as_text();
        let literal = value.as_literal();
        let list = matches!(value, ExactJson::List(_));
        let is_right = match kind {
            KeywordValue::Type => {
                let is_type = |it: &ExactJson| it.as_text().is_some_and(|it| TYPES.contains(&it));
                is_type(value) || (list && value.items().iter().all(is_type))
            }
            KeywordValue::Text => text.is_some(),
            KeywordValue::Pattern => text.is_some_and(is_pattern),
            KeywordValue::Number => literal.is_some_and(is_number),
            KeywordValue::Flag => literal.is_some_and(is_flag),
            KeywordValue::List => list,
            KeywordValue::Choice => !value.items().is_empty(),
            KeywordValue::Unknown => false,
            KeywordValue::Reference => match text {
                Some(to) if self.names.has(self.base, to) => true,
                Some(to) => return Err(SchemaFault::Reference(shown(path), to.to_owned())),
                None => false,
            },
            KeywordValue::Schema => return self.value(value, path),
            KeywordValue::Items if !list => return self.value(value, path),
            KeywordValue::Items | KeywordValue::Schemas => {
                for (place, schema) in value.items().iter().enumerate() {
                    self.value(schema, &format!("{path}/{place}"))?;
                }
                list
            }
            KeywordValue::Members | KeywordValue::Matches => {
                let members = value.as_object();
                for (name, schema) in members.into_iter().flat_map(ExactObject::iter) {
                    let path = format!("{path}/{name}");
                    if kind == KeywordValue::Matches && !is_pattern(name) {
                        return Err(SchemaFault::Value(shown(&path)));
                    }
                    self.value(schema, &path)?;
                }
                members.is_some()
            }
        };
        if is_right { Ok(()) } else { Err(SchemaFault::Value(shown(path))) }
    }
}

/// What this keyword of a schema takes; `None` if validators do not know it or do not mind.
fn kind(keyword: &str, schema: &ExactObject) -> Option<KeywordValue> {
    Some(match keyword {
        "type" => KeywordValue::Type,
        "format" => KeywordValue::Text,
        "pattern" => KeywordValue::Pattern,
        "$ref" => KeywordValue::Reference,
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" | "multipleOf"
        | "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties"
        | "minProperties" => KeywordValue::Number,
        "uniqueItems" => KeywordValue::Flag,
        "required" => KeywordValue::List,
        "enum" => KeywordValue::Choice,
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
        "properties" | "$defs" | "definitions" | "dependentSchemas" => KeywordValue::Members,
        "patternProperties" => KeywordValue::Matches,
        "id" => KeywordValue::Unknown,
        "nullable" if schema.get("type").is_none() => KeywordValue::Unknown,
        "nullable" => KeywordValue::Flag,
        _ => return None,
    })
}

fn is_flag(literal: &str) -> bool {
    ["true", "false"].contains(&literal)
}

fn is_number(literal: &str) -> bool {
    literal.starts_with(|it: char| it == '-' || it.is_ascii_digit())
}

fn shown(path: &str) -> String {
    /// The most of a path that is shown, in bytes.
    const PATH_MAX: usize = 200;
    format!("`{}`", &path[..path.floor_char_boundary(PATH_MAX)])
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
            r#"{"type":[]}"#,
            r#"{"format":"nope","title":5,"default":{"type":"x"},"const":{"$ref":"x"}}"#,
            r#"{"anyOf":[],"maxItems":-1,"multipleOf":1e400,"examples":5}"#,
            r##"{"discriminator":{"propertyName":"x"},"$dynamicRef":"#x","x-own":[{"type":"y"}]}"##,
            r#"{"items":[{"type":"string"},true],"additionalItems":false}"#,
            r#"{"properties":{"type":{"type":"string"},"id":{"enum":[null]}}}"#,
            r##"{"$ref":"#"}"##,
            r#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#,
            r#"{"pattern":"^\\d{4}-[a-z\\-]+$"}"#,
        ] {
            assert_eq!(fault(member), None, "{member}");
        }
    }

    #[test]
    fn what_clients_do_not_compile_is_told_with_its_place() {
        for (member, place) in [
            (r#"{"type":"text"}"#, "/properties/a/type"),
            (r#"{"type":null}"#, "/properties/a/type"),
            (r#"{"type":["string","file"]}"#, "/properties/a/type"),
            (r#"{"items":{"anyOf":[{},{"type":"text"}]}}"#, "/properties/a/items/anyOf/1/type"),
            (r#"{"nullable":true}"#, "/nullable"),
            (r#"{"enum":[]}"#, "/enum"),
            (r#"{"pattern":"\\-"}"#, "/pattern"),
            (r#"{"id":"x"}"#, "/id"),
            (r#"{"maximum":"5"}"#, "/maximum"),
            (r#"{"minLength":null}"#, "/minLength"),
            (r#"{"exclusiveMinimum":true}"#, "/exclusiveMinimum"),
            (r#"{"uniqueItems":"yes"}"#, "/uniqueItems"),
            (r#"{"required":true}"#, "/required"),
            (r#"{"format":5}"#, "/format"),
            (r#"{"items":5}"#, "/items"),
            (r#"{"anyOf":{}}"#, "/anyOf"),
            (r#"{"not":null}"#, "/not"),
            (r#"{"contains":"x"}"#, "/contains"),
            (r#"{"additionalProperties":null}"#, "/additionalProperties"),
            (r#"{"patternProperties":{"\\-":{"type":"string"}}}"#, "/patternProperties"),
            (r#"{"$ref":5}"#, "/$ref"),
            (r##"{"$ref":"#/$defs/x"}"##, "#/$defs/x"),
            ("null", "/properties/a"),
        ] {
            let told = fault(member).unwrap_or_default();
            assert!(told.contains(place), "{member}: {told}");
        }
    }

    #[test]
    fn a_reference_resolves_inside_of_its_schema() {
        let check = |reference: &str, more: &str| {
            let schema = format!(
                r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}},{more}}}"#
            );
            check(&serde_json::from_str(&schema).unwrap()).is_ok()
        };
        let definitions = r##""$defs":{"x":{},"a b":{},"c/d":{},"b":{"$id":"https://e.example/b.json",
            "properties":{"y":{"$ref":"#/properties/z"},"z":{}}},"n":{"$anchor":"foo"}}"##;
        for reference in [
            "#/$defs/x",
            "#/$defs/a%20b",
            "#/$defs/c~1d",
            "#foo",
            "https://e.example/b.json",
            "b.json",
            "b.json#/properties/z",
            "#/properties/a",
        ] {
            assert!(check(reference, definitions), "{reference}");
        }
        for reference in ["#/$defs/y", "#bar", "b.json#/properties/x", "c.json", "#/$defs/x/0"] {
            assert!(!check(reference, definitions), "{reference}");
        }
    }
}
