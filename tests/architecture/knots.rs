//! Knots: no two files need each other in a circle, and no two folders of one floor.
//!
//! A file and the files in the folder of its name may name each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::source::{Source, all};

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Which file names which, tests apart, by their paths without `.rs`.
fn edges(sources: &[Source]) -> Edges {
    let modules: BTreeSet<&str> = sources.iter().map(module).collect();
    let mut edges = Edges::new();
    for source in sources.iter().filter(|source| !source.test) {
        let named = source.names().into_iter().filter(|name| !name.test);
        let targets = named.filter(|name| name.segments[0] == "crate").filter_map(|name| {
            let path = &name.segments[1..];
            let mut ends = (1..=path.len()).rev().map(|end| path[..end].join("/"));
            ends.find(|path| modules.contains(path.as_str()))
        });
        edges.entry(module(source).to_owned()).or_default().extend(targets);
    }
    edges
}

fn module(source: &Source) -> &str {
    source.file.strip_suffix(".rs").unwrap_or(&source.file)
}

/// The edges among the files and folders directly in a floor.
fn of_folders(edges: &Edges) -> Edges {
    let folder = |module: &str| module.split('/').take(2).collect::<Vec<_>>().join("/");
    let mut folders = Edges::new();
    for (from, targets) in edges.iter().filter(|(from, _)| from.contains('/')) {
        let targets = targets.iter().filter(|target| target.contains('/'));
        folders.entry(folder(from)).or_default().extend(targets.map(|target| folder(target)));
    }
    folders
}

/// The greatest sets whose members all reach each other.
fn knots(edges: &Edges) -> BTreeSet<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|from| (from.as_str(), reached_from(from, edges))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let knot_of = |one: &str| -> Vec<&str> {
        let others = edges.keys().map(String::as_str);
        others.filter(|other| reaches(one, other) && reaches(other, one)).collect()
    };
    edges.keys().map(|one| knot_of(one)).filter(|knot| knot.len() > 1).collect()
}

fn reached_from<'a>(from: &'a str, edges: &'a Edges) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(from) = next.pop() {
        let targets = edges.get(from).into_iter().flatten().map(String::as_str);
        let targets = targets.filter(|to| !is_family(from, to) && reached.insert(*to));
        next.extend(targets.collect::<Vec<_>>());
    }
    reached
}

/// Whether one is the other, or lies in the folder of its name.
fn is_family(one: &str, other: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(one, other) || within(other, one)
}

fn assert_no_knot(edges: &Edges) {
    let knots = knots(edges);
    assert!(knots.is_empty(), "knots: {knots:#?}");
}

#[test]
fn no_two_files_need_each_other_in_a_circle() {
    assert_no_knot(&edges(&all()));
}

#[test]
fn no_two_folders_of_a_floor_need_each_other_in_a_circle() {
    assert_no_knot(&of_folders(&edges(&all())));
}

#[test]
fn a_circle_over_several_files_is_one_knot() {
    let sources = [
        Source::parse("core/a.rs", "use crate::core::b::B;"),
        Source::parse("core/b.rs", "use crate::core::{c::C, d};"),
        Source::parse("core/c.rs", "fn c() { crate::core::a::a() }"),
        Source::parse("core/d.rs", "use crate::core::d::e::E;"),
        Source::parse("core/d/e.rs", "use crate::core::d::D;"),
    ];
    assert_eq!(knots(&edges(&sources)), [vec!["core/a", "core/b", "core/c"]].into());
}

#[test]
fn what_only_tests_name_ties_no_knot() {
    let test = "#[cfg(test)]\nmod tests { use crate::core::a::A; }";
    let sources =
        [Source::parse("core/a.rs", "use crate::core::b::B;"), Source::parse("core/b.rs", test)];
    assert!(knots(&edges(&sources)).is_empty());
}
