//! The table of clients, and where it leads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::cli::install::entry_format::{AgentRights, ServerEntry};
use crate::cli::install::place::Surroundings;

fn around(variables: &[(&str, &str)]) -> Surroundings {
    let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
    Surroundings {
        home: PathBuf::from("/nowhere/ada"),
        project: PathBuf::from("/nowhere/work"),
        variables: variables.iter().map(variable).collect::<BTreeMap<_, _>>(),
    }
}

fn user_file(around: &Surroundings, name: &str) -> PathBuf {
    around.path(McpClient::named(name).unwrap().user)
}

#[test]
fn clients_stand_in_the_order_of_their_names_and_each_once() {
    assert!(CLIENTS.is_sorted_by(|one, other| one.name < other.name));
}

#[test]
fn variables_move_what_a_client_keeps() {
    let moved = around(&[
        ("XDG_CONFIG_HOME", "/x"),
        ("CODEX_HOME", "/c"),
        ("CLAUDE_CONFIG_DIR", "/k"),
        ("COPILOT_HOME", "relative"),
    ]);
    assert_eq!(user_file(&moved, "zed"), Path::new("/x/zed/settings.json"));
    assert_eq!(user_file(&moved, "codex"), Path::new("/c/config.toml"));
    assert_eq!(user_file(&moved, "claude-code"), Path::new("/k/.claude.json"));
    let copilot = Path::new("/nowhere/ada/.copilot/mcp-config.json");
    assert_eq!(user_file(&moved, "copilot"), copilot);
    let claude = Path::new("/nowhere/ada/.claude.json");
    assert_eq!(user_file(&around(&[]), "claude-code"), claude);
}

#[test]
fn files_of_a_project_are_in_its_directory() {
    let around = around(&[]);
    let has: Vec<_> = CLIENTS.iter().filter_map(|client| client.project).collect();
    assert!(has.iter().all(|place| around.path(*place).starts_with("/nowhere/work")));
    let without = |name| McpClient::named(name).unwrap().project.is_none();
    assert!(["claude-desktop", "windsurf", "cline", "goose"].into_iter().all(without));
}

#[test]
fn a_file_under_its_other_name_is_the_one_that_counts() {
    let directory = tempfile::tempdir().unwrap();
    let mut around = around(&[]);
    around.home = directory.path().to_owned();
    let opencode = directory.path().join(".config/opencode");
    assert_eq!(user_file(&around, "opencode"), opencode.join("opencode.json"));
    std::fs::create_dir_all(&opencode).unwrap();
    std::fs::write(opencode.join("opencode.jsonc"), "{}").unwrap();
    assert_eq!(user_file(&around, "opencode"), opencode.join("opencode.jsonc"));
}

fn in_home(home: &Path) -> Surroundings {
    Surroundings { home: home.to_owned(), project: home.join("work"), variables: BTreeMap::new() }
}

fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_client_is_present_when_its_directory_or_its_program_is() {
    let home = tempfile::tempdir().unwrap();
    let mut around = in_home(home.path());
    assert_eq!(present(&around).count(), 0);
    fs::create_dir(home.path().join(".kiro")).unwrap();
    put(home.path().join("bin/zed"), "");
    put(home.path().join("bin/goose"), "");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path().join("bin/zed"), executable).unwrap();
    around.variables.insert("PATH".to_owned(), home.path().join("bin").into());
    let names: Vec<_> = present(&around).map(|client| client.name).collect();
    assert_eq!(names, ["kiro", "zed"]);
}

#[test]
fn an_entry_is_told_with_its_program_and_whether_that_is_there() {
    let home = tempfile::tempdir().unwrap();
    let around = in_home(home.path());
    let program = home.path().join("termgate");
    let server = |program: &Path| {
        let program = program.to_str().unwrap().to_owned();
        ServerEntry::bridge("termgate".to_owned(), program, AgentRights::AsConfigured)
    };
    put(program.clone(), "");
    let cursor = &McpClient::named("cursor").unwrap().entry_format;
    put(home.path().join(".cursor/mcp.json"), &cursor.snippet(&server(&program)));
    put(home.path().join("work/.cursor/mcp.json"), &cursor.snippet(&server(Path::new("/gone"))));
    put(home.path().join(".kiro/settings/mcp.json"), "{");
    put(home.path().join(".gemini/settings.json"), "{}");
    put(home.path().join(".junie/mcp/mcp.json"), r#"{"mcpServers":{"termgate":{"url":"x"}}}"#);
    let seen = sightings(&around, "termgate");
    let seen: Vec<_> =
        seen.into_iter().map(|it| (it.client.name, it.scope, it.knowledge)).collect();
    assert_eq!(seen.len(), 5, "{seen:?}");
    let starts = |program: &Path, there| Knowledge::Starts { program: program.to_owned(), there };
    assert_eq!(seen[0], ("cursor", InstallScope::User, starts(&program, true)));
    assert_eq!(seen[1], ("cursor", InstallScope::Project, starts(Path::new("/gone"), false)));
    assert_eq!(seen[2], ("gemini", InstallScope::User, Knowledge::Unknown));
    assert_eq!(seen[3], ("junie", InstallScope::User, Knowledge::Other));
    assert!(matches!(seen[4], ("kiro", InstallScope::User, Knowledge::Unreadable(_))), "{seen:?}");
}

#[test]
fn a_file_that_both_scopes_share_is_seen_once() {
    let home = tempfile::tempdir().unwrap();
    let around = Surroundings { project: home.path().to_owned(), ..in_home(home.path()) };
    put(home.path().join(".cursor/mcp.json"), "{}");
    let seen: Vec<_> =
        sightings(&around, "termgate").into_iter().map(|it| (it.client.name, it.scope)).collect();
    assert_eq!(seen, [("cursor", InstallScope::User)]);
}
