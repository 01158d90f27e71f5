//! The forms in which clients store a server, one file for each family of clients.

pub mod context_servers;
pub mod extensions;
pub mod mcp_servers;
pub mod opencode;
pub mod servers;
pub mod toml_servers;

use serde_json::Value;

use crate::cli::install::format::{Emptied, Format, FormatError, Members, Spot};
use crate::cli::install::server::{Launch, Server};

/// An entry in the form of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The members that start the server. termgate sets them at every write.
    pub must: Members,
    /// Initial members that the user may change later.
    pub at_first: Members,
}

/// How a group of clients stores a server.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub format: Format,
    /// The top-level name that contains the servers.
    pub container: &'static str,
    pub entry: fn(&Server) -> Entry,
    /// Parses what an entry starts; none when it starts no program.
    pub launch: fn(&Value) -> Option<Launch>,
}

/// An existing entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It starts a program.
    Program(Launch),
    /// It is something else, such as an address.
    Other,
}

impl Family {
    /// The entry in its container, to paste into a client's file.
    pub fn snippet(&self, server: &Server) -> String {
        let added = self.format.add("", self.spot(&server.name), &whole((self.entry)(server)));
        added.expect("nothing is in the way in an empty text")
    }

    /// Finds the entry with this name in the text.
    ///
    /// # Errors
    /// The text is malformed.
    pub fn find(&self, text: &str, name: &str) -> Result<Option<Found>, FormatError> {
        let value = self.format.get(text, self.spot(name))?;
        Ok(value.map(|value| (self.launch)(&value).map_or(Found::Other, Found::Program)))
    }

    /// # Errors
    /// As [`Family::find`].
    pub fn has_container(&self, text: &str) -> Result<bool, FormatError> {
        self.format.has_container(text, self.container)
    }

    /// The text with the server; unchanged when the server is there already.
    ///
    /// # Errors
    /// As [`Family::find`], or the change would lose something.
    pub fn put(&self, text: &str, server: &Server) -> Result<String, FormatError> {
        let spot = self.spot(&server.name);
        let entry = (self.entry)(server);
        let Some(there) = self.format.get(text, spot)? else {
            return self.format.add(text, spot, &whole(entry));
        };
        if entry.must.iter().all(|(name, value)| there.get(name) == Some(value)) {
            return Ok(text.to_owned());
        }
        if (self.launch)(&there).is_some() {
            return self.format.set(text, spot, &entry.must);
        }
        let without = self.format.remove(text, spot, Emptied::Stays)?;
        self.format.add(&without, spot, &whole(entry))
    }

    /// The text without the existing entry.
    ///
    /// # Errors
    /// As [`Family::put`].
    pub fn take(&self, text: &str, name: &str, emptied: Emptied) -> Result<String, FormatError> {
        self.format.remove(text, self.spot(name), emptied)
    }

    fn spot<'a>(&self, name: &'a str) -> Spot<'a> {
        Spot { container: self.container, name }
    }
}

fn whole(entry: Entry) -> Members {
    entry.must.into_iter().chain(entry.at_first).collect()
}

/// Parses an entry with the program under one name and its arguments under another.
pub fn launch_of(entry: &Value, program: &str, arguments: &str) -> Option<Launch> {
    let program = entry.get(program)?.as_str()?.to_owned();
    let arguments = entry.get(arguments).map(texts).unwrap_or_default();
    Some(Launch { program, arguments })
}

/// The strings in a list.
pub fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
