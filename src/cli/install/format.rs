//! Edits the file formats of clients without losing other content.
//!
//! A format returns an error when it would have to drop something.

pub mod json_text;
pub mod toml_text;

use serde_json::Value;

/// The members of an entry with their values, in order.
pub type Members = Vec<(&'static str, Value)>;

/// The place of an entry: its name, and its container at the top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'a> {
    pub container: &'a str,
    pub name: &'a str,
}

/// Whether to remove a container that became empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    Stays,
    Goes,
}

/// Why a text cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFormatError {
    #[error("it cannot be understood: {0}")]
    Malformed(String),
    #[error("{0} is not a list of names and values")]
    NotAMap(String),
    #[error("it is written in a way that cannot be kept")]
    NotKept,
    #[error("termgate does not edit YAML")]
    NotEdited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON, with optional comments and trailing commas.
    Json,
    Toml,
    /// termgate prints YAML for the user to paste, and never reads or edits YAML files.
    Yaml,
}

impl FileFormat {
    /// The value of the entry, if it exists.
    ///
    /// # Errors
    /// The text has another format, or the container holds no entries.
    pub fn get(self, text: &str, spot: Spot<'_>) -> Result<Option<Value>, FileFormatError> {
        match self {
            Self::Json => json_text::get(text, spot),
            Self::Toml => toml_text::get(text, spot),
            Self::Yaml => Err(FileFormatError::NotEdited),
        }
    }

    pub fn has_container(self, text: &str, container: &str) -> Result<bool, FileFormatError> {
        match self {
            Self::Json => json_text::has_container(text, container),
            Self::Toml => toml_text::has_container(text, container),
            Self::Yaml => Err(FileFormatError::NotEdited),
        }
    }

    /// Adds a new entry to the text.
    pub fn add(
        self,
        text: &str,
        spot: Spot<'_>,
        members: &Members,
    ) -> Result<String, FileFormatError> {
        match self {
            Self::Json => json_text::add(text, spot, members),
            Self::Toml => toml_text::add(text, spot, members),
            Self::Yaml if text.is_empty() => Ok(yaml_block(spot, members)),
            Self::Yaml => Err(FileFormatError::NotEdited),
        }
    }

    /// Sets these members of an existing entry and keeps its others.
    pub fn set(
        self,
        text: &str,
        spot: Spot<'_>,
        members: &Members,
    ) -> Result<String, FileFormatError> {
        match self {
            Self::Json => json_text::set(text, spot, members),
            Self::Toml => toml_text::set(text, spot, members),
            Self::Yaml => Err(FileFormatError::NotEdited),
        }
    }

    /// Removes an existing entry from the text.
    pub fn remove(
        self,
        text: &str,
        spot: Spot<'_>,
        emptied: Emptied,
    ) -> Result<String, FileFormatError> {
        match self {
            Self::Json => json_text::remove(text, spot, emptied),
            Self::Toml => toml_text::remove(text, spot, emptied),
            Self::Yaml => Err(FileFormatError::NotEdited),
        }
    }
}

/// The entry in its container as YAML.
///
/// No maintained library rewrites YAML with its comments, anchors and indentation intact.
fn yaml_block(spot: Spot<'_>, members: &Members) -> String {
    // Every JSON value is a valid YAML value.
    let lines = members.iter().map(|(name, value)| format!("    {name}: {value}\n"));
    format!("{}:\n  {}:\n{}", spot.container, spot.name, lines.collect::<String>())
}
