//! What a refused call would have done, for its record.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::core::journal::{ActContent, RefusedInput};
use crate::gateway::recording::recordable;
use crate::surface::answer::budget::ends;
use crate::surface::call_arguments::CallArguments;
use crate::surface::terminal::send::of_base64;
use crate::surface::tool::{ToolEntry, ToolRuns};

/// The longest recorded part of it, in bytes of JSON.
const REFUSED_MAX: usize = 2_000;

/// What a call would have had the terminal take.
#[derive(Debug)]
pub(super) enum UnsentInput {
    Command(String),
    /// Text, or the names of keys.
    Other(String),
    /// It may be a secret.
    Secret,
}

impl UnsentInput {
    pub(super) fn of(
        entry: &ToolEntry,
        arguments: &CallArguments,
        may_be_secret: bool,
    ) -> Option<Self> {
        if may_be_secret {
            return Some(Self::Secret);
        }
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        match entry.runs {
            ToolRuns::Line(name) => text(name).map(Self::Command),
            ToolRuns::Text(name) => {
                let is_coded = text("encoding").as_deref() == Some("base64");
                let decoded = |text: String| match of_base64(&text) {
                    Ok(bytes) if is_coded => String::from_utf8_lossy(&bytes).into_owned(),
                    Ok(_) | Err(_) => text,
                };
                text(name).map(decoded).map(Self::Other)
            }
            ToolRuns::Input => {
                let keys = text("keys");
                let all = || recordable(arguments, |name| entry.knows(name));
                Some(Self::Other(keys.unwrap_or_else(all)))
            }
            ToolRuns::Nothing | ToolRuns::Program => None,
        }
    }

    /// As much of it as a record has room for.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Command(text) | Self::Other(text) => ends(text, REFUSED_MAX),
            Self::Secret => String::new(),
        }
    }

    /// For a record that tells this of it.
    pub(super) fn content<'a>(&'a self, told: &'a str) -> ActContent<'a> {
        match self {
            Self::Command(whole) => ActContent::RefusedCommand(RefusedInput { whole, told }),
            Self::Other(whole) => ActContent::RefusedInput(RefusedInput { whole, told }),
            Self::Secret => ActContent::Secret,
        }
    }
}

/// Arguments of a refused call, or how long they are and their beginning and end.
pub(super) fn shortened(arguments: &str) -> Cow<'_, str> {
    if arguments.len() <= REFUSED_MAX {
        return arguments.into();
    }
    let told = ends(arguments, REFUSED_MAX);
    json!({"bytes": arguments.len(), "told": told}).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_arguments_that_are_refused_the_beginning_and_the_end_are_recorded() {
        let arguments = json!({"content": "x".repeat(4_000), "path": "/etc/hosts"}).to_string();
        let recorded: Value = serde_json::from_str(&shortened(&arguments)).unwrap();
        let told = recorded["told"].as_str().unwrap();
        assert!(told.starts_with(r#"{"content":"xxx"#) && told.ends_with(r#""/etc/hosts"}"#));
        assert_eq!(recorded["bytes"], arguments.len());
        assert_eq!(shortened("{}"), "{}");
    }
}
