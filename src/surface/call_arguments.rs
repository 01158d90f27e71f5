//! The arguments of a call: values for the daemon's own tools, or the text that a server gets.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::mount::json::reading::{JsonFault, RepeatedNames, without_member};
use crate::mount::json::{ExactJson, ExactObject};
use crate::surface::error::SurfaceError;

/// What rules do not see, as JSON.
const EMPTY: [&str; 3] = ["null", "[]", "{}"];

/// The arguments of a call.
#[derive(Debug)]
pub enum CallArguments {
    /// As one of the daemon's own tools reads them.
    Values(JsonObject),
    /// For a server.
    Written(WrittenArguments),
    /// For a server, and not to be used.
    Faulty(JsonFault),
}

/// Arguments that a server gets as the client wrote them. What is judged and recorded is read from the same text.
#[derive(Debug)]
pub struct WrittenArguments {
    text: Box<RawValue>,
    members: ExactObject,
}

impl Default for CallArguments {
    fn default() -> Self {
        Self::Values(JsonObject::new())
    }
}

impl From<Box<RawValue>> for CallArguments {
    fn from(text: Box<RawValue>) -> Self {
        WrittenArguments::read(text).map_or_else(Self::Faulty, Self::Written)
    }
}

impl CallArguments {
    /// An argument of one of the daemon's own tools. What those of other tools mean, only their servers know.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Values(values) => values.get(name),
            Self::Written(_) | Self::Faulty(_) => None,
        }
    }

    /// Those for one of the daemon's own tools.
    pub fn into_values(self) -> Result<JsonObject, SurfaceError> {
        match self {
            Self::Values(values) => Ok(values),
            Self::Written(_) | Self::Faulty(_) => {
                Err(SurfaceError::Internal("arguments for a server came to a tool".to_owned()))
            }
        }
    }

    /// Those for a server. What gives none gives an empty object.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] if parsers could differ in what they say.
    pub fn for_server(self) -> Result<WrittenArguments, SurfaceError> {
        match self {
            Self::Written(written) => Ok(written),
            Self::Values(values) => Ok(WrittenArguments::of(&values)),
            Self::Faulty(JsonFault::Repeated(path)) => {
                Err(SurfaceError::argument(path, "is given twice; give it once"))
            }
            Self::Faulty(fault @ (JsonFault::TooDeep | JsonFault::NoObject)) => {
                Err(SurfaceError::argument("arguments", fault.to_string()))
            }
        }
    }

    /// The arguments as rules see them, without those that are empty: what is no text is JSON.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let of_value = |(name, value): (&String, &Value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => return None,
                Value::Array(values) if values.is_empty() => return None,
                Value::Object(members) if members.is_empty() => return None,
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    value.to_string()
                }
            };
            Some((name.clone(), text))
        };
        let of_written = |(name, value): (&str, &ExactJson)| {
            let text = match value.as_text() {
                Some(text) => text.to_owned(),
                None => Some(value.to_string()).filter(|it| !EMPTY.contains(&&**it))?,
            };
            Some((name.to_owned(), text))
        };
        match self {
            Self::Values(values) => values.iter().filter_map(of_value).collect(),
            Self::Written(written) => written.members.iter().filter_map(of_written).collect(),
            Self::Faulty(_) => BTreeMap::new(),
        }
    }
}

impl WrittenArguments {
    /// Reads an object.
    ///
    /// # Errors
    /// [`JsonFault`]. Of two members with one name, the rules could see one and the server take the other.
    pub fn read(text: Box<RawValue>) -> Result<Self, JsonFault> {
        let members = ExactJson::read(&text, RepeatedNames::Refused)?.try_into()?;
        // A message to a server is one line.
        let text = match text.get().contains(['\n', '\r']) {
            true => RawValue::from_string(text.get().replace(['\n', '\r'], " ")).unwrap_or(text),
            false => text,
        };
        Ok(Self { text, members })
    }

