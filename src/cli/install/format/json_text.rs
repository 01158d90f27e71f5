//! JSON with comments and trailing commas, edited in its syntax tree.
//!
//! Everything outside an edit stays as it was, byte for byte, since users keep comments and their own
//! order in these files.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use crate::cli::install::format::{Emptied, FileFormatError, Members, Spot};

/// The value of the entry, if it exists.
pub fn get(text: &str, spot: Spot<'_>) -> Result<Option<Value>, FileFormatError> {
    let Some(container) = container(&parse(text)?, spot.container)? else { return Ok(None) };
    Ok(container.get(spot.name).map(|entry| entry.to_serde_value().unwrap_or_default()))
}

pub fn has_container(text: &str, name: &str) -> Result<bool, FileFormatError> {
    Ok(container(&parse(text)?, name)?.is_some())
}

/// The entries of the object at this path as JSON without comments, in their order; `None` if there is no such member. Names
/// may be repeated.
pub fn entries(
    text: &str,
    path: &[&str],
) -> Result<Option<Vec<(String, String)>>, FileFormatError> {
    let empty = || FileFormatError::Malformed("it is empty".to_owned());
    let mut value = parse(text)?.value().ok_or_else(empty)?;
    for name in path {
        let member = value.as_object().and_then(|object| object.get(name)?.value());
        let Some(member) = member else { return Ok(None) };
        value = member;
    }
    let object = value.as_object().ok_or_else(|| not_a_map(&path.join(".")))?;
    let entry = |entry: CstObjectProp| Some((entry.decoded_name()?, plain(&entry.value()?)));
    Ok(Some(object.properties().into_iter().filter_map(entry).collect()))
}

/// A value without comments and trailing commas. Texts and numbers stay as they are written.
fn plain(value: &CstNode) -> String {
    if let Some(object) = value.as_object() {
        let member = |it: CstObjectProp| {
            Some(format!("{}:{}", it.name()?.as_string_lit()?, plain(&it.value()?)))
        };
        let members: Vec<_> = object.properties().into_iter().filter_map(member).collect();
        return format!("{{{}}}", members.join(","));
    }
    match value.as_array() {
        Some(list) => {
            let values: Vec<_> = list.elements().iter().map(plain).collect();
            format!("[{}]", values.join(","))
        }
        None => value.to_string(),
    }
}

/// Adds the entry at the end of its container.
pub fn add(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FileFormatError> {
    let root = parse(text)?;
    let container = match container(&root, spot.container)? {
        Some(container) => container,
        None => root.object_value_or_set().object_value_or_set(spot.container),
    };
    let members = members.iter().map(|(name, value)| ((*name).to_owned(), input(value)));
    container.append(spot.name, CstInputValue::Object(members.collect()));
    let added = root.to_string();
    // A new file ends with a line end.
    Ok(if text.trim().is_empty() { format!("{}\n", added.trim()) } else { added })
}

/// Sets these members of the entry.
pub fn set(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FileFormatError> {
    let root = parse(text)?;
    let entry = entry(&root, spot)?;
    let entry = entry.object_value().ok_or_else(|| not_a_map(spot.name))?;
    for (name, value) in members {
        match entry.get(name) {
            Some(member) if member.to_serde_value().as_ref() == Some(value) => {}
            Some(member) => member.set_value(input(value)),
            None => {
                entry.append(name, input(value));
            }
        }
    }
    Ok(root.to_string())
}

/// Removes the entry.
pub fn remove(text: &str, spot: Spot<'_>, emptied: Emptied) -> Result<String, FileFormatError> {
    let root = parse(text)?;
    entry(&root, spot)?.remove();
    let container = root.object_value().and_then(|top| top.get(spot.container));
    if let Some(container) = container
        && emptied == Emptied::Goes
        && container.object_value().is_some_and(|object| object.properties().is_empty())
    {
        container.remove();
    }
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, FileFormatError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options)
        .map_err(|error| FileFormatError::Malformed(error.to_string()))
}

fn container(root: &CstRootNode, name: &str) -> Result<Option<CstObject>, FileFormatError> {
    let Some(value) = root.value() else { return Ok(None) };
    let top = value.as_object().ok_or_else(|| not_a_map("the file"))?;
    let Some(container) = only(&top, name)? else { return Ok(None) };
    Ok(Some(container.object_value().ok_or_else(|| not_a_map(name))?))
}

fn entry(root: &CstRootNode, spot: Spot<'_>) -> Result<CstObjectProp, FileFormatError> {
    let container = container(root, spot.container)?;
    let entry = container.map(|container| only(&container, spot.name)).transpose()?.flatten();
    entry.ok_or_else(|| not_a_map(spot.container))
}

/// The property with this name. Two of them are an error, since it is unknown which one the client uses.
fn only(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, FileFormatError> {
    let mut found = object.properties().into_iter();
    let mut found = found.by_ref().filter(|it| it.decoded_name().as_deref() == Some(name));
    let first = found.next();
    if found.next().is_some() { Err(FileFormatError::NotKept) } else { Ok(first) }
}

fn not_a_map(name: &str) -> FileFormatError {
    FileFormatError::NotAMap(name.to_owned())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}
