//! The files of other clients, in which their servers are.

use std::fs;
use std::path::Path;

use serde_json::value::RawValue;

use crate::cli::failure::CliFailure;
use crate::cli::install::format::{FileFormatError, json_text};
use crate::mount::json::reading::{JsonFault, RepeatedNames, without_halves};
use crate::mount::json::{ExactJson, ExactObject};

/// Where clients have their servers in their files.
const CONTAINERS: [&[&str]; 4] =
    [&["mcpServers"], &["servers"], &["context_servers"], &["mcp", "servers"]];

/// A file of another client.
pub(super) struct ForeignFile {
    /// Each with what it is, or why it is not taken.
    pub(super) servers: Vec<(String, Result<ExactObject, String>)>,
    /// What is to be said of the file.
    pub(super) notes: Vec<String>,
}

impl ForeignFile {
    /// Reads the servers of a file.
    pub(super) fn read(from: &Path) -> Result<Self, CliFailure> {
        let wrong = |problem: String| CliFailure::Usage(format!("{}: {problem}", from.display()));
        let text = fs::read_to_string(from).map_err(|error| wrong(error.to_string()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // The file is read without the halves, and their servers are not taken.
        let whole = without_halves(text);
        let has_halves = whole != text;
        let entries = |path: &[&str]| {
            json_text::entries(&whole, path).map_err(|error| {
                let is_list = matches!(error, FileFormatError::NotAMap(_));
                wrong(if is_list {
                    "its servers have no names".to_owned()
                } else {
                    error.to_string()
                })
            })
        };
        let (mut all, mut is_list) = (Vec::new(), false);
        for path in CONTAINERS {
            let Some(list) = entries(path)? else { continue };
            is_list = true;
            let is_repeated = |name: &str| list.iter().filter(|(it, _)| it == name).count() > 1;
            let server = |(name, json): &(String, String)| {
                let is_cut = name.contains(char::REPLACEMENT_CHARACTER) || json.contains("\\ufffd");
                let server = match (is_repeated(name), has_halves && is_cut) {
                    (true, _) => Err("the file has several servers of this name".to_owned()),
                    (false, true) => Err("it has half a character".to_owned()),
                    (false, false) => server_of(json),
                };
                (name.clone(), server)
            };
            all.extend(list.iter().map(server));
        }
        if !is_list {
            return Err(wrong("it has no servers: neither `mcpServers` nor `servers`".to_owned()));
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut notes = Vec::new();
        if all.is_empty() {
            notes.push(format!("nothing to add: {} has no servers", from.display()));
        }
        if entries(&["projects"]).is_ok_and(|projects| projects.is_some()) {
            notes.push("servers of projects, in projects.PATH.mcpServers, are not read".to_owned());
        }
        Ok(Self { servers: all, notes })
    }
}

/// A server of a file.
fn server_of(json: &str) -> Result<ExactObject, String> {
    let raw = serde_json::from_str::<&RawValue>(json).map_err(|error| error.to_string())?;
    let server = ExactJson::read(raw, RepeatedNames::Refused).map_err(|fault| fault.to_string())?;
    server.try_into().map_err(|fault: JsonFault| fault.to_string())
}
