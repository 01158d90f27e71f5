//! Licences: which of them may be linked into the binary, and how their expressions are read.

use crate::architecture::dependencies::packages;

/// Licences that ask for no more than a notice, or for changes to their own files.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression leaves at least one way to use the crate under allowed licences.
fn is_allowed(expression: &str) -> bool {
    // Older crates write `MIT/Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let allowed = any(&mut words);
    allowed && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>) -> bool {
    let mut allowed = every(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= every(words);
    }
    allowed
}

fn every(words: &mut Words<'_>) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut Words<'_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let allowed = any(words);
        return words.next_if_eq(&")").is_some() && allowed;
    }
    let mut licence = words.next().unwrap_or_default().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next().unwrap_or_default());
    }
    ALLOWED.contains(&licence.as_str())
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let others: Vec<String> = packages()
        .into_iter()
        .filter(|package| !is_allowed(&package.licence))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.licence))
        .collect();
    assert!(others.is_empty(), "\n{}\n", others.join("\n"));
}

#[test]
fn a_licence_that_is_not_allowed_is_found_out() {
    for expression in
        ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "", "MIT MIT"]
    {
        assert!(!is_allowed(expression), "{expression:?}");
    }
}

#[test]
fn one_allowed_alternative_is_enough() {
    let llvm = "Apache-2.0 WITH LLVM-exception";
    for expression in ["MIT/GPL-3.0", "GPL-3.0 OR (ISC AND Zlib)", "Unlicense OR MIT", llvm] {
        assert!(is_allowed(expression), "{expression:?}");
    }
}
