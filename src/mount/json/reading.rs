//! Reads JSON as it was written, and what is in its texts.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::{RawValue, to_raw_value};

use crate::mount::json::{ExactJson, ExactObject};

/// How deep objects and lists may be inside each other. Deeper ones end the parsers of many programs.
const LEVELS_MAX: usize = 127;

/// Why JSON cannot be used, and which member of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    #[error("`{0}` is there twice")]
    Repeated(String),
    #[error("it has more than {LEVELS_MAX} levels")]
    TooDeep,
    #[error("it is no object")]
    NoObject,
}

/// What becomes of a member whose name an earlier one has. Parsers differ in which of the two they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedNames {
    Refused,
    /// The first one stays.
    LeftOut,
}

impl ExactJson {
    /// Reads a value.
    ///
    /// # Errors
    /// [`JsonFault`].
    pub fn read(json: &RawValue, repeated: RepeatedNames) -> Result<Self, JsonFault> {
        JsonReader { json: json.get(), at: 0, levels: 0, repeated }.value()
    }

    /// The form of a value of ours.
    pub fn of(value: &impl Serialize) -> Self {
        let json = to_raw_value(value).unwrap_or_default();
        Self::read(&json, RepeatedNames::LeftOut).unwrap_or_else(|_| Self::Literal("null".into()))
    }
}

impl<'de> Deserialize<'de> for ExactJson {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let json = <Box<RawValue>>::deserialize(json)?;
        Self::read(&json, RepeatedNames::LeftOut).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ExactObject {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        Self::try_from(ExactJson::deserialize(json)?).map_err(de::Error::custom)
    }
}

impl TryFrom<ExactJson> for ExactObject {
    type Error = JsonFault;

    fn try_from(value: ExactJson) -> Result<Self, JsonFault> {
        match value {
            ExactJson::Object(object) => Ok(object),
            ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_) => {
                Err(JsonFault::NoObject)
            }
        }
    }
}

impl JsonFault {
    /// The same about what is inside the member of this name.
    fn inside(self, name: &str) -> Self {
        match self {
            Self::Repeated(path) => Self::Repeated(format!("{name}.{path}")),
            Self::TooDeep | Self::NoObject => self,
        }
    }
}

/// Reads a type of ours from what a server or client says. Half a character in it is U+FFFD.
///
/// # Errors
/// It is not of the type.
pub fn read_whole<T: de::DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| match json.contains("\\u") {
        true => serde_json::from_str(&without_halves(json)).map_err(|_| error),
        false => Err(error),
    })
}

/// Reads JSON that is known to be well-formed.
struct JsonReader<'a> {
    json: &'a str,
    at: usize,
    levels: usize,
    repeated: RepeatedNames,
}

impl JsonReader<'_> {
    /// The next sign that is no blank.
    fn sign(&mut self) -> u8 {
        let bytes = self.json.as_bytes();
        let is_blank = |it: &u8| matches!(it, b' ' | b'\t' | b'\n' | b'\r');
        self.at += bytes[self.at..].iter().take_while(|it| is_blank(it)).count();
        bytes.get(self.at).copied().unwrap_or_default()
    }

    /// Passes this sign, if it is next.
    fn pass(&mut self, sign: u8) -> bool {
        let is_next = self.sign() == sign;
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self) -> Result<ExactJson, JsonFault> {
        match self.sign() {
            b'"' => Ok(ExactJson::Text(self.text())),
            b'{' => self.inside(|reader| reader.object().map(ExactJson::Object)),
            b'[' => self.inside(|reader| {
                let mut values = Vec::new();
                while !reader.pass(b']') {
                    values.push(reader.value()?);
                    reader.pass(b',');
                }
                Ok(ExactJson::List(values))
            }),
            _ => {
                let rest = &self.json[self.at..];
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                self.at += end;
                Ok(ExactJson::Literal(rest[..end].into()))
            }
        }
    }

    fn inside(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<ExactJson, JsonFault>,
    ) -> Result<ExactJson, JsonFault> {
        self.at += 1;
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return Err(JsonFault::TooDeep);
        }
        let value = read(self);
        self.levels -= 1;
        value
    }

    fn object(&mut self) -> Result<ExactObject, JsonFault> {
        let mut members = Vec::new();
        while !self.pass(b'}') {
            self.sign();
            let name = self.text();
            self.pass(b':');
            let value = self.value().map_err(|fault| fault.inside(&name))?;
            members.push((name, value));
            self.pass(b',');
        }
        if self.repeated == RepeatedNames::Refused
            && let Some(name) = ExactObject::repeated(&members)
        {
            return Err(JsonFault::Repeated(name.to_owned()));
        }
        Ok(ExactObject::of(members))
    }

    fn text(&mut self) -> String {
        let from = self.at;
        self.at = text_end(self.json, from + 1);
        told(&self.json[from..self.at]).into_owned()
    }
}

