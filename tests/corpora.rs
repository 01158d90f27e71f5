//! The inputs that fuzzing kept, replayed: each target's seeds, what covers its code, and what once failed.
//!
//! `tests/fuzz/run` looks for more of them. `docs/RELIABILITY.md` says what each target checks.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

#[path = "fuzz/bodies/lib.rs"]
pub mod bodies;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A corpus is read by people and replayed in each run of the tests.
const FILES_MAX: usize = 100;
const BYTES_MAX: usize = 200 * 1024;

/// Panics when a property does not hold for an input.
type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 13] = [
    ("awk_scripts", bodies::awk_scripts::check),
    ("command_lines", bodies::command_lines::check),
    ("configuration", bodies::configuration::check),
    ("deltas", bodies::deltas::check),
    ("escapes", bodies::escapes::check),
    ("framing", bodies::framing::check),
    ("journal", bodies::journal::check),
    ("keys", bodies::keys::check),
    ("sanitiser", bodies::sanitiser::check),
    ("sed_scripts", bodies::sed_scripts::check),
    ("shim_frames", bodies::shim_frames::check),
    ("uris", bodies::uris::check),
    ("word_shapes", bodies::word_shapes::check),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz")
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Gives every kept input of a target to its body.
#[track_caller]
fn replay(target: &str) {
    let (_, check) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let corpus = folder().join("corpora").join(target);
    let files = names(&corpus);
    assert!(!files.is_empty() && files.len() <= FILES_MAX, "{} inputs", files.len());
    let mut bytes = 0;
    for file in files {
        // The last line before a failure names the input.
        eprintln!("{target}/{file}");
        let input = fs::read(corpus.join(file)).unwrap();
        bytes += input.len();
        check(&input);
    }
    assert!(bytes <= BYTES_MAX, "{bytes} bytes of inputs");
}

#[test]
fn kept_configurations_hold() {
    replay("configuration");
}

#[test]
fn kept_deltas_hold() {
    replay("deltas");
}

#[test]
fn kept_escape_sequences_hold() {
    replay("escapes");
}

#[test]
fn kept_command_lines_hold() {
    replay("command_lines");
}

#[test]
fn kept_lines_of_json_hold() {
    replay("framing");
}

#[test]
fn kept_journals_hold() {
    replay("journal");
}

#[test]
fn kept_keys_hold() {
    replay("keys");
}

#[test]
fn kept_texts_hold() {
    replay("sanitiser");
}

#[test]
fn kept_frames_of_shims_hold() {
    replay("shim_frames");
}

#[test]
fn kept_uris_and_names_hold() {
    replay("uris");
}

#[test]
fn kept_scripts_hold() {
    replay("awk_scripts");
    replay("sed_scripts");
}

#[test]
fn kept_words_hold() {
    replay("word_shapes");
}

#[test]
fn every_target_has_a_body_and_a_corpus() {
    let known = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!(names(&folder().join("corpora")), known);
    let targets = names(&folder().join("targets"));
    assert_eq!(targets, known.map(|name| format!("{name}.rs")));
}

/// The versions of each crate in a lock file.
fn locked(path: &Path) -> BTreeMap<String, Vec<String>> {
    let lock: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for package in lock["package"].as_array().unwrap() {
        let text = |member: &str| package[member].as_str().unwrap().to_owned();
        versions.entry(text("name")).or_default().push(text("version"));
    }
    versions
}

#[test]
fn targets_are_built_with_the_versions_of_crates_that_termgate_has() {
    let own = locked(&folder().join("../../Cargo.lock"));
    for (name, versions) in locked(&folder().join("Cargo.lock")) {
        let known = own.get(&name);
        assert!(
            known.is_none_or(|known| versions.iter().all(|version| known.contains(version))),
            "{name} {versions:?} in tests/fuzz/Cargo.lock, {known:?} in Cargo.lock"
        );
    }
}
