//! Floors: a file names only lower floors or its own module.
//!
//! The table is the design; changing it is a design change.

use crate::architecture::source::{Complaint, Source, all, assert_none};

/// Each module with its floor. On one floor, modules do not name each other.
const FLOORS: [(&str, u8); 17] = [
    ("core", 0),
    ("shim", 0),
    ("wire", 1),
    ("config", 1),
    ("mount", 1),
    ("session", 1),
    ("store", 1),
    ("surface", 2),
    ("gateway", 3),
    ("mcp", 4),
    ("automation", 4),
    ("transport", 5),
    ("viewer", 5),
    ("cli", 6),
    // They declare and start everything.
    ("main", 7),
    ("lib", 7),
    ("bin", 7),
];

/// What of the standard library the core does without: it owns no file, socket, task or clock.
const NOT_IN_CORE: [&str; 7] = ["env", "fs", "io", "net", "os", "process", "thread"];

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

fn complaints(sources: &[Source]) -> Vec<Complaint> {
    sources.iter().flat_map(of_source).collect()
}

fn of_source(source: &Source) -> Vec<Complaint> {
    let own = source.top();
    let Some(own_floor) = floor(own) else {
        return vec![source.complaint(1, format!("`{own}` has no floor"))];
    };
    let mut complaints = Vec::new();
    for name in source.names() {
        let segments: Vec<&str> = name.segments.iter().map(String::as_str).collect();
        let problem = match segments[..] {
            ["crate" | "termgate", other, ..] => reach(own, own_floor, other),
            ["std", part, ..] if own == "core" && NOT_IN_CORE.contains(&part) => {
                Some(format!("the core names `std::{part}`"))
            }
            ["std", "time", clock @ ("Instant" | "SystemTime"), ..] if own == "core" => {
                Some(format!("the core names `{clock}`; time is given to it as a value"))
            }
            ["super", _, ..] if !source.test && !name.test => {
                Some("`super::` outside tests; say where from with `crate::`".to_owned())
            }
            _ => None,
        };
        complaints.extend(problem.map(|problem| source.complaint(name.line, problem)));
    }
    complaints
}

/// What is wrong with naming another module from here, if anything.
fn reach(own: &str, own_floor: u8, other: &str) -> Option<String> {
    if other == own {
        return None;
    }
    match floor(other) {
        Some(floor) if floor < own_floor => None,
        Some(floor) => {
            Some(format!("`{own}` on floor {own_floor} names `{other}` on floor {floor}"))
        }
        // Items of the crate's root would be a way around the floors.
        None => Some(format!("`{own}` names `crate::{other}`, which has no floor")),
    }
}

#[test]
fn every_file_names_only_lower_floors_or_its_own_module() {
    assert_none(&complaints(&all()));
}

/// The problems of one file with this text.
fn problems(file: &str, text: &str) -> Vec<String> {
    let complaints = complaints(&[Source::parse(file, text)]);
    complaints.into_iter().map(|complaint| complaint.to_string()).collect()
}

#[test]
fn a_name_from_a_higher_floor_is_reported_with_file_and_line() {
    let found = problems("core/lease.rs", "//! A.\n\nuse crate::session::handle;");
    assert_eq!(found, ["src/core/lease.rs:3: `core` on floor 0 names `session` on floor 1"]);
}

#[test]
fn a_neighbour_on_the_same_floor_is_reported() {
    let found =
        problems("session/actor.rs", "fn a() -> crate::config::Config { b!(crate::store::c) }");
    assert_eq!(
        found,
        [
            "src/session/actor.rs:1: `session` on floor 1 names `config` on floor 1",
            "src/session/actor.rs:1: `session` on floor 1 names `store` on floor 1",
        ]
    );
}

#[test]
fn a_module_without_a_floor_is_reported() {
    assert_eq!(problems("utils.rs", ""), ["src/utils.rs:1: `utils` has no floor"]);
    let found = problems("cli.rs", "use crate::anything;");
    assert_eq!(found, ["src/cli.rs:1: `cli` names `crate::anything`, which has no floor"]);
}

#[test]
fn a_file_or_a_clock_in_the_core_is_reported() {
    let found = problems("core/frame.rs", "use std::{fs::File, time::{Duration, Instant}};");
    assert_eq!(
        found,
        [
            "src/core/frame.rs:1: the core names `std::fs`",
            "src/core/frame.rs:1: the core names `Instant`; time is given to it as a value",
        ]
    );
}

#[test]
fn super_is_reported_outside_tests_only() {
    let text = "use super::a;\n#[cfg(test)]\nmod tests { use super::*; }\npub(super) fn b() {}";
    let found = problems("core/frame.rs", text);
    let expected = "src/core/frame.rs:1: `super::` outside tests; say where from with `crate::`";
    assert_eq!(found, [expected]);
}

#[test]
fn lower_floors_and_the_own_module_are_fine() {
    let text = "use crate::core::ids;\nuse crate::{surface::call, session::request_order};";
    assert!(problems("mcp/server.rs", text).is_empty());
}