/// Where a text ends that has begun before, behind its quotation mark.
pub fn text_end(json: &str, mut at: usize) -> usize {
    let bytes = json.as_bytes();
    while let Some(found) = json[at..].find(['"', '\\']) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // What is behind a backslash ends nothing.
        at = json.ceil_char_boundary(at + 1);
    }
    json.len()
}

/// What a text says that is written like this.
pub fn told(quoted: &str) -> Cow<'_, str> {
    let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    if inside.contains('\\') {
        Cow::Owned(read_whole(quoted).unwrap_or_default())
    } else {
        Cow::Borrowed(inside)
    }
}

/// JSON in which halves of characters that stand alone, as JavaScript makes them when it cuts a text, are U+FFFD.
pub fn without_halves(json: &str) -> String {
    let code = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut from, mut at) = (String::with_capacity(json.len()), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        // The character behind a backslash is none that begins another escape.
        at = json.ceil_char_boundary(escape + 2);
        match (code(escape), code(escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = escape + 12,
            (Some(0xD800..=0xDFFF), _) => {
                whole.push_str(&json[from..escape]);
                whole.push_str("\\ufffd");
                at = escape + 6;
                from = at;
            }
            (_, _) => {}
        }
    }
    whole.push_str(&json[from..]);
    whole
}

