//! Scripts of `awk`: one that runs or writes something is never taken for harmless, whatever comes before it.

use termgate::core::command_line::ParsedCommandLine;

const WRITING: [&str; 6] = [
    "{ print > \"f\" }",
    "{ f = \"g\"; print > f }",
    "/a/ { printf \"%s\", $1 >> $2 }",
    "{ print | \"sh\" }",
    "BEGIN { system(\"ls\") }",
    "END { \"ls\" | getline x }",
];

/// Whether a call of `awk` with this script is known to run and write nothing.
fn is_harmless(script: &str) -> bool {
    let words = ["awk", "-e", script, "f"].map(str::to_owned);
    ParsedCommandLine::of_arguments(words).unknown.is_empty()
}

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for writing in WRITING {
        assert!(!is_harmless(&format!("{text}\n{writing}")), "{text:?}, {writing}");
    }
}