    /// Arguments of the daemon itself.
    pub fn of(values: &impl Serialize) -> Self {
        let text = to_raw_value(values).unwrap_or_default();
        let members = ExactJson::of(&text).try_into().unwrap_or_default();
        Self { text, members }
    }

    /// What the server gets.
    pub fn into_text(self) -> Box<RawValue> {
        self.text
    }

    pub fn members(&self) -> &ExactObject {
        &self.members
    }

    /// Takes an argument out that is not for the server.
    pub fn take(&mut self, name: &str) -> Option<ExactJson> {
        let taken = self.members.remove(name)?;
        // It was read before, so it is an object.
        self.text = without_member(&self.text, name).unwrap_or_default();
        Some(taken)
    }

    /// The same in the order of the names, with the blanks between them removed.
    pub fn sorted(&self) -> ExactObject {
        self.members.sorted()
    }

    /// What tells equal arguments apart from others: the order of members and the blanks between them do not count.
    pub fn identity(&self) -> String {
        let sorted = self.members.sorted().to_string();
        // Half a character is seen as another one than it is.
        let is_whole = !sorted.contains(char::REPLACEMENT_CHARACTER);
        if is_whole { sorted } else { format!("{sorted}{}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> WrittenArguments {
        WrittenArguments::read(RawValue::from_string(text.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn a_server_gets_the_text_without_what_is_not_for_it() {
        let mut arguments = read(r#"{"b":1e2, "lease_id":"x", "a":"\ud800" }"#);
        assert_eq!(arguments.take("lease_id"), Some(ExactJson::Text("x".to_owned())));
        assert_eq!(arguments.take("lease_id"), None);
        assert_eq!(arguments.into_text().get(), r#"{"b":1e2,"a":"\ud800"}"#);
        assert_eq!(read("{\"a\":\r[1,\r2]}").into_text().get(), r#"{"a": [1, 2]}"#);
    }

    #[test]
    fn rules_see_the_digits_that_a_server_gets() {
        let text = r#"{"n":123456789012345678901234567890,"t":"\u0061","l":[1e2, "b"],"o":{"x" : 1.0},"y":true,
            "none":null,"empty":[],"bare":{},"blank":"","word":"null"}"#;
        let facts = CallArguments::Written(read(text)).facts();
        let facts: Vec<_> = facts.iter().map(|(name, text)| (&**name, &**text)).collect();
        let expected = [
            ("blank", ""),
            ("l", r#"[1e2,"b"]"#),
            ("n", "123456789012345678901234567890"),
            ("o", r#"{"x":1.0}"#),
            ("t", "a"),
            ("word", "null"),
            ("y", "true"),
        ];
        assert_eq!(facts, expected);
    }

    #[test]
    fn arguments_are_the_same_in_any_order_and_others_with_any_other_digit_or_half() {
        let same = read(r#"{"a":{"x":1,"y":2},"b":"c"}"#).identity();
        assert_eq!(read(r#"{ "b":"\u0063", "a":{"y":2,"x":1}}"#).identity(), same);
        let others = [
            r#"{"n":18446744073709551616}"#,
            r#"{"n":18446744073709551617}"#,
            r#"{"n":"18446744073709551617"}"#,
            r#"{"n":1.0}"#,
            r#"{"n":1}"#,
            r#"{"n":"\ud800"}"#,
            r#"{"n":"\ud801"}"#,
            r#"{"n":"\ufffd"}"#,
        ];
        let identities = others.map(|text| read(text).identity());
        let different: std::collections::BTreeSet<_> = identities.iter().collect();
        assert_eq!(different.len(), others.len(), "{identities:?}");
    }

    #[test]
    fn what_parsers_read_differently_is_refused_with_its_place() {
        let refused = |text: &str| {
            let text = RawValue::from_string(text.to_owned()).unwrap();
            CallArguments::from(text).for_server().unwrap_err().to_string()
        };
        let twice = refused(r#"{"a":{"b":1,"\u0062":2}}"#);
        assert!(twice.contains("a.b") && twice.contains("twice"), "{twice}");
        assert!(refused("[1]").contains("object"));
    }
}
