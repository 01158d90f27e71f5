//! What packages say of themselves, as far as it takes no release build: `config/packages/make --texts`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How long a registry lets a description be.
const DESCRIPTION_MAX: usize = 100;

/// The descriptions as they are written: of the server, of the npm package, of the wheel.
fn texts() -> (Value, Value, String) {
    let out = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/packages/make");
    let output = Command::new("python3")
        .arg(script)
        .args(["--texts", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| fs::read_to_string(out.path().join(name)).unwrap();
    let parsed = |name: &str| serde_json::from_str(&read(name)).unwrap();
    (parsed("server.json"), parsed("package.json"), read("METADATA"))
}

#[test]
fn every_package_has_the_version_and_the_name_that_registries_look_for() {
    let (server, npm, wheel) = texts();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(server["version"], version);
    assert_eq!(npm["version"], version);
    assert!(wheel.contains(&format!("\nVersion: {version}\n")), "{wheel}");

    let name = server["name"].as_str().unwrap();
    let (space, own) = name.split_once('/').unwrap();
    assert!(!space.is_empty() && !own.is_empty() && !own.contains('/'), "{name}");
    assert_eq!(npm["mcpName"], name);
    assert!(wheel.contains(&format!("\n<!-- mcp-name: {name} -->\n")), "{wheel}");
    let description = server["description"].as_str().unwrap();
    assert!((1..=DESCRIPTION_MAX).contains(&description.len()), "{description}");
}

#[test]
fn the_registry_entry_names_packages_that_are_made_and_how_to_start_them() {
    let (server, npm, wheel) = texts();
    let packages = server["packages"].as_array().unwrap();
    let kinds: Vec<_> = packages.iter().map(|package| &package["registryType"]).collect();
    assert_eq!(kinds, ["npm", "pypi"]);
    for package in packages {
        assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(package["identifier"], npm["name"]);
        assert_eq!(package["transport"]["type"], "stdio");
        assert_eq!(package["packageArguments"][0]["value"], "mcp");
    }
    let name = npm["name"].as_str().unwrap();
    assert!(wheel.contains(&format!("\nName: {name}\n")), "{wheel}");
}

#[test]
fn packages_say_what_termgate_is_and_how_to_install_it() {
    let (_, _, wheel) = texts();
    let text = wheel.split_once("\n\n").unwrap().1;
    assert!(text.starts_with("# termgate\n\ntermgate is "), "{text}");
    assert!(text.contains("\n## Install\n\n"), "{text}");
    assert!(text.contains("ssh HOST termgate mcp"), "{text}");
}
