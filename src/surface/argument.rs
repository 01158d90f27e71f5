//! Reading arguments: every complaint names the parameter and says what it must be.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use uuid::Uuid;

use crate::core::ids::LeaseId;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;

/// Checks arguments against a tool's schema, so that every complaint names its parameter.
///
/// # Errors
/// [`SurfaceError::Argument`] for the first argument that has no parameter, or is not of its type,
/// among its words or within its bounds.
pub fn check(schema: &JsonObject, arguments: &CallArguments) -> Result<(), SurfaceError> {
    match arguments {
        CallArguments::Values(values) => check_members(schema, values, None),
        CallArguments::Written(_) | CallArguments::Faulty(_) => Ok(()),
    }
}

/// Where a value stands, as a complaint names it, such as `until.text`.
#[derive(Clone, Copy)]
struct Path<'a> {
    outer: Option<&'a Path<'a>>,
    name: &'a str,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "{outer}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// Turns numbers and booleans that models send as strings into what the schema asks for. A string that is
/// neither stays, for [`check`] to complain about.
pub fn unquote(schema: &JsonObject, arguments: &mut CallArguments) {
    if let CallArguments::Values(values) = arguments {
        unquote_members(schema, values);
    }
}

fn unquote_members(schema: &JsonObject, arguments: &mut JsonObject) {
    let Some(Value::Object(parameters)) = schema.get("properties") else { return };
    for (name, value) in arguments {
        let Some(Value::Object(parameter)) = parameters.get(name) else { continue };
        match (parameter.get("type").and_then(Value::as_str), &mut *value) {
            (Some("integer"), Value::String(text)) => {
                if let Ok(number) = text.trim().parse::<u64>() {
                    *value = number.into();
                }
            }
            (Some("boolean"), Value::String(text)) => {
                if let Ok(known) = text.trim().parse::<bool>() {
                    *value = known.into();
                }
            }
            (Some("object"), Value::Object(members)) => unquote_members(parameter, members),
            _ => {}
        }
    }
}

/// Checks the members of an object, which stands at `outer`.
fn check_members(
    schema: &JsonObject,
    members: &JsonObject,
    outer: Option<&Path<'_>>,
) -> Result<(), SurfaceError> {
    let Some(Value::Object(parameters)) = schema.get("properties") else { return Ok(()) };
    for (name, value) in members {
        let path = Path { outer, name };
        let Some(parameter) = parameters.get(name) else {
            let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
            let problem = format!("no such parameter; there are: {}", names.join(", "));
            return Err(SurfaceError::argument(path.to_string(), problem));
        };
        check_value(parameter, value, &path)?;
    }
    Ok(())
}

/// Reads a lease id.
pub fn lease_id(text: &str) -> Result<LeaseId, SurfaceError> {
    let problem = |_| {
        let problem = format!("{text:?} is not a lease id, which is a UUID");
        SurfaceError::argument("lease_id", problem)
    };
    Uuid::parse_str(text).map(LeaseId).map_err(problem)
}

/// Checks a value at `path` and all that is in it.
fn check_value(schema: &Value, value: &Value, path: &Path<'_>) -> Result<(), SurfaceError> {
    let meant = alternative(schema, value)
        .map_err(|problem| SurfaceError::argument(path.to_string(), problem))?;
    if !std::ptr::eq(meant, schema) {
        return check_value(meant, value, path);
    }
    if let (Some(of_items), Value::Array(items)) = (schema.get("items"), value) {
        // What else an item may have is up to its reader.
        for (at, item) in items.iter().enumerate() {
            alternative(of_items, item)
                .map_err(|problem| SurfaceError::argument(format!("{path}[{at}]"), problem))?;
        }
    }
    if let (Value::Object(schema), Value::Object(inner)) = (schema, value) {
        check_members(schema, inner, Some(path))?;
    }
    Ok(())
}

/// The schema that a value fits, of the alternatives where there are several.
fn alternative<'a>(schema: &'a Value, value: &Value) -> Result<&'a Value, String> {
    if let Some(problem) = misfit(schema, value) {
        return Err(problem);
    }
    let Some(Value::Array(alternatives)) = schema.get("anyOf") else { return Ok(schema) };
    let meant = alternatives.iter().find(|one| misfit(one, value).is_none());
    meant.ok_or_else(|| {
        let kinds = alternatives.iter().filter_map(|one| one.get("type")?.as_str());
        let kinds: Vec<&str> = kinds.filter(|kind| *kind != "null").map(noun).collect();
        format!("must be {}, not {value:.60}", kinds.join(" or "))
    })
}

/// Says how a value does not fit its schema; a null means that the argument is left out.
fn misfit(parameter: &Value, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if let Some(kind) =
        parameter.get("type").and_then(Value::as_str).filter(|kind| !is(kind, value))
    {
        return Some(format!("must be {}, not {value:.60}", noun(kind)));
    }
    if let Some(Value::Array(words)) = parameter.get("enum").filter(|words| !among(words, value)) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return Some(format!("{value:.60} is not one of {}", words.join(", ")));
    }
    let bound = |name: &str| parameter.get(name).and_then(Value::as_u64);
    let least = bound("minimum").unwrap_or(0);
    let most = bound("maximum").unwrap_or(u64::MAX);
    let outside = value.as_number().is_some_and(|number| {
        number.as_u64().is_none_or(|number| !(least..=most).contains(&number))
    });
    outside.then(|| match most {
        u64::MAX => format!("must be a whole number, {least} or more, not {value}"),
        most => format!("must be a whole number from {least} to {most}, not {value}"),
    })
}

/// A type of JSON in plain words.
fn noun(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(_) => kind == "integer" || kind == "number",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

fn among(words: &Value, value: &Value) -> bool {
    words.as_array().is_some_and(|words| words.contains(value))
}

/// Reads the arguments of a call into a tool's parameters.
pub fn read<T: DeserializeOwned>(mut arguments: JsonObject) -> Result<T, SurfaceError> {
    // Some clients send null for what they leave out.
    arguments.retain(|_, value| !value.is_null());
    let given = Value::Object(arguments);
    // Only a complaint needs the place, which costs more than all else.
    T::deserialize(&given).or_else(|_| serde_path_to_error::deserialize(given)).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        let (parameter, problem) = if path == "." { named_in(&problem) } else { (path, problem) };
        SurfaceError::argument(parameter, problem)
    })
}

/// Finds the name in serde's complaints about fields that are missing or unknown.
fn named_in(problem: &str) -> (String, String) {
    let name = problem.split('`').nth(1).unwrap_or("arguments").to_owned();
    (name, problem.to_owned())
}

/// Checks a number against its bounds.
pub fn within(name: &str, value: u64, bounds: RangeInclusive<u64>) -> Result<u64, SurfaceError> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (bounds.start(), bounds.end());
    Err(SurfaceError::argument(name, format!("{value} is not within {least} to {most}")))
}

/// Checks a time in milliseconds against its bounds.
pub fn millis(
    name: &str,
    value: u64,
    bounds: RangeInclusive<u64>,
) -> Result<Duration, SurfaceError> {
    within(name, value, bounds).map(Duration::from_millis)
}

/// Checks a text that others will be shown: its length in bytes, and that it is one plain line.
pub fn plain(name: &str, text: &str, bytes_max: usize) -> Result<(), SurfaceError> {
    if text.chars().any(char::is_control) {
        return Err(SurfaceError::argument(name, "must have no control characters"));
    }
    if text.len() <= bytes_max {
        return Ok(());
    }
    let problem = format!("{} bytes are more than the {bytes_max} allowed", text.len());
    Err(SurfaceError::argument(name, problem))
}
