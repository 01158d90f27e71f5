//! What references inside of a schema may name.

use std::collections::{BTreeMap, BTreeSet};

use crate::mount::json::{ExactJson, ExactObject};

/// What all validators know that follow this draft.
const KNOWN: &str = "http://json-schema.org/draft-07/schema";

/// The names in a schema.
pub(super) struct SchemaNames<'a> {
    /// The schemas with an address.
    addresses: BTreeMap<&'a str, &'a ExactObject>,
    anchors: BTreeSet<&'a str>,
}

impl<'a> SchemaNames<'a> {
    pub(super) fn of(schema: &'a ExactObject) -> Self {
        let mut names = Self { addresses: BTreeMap::new(), anchors: BTreeSet::new() };
        names.add(schema);
        names
    }

    fn add(&mut self, object: &'a ExactObject) {
        if let Some(id) = object.text("$id") {
            match id.strip_prefix('#') {
                Some(anchor) => _ = self.anchors.insert(anchor),
                None => _ = self.addresses.insert(id.trim_end_matches('#'), object),
            }
        }
        self.anchors.extend(object.text("$anchor"));
        for (_, value) in object.iter() {
            self.add_value(value);
        }
    }

    fn add_value(&mut self, value: &'a ExactJson) {
        match value {
            ExactJson::Object(object) => self.add(object),
            ExactJson::List(values) => values.iter().for_each(|it| self.add_value(it)),
            ExactJson::Literal(_) | ExactJson::Text(_) => {}
        }
    }

    /// Whether a reference in the schema `base` has a target.
    pub(super) fn has(&self, base: &'a ExactObject, reference: &str) -> bool {
        let (address, place) = reference.split_once('#').unwrap_or((reference, ""));
        if address == KNOWN {
            return true;
        }
        let target = if address.is_empty() { Some(base) } else { self.find(address) };
        let Some(target) = target else { return false };
        match place.strip_prefix('/') {
            Some(pointer) => {
                let mut names = pointer.split('/').map(decoded);
                let first = names.next().and_then(|name| target.get(&name));
                first
                    .and_then(|first| names.try_fold(first, |at, name| member(at, &name)))
                    .is_some()
            }
            None => place.is_empty() || self.anchors.contains(place),
        }
    }

    /// The schema with this address, or one that ends so: addresses are relative to each other.
    fn find(&self, address: &str) -> Option<&'a ExactObject> {
        let ends_so =
            |id: &str| id.strip_suffix(address).is_some_and(|before| before.ends_with('/'));
        let exact = self.addresses.get(address);
        let mut others = self.addresses.iter().filter(|(id, _)| ends_so(id)).map(|(_, it)| it);
        exact.or_else(|| others.next()).copied()
    }
}

fn member<'a>(value: &'a ExactJson, name: &str) -> Option<&'a ExactJson> {
    match value {
        ExactJson::Object(object) => object.get(name),
        ExactJson::List(values) => values.get(name.parse::<usize>().ok()?),
        ExactJson::Literal(_) | ExactJson::Text(_) => None,
    }
}

/// A part of a pointer as the name of a member.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).replace("~1", "/").replace("~0", "~")
}
