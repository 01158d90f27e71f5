//! Reads one configuration file: the keys that it sets and the problems in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::key::{ConfigKey, KEYS, Value, ValueKind};
use crate::config::problem::{Fault, FilePosition, Problem, ValueOrigin};
use crate::core::event::EventKinds;
use crate::core::nearest::nearest_of;

/// The largest file to read, in bytes.
pub const FILE_MAX: u64 = 1024 * 1024;

/// A key that is set, and where.
#[derive(Clone, Debug)]
pub struct Given {
    pub key: &'static ConfigKey,
    pub value: Value,
    pub origin: ValueOrigin,
}

impl Given {
    pub fn problem(self, fault: Fault) -> Problem {
        Problem { origin: self.origin, key: Some(self.key.name.to_owned()), fault }
    }
}

/// Reads a file as text.
///
/// # Errors
/// Returns the system's error, or [`io::ErrorKind::FileTooLarge`].
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// Parses a text. Returns the keys that it sets, and its problems in order. `path` names the file in errors.
pub fn read(text: &str, path: &Path) -> (Vec<Given>, Vec<Problem>) {
    let mut reader = FileReader { text, path, given: Vec::new(), problems: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        let message = error.message().replace('\n', " ");
        reader.complain(at, None, Fault::Syntax(message));
    }
    // In a text with syntax errors, more checks would only report follow-up errors.
    if errors.is_empty() {
        reader.read_table("", table.get_ref());
    }
    reader.problems.sort_by_key(|(at, _)| *at);
    (reader.given, reader.problems.into_iter().map(|(_, problem)| problem).collect())
}

struct FileReader<'a> {
    text: &'a str,
    path: &'a Path,
    given: Vec<Given>,
    /// Each with its byte offset in the text.
    problems: Vec<(usize, Problem)>,
}

impl FileReader<'_> {
    fn read_table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let at = name.span().start;
            let full = match section {
                "" => name.get_ref().to_string(),
                section => format!("{section}.{}", name.get_ref()),
            };
            let known = KEYS.iter().any(|key| key.section() == full);
            match (ConfigKey::find(&full), value.get_ref()) {
                (Some(key), _) => self.read_key(key, at, value),
                (None, DeValue::Table(inner)) if known => self.read_table(&full, inner),
                (None, _) if known => {
                    let fault = Fault::NoTable(self.written(value));
                    self.complain(value.span().start, Some(full), fault);
                }
                (None, DeValue::Table(_)) if section.is_empty() => {
                    let sections =
                        KEYS.iter().map(ConfigKey::section).filter(|name| !name.is_empty());
                    let near = nearest_of(&full, sections, 1).first().copied();
                    self.complain(at, Some(full), Fault::Unknown(near));
                }
                (None, _) => {
                    let near = nearest_of(&full, KEYS.iter().map(|key| key.name), 1);
                    self.complain(at, Some(full), Fault::Unknown(near.first().copied()));
                }
            }
        }
    }

    fn read_key(&mut self, key: &'static ConfigKey, at: usize, value: &Spanned<DeValue<'_>>) {
        let full = Some(key.name.to_owned());
        match value_of(key.kind, value.get_ref()).filter(|value| key.kind.takes(value)) {
            Some(value) => self.given.push(Given { key, value, origin: self.origin(at) }),
            None => {
                let (found, expected) = (self.written(value), key.kind);
                self.complain(value.span().start, full, Fault::Unfit { found, expected });
            }
        }
    }

    fn complain(&mut self, at: usize, key: Option<String>, fault: Fault) {
        self.problems.push((at, Problem { origin: self.origin(at), key, fault }));
    }

    /// A value as written in the text; long ones are cut.
    fn written(&self, value: &Spanned<DeValue<'_>>) -> String {
        const CHARACTERS_MAX: usize = 40;
        let text = self.text.get(value.span()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let cut: String = line.chars().take(CHARACTERS_MAX).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    }

    fn origin(&self, at: usize) -> ValueOrigin {
        let at = Some(FilePosition::of(self.text, at));
        ValueOrigin::File { path: self.path.to_owned(), at }
    }
}

/// The value, if it has a type that keys can have.
fn value_of(kind: ValueKind, value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Boolean(on) => Some(Value::Switch(*on)),
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Number)
        }
        DeValue::String(text) if matches!(kind, ValueKind::Text { .. }) => {
            Some(Value::Text(Arc::from(&**text)))
        }
        DeValue::String(name) => Value::of_name(name),
        DeValue::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(|word| word.get_ref().as_str()).collect();
            EventKinds::of(words?).map(Value::EventKinds)
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests;
