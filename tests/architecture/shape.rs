//! The shape of files: how they open, how long they are, what they are called.
//!
//! The length of functions is clippy's to check.

use std::fs;
use std::path::{Path, PathBuf};

use crate::architecture::source::{Complaint, Source, all, assert_none};

/// How many lines a file may have besides its tests.
const LINES_MAX: usize = 400;
/// Names that say nothing about what is inside.
const NAMELESS: [&str; 6] = ["utils", "util", "common", "helpers", "misc", "types"];

fn complaints(sources: &[Source]) -> Vec<Complaint> {
    sources.iter().flat_map(of_source).collect()
}

fn of_source(source: &Source) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut complain = |line, problem: String| complaints.push(source.complaint(line, problem));
    if !source.text.starts_with("//! ") {
        complain(1, "does not open with `//!` and what the file is".to_owned());
    }
    let name = source.file.rsplit('/').next().unwrap_or_default();
    if name == "mod.rs" {
        complain(1, "a `mod.rs`; write `name.rs` beside the folder `name/`".to_owned());
    }
    if NAMELESS.iter().any(|nameless| name.strip_suffix(".rs") == Some(nameless)) {
        complain(1, "a name that says nothing of what is inside".to_owned());
    }
    let lines = source.text.lines().count() - test_lines(source);
    if !source.test && lines > LINES_MAX {
        complain(1, format!("{lines} lines without tests; at most {LINES_MAX}"));
    }
    for name in source.names().iter().filter(|name| !source.test && !name.test) {
        if name.segments.len() > 1 && name.segments.last().is_some_and(|last| last == "*") {
            complain(name.line, format!("imports all of `{}`", name.segments.join("::")));
        }
    }
    complaints
}

/// How many lines belong to items that are compiled for tests only.
fn test_lines(source: &Source) -> usize {
    let mut count = 0;
    for run in source.tokens.chunk_by(|one, next| one.test == next.test) {
        if let [first, .., last] = run
            && first.test
        {
            count += last.line - first.line + 1;
        }
    }
    count
}

#[test]
fn every_file_has_the_shape_that_readers_expect() {
    assert_none(&complaints(&all()));
}

/// The problems of one file with this text.
fn problems(file: &str, text: &str) -> Vec<String> {
    let complaints = complaints(&[Source::parse(file, text)]);
    complaints.into_iter().map(|complaint| complaint.to_string()).collect()
}

#[test]
fn a_file_without_an_opening_is_reported() {
    let found = problems("core/ids.rs", "use std::fmt;");
    assert_eq!(found, ["src/core/ids.rs:1: does not open with `//!` and what the file is"]);
}

#[test]
fn a_mod_rs_is_reported() {
    let expected = "src/core/mod.rs:1: a `mod.rs`; write `name.rs` beside the folder `name/`";
    assert_eq!(problems("core/mod.rs", "//! A."), [expected]);
}

#[test]
fn a_file_without_a_name_of_its_own_is_reported() {
    let expected = "src/core/utils.rs:1: a name that says nothing of what is inside";
    assert_eq!(problems("core/utils.rs", "//! A."), [expected]);
}

#[test]
fn a_file_is_measured_without_its_tests() {
    let code = "fn a() {}\n".repeat(LINES_MAX - 1);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn b() {}\n".repeat(500));
    assert!(problems("core/ids.rs", &format!("//! A.\n{code}{tests}")).is_empty());
    let found = problems("core/ids.rs", &format!("//! A.\nfn a() {{}}\n{code}{tests}"));
    assert_eq!(found, ["src/core/ids.rs:1: 401 lines without tests; at most 400"]);
}

#[test]
fn a_glob_import_is_reported_outside_tests_only() {
    let text = "//! A.\nuse crate::core::*;\n#[cfg(test)]\nmod tests { use super::*; }";
    assert_eq!(problems("cli.rs", text), ["src/cli.rs:2: imports all of `crate::core::*`"]);
}

#[test]
fn multiplication_is_no_glob() {
    assert!(problems("core/ids.rs", "//! A.\nconst A: u8 = crate::core::B * 2;").is_empty());
}

/// The files in and below a folder that only say how a snapshot would look, and nobody accepted.
fn undecided_snapshots(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("the entry can be read").path());
    let found = |path: PathBuf| {
        if path.is_dir() {
            return undecided_snapshots(&path);
        }
        let is_new = path.to_string_lossy().ends_with(".snap.new");
        if is_new { vec![path] } else { Vec::new() }
    };
    paths.flat_map(found).collect()
}

#[test]
fn no_snapshot_is_left_undecided() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found: Vec<_> =
        ["src", "tests"].map(|folder| undecided_snapshots(&root.join(folder))).concat();
    assert!(found.is_empty(), "accept or refuse these, then delete them: {found:?}");
}

#[test]
fn an_undecided_snapshot_is_found_at_any_depth() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    for name in ["a/one.snap", "a/b/two.snap.new"] {
        fs::write(root.path().join(name), "").unwrap();
    }
    assert_eq!(undecided_snapshots(root.path()), [root.path().join("a/b/two.snap.new")]);
}
