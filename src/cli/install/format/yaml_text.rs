//! YAML, edited in its syntax tree, and each edit proven before it counts.
//!
//! It knows no client. YAML has more ways of writing a thing than an editor can be trusted with, so
//! an entry may come and go only as one piece between bytes that stay as they were.

use std::str::FromStr;

use serde_json::Value;
use yaml_edit::{Document, Mapping, YamlFile, YamlNode};

use crate::cli::install::format::{Emptied, FormatError, Members, Spot};

/// The value of the entry, where there is one.
///
/// # Errors
/// That the text is no YAML, or something else is where entries should be.
pub fn get(text: &str, spot: Spot<'_>) -> Result<Option<Value>, FormatError> {
    let Some(container) = container(&parse(text)?, spot.container)? else { return Ok(None) };
    Ok(container.get(spot.name).map(|entry| value_of(&entry)))
}

/// Whether the container is there.
///
/// # Errors
/// As [`get`].
pub fn has_container(text: &str, name: &str) -> Result<bool, FormatError> {
    Ok(top(&parse(text)?)?.is_some_and(|top| top.contains_key(name)))
}

/// The text with the entry.
///
/// # Errors
/// As [`get`], or that more than this would change.
pub fn add(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FormatError> {
    let file = parse(text)?;
    let block = block(spot, members);
    let added = match container(&file, spot.container)? {
        Some(container) => {
            container.set(spot.name, entry_of(&block, spot)?);
            file.to_string()
        }
        None if has_container(text, spot.container)? => {
            let top = top(&file)?.ok_or(FormatError::NotKept)?;
            let document = document_of(&block)?;
            let whole = document.get_mapping(spot.container).ok_or(FormatError::NotKept)?;
            top.set(spot.container, whole);
            file.to_string()
        }
        None if text.is_empty() || text.ends_with('\n') => format!("{text}{block}"),
        None => format!("{text}\n{block}"),
    };
    let there = get(&added, spot)?;
    let kept = there.is_some_and(|entry| has_all(&entry, members)) && is_one_piece(&added, text);
    if kept { Ok(added) } else { Err(FormatError::NotKept) }
}

/// The text with these members of the entry set.
///
/// # Errors
/// As [`get`], or that another entry would change.
pub fn set(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FormatError> {
    let file = parse(text)?;
    let container = container(&file, spot.container)?.ok_or(FormatError::NotKept)?;
    let entry = container.get_mapping(spot.name).ok_or(FormatError::NotKept)?;
    let block = block(spot, members);
    let fresh = entry_of(&block, spot)?;
    for (name, value) in members {
        if entry.get(*name).map(|there| value_of(&there)).as_ref() != Some(value) {
            entry.set(*name, fresh.get(*name).ok_or(FormatError::NotKept)?);
        }
    }
    let changed = file.to_string();
    let there = get(&changed, spot)?;
    let rest = |text| remove(text, spot, Emptied::Stays);
    let kept =
        there.is_some_and(|entry| has_all(&entry, members)) && rest(&changed)? == rest(text)?;
    if kept { Ok(changed) } else { Err(FormatError::NotKept) }
}

/// The text without the entry.
///
/// # Errors
/// As [`get`], or that more than this would change.
pub fn remove(text: &str, spot: Spot<'_>, emptied: Emptied) -> Result<String, FormatError> {
    let file = parse(text)?;
    let container = container(&file, spot.container)?.ok_or(FormatError::NotKept)?;
    if emptied == Emptied::Goes && container.len() == 1 {
        top(&file)?.ok_or(FormatError::NotKept)?.remove(spot.container);
    } else {
        container.remove(spot.name);
    }
    let removed = file.to_string();
    let gone = get(&removed, spot)?.is_none();
    // The last entry leaves `{}` behind, since an empty block would mean no value at all.
    let kept = gone && (is_one_piece(text, &removed) || container_is_empty(&removed, spot)?);
    if kept { Ok(removed) } else { Err(FormatError::NotKept) }
}

fn container_is_empty(text: &str, spot: Spot<'_>) -> Result<bool, FormatError> {
    Ok(container(&parse(text)?, spot.container)?.is_some_and(|it| it.is_empty()))
}

fn parse(text: &str) -> Result<YamlFile, FormatError> {
    let file = YamlFile::from_str(text);
    let file = file.map_err(|error| FormatError::Malformed(error.to_string()))?;
    if file.documents().count() > 1 || file.to_string() != text {
        return Err(FormatError::NotKept);
    }
    Ok(file)
}

fn top(file: &YamlFile) -> Result<Option<Mapping>, FormatError> {
    let Some(document) = file.document() else { return Ok(None) };
    let top = document.as_mapping();
    if top.is_none() && (document.as_sequence().is_some() || document.as_scalar().is_some()) {
        return Err(FormatError::NotAMap("the file".to_owned()));
    }
    Ok(top)
}

/// The container; nothing when it is absent or has no value.
fn container(file: &YamlFile, name: &str) -> Result<Option<Mapping>, FormatError> {
    let Some(top) = top(file)? else { return Ok(None) };
    if top.find_all_entries_by_key(name).count() > 1 {
        return Err(FormatError::NotKept);
    }
    match top.get(name) {
        None => Ok(None),
        Some(node) if node.as_scalar().is_some_and(|scalar| scalar.is_null()) => Ok(None),
        Some(node) => match node.as_mapping() {
            Some(container) => Ok(Some(container.clone())),
            None => Err(FormatError::NotAMap(name.to_owned())),
        },
    }
}

/// The entry in its container, as a text of its own.
fn block(spot: Spot<'_>, members: &Members) -> String {
    // Values of JSON are values of YAML.
    let lines = members.iter().map(|(name, value)| format!("    {name}: {value}\n"));
    format!("{}:\n  {}:\n{}", spot.container, spot.name, lines.collect::<String>())
}

fn document_of(block: &str) -> Result<Document, FormatError> {
    Document::from_str(block).map_err(|_| FormatError::NotKept)
}

fn entry_of(block: &str, spot: Spot<'_>) -> Result<Mapping, FormatError> {
    let container = document_of(block)?.get_mapping(spot.container);
    container.and_then(|it| it.get_mapping(spot.name)).ok_or(FormatError::NotKept)
}

fn has_all(entry: &Value, members: &Members) -> bool {
    members.iter().all(|(name, value)| entry.get(name) == Some(value))
}

/// Whether the longer text is the shorter one with one piece put in.
fn is_one_piece(longer: &str, shorter: &str) -> bool {
    let (longer, shorter) = (longer.as_bytes(), shorter.as_bytes());
    let same = |(one, other): &(&u8, &u8)| one == other;
    let before = longer.iter().zip(shorter).take_while(same).count();
    let after = longer.iter().rev().zip(shorter.iter().rev()).take_while(same).count();
    longer.len() >= shorter.len() && before + after >= shorter.len()
}

/// What is written there, as far as entries have use for it.
fn value_of(node: &YamlNode) -> Value {
    if let Some(mapping) = node.as_mapping() {
        let members = mapping
            .iter()
            .filter_map(|(key, value)| Some((key.as_scalar()?.as_string(), value_of(&value))));
        return Value::Object(members.collect());
    }
    if let Some(sequence) = node.as_sequence() {
        return sequence.values().map(|item| value_of(&item)).collect();
    }
    let plain = node.to_bool().map(Value::from).or_else(|| node.to_i64().map(Value::from));
    let text = || node.as_scalar().map(|scalar| Value::from(scalar.as_string()));
    plain.or_else(text).unwrap_or_default()
}
