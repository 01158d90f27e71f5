//! `send_keys`: presses keys by name.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::keys::parse::parse_keys;
use crate::core::keys::{KEYS_MAX, Key, KeyError, Modifiers};
use crate::core::policy::PermittedAct;
use crate::session::command::Content;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{WriteOptions, write};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::error::RefusalCause;
use crate::wire::write::WriteResult;

/// The tool.
#[derive(Debug)]
pub struct SendKeys;

/// A modifier key.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Modifier {
    Ctrl,
    Alt,
    Shift,
}

impl Modifier {
    /// The modifiers that are held down together.
    pub fn all_of(list: &[Self]) -> Modifiers {
        list.iter().fold(Modifiers::NONE, |all, one| {
            all.with(match one {
                Self::Ctrl => Modifiers::CTRL,
                Self::Alt => Modifiers::ALT,
                Self::Shift => Modifiers::SHIFT,
            })
        })
    }
}

/// One key of a list.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct KeyItem {
    name: Option<String>,
    char: Option<String>,
    #[serde(default)]
    modifiers: Vec<Modifier>,
}

/// Keys, as one string of names or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "must be a string of key names, or a list of objects with `name` or `char` and \
                 `modifiers` of ctrl, alt, shift"
)]
pub enum Keys {
    Names(String),
    List(Vec<KeyItem>),
}

/// The parameters of `send_keys`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    /// Names separated by blanks (C-c Enter M-x Up NPage ctrl+c) or single characters; or a list
    keys: Keys,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendKeys {
    const NAME: &'static str = "send_keys";
    const TITLE: &'static str = "Press keys";
    const DESCRIPTION: &'static str = "Presses keys under your lease, such as \"C-c\", \"Escape : w \
        q Enter\". An unknown name sends nothing.";
    const ACCESS: Access = Access::WriteSession(PermittedAct::Type);

    type Parameters = Parameters;
    type Result = WriteResult;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<WriteResult>, SurfaceError> {
        let keys = parameters.keys.read().map_err(complaint)?;
        write(call, Content::Keys(keys), parameters.options).await
    }
}

fn complaint(error: KeyError) -> SurfaceError {
    let problem = error.to_string();
    match error {
        KeyError::Unknown { .. } => SurfaceError::refused("keys", problem, RefusalCause::NotAKey),
        KeyError::Empty | KeyError::TooMany { .. } => SurfaceError::argument("keys", problem),
    }
}

impl Keys {
    fn read(&self) -> Result<Vec<Key>, KeyError> {
        match self {
            Self::Names(names) => parse_keys(names),
            Self::List(items) if items.is_empty() => Err(KeyError::Empty),
            Self::List(items) if items.len() > KEYS_MAX => {
                Err(KeyError::TooMany { count: items.len() })
            }
            Self::List(items) => items.iter().map(KeyItem::read).collect(),
        }
    }
}

impl KeyItem {
    fn read(&self) -> Result<Key, KeyError> {
        let modifiers = Modifier::all_of(&self.modifiers);
        let mut characters = self.char.as_deref().unwrap_or_default().chars();
        match (&self.name, characters.next(), characters.next()) {
            (Some(name), None, _) => Key::named(name, modifiers),
            (None, Some(character), None) => Key::character(character, modifiers),
            (_, _, _) => Err(KeyError::Empty),
        }
    }
}
