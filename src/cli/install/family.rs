//! The families of shapes that clients write a server in: one file each.
//!
//! It knows no path and no process: text in, text out.

pub mod context_servers;
pub mod extensions;
pub mod mcp_servers;
pub mod opencode;
pub mod servers;
pub mod toml_servers;

use serde_json::Value;

use crate::cli::install::format::{Emptied, Format, FormatError, Members, Spot};
use crate::cli::install::server::{Launch, Server};

/// An entry as a family writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What makes it start the server; set whenever we write.
    pub must: Members,
    /// What is the user's to change once it is there.
    pub at_first: Members,
}

/// How a group of clients writes a server down.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub format: Format,
    /// The name at the top, below which the servers are.
    pub container: &'static str,
    pub entry: fn(&Server) -> Entry,
    /// Reads back what an entry starts; nothing when it starts no program.
    pub launch: fn(&Value) -> Option<Launch>,
}

/// An entry that is written there.
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

    /// What the text knows under this name.
    ///
    /// # Errors
    /// That the text cannot be understood.
    pub fn find(&self, text: &str, name: &str) -> Result<Option<Found>, FormatError> {
        let value = self.format.get(text, self.spot(name))?;
        Ok(value.map(|value| (self.launch)(&value).map_or(Found::Other, Found::Program)))
    }

    /// Whether the text has the container.
    ///
    /// # Errors
    /// As [`Family::find`].
    pub fn has_container(&self, text: &str) -> Result<bool, FormatError> {
        self.format.has_container(text, self.container)
    }

    /// The text with the server; the same text when it is there already.
    ///
    /// # Errors
    /// As [`Family::find`], or that something else would be lost.
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

    /// The text without the entry, which was there.
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

/// Reads an entry with the program under one name and its arguments under another.
pub fn launch_of(entry: &Value, program: &str, arguments: &str) -> Option<Launch> {
    let program = entry.get(program)?.as_str()?.to_owned();
    let arguments = entry.get(arguments).map(texts).unwrap_or_default();
    Some(Launch { program, arguments })
}

/// The texts in a list.
pub fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
