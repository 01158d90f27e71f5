//! The table of clients, and where it leads on each system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::cli::install::place::{Surroundings, System};

fn around(system: System, variables: &[(&str, &str)]) -> Surroundings {
    let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
    Surroundings {
        system,
        home: PathBuf::from("/nowhere/ada"),
        project: PathBuf::from("/nowhere/work"),
        variables: variables.iter().map(variable).collect::<BTreeMap<_, _>>(),
    }
}

fn user_file(around: &Surroundings, name: &str) -> PathBuf {
    around.path(Client::named(name).unwrap().user)
}

#[test]
fn clients_stand_in_the_order_of_their_names_and_each_once() {
    assert!(CLIENTS.is_sorted_by(|one, other| one.name < other.name));
}

#[test]
fn settings_of_programs_with_windows_are_elsewhere_on_a_mac() {
    let (linux, mac) = (around(System::Linux, &[]), around(System::MacOs, &[]));
    for (name, rest) in
        [("vscode", "Code/User/mcp.json"), ("claude-desktop", "Claude/claude_desktop_config.json")]
    {
        let on_linux = Path::new("/nowhere/ada/.config").join(rest);
        assert_eq!(user_file(&linux, name), on_linux);
        let on_mac = Path::new("/nowhere/ada/Library/Application Support").join(rest);
        assert_eq!(user_file(&mac, name), on_mac);
    }
    for name in ["zed", "goose", "opencode", "cursor", "codex"] {
        assert_eq!(user_file(&linux, name), user_file(&mac, name), "{name}");
    }
}

#[test]
fn variables_move_what_a_client_keeps() {
    let moved = around(
        System::Linux,
        &[
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "/k"),
            ("COPILOT_HOME", "relative"),
        ],
    );
    assert_eq!(user_file(&moved, "zed"), Path::new("/x/zed/settings.json"));
    assert_eq!(user_file(&moved, "codex"), Path::new("/c/config.toml"));
    assert_eq!(user_file(&moved, "claude-code"), Path::new("/k/.claude.json"));
    let copilot = Path::new("/nowhere/ada/.copilot/mcp-config.json");
    assert_eq!(user_file(&moved, "copilot"), copilot);
    let claude = Path::new("/nowhere/ada/.claude.json");
    assert_eq!(user_file(&around(System::Linux, &[]), "claude-code"), claude);
}

#[test]
fn files_of_a_project_are_in_its_directory() {
    let around = around(System::Linux, &[]);
    let has: Vec<_> = CLIENTS.iter().filter_map(|client| client.project).collect();
    assert!(has.iter().all(|place| around.path(*place).starts_with("/nowhere/work")));
    let without = |name| Client::named(name).unwrap().project.is_none();
    assert!(["claude-desktop", "windsurf", "cline", "goose"].into_iter().all(without));
}

#[test]
fn a_file_under_its_other_name_is_the_one_that_counts() {
    let directory = tempfile::tempdir().unwrap();
    let mut around = around(System::Linux, &[]);
    around.home = directory.path().to_owned();
    let opencode = directory.path().join(".config/opencode");
    assert_eq!(user_file(&around, "opencode"), opencode.join("opencode.json"));
    std::fs::create_dir_all(&opencode).unwrap();
    std::fs::write(opencode.join("opencode.jsonc"), "{}").unwrap();
    assert_eq!(user_file(&around, "opencode"), opencode.join("opencode.jsonc"));
}
