//! Computes the new text of a client's file.
//!
//! Earlier texts of the file show what was there before, so that removing our entry restores exactly
//! that.

use crate::cli::install::family::{Family, Found};
use crate::cli::install::format::{Emptied, FormatError};
use crate::cli::install::server::Server;

/// The result of adding a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installed {
    AlreadyThere,
    Added(String),
    Updated(String),
}

/// The result of removing a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uninstalled {
    NotThere,
    Left(String),
    /// The file contained only our unchanged entry.
    Nothing,
}

/// Adds a server to the text of a file, which may not exist yet.
///
/// # Errors
/// The text is malformed, or cannot be changed without losing something.
pub fn install(
    family: &Family,
    text: Option<&str>,
    server: &Server,
) -> Result<Installed, FormatError> {
    let known = text.map(|text| family.find(text, &server.name)).transpose()?.flatten();
    let text = text.unwrap_or_default();
    let put = like(text, |text| family.put(text, server))?;
    Ok(match known {
        Some(_) if put == text => Installed::AlreadyThere,
        Some(_) => Installed::Updated(put),
        None => Installed::Added(put),
    })
}

/// Removes the entry from the text of a file; `earlier` are its previous texts, newest first.
///
/// # Errors
/// As [`install`].
pub fn uninstall(
    family: &Family,
    text: &str,
    name: &str,
    earlier: &[String],
) -> Result<Uninstalled, FormatError> {
    let Some(found) = family.find(text, name)? else { return Ok(Uninstalled::NotThere) };
    let before: Vec<&String> =
        earlier.iter().filter(|text| matches!(family.find(text, name), Ok(None))).collect();
    if let Found::Program(launch) = found {
        let server = Server { name: name.to_owned(), launch };
        let came_of = |before: Option<&str>| match install(family, before, &server) {
            Ok(Installed::Added(after)) => after == text,
            Ok(Installed::AlreadyThere | Installed::Updated(_)) | Err(_) => false,
        };
        if let Some(before) = before.iter().find(|before| came_of(Some(before))) {
            return Ok(Uninstalled::Left((*before).clone()));
        }
        if came_of(None) {
            return Ok(Uninstalled::Nothing);
        }
    }
    let ours = before.first().is_some_and(|it| matches!(family.has_container(it), Ok(false)));
    let emptied = if ours { Emptied::Goes } else { Emptied::Stays };
    Ok(Uninstalled::Left(like(text, |text| family.take(text, name, emptied))?))
}

/// Edits a text and keeps its line ends if they are uniform.
fn like(
    text: &str,
    edit: impl FnOnce(&str) -> Result<String, FormatError>,
) -> Result<String, FormatError> {
    let of_windows = text.matches("\r\n").count();
    if of_windows == 0 || of_windows != text.matches('\n').count() {
        return edit(text);
    }
    Ok(edit(&text.replace("\r\n", "\n"))?.replace('\n', "\r\n"))
}

#[cfg(test)]
mod tests;