/// An object without the member of this name, and otherwise as it was written.
///
/// # Errors
/// [`JsonFault`].
pub fn without_member(object: &RawValue, name: &str) -> Result<Box<RawValue>, JsonFault> {
    let json = object.get();
    let mut reader = JsonReader { json, at: 0, levels: 0, repeated: RepeatedNames::LeftOut };
    if !reader.pass(b'{') {
        return Err(JsonFault::NoObject);
    }
    let mut kept = Vec::new();
    while !reader.pass(b'}') {
        reader.sign();
        let from = reader.at;
        let is_it = reader.text() == name;
        reader.pass(b':');
        reader.value()?;
        if !is_it {
            kept.push(&json[from..reader.at]);
        }
        reader.pass(b',');
    }
    RawValue::from_string(format!("{{{}}}", kept.join(","))).map_err(|_| JsonFault::NoObject)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn exact(json: &str) -> ExactJson {
        ExactJson::read(&raw(json), RepeatedNames::LeftOut).unwrap()
    }

    #[test]
    fn numbers_keep_their_digits_and_members_their_order() {
        let json =
            r#"{"z":123456789012345678901234567890,"a":[1e2,-0.10,1e400,true,null],"m":{}," ":[]}"#;
        assert_eq!(exact(json).to_string(), json);
        let spaced = json.replace(':', " :\t").replace(',', "\n, ").replace(']', " ]");
        assert_eq!(exact(&spaced).to_string(), json);
        assert_eq!(serde_json::to_string(&exact(json)).unwrap(), json);
    }

    #[test]
    fn half_a_character_is_replaced() {
        assert_eq!(
            exact(r#"{"a\ud800":"\udfff\ud83d\ude00"}"#).to_string(),
            "{\"a\u{fffd}\":\"\u{fffd}\u{1f600}\"}"
        );
        assert_eq!(read_whole::<String>(r#""x\ud800""#).unwrap(), "x\u{fffd}");
        assert!(read_whole::<u64>(r#""x\ud800""#).is_err());
    }

    #[test]
    fn objects_are_equal_in_any_order_and_numbers_as_they_are_written() {
        assert_eq!(
            exact(r#"{"a":{"x":1,"y":[2]},"b":"\u0063"}"#),
            exact(r#"{"b":"c","a":{"y":[2],"x":1}}"#)
        );
        assert_ne!(exact(r#"{"a":1}"#), exact(r#"{"a":1.0}"#));
        assert_ne!(exact(r#"{"a":1}"#), exact(r#"{"a":"1"}"#));
        assert_ne!(exact("[1,2]"), exact("[2,1]"));
        assert_eq!(
            exact(r#"{"b":[{"d":1,"c":2}],"a":3}"#).sorted().to_string(),
            r#"{"a":3,"b":[{"c":2,"d":1}]}"#
        );
    }

    #[test]
    fn of_two_members_with_one_name_the_first_stays_or_none_is_taken() {
        let json = r#"{"b":1,"a":{"c":1,"d":2,"\u0063":3},"b":4,"e":5,"b":6}"#;
        assert_eq!(exact(json).to_string(), r#"{"b":1,"a":{"c":1,"d":2},"e":5}"#);
        let refused = |json| ExactJson::read(&raw(json), RepeatedNames::Refused).unwrap_err();
        assert_eq!(refused(json), JsonFault::Repeated("a.c".to_owned()));
        assert_eq!(refused(r#"[{"x":[{"a":1,"a":1}]}]"#), JsonFault::Repeated("x.a".to_owned()));
    }

    #[test]
    fn values_are_as_deep_as_other_parsers_read() {
        let deep = |levels: usize| raw(&format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
        assert!(ExactJson::read(&deep(LEVELS_MAX), RepeatedNames::LeftOut).is_ok());
        let too_deep = ExactJson::read(&deep(100_000), RepeatedNames::LeftOut);
        assert_eq!(too_deep, Err(JsonFault::TooDeep));
    }

    #[test]
    fn members_are_set_and_removed_at_their_places() {
        let mut object = ExactObject::try_from(exact(r#"{"c":1,"a":2,"b":3}"#)).unwrap();
        object.insert("a", ExactJson::Text("x".to_owned()));
        object.insert("d", ExactJson::of(&5));
        assert_eq!(object.remove("c").map(|it| it.to_string()).as_deref(), Some("1"));
        assert_eq!(object.remove("c"), None);
        object.insert("aa", ExactJson::of(&true));
        assert_eq!(object.to_string(), r#"{"a":"x","b":3,"d":5,"aa":true}"#);
        for (name, value) in [("a", "\"x\""), ("b", "3"), ("d", "5"), ("aa", "true")] {
            assert_eq!(object.get(name).unwrap().to_string(), value);
        }
        assert_eq!(object.get("e"), None);
    }

    #[test]
    fn an_object_without_a_member_is_otherwise_as_it_was_written() {
        let json = r#" { "a" : 1e2 , "\u0062":{"b": "}\ud800" }, "c":[ 1.0 ] , "b":2 } "#;
        let left = without_member(&raw(json.trim()), "b").unwrap();
        assert_eq!(left.get(), r#"{"a" : 1e2,"c":[ 1.0 ]}"#);
        assert_eq!(without_member(&left, "x").unwrap().get(), left.get());
        assert_eq!(without_member(&raw("{ }"), "x").unwrap().get(), "{}");
        assert!(without_member(&raw("[]"), "x").is_err());
    }
}
