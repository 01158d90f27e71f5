//! `send_text`, `send_keys` and `send_mouse`: types text, presses keys by name, and clicks where the program
//! on the screen takes mouse events.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::core::keys::mouse::{MouseAction, MouseButton, MouseEvent};
use crate::core::keys::parse::parse_keys;
use crate::core::keys::paste::PasteRule;
use crate::core::keys::{KEYS_MAX, Key, KeyError, Modifiers};
use crate::core::policy::PermittedAct;
use crate::session::command::Content;
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{WriteOptions, write};
use crate::surface::tool::{Answer, Tool, ToolAccess, ToolRuns};
use crate::wire::error::RefusalCause;
use crate::wire::wait::WriteResult;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PasteWord {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Utf8,
    Base64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendText {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    #[schemars(with = "Option<String>")]
    session: Option<IgnoredAny>,
    text: String,
    /// Press Enter after it, as a final line end does
    #[serde(default)]
    enter: bool,
    #[serde(default)]
    paste: PasteWord,
    #[serde(default)]
    encoding: Encoding,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendText {
    const NAME: &'static str = "send_text";
    const TITLE: &'static str = "Type text";
    const DESCRIPTION: &'static str = "Types text under your lease; enter=true runs it. With \
        wait_ms or until it also waits and returns what changed. Use send_keys for keys.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Type);
    const RUNS: ToolRuns = ToolRuns::Text("text");
    const DESTRUCTIVE: bool = true;
    const OPEN_WORLD: bool = true;

    type Result = WriteResult;

    async fn call(self, call: Call) -> Result<Answer<WriteResult>, SurfaceError> {
        let Self { mut text, mut enter, paste, encoding, options, .. } = self;
        // A paste that was asked for is to be looked at before Enter.
        let is_typed = encoding == Encoding::Utf8 && !matches!(paste, PasteWord::Always);
        if is_typed && let Some(line) = without_line_end(&text) {
            (text, enter) = (line.to_owned(), true);
        }
        if text.is_empty() && !enter {
            return Err(SurfaceError::argument("text", "nothing to send"));
        }
        let content = match encoding {
            Encoding::Utf8 => Content::Text { text, paste: paste.into(), enter },
            Encoding::Base64 => Content::Bytes { bytes: of_base64(&text)?, enter },
        };
        write(call, content, options).await
    }
}

/// The bytes that a text is in base64.
///
/// # Errors
/// It is none.
pub fn of_base64(text: &str) -> Result<Vec<u8>, SurfaceError> {
    let wrong = |error| SurfaceError::argument("text", format!("not base64: {error}"));
    STANDARD.decode(text).map_err(wrong)
}

/// The text before the line end that it ends in.
fn without_line_end(text: &str) -> Option<&str> {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r']))
}

impl From<PasteWord> for PasteRule {
    fn from(paste: PasteWord) -> Self {
        match paste {
            PasteWord::Auto => Self::Auto,
            PasteWord::Always => Self::Always,
            PasteWord::Never => Self::Never,
        }
    }
}

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

/// One item of a list: names as in a string, or one key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeyItem {
    Names(String),
    Key(KeyObject),
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct KeyObject {
    name: Option<String>,
    char: Option<String>,
    #[serde(default)]
    modifiers: Vec<Modifier>,
    // Clients of Beach send it beside what it names; it says nothing more.
    #[allow(dead_code)]
    #[schemars(skip)]
    kind: Option<IgnoredAny>,
    // Where the kinds of items are tried in turn, serde would not say which member is unknown.
    #[schemars(skip)]
    #[serde(flatten)]
    unknown: BTreeMap<String, IgnoredAny>,
}

/// Keys, as one string of names or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "must be a string of key names, or a list of such strings or of objects with `name` \
                 or `char` and `modifiers` of ctrl, alt, shift"
)]
pub enum KeysWanted {
    Names(String),
    List(Vec<KeyItem>),
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendKeys {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    #[schemars(with = "Option<String>")]
    session: Option<IgnoredAny>,
    /// Names separated by blanks (C-c Enter M-x Up NPage ctrl+c) or single characters; or a list
    keys: KeysWanted,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendKeys {
    const NAME: &'static str = "send_keys";
    const TITLE: &'static str = "Press keys";
    const DESCRIPTION: &'static str = "Presses keys under your lease, such as \"C-c\", \"Escape : w \
        q Enter\". An unknown name sends nothing.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Type);
    const DESTRUCTIVE: bool = true;
    const OPEN_WORLD: bool = true;

    type Result = WriteResult;

    async fn call(self, call: Call) -> Result<Answer<WriteResult>, SurfaceError> {
        let keys = self.keys.read()?;
        write(call, Content::Keys(keys), self.options).await
    }
}

impl From<KeyError> for SurfaceError {
    fn from(error: KeyError) -> Self {
        let problem = error.to_string();
        match error {
            KeyError::Unknown { .. } => Self::refused("keys", problem, RefusalCause::NotAKey),
            KeyError::Empty | KeyError::TooMany { .. } => Self::argument("keys", problem),
        }
    }
}

/// The keys that an argument names; none if it is wrong.
pub fn keys_in(argument: &Value) -> Option<Vec<Key>> {
    KeysWanted::deserialize(argument).ok()?.read().ok()
}

impl KeysWanted {
    fn read(&self) -> Result<Vec<Key>, SurfaceError> {
        match self {
            Self::Names(names) => Ok(parse_keys(names)?),
            Self::List(items) if items.is_empty() => Err(KeyError::Empty.into()),
            Self::List(items) => {
                let mut keys = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    match item {
                        KeyItem::Names(names) => keys.append(&mut parse_keys(names)?),
                        KeyItem::Key(key) => keys.push(key.read(at)?),
                    }
                    if keys.len() > KEYS_MAX {
                        let count = keys.len().max(items.len());
                        return Err(KeyError::TooMany { count }.into());
                    }
                }
                Ok(keys)
            }
        }
    }
}

impl KeyObject {
    /// The key; the object is the item `at` of the list.
    fn read(&self, at: usize) -> Result<Key, SurfaceError> {
        let modifiers = Modifier::all_of(&self.modifiers);
        let wrong = |problem: &str| SurfaceError::argument("keys", format!("item {at} {problem}"));
        if !self.unknown.is_empty() {
            let names: Vec<_> = self.unknown.keys().map(|name| format!("`{name}`")).collect();
            let problem = format!(
                "has no use for {}; a key has `name` or `char`, and `modifiers`",
                names.join(", ")
            );
            return Err(wrong(&problem));
        }
        match (&self.name, &self.char) {
            (Some(name), None) => Ok(Key::named(name, modifiers)?),
            (None, Some(text)) => {
                let mut characters = text.chars();
                let (Some(character), None) = (characters.next(), characters.next()) else {
                    return Err(wrong("needs exactly one character in `char`"));
                };
                Ok(Key::character(character, modifiers)?)
            }
            (Some(_), Some(_)) => Err(wrong("has both `name` and `char`; give one of them")),
            (None, None) => Err(wrong("has neither `name` nor `char`; give one of them")),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseActionWord {
    Click,
    Press,
    Release,
    Move,
    ScrollUp,
    ScrollDown,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseButtonWord {
    #[default]
    Left,
    Middle,
    Right,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendMouse {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    #[schemars(with = "Option<String>")]
    session: Option<IgnoredAny>,
    action: MouseActionWord,
    /// Screen row, from 0
    #[schemars(range(max = 999))]
    row: u16,
    /// Screen column, from 0
    #[schemars(range(max = 999))]
    col: u16,
    #[serde(default)]
    button: MouseButtonWord,
    #[serde(default)]
    modifiers: Vec<Modifier>,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendMouse {
    const NAME: &'static str = "send_mouse";
    const TITLE: &'static str = "Use the mouse";
    const DESCRIPTION: &'static str = "Sends a mouse event under your lease; not_supported unless \
        the program asked for the mouse.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Type);
    const DESTRUCTIVE: bool = true;
    const OPEN_WORLD: bool = true;

    const CONDITIONS_KNOWN: bool = true;

    type Result = WriteResult;

    async fn call(self, call: Call) -> Result<Answer<WriteResult>, SurfaceError> {
        if let Some(target) = &call.target {
            let size = target.session.frame().size.value;
            within("row", self.row.into(), 0..=u64::from(size.rows - 1))?;
            within("col", self.col.into(), 0..=u64::from(size.cols - 1))?;
        }
        let event = self.event();
        write(call, Content::Mouse(event), self.options).await
    }
}

impl SendMouse {
    fn event(&self) -> MouseEvent {
        let modifiers = Modifier::all_of(&self.modifiers);
        let action = match self.action {
            MouseActionWord::Click => MouseAction::Click,
            MouseActionWord::Press => MouseAction::Press,
            MouseActionWord::Release => MouseAction::Release,
            MouseActionWord::Move => MouseAction::Move,
            MouseActionWord::ScrollUp => MouseAction::ScrollUp,
            MouseActionWord::ScrollDown => MouseAction::ScrollDown,
        };
        let button = match self.button {
            MouseButtonWord::Left => MouseButton::Left,
            MouseButtonWord::Middle => MouseButton::Middle,
            MouseButtonWord::Right => MouseButton::Right,
        };
        MouseEvent { action, row: self.row, col: self.col, button, modifiers }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_an_item_of_a_list_of_keys_is_said() {
        for (item, told) in [
            (json!({}), "item 1 has neither `name` nor `char`"),
            (json!({"key": "Enter"}), "item 1 has no use for `key`;"),
            (json!({"char": "c", "ctrl": true, "alt": 1}), "item 1 has no use for `alt`, `ctrl`;"),
            (json!({"name": "Up", "char": "a"}), "item 1 has both `name` and `char`"),
            (json!({"char": "ab"}), "item 1 needs exactly one character in `char`"),
            (json!({"char": ""}), "item 1 needs exactly one character in `char`"),
        ] {
            let keys: KeysWanted = serde_json::from_value(json!(["Up", item])).unwrap();
            let error = keys.read().unwrap_err().to_string();
            assert!(error.contains(told), "{item}: {error}");
        }
    }
}
