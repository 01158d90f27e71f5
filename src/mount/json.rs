//! JSON as it was written: numbers keep their digits, and members their order.
//!
//! What passes between clients and servers is read with this. The values of the JSON library round numbers, sort members,
//! and are none at all if a text has half a character.

pub mod reading;

use std::fmt;

use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExactJson {
    /// `null`, `true`, `false`, or a number as it was written.
    Literal(Box<str>),
    /// Halves of characters that stand alone are U+FFFD.
    Text(String),
    List(Vec<ExactJson>),
    Object(ExactObject),
}

/// An object whose members have different names. Objects are equal in any order of their members.
#[derive(Clone, Debug, Default)]
pub struct ExactObject {
    members: Vec<(String, ExactJson)>,
    /// The places of the members in the order of their names.
    by_name: Vec<usize>,
}

impl ExactJson {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Literal(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    pub fn as_object(&self) -> Option<&ExactObject> {
        match self {
            Self::Object(object) => Some(object),
            Self::Literal(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The literal, such as `true`.
    pub fn as_literal(&self) -> Option<&str> {
        match self {
            Self::Literal(literal) => Some(literal),
            Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The values of a list. Others have none.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(values) => values,
            Self::Literal(_) | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    /// A member, if it is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    /// The same with all members in the order of their names, so that equal values have one text.
    pub fn sorted(&self) -> Self {
        match self {
            Self::List(values) => Self::List(values.iter().map(Self::sorted).collect()),
            Self::Object(object) => Self::Object(object.sorted()),
            Self::Literal(_) | Self::Text(_) => self.clone(),
        }
    }
}

impl ExactObject {
    /// An object of these members. Of those with one name, the first stays.
    pub fn of(mut members: Vec<(String, ExactJson)>) -> Self {
        let mut by_name = Self::in_order(&members);
        let is_repeated = |places: &[usize]| members[places[0]].0 == members[places[1]].0;
        if by_name.windows(2).any(is_repeated) {
            by_name.dedup_by(|later, first| members[*later].0 == members[*first].0);
            by_name.sort_unstable();
            let mut kept = by_name.iter().copied().peekable();
            let mut place = 0..members.len();
            members.retain(|_| kept.next_if_eq(&place.next().unwrap_or_default()).is_some());
            by_name = Self::in_order(&members);
        }
        Self { members, by_name }
    }

    /// The name that two members have, if two have one.
    pub fn repeated(members: &[(String, ExactJson)]) -> Option<&str> {
        let by_name = Self::in_order(members);
        let mut pairs = by_name.windows(2).map(|pair| (&members[pair[0]].0, &members[pair[1]].0));
        pairs.find(|(one, other)| one == other).map(|(name, _)| name.as_str())
    }

    fn in_order(members: &[(String, ExactJson)]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..members.len()).collect();
        // Equal names stay as they were written.
        places.sort_by(|one, other| members[*one].0.cmp(&members[*other].0));
        places
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.by_name.binary_search_by(|place| self.members[*place].0.as_str().cmp(name))
    }

    pub fn get(&self, name: &str) -> Option<&ExactJson> {
        let at = self.place(name).ok()?;
        Some(&self.members[self.by_name[at]].1)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut ExactJson> {
        let at = self.place(name).ok()?;
        Some(&mut self.members[self.by_name[at]].1)
    }

    /// The text of this member, if it is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// Sets a member. A new one is the last.
    pub fn insert(&mut self, name: &str, value: ExactJson) {
        match self.place(name) {
            Ok(at) => self.members[self.by_name[at]].1 = value,
            Err(at) => {
                self.by_name.insert(at, self.members.len());
                self.members.push((name.to_owned(), value));
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<ExactJson> {
        let place = self.by_name.remove(self.place(name).ok()?);
        self.by_name.iter_mut().filter(|it| **it > place).for_each(|it| *it -= 1);
        Some(self.members.remove(place).1)
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members as they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ExactJson)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn into_members(self) -> Vec<(String, ExactJson)> {
        self.members
    }

    fn by_name(&self) -> impl Iterator<Item = &(String, ExactJson)> {
        self.by_name.iter().map(|place| &self.members[*place])
    }

    /// The same with all members in the order of their names.
    pub fn sorted(&self) -> Self {
        Self::of(self.by_name().map(|(name, value)| (name.clone(), value.sorted())).collect())
    }
}

impl Eq for ExactObject {}

impl PartialEq for ExactObject {
    fn eq(&self, other: &Self) -> bool {
        self.by_name().eq(other.by_name())
    }
}

impl fmt::Display for ExactJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => f.write_str(literal),
            Self::Text(text) => write_text(text, f),
            Self::List(values) => {
                f.write_str("[")?;
                for (place, value) in values.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { "," })?;
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(object) => object.fmt(f),
        }
    }
}

impl fmt::Display for ExactObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            write_text(name, f)?;
            f.write_str(":")?;
            value.fmt(f)?;
        }
        f.write_str("}")
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

impl Serialize for ExactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        written(self).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl Serialize for ExactObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        written(self).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

fn written(value: &impl fmt::Display) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(value.to_string())
}
