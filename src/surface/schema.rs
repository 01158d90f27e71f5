//! Schemas of parameters and results, trimmed to what clients need.
//!
//! Every client pays for each byte of `tools/list`, and JavaScript validators reject the number
//! formats that the generator adds, so both are taken out here, once for all tools.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of a tool's parameters, with descriptions of their members where these are not `known` from other tools.
pub fn of_parameters<T: JsonSchema>(known: bool) -> JsonObject {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12());
    let members = schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    if let Value::Object(members) = members {
        for parameter in members.values_mut() {
            match parameter.get_mut("properties") {
                Some(Value::Object(below)) if !known => {
                    below.values_mut().for_each(without_descriptions_below);
                }
                _ => without_descriptions_below(parameter),
            }
        }
    }
    schema
}

/// Takes out descriptions and defaults of members of members: they mean what parameters of the same names do.
fn without_descriptions_below(schema: &mut Value) {
    for below in ["properties", "items", "anyOf"] {
        match schema.get_mut(below) {
            Some(Value::Object(members)) if below == "properties" => {
                for member in members.values_mut() {
                    without_description(member);
                }
            }
            Some(Value::Array(alternatives)) => {
                alternatives.iter_mut().for_each(without_description);
            }
            Some(one) => without_description(one),
            None => {}
        }
    }
}

fn without_description(schema: &mut Value) {
    if let Value::Object(object) = schema {
        object.remove("description");
        object.remove("default");
    }
    without_descriptions_below(schema);
}

/// The schema of a tool's result: its members, each with its type and nothing of what lies deeper.
///
/// The same deep shapes stand in the results of many tools, and a client would pay for each of them.
pub fn of_result<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = schemars::generate::Contract::Serialize;
    settings.inline_subschemas = true;
    let whole = settings.clone().into_generator().into_root_schema_for::<T>().to_value();
    let mut schema = generate::<T>(settings);
    let required = schema.get("required").cloned().unwrap_or_default();
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        for (name, member) in members {
            *member = shallow(member);
            // A member that is always there may say by null that nothing is known.
            let kinds = &whole["properties"][name]["type"];
            let nullable = kinds.as_array().is_some_and(|kinds| kinds.contains(&"null".into()));
            let always = required.as_array().is_some_and(|names| names.contains(&(&**name).into()));
            if nullable && always {
                member["type"] = kinds.clone();
            }
        }
    }
    schema
}

/// A schema of the same type that says nothing of members; of items it says their type.
fn shallow(schema: &Value) -> Value {
    let mut kept = JsonObject::new();
    if let Some(kind) = schema.get("type") {
        kept.insert("type".to_owned(), kind.clone());
    }
    if let Some(items) = schema.get("items") {
        kept.insert("items".to_owned(), shallow(items));
    }
    Value::Object(kept)
}

fn generate<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut object) = trimmed(schema.to_value()) else { return JsonObject::new() };
    // It describes the type to readers of the code; the tool has its own description.
    object.remove("description");
    object
}

/// Takes out what no client needs: titles, formats, `null` as an alternative, trivial minimums and
/// defaults.
fn trimmed(schema: Value) -> Value {
    match schema {
        Value::Object(object) => Value::Object(trimmed_object(object)),
        Value::Array(items) => Value::Array(items.into_iter().map(trimmed).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn trimmed_object(mut object: JsonObject) -> JsonObject {
    merge_only_alternative(&mut object);
    let mut kept = JsonObject::new();
    for (key, value) in object {
        let redundant = match key.as_str() {
            "title" | "format" => value.is_string(),
            "minimum" => value == 0,
            "maximum" => value == u16::MAX || value == u8::MAX,
            "default" => value.is_null() || value == false,
            _ => false,
        };
        if redundant {
            continue;
        }
        let value = match key.as_str() {
            "properties" => trimmed_members(value),
            "type" => without_null(value),
            "enum" => without_null_member(value),
            _ => trimmed(value),
        };
        kept.insert(key, value);
    }
    kept
}

/// Writes "this or null" as "this".
fn merge_only_alternative(object: &mut JsonObject) {
    let Some(Value::Array(alternatives)) = object.get("anyOf") else { return };
    let null = serde_json::json!({"type": "null"});
    let mut others = alternatives.iter().filter(|schema| **schema != null);
    if let (Some(Value::Object(only)), None) = (others.next(), others.next()) {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// The members of `properties` are named by us and may be called `title`; only their values are
/// schemas.
fn trimmed_members(properties: Value) -> Value {
    let Value::Object(members) = properties else { return properties };
    Value::Object(members.into_iter().map(|(name, value)| (name, trimmed(value))).collect())
}

fn without_null(kind: Value) -> Value {
    let Value::Array(kinds) = kind else { return kind };
    let mut kinds: Vec<Value> = kinds.into_iter().filter(|kind| kind != "null").collect();
    if kinds.len() == 1 { kinds.remove(0) } else { Value::Array(kinds) }
}

fn without_null_member(values: Value) -> Value {
    let Value::Array(values) = values else { return values };
    Value::Array(values.into_iter().filter(|value| !value.is_null()).collect())
}
