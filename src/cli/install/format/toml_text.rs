//! TOML, edited with its comments and order kept.
//!
//! The library treats a comment above a table as part of it, so `remove` moves the comment to the next
//! table.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use crate::cli::install::format::{Emptied, FileFormatError, Members, Spot};

/// The value of the entry, if it exists.
pub fn get(text: &str, spot: Spot<'_>) -> Result<Option<Value>, FileFormatError> {
    let document = parse(text)?;
    let Some(item) = document.get(spot.container) else { return Ok(None) };
    let container = item.as_table_like().ok_or_else(|| not_a_map(spot.container))?;
    Ok(container.get(spot.name).map(value_of))
}

/// Whether the container exists, even if only in the headers of its entries.
pub fn has_container(text: &str, name: &str) -> Result<bool, FileFormatError> {
    Ok(parse(text)?.get(name).is_some())
}

/// Adds the entry as a separate table.
pub fn add(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FileFormatError> {
    let mut document = parse(text)?;
    let mut entry = Table::new();
    for (name, value) in members {
        entry.insert(name, item_of(value)?);
    }
    container(&mut document, spot.container)?.insert(spot.name, Item::Table(entry));
    Ok(document.to_string())
}

/// Sets these members of the entry.
pub fn set(text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FileFormatError> {
    let mut document = parse(text)?;
    let entry = container(&mut document, spot.container)?.get_mut(spot.name);
    let entry = entry.and_then(Item::as_table_like_mut).ok_or_else(|| not_a_map(spot.name))?;
    for (name, value) in members {
        if entry.get(name).map(value_of).as_ref() != Some(value) {
            replace(entry, name, item_of(value)?);
        }
    }
    Ok(document.to_string())
}

/// Sets a member and keeps the comments around its old value.
fn replace(entry: &mut dyn TableLike, name: &str, mut item: Item) {
    let old = entry.get(name).and_then(Item::as_value).map(|value| value.decor().clone());
    if let (Some(decor), Some(value)) = (old, item.as_value_mut()) {
        *value.decor_mut() = decor;
    }
    match entry.get_mut(name) {
        Some(there) => *there = item,
        None => {
            entry.insert(name, item);
        }
    }
}

/// Removes the entry.
pub fn remove(text: &str, spot: Spot<'_>, emptied: Emptied) -> Result<String, FileFormatError> {
    let mut document = parse(text)?;
    let removed = container(&mut document, spot.container)?.remove(spot.name);
    if let Some(table) = removed.as_ref().and_then(Item::as_table) {
        hand_on_comments(&mut document, table);
    }
    if emptied == Emptied::Goes && container(&mut document, spot.container)?.is_empty() {
        document.remove(spot.container);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, FileFormatError> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| FileFormatError::Malformed(error.to_string()))
}

fn container<'a>(
    document: &'a mut DocumentMut,
    name: &str,
) -> Result<&'a mut dyn TableLike, FileFormatError> {
    // An implicit table, because its own header would be empty.
    let mut empty = Table::new();
    empty.set_implicit(true);
    let item = document.entry(name).or_insert(Item::Table(empty));
    item.as_table_like_mut().ok_or_else(|| not_a_map(name))
}

/// Moves the comments above a removed table to the next table, or to the end of the document.
fn hand_on_comments(document: &mut DocumentMut, gone: &Table) {
    let above = gone.decor().prefix().and_then(|it| it.as_str()).unwrap_or_default().to_owned();
    if !above.contains('#') {
        return;
    }
    let after = gone.position().unwrap_or(isize::MAX);
    match next_table(document.as_table_mut(), after) {
        Some(next) => {
            let own = next.decor().prefix().and_then(|it| it.as_str()).unwrap_or("\n").to_owned();
            next.decor_mut().set_prefix(above + &own);
        }
        None => {
            let end = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(above + &end);
        }
    }
}

/// The table with the first header after this position.
fn next_table(table: &mut Table, after: isize) -> Option<&mut Table> {
    let mut next: Option<&mut Table> = None;
    let position = |table: &Table| table.position().unwrap_or(isize::MAX);
    for (_, item) in table.iter_mut() {
        let Some(inner) = item.as_table_mut() else { continue };
        let own = !inner.is_implicit() && !inner.is_dotted() && position(inner) > after;
        let found = if own { Some(inner) } else { next_table(inner, after) };
        if let Some(found) = found
            && next.as_deref().is_none_or(|known| position(found) < position(known))
        {
            next = Some(found);
        }
    }
    next
}

fn not_a_map(name: &str) -> FileFormatError {
    FileFormatError::NotAMap(name.to_owned())
}

/// The value as JSON, for the types that entries use.
fn value_of(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        let members = table.iter().map(|(name, item)| (name.to_owned(), value_of(item)));
        return Value::Object(members.collect());
    }
    match item {
        Item::Value(toml_edit::Value::String(text)) => Value::from(text.value().as_str()),
        Item::Value(toml_edit::Value::Integer(number)) => Value::from(*number.value()),
        Item::Value(toml_edit::Value::Boolean(flag)) => Value::from(*flag.value()),
        Item::Value(toml_edit::Value::Array(items)) => {
            items.iter().map(|value| value_of(&Item::Value(value.clone()))).collect()
        }
        Item::None | Item::Value(_) | Item::Table(_) | Item::ArrayOfTables(_) => Value::Null,
    }
}

fn item_of(value: &Value) -> Result<Item, FileFormatError> {
    match value {
        Value::String(text) => Ok(toml_edit::value(text)),
        Value::Bool(flag) => Ok(toml_edit::value(*flag)),
        Value::Array(items) => {
            let texts = items.iter().map(Value::as_str).collect::<Option<Array>>();
            texts.map(toml_edit::value).ok_or(FileFormatError::NotKept)
        }
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                let value = item_of(value)?.into_value().map_err(|_| FileFormatError::NotKept)?;
                table.insert(name, value);
            }
            Ok(toml_edit::value(table))
        }
        Value::Null | Value::Number(_) => Err(FileFormatError::NotKept),
    }
}
