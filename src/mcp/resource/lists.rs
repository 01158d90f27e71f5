//! Lists of sessions as resources, limited to the size of one answer, with the URI of the rest.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::surface::answer::budget::{escaped_bytes, fitting, room_left};

/// A list with one entry per session, sorted by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    /// The name of the list and of its JSON member.
    pub(super) name: &'a str,
    /// The session name after which the list begins.
    pub(super) after: Option<&'a str>,
    /// Whether the list is complete, regardless of its size.
    pub(super) whole: bool,
}

impl List<'_> {
    /// Builds the list. The sessions must be sorted by name.
    pub(super) fn of<T>(
        self,
        sessions: &[T],
        name: impl Fn(&T) -> Arc<str>,
        entry: impl Fn(&T) -> Value,
    ) -> Value {
        let told = self.after.unwrap_or_default();
        let sessions = &sessions[sessions.partition_point(|it| &*name(it) <= told)..];
        let mut entries: Vec<Value> = sessions.iter().map(entry).collect();
        // The entry is JSON inside a JSON string.
        let bytes = |it: &Value| escaped_bytes(&it.to_string()) + 1;
        let fits = fitting(entries.iter().map(bytes), room_left(&"", "")).count;
        let left_out = if self.whole { 0 } else { entries.len() - fits };
        entries.truncate(entries.len() - left_out);
        let mut list = json!({self.name: entries});
        if let Some(last) = sessions.get(fits.wrapping_sub(1)).filter(|_| left_out > 0) {
            list["left_out"] = json!(left_out);
            list["next"] = json!(format!("termgate://{}?after={}", self.name, name(last)));
        }
        list
    }
}
