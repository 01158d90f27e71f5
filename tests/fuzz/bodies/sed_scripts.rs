//! Scripts of `sed`: one that runs or writes something is never taken for harmless, whatever comes before it.

use termgate::core::command_line::ParsedCommandLine;

const WRITING: [&str; 7] =
    ["w f", "e ls", "1,2!{e", "$W f", "s/a/b/w f", "s/[/]/b/2e", "\\,a,{y/a/b/;e ls"];

/// Whether a call of `sed` with these scripts is known to run and write nothing.
fn is_harmless(scripts: &[&str]) -> bool {
    let options = scripts.iter().flat_map(|script| ["-e", script]);
    let words = ["sed", "-n"].into_iter().chain(options).chain(["f"]);
    ParsedCommandLine::of_arguments(words.map(str::to_owned)).unknown.is_empty()
}

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for writing in WRITING {
        assert!(!is_harmless(&[text, writing]), "{text:?}, {writing}");
        // A backslash at the end of a line has the next one be text.
        if is_harmless(&[text]) && !text.ends_with('\\') {
            assert!(!is_harmless(&[&format!("{text}\n{writing}")]), "{text:?}, {writing}");
        }
    }
}
