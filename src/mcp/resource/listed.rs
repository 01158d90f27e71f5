//! The list of resources: URIs, descriptions and MIME types.

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
pub const PARTS: [Template; 8] = [
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
    uri: "termgate://session/{session}/command/{id}/output{?from_row}",
    name: "output",
    what: "All that a command printed, as far as history holds it",
    mime_type: PLAIN,
};

/// The lists: URI, name and description.
pub const LISTS: [(&str, &str, &str); 2] = [
    ("termgate://sessions", "sessions", "Every session you may see"),
    ("termgate://leases", "leases", "Who may write where"),
];

/// The resource for operators only: URI, name and description.
pub const DAEMON: (&str, &str, &str) =
    ("termgate://daemon", "daemon", "The daemon itself and what it did so far");
