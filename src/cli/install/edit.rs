//! Computes the new text of a client's file.
//!
//! Earlier texts of the file show what was there before, so that removing our entry restores exactly
//! that.

use crate::cli::install::entry_format::{EntryFormat, FoundEntry, ServerEntry};
use crate::cli::install::format::{Emptied, FileFormatError};

/// The change of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextChange {
    Unchanged,
    Added(String),
    Updated(String),
    Removed(String),
    /// The file contained only our unchanged entry.
    RemovedFile,
}

/// Adds a server to the text of a file, which may not exist yet.
pub fn install(
    entry_format: &EntryFormat,
    text: Option<&str>,
    server: &ServerEntry,
) -> Result<TextChange, FileFormatError> {
    let known = text.map(|text| entry_format.find(text, &server.name)).transpose()?.flatten();
    let text = text.unwrap_or_default();
    let put = like(text, |text| entry_format.put(text, server))?;
    Ok(match known {
        Some(_) if put == text => TextChange::Unchanged,
        Some(_) => TextChange::Updated(put),
        None => TextChange::Added(put),
    })
}

/// Removes the entry from the text of a file; `earlier` are its previous texts, newest first.
pub fn uninstall(
    entry_format: &EntryFormat,
    text: &str,
    name: &str,
    earlier: &[String],
) -> Result<TextChange, FileFormatError> {
    let Some(found) = entry_format.find(text, name)? else { return Ok(TextChange::Unchanged) };
    let before: Vec<&String> =
        earlier.iter().filter(|text| matches!(entry_format.find(text, name), Ok(None))).collect();
    if let FoundEntry::Program(launch) = found {
        let server = ServerEntry { name: name.to_owned(), launch };
        let came_of = |before: Option<&str>| {
            install(entry_format, before, &server) == Ok(TextChange::Added(text.to_owned()))
        };
        if let Some(before) = before.iter().find(|before| came_of(Some(before))) {
            return Ok(TextChange::Removed((*before).clone()));
        }
        if came_of(None) {
            return Ok(TextChange::RemovedFile);
        }
    }
    let ours = before.first().is_some_and(|it| matches!(entry_format.has_container(it), Ok(false)));
    let emptied = if ours { Emptied::Goes } else { Emptied::Stays };
    Ok(TextChange::Removed(like(text, |text| entry_format.take(text, name, emptied))?))
}

/// Edits a text and keeps its line ends if they are uniform.
fn like(
    text: &str,
    edit: impl FnOnce(&str) -> Result<String, FileFormatError>,
) -> Result<String, FileFormatError> {
    let of_windows = text.matches("\r\n").count();
    if of_windows == 0 || of_windows != text.matches('\n').count() {
        return edit(text);
    }
    Ok(edit(&text.replace("\r\n", "\n"))?.replace('\n', "\r\n"))
}

#[cfg(test)]
mod tests;
