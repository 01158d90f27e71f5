//! What is seen of clients in a home directory.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::cli::install::place::System;
use crate::cli::install::server::{Rights, Server};

fn around(home: &Path) -> Surroundings {
    Surroundings {
        system: System::Linux,
        home: home.to_owned(),
        project: home.join("work"),
        variables: BTreeMap::new(),
    }
}

fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_client_is_present_when_its_directory_or_its_program_is() {
    let home = tempfile::tempdir().unwrap();
    let mut around = around(home.path());
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
    let around = around(home.path());
    let program = home.path().join("termgate");
    let server = |program: &Path| {
        let program = program.to_str().unwrap().to_owned();
        Server::bridge("termgate".to_owned(), program, Rights::AsConfigured)
    };
    put(program.clone(), "");
    let cursor = &Client::named("cursor").unwrap().family;
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
    assert_eq!(seen[0], ("cursor", Scope::User, starts(&program, true)));
    assert_eq!(seen[1], ("cursor", Scope::Project, starts(Path::new("/gone"), false)));
    assert_eq!(seen[2], ("gemini", Scope::User, Knowledge::Unknown));
    assert_eq!(seen[3], ("junie", Scope::User, Knowledge::Other));
    assert!(matches!(seen[4], ("kiro", Scope::User, Knowledge::Unreadable(_))), "{seen:?}");
}

#[test]
fn a_file_that_both_scopes_share_is_seen_once() {
    let home = tempfile::tempdir().unwrap();
    let around = Surroundings { project: home.path().to_owned(), ..around(home.path()) };
    put(home.path().join(".cursor/mcp.json"), "{}");
    let seen: Vec<_> =
        sightings(&around, "termgate").into_iter().map(|it| (it.client.name, it.scope)).collect();
    assert_eq!(seen, [("cursor", Scope::User)]);
}
