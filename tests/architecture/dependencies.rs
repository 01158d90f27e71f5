//! Dependencies: each has its line in `docs/decisions/dependencies.md`, and none comes twice.
//!
//! What cargo knows is asked of cargo; nothing here reads the manifest or the lock file itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Crates that come in two versions, each with who is behind.
const DUPLICATES: [(&str, &str); 7] = [
    ("base64", "the emulator stays with an older one than rmcp"),
    ("darling", "macros of brush-parser's dependencies, which are not in the program"),
    ("darling_core", "as darling"),
    ("darling_macro", "as darling"),
    ("getrandom", "ring stays with an older one"),
    ("hashbrown", "dashmap and rowan stay with an older one than indexmap"),
    ("syn", "not every derive has moved to its third version"),
];

/// A crate that the manifest names.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) requirement: String,
    pub(crate) dev: bool,
}

/// A crate that the build uses, however it came in.
#[derive(Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: String,
}

/// What the manifest names, each crate once.
pub(crate) fn direct_dependencies() -> Vec<Dependency> {
    let metadata = cargo(&["metadata", "--format-version=1", "--locked", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo writes JSON");
    let mut dependencies = BTreeMap::new();
    for entry in metadata["packages"][0]["dependencies"].as_array().expect("it is a list") {
        let dependency = Dependency {
            name: text(entry, "name"),
            requirement: text(entry, "req").trim_start_matches('^').to_owned(),
            dev: entry["kind"] == "dev",
        };
        // A crate may be named for tests a second time, with more features.
        let known = dependencies.get(&dependency.name);
        if known.is_none_or(|known: &Dependency| known.dev) {
            dependencies.insert(dependency.name.clone(), dependency);
        }
    }
    dependencies.into_values().collect()
}

/// Every foreign crate that is built on this machine, also for tests.
pub(crate) fn packages() -> Vec<Package> {
    let arguments =
        ["tree", "--locked", "--prefix=none", "--edges=normal,build,dev", "--format={p}|{l}"];
    let tree = cargo(&arguments);
    let mut lines: Vec<&str> = tree.lines().collect();
    lines.retain(|line| !line.is_empty() && !line.starts_with("termgate "));
    lines.sort();
    let mut packages: Vec<Package> = lines.into_iter().map(package).collect();
    packages.dedup();
    packages
}

/// Reads `name v1.0.0 (proc-macro)|MIT`; crates that were written above end in `(*)`.
fn package(line: &str) -> Package {
    let (package, licence) = line.split_once('|').unwrap_or((line, ""));
    let mut words = package.split(' ');
    Package {
        name: words.next().unwrap_or_default().to_owned(),
        version: words.next().unwrap_or_default().to_owned(),
        licence: licence.trim_end_matches(" (*)").to_owned(),
    }
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().expect("it is text").to_owned()
}

/// What is wrong with the page: crates without a line, and lines of other crates or versions.
fn page_problems(page: &str, dependencies: &[Dependency]) -> Vec<String> {
    let rows: Vec<(&str, &str)> = page.lines().filter_map(row).collect();
    let mut problems = Vec::new();
    for Dependency { name, requirement, .. } in dependencies {
        match rows.iter().find(|(crate_name, _)| crate_name == name) {
            Some((_, version)) if version == requirement => {}
            Some((_, version)) => problems.push(format!("{name} is {requirement}, not {version}")),
            None => problems.push(format!("{name} has no line")),
        }
    }
    for (name, _) in rows {
        if !dependencies.iter().any(|dependency| dependency.name == name) {
            problems.push(format!("{name} is no dependency"));
        }
    }
    problems
}

/// The crate and the version of a line of the page's lists.
fn row(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("- `")?.split_once("` ")?;
    Some((name, rest.split_once(':')?.0))
}

/// The crates that come in several versions.
fn duplicates(packages: &[Package]) -> BTreeMap<&str, Vec<&str>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[test]
fn every_direct_dependency_has_its_line_in_the_decisions() {
    let dependencies = direct_dependencies();
    let dev = dependencies.iter().filter(|dependency| dependency.dev).count();
    eprintln!("{} direct dependencies and {dev} for tests", dependencies.len() - dev);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/decisions/dependencies.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let problems = page_problems(&page, &dependencies);
    assert!(problems.is_empty(), "docs/decisions/dependencies.md: {}", problems.join("; "));
}

#[test]
fn no_crate_comes_in_two_versions_but_those_that_are_known_to() {
    let packages = packages();
    let duplicates = duplicates(&packages);
    let known: Vec<&str> = DUPLICATES.iter().map(|(name, _)| *name).collect();
    let found: Vec<&str> = duplicates.keys().copied().collect();
    assert_eq!(found, known, "in tests/architecture/dependencies.rs; there are {duplicates:?}");
}

#[test]
fn a_dependency_without_a_line_is_found_out() {
    let dependency =
        |name: &str| Dependency { name: name.to_owned(), requirement: "1".to_owned(), dev: false };
    let page = "## Crates\n\n- `here` 1: x\n- `gone` 1: x";
    let found = page_problems(page, &[dependency("here"), dependency("new")]);
    assert_eq!(found, ["new has no line", "gone is no dependency"]);
    let found = page_problems("- `here` 2: x", &[dependency("here")]);
    assert_eq!(found, ["here is 1, not 2"]);
}

#[test]
fn a_second_version_is_found_out() {
    let package = |name: &str, version: &str| Package {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: String::new(),
    };
    let packages = [package("a", "1.0.0"), package("b", "1.0.0"), package("a", "2.0.0")];
    assert_eq!(duplicates(&packages), BTreeMap::from([("a", vec!["1.0.0", "2.0.0"])]));
}
