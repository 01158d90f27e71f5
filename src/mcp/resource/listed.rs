//! The list of resources, and the resources that are lists of sessions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::policy::Standing;
use crate::surface::answer::budget::{escaped_bytes, room_left};
use crate::surface::call::Daemon;
use crate::surface::mounted::listed_mounts;
use crate::wire::lease::ListedLease;
use crate::wire::mount::SeenMount;

/// The MIME types.
pub const JSON: &str = "application/json";
pub const MARKDOWN: &str = "text/markdown";
pub const PLAIN: &str = "text/plain";

#[derive(Clone, Copy, Debug)]
pub struct Template {
    pub uri: &'static str,
    pub name: &'static str,
    /// Its description.
    pub what: &'static str,
    pub mime_type: &'static str,
}

const fn part(uri: &'static str, name: &'static str, what: &'static str) -> Template {
    Template { uri, name, what, mime_type: JSON }
}

/// The templates of resources that each session has once.
pub const PARTS: [Template; 9] = [
    part(
        "termgate://session/{session}/grid{?since,top,rows,format}",
        "grid",
        "The screen, or what changed since a watermark",
    ),
    part("termgate://session/{session}/cursor", "cursor", "Where the cursor is"),
    part(
        "termgate://session/{session}/history{?start_row,count,mode}",
        "history",
        "Rows by absolute number",
    ),
    part("termgate://session/{session}/lease", "lease", "Who may write"),
    part(
        "termgate://session/{session}/commands",
        "commands",
        "The commands that ran, oldest first",
    ),
    part(
        "termgate://session/{session}/recording{?offset}",
        "recording",
        "What was recorded of it, newest part first",
    ),
    part("termgate://session/{session}/cwd", "cwd", "The directory it is in"),
    part("termgate://session/{session}/git", "git", "Branch and commit of that directory"),
    Template {
        uri: "termgate://session/{session}/log{?before}",
        name: "log",
        what: "What ran here, as a report",
        mime_type: MARKDOWN,
    },
];

/// The template of each command's output.
pub const OUTPUT: Template = Template {
    uri: "termgate://session/{session}/command/{id}/output{?from_line}",
    name: "output",
    what: "All that a command printed, as far as history holds it",
    mime_type: PLAIN,
};

/// The lists: URI, name and description.
pub const LISTS: [(&str, &str, &str); 4] = [
    ("termgate://sessions", "sessions", "Every session you may see"),
    ("termgate://leases", "leases", "Who may write where"),
    ("termgate://mounts", "mounts", "Every mounted server you may call, and who has its lease"),
    ("termgate://events", "events", "What happened last"),
];

/// The resources for operators only: URI, name and description.
pub const OF_OPERATORS: [(&str, &str, &str); 2] = [
    ("termgate://daemon", "daemon", "The daemon itself and what it did so far"),
    ("termgate://approvals", "approvals", "The calls that wait for an approval"),
];

/// The leases of the mounts that a caller sees, sorted by name.
pub(super) fn mount_leases(daemon: &Daemon, standing: &Standing) -> Vec<Value> {
    let entry = |mount: SeenMount| {
        let (session, surface) = (None, Some(mount.name));
        Some(json!(ListedLease { session, surface, lease: mount.lease? }))
    };
    listed_mounts(daemon, standing).into_iter().filter_map(entry).collect()
}

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
        self.behind(Vec::new(), sessions, name, entry)
    }

    /// The same behind these few entries, where the list begins with the first session.
    pub(super) fn behind<T>(
        self,
        first: Vec<Value>,
        sessions: &[T],
        name: impl Fn(&T) -> Arc<str>,
        entry: impl Fn(&T) -> Value,
    ) -> Value {
        let told = self.after.unwrap_or_default();
        let sessions = &sessions[sessions.partition_point(|it| &*name(it) <= told)..];
        let first = if self.after.is_none() { first } else { Vec::new() };
        let (before, mut room) = (first.len(), room_left(&"", ""));
        let mut fits = |it: &Value| {
            // The entry is JSON inside a JSON string.
            let left = room.checked_sub(escaped_bytes(&it.to_string()) + 1);
            room = left.unwrap_or_default();
            self.whole || left.is_some()
        };
        let all = first.into_iter().chain(sessions.iter().map(entry));
        let entries: Vec<Value> = all.take_while(|it| fits(it)).collect();
        let (count, left_out) = (entries.len(), before + sessions.len() - entries.len());
        let mut list = json!({self.name: entries});
        if left_out > 0 {
            list["left_out"] = json!(left_out);
            let last = count.checked_sub(before + 1).and_then(|last| sessions.get(last));
            // Without a session before it, the next page begins with the first.
            let last = last.map(name).unwrap_or_default();
            list["next"] = json!(format!("termgate://{}?after={last}", self.name));
        }
        list
    }
}
