//! The lists of all sessions as resources: as many entries as one answer has room for, and where the
//! others are.
//!
//! It must not know who may see which session, nor what is told of each.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::surface::answer::budget::{escaped_bytes, fitting, room_left};

/// A list with an entry for each session, by the names of those.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    /// What it and its entries are called.
    pub(super) name: &'a str,
    /// The name behind which it begins.
    pub(super) after: Option<&'a str>,
    /// Whether it tells all there are, however many.
    pub(super) whole: bool,
}

impl List<'_> {
    /// The list of these sessions, which are in the order of their names.
    pub(super) fn of<T>(
        self,
        sessions: &[T],
        name: impl Fn(&T) -> Arc<str>,
        entry: impl Fn(&T) -> Value,
    ) -> Value {
        let told = self.after.unwrap_or_default();
        let sessions = &sessions[sessions.partition_point(|it| &*name(it) <= told)..];
        let mut entries: Vec<Value> = sessions.iter().map(entry).collect();
        // It is JSON in a text of JSON.
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
