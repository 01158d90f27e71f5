//! The formats that clients keep their servers in, edited without losing what else is written there.
//!
//! Text in, text out; it knows neither files nor clients. A format that could not keep something
//! says so instead of writing.

pub mod json_text;
pub mod toml_text;
pub mod yaml_text;

use serde_json::Value;

/// The members of an entry with their values, in the order they are written.
pub type Members = Vec<(&'static str, Value)>;

/// Where an entry is: under a name, in a container at the top of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'a> {
    pub container: &'a str,
    pub name: &'a str,
}

/// Whether a container that became empty goes as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    Stays,
    Goes,
}

/// Why a text is not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("it cannot be understood: {0}")]
    Malformed(String),
    #[error("{0} is not a list of names and values")]
    NotAMap(String),
    #[error("it is written in a way that cannot be kept")]
    NotKept,
    #[error("termgate does not edit YAML")]
    NotEdited,
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON, also with comments and trailing commas.
    Json,
    Toml,
    /// Printed for the user to paste; files in it are neither read nor edited.
    Yaml,
}

impl Format {
    /// The value of the entry, where there is one.
    ///
    /// # Errors
    /// That the text is not of this format, or something else is where entries should be.
    pub fn get(self, text: &str, spot: Spot<'_>) -> Result<Option<Value>, FormatError> {
        match self {
            Self::Json => json_text::get(text, spot),
            Self::Toml => toml_text::get(text, spot),
            Self::Yaml => Err(FormatError::NotEdited),
        }
    }

    /// Whether the container is there.
    ///
    /// # Errors
    /// As [`Format::get`].
    pub fn has_container(self, text: &str, container: &str) -> Result<bool, FormatError> {
        match self {
            Self::Json => json_text::has_container(text, container),
            Self::Toml => toml_text::has_container(text, container),
            Self::Yaml => Err(FormatError::NotEdited),
        }
    }

    /// The text with the entry, which was not there.
    ///
    /// # Errors
    /// As [`Format::get`], or that something would be lost.
    pub fn add(self, text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FormatError> {
        match self {
            Self::Json => json_text::add(text, spot, members),
            Self::Toml => toml_text::add(text, spot, members),
            Self::Yaml if text.is_empty() => Ok(yaml_text::block(spot, members)),
            Self::Yaml => Err(FormatError::NotEdited),
        }
    }

    /// The text with these members of the entry, which was there, set; its others stay.
    ///
    /// # Errors
    /// As [`Format::add`].
    pub fn set(self, text: &str, spot: Spot<'_>, members: &Members) -> Result<String, FormatError> {
        match self {
            Self::Json => json_text::set(text, spot, members),
            Self::Toml => toml_text::set(text, spot, members),
            Self::Yaml => Err(FormatError::NotEdited),
        }
    }

    /// The text without the entry, which was there.
    ///
    /// # Errors
    /// As [`Format::add`].
    pub fn remove(
        self,
        text: &str,
        spot: Spot<'_>,
        emptied: Emptied,
    ) -> Result<String, FormatError> {
        match self {
            Self::Json => json_text::remove(text, spot, emptied),
            Self::Toml => toml_text::remove(text, spot, emptied),
            Self::Yaml => Err(FormatError::NotEdited),
        }
    }
}
