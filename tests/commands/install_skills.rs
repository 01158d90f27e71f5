//! `termgate install --skills` as a person runs it, in a home directory of the test's own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::commands::user::User;

impl User {
    /// What came of each skill, by its name.
    fn results(&self, words: &str) -> BTreeMap<String, String> {
        let answer = self.json(words);
        assert_eq!(answer["ok"], true, "{answer}");
        let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
        let skills = answer["data"]["skills"].as_array().unwrap();
        skills.iter().map(|it| (text(it, "skill"), text(it, "result"))).collect()
    }

    /// Runs it, which has to do the same with every skill.
    fn all_are(&self, words: &str, expected: &str) {
        let results = self.results(words);
        assert_eq!(results.len(), skills().len(), "{results:?}");
        assert!(results.values().all(|result| result == expected), "{words}: {results:?}");
    }

    /// Every file and directory below a directory.
    fn below(&self, name: &str) -> Vec<PathBuf> {
        let mut left = vec![self.path(name)];
        let mut found = Vec::new();
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path.clone());
                }
                found.push(path);
            }
        }
        found
    }
}

/// The names of the skills, made from those of the files.
fn skills() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prompts");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |file: PathBuf| file.file_stem().unwrap().to_str().unwrap().replace('_', "-");
    files.map(|file| format!("termgate-{}", name(file))).collect()
}

/// A skill's file as a version of termgate leaves it.
fn sealed(name: &str, body: &str) -> String {
    let head = format!("---\nname: {name}\ndescription: Use it.");
    let digest = Sha256::digest(format!("{head}\n---\n\n{body}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{head}\nmetadata:\n  termgate: sha256:{digest}\n---\n\n{body}")
}

const CORE: &str = ".claude/skills/termgate-core/SKILL.md";

#[test]
fn every_skill_is_put_where_the_client_looks_and_taken_out_again() {
    let home = User::new();
    home.all_are("--skills claude-code", "added");
    for name in skills() {
        let text = home.read(&format!(".claude/skills/{name}/SKILL.md"));
        assert!(text.starts_with(&format!("---\nname: {name}\ndescription: Use ")), "{text}");
    }
    let before = home.read(CORE);
    home.all_are("--skills claude-code", "already_there");
    assert_eq!(home.read(CORE), before);
    home.all_are("--skills claude-code --uninstall", "removed");
    assert!(!home.path(".claude").exists());
    home.all_are("--skills claude-code --uninstall", "not_there");
}

#[test]
fn what_its_user_changed_is_left_alone_and_said_to_be() {
    let home = User::new();
    home.all_are("--skills claude-code", "added");
    let changed = home.read(CORE).replace("# ", "# My ");
    home.write(CORE, &changed);
    let beside = ".claude/skills/termgate-tui/notes.md";
    home.write(beside, "mine");
    for words in ["--skills claude-code", "--skills claude-code --uninstall"] {
        let results = home.results(words);
        assert_eq!(results["termgate-core"], "kept", "{words}");
        assert!(results.values().filter(|result| *result == "kept").count() == 1, "{results:?}");
        assert_eq!((home.read(CORE), home.read(beside)), (changed.clone(), "mine".to_owned()));
    }
    let said = String::from_utf8(home.run("--skills claude-code").stdout).unwrap();
    let line = format!("claude-code: kept, since you changed it: ~/{CORE}");
    assert!(said.lines().any(|it| it == line), "{said}");
}

#[test]
fn a_file_of_another_version_is_renewed_or_goes_when_nobody_changed_it() {
    let home = User::new();
    let gone = ".claude/skills/termgate-gone/SKILL.md";
    let mine = ".claude/skills/termgate-mine/SKILL.md";
    let of_mine = sealed("termgate-mine", "# Mine\n") + "more\n";
    home.write(CORE, &sealed("termgate-core", "# Older\n"));
    home.write(gone, &sealed("termgate-gone", "# Gone\n"));
    home.write(mine, &of_mine);
    let results = home.results("--skills claude-code");
    assert_eq!((&*results["termgate-core"], &*results["termgate-gone"]), ("updated", "removed"));
    assert!(!home.read(CORE).contains("Older") && !home.path(gone).parent().unwrap().exists());
    assert_eq!((results.get("termgate-mine"), home.read(mine)), (None, of_mine));
}

#[test]
fn looking_and_printing_change_nothing() {
    let home = User::new();
    home.all_are("--skills claude-code --dry-run", "added");
    assert_eq!(home.below(".claude"), Vec::<PathBuf>::new());
    let printed = home.json("--skills claude-code --print")["data"]["skills"].clone();
    assert_eq!(home.below(".claude"), Vec::<PathBuf>::new());
    home.all_are("--skills claude-code", "added");
    for item in printed.as_array().unwrap() {
        let file = item["file"].as_str().unwrap();
        assert_eq!(item["text"], fs::read_to_string(file).unwrap());
    }
    home.all_are("--skills claude-code --uninstall --dry-run", "removed");
    home.all_are("--skills claude-code", "already_there");
}

#[test]
fn skills_go_into_any_directory_or_into_that_of_a_project() {
    let home = User::new();
    home.all_are("--skills --dir some/where", "added");
    assert!(home.path("work/some/where/termgate-fix-error/SKILL.md").is_file());
    home.all_are("--skills --dir some/where --uninstall", "removed");
    home.all_are("--skills codex --scope project", "added");
    assert!(home.path("work/.agents/skills/termgate-core/SKILL.md").is_file());
    home.write("work/file", "");
    let failed = home.run("--skills --dir file/x");
    let told = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(
        !told.contains("text that is printed") && told.matches("or name another").count() == 1,
        "{told}"
    );
    let said = home.json("--skills codex --dir some/where");
    assert_eq!(
        (&said["ok"], home.run("--skills codex --dir x").status.code()),
        (&json!(false), Some(2))
    );
}

#[test]
fn of_all_clients_those_are_meant_that_are_here_and_each_directory_once() {
    let home = User::new();
    let answer = home.json("--skills");
    assert_eq!(answer["error_code"], "client_not_found", "{answer}");
    assert!(answer["hint"].as_str().unwrap().contains("--dir"), "{answer}");
    for present in [".codex/x", ".config/zed/x", ".cursor/x", ".config/Claude/x"] {
        home.write(present, "");
    }
    let answer = home.json("--skills");
    let clients = answer["data"]["skills"].as_array().unwrap().iter();
    let mut clients: Vec<_> = clients.map(|skill| skill["client"].as_str().unwrap()).collect();
    clients.dedup();
    assert_eq!(clients, ["codex", "cursor"]);
    let answer = home.json("--skills claude-desktop");
    assert_eq!(answer["error_code"], "invalid_argument", "{answer}");
    assert!(answer["hint"].as_str().unwrap().contains("--dir"), "{answer}");
}

#[test]
fn a_file_that_cannot_be_changed_fails_alone() {
    let home = User::new();
    home.write(CORE, &sealed("termgate-core", "# Older\n"));
    fs::set_permissions(home.path(CORE), PermissionsExt::from_mode(0o400)).unwrap();
    let answer = home.json("--skills claude-code");
    let skills = answer["data"]["skills"].as_array().unwrap();
    let failed: Vec<_> = skills.iter().filter(|skill| skill["result"] == "failed").collect();
    assert_eq!(failed.len(), 1, "{answer}");
    assert_eq!(failed[0]["skill"], "termgate-core");
    assert_eq!(failed[0]["error_code"], "client_config");
    assert_eq!(home.run("--skills claude-code").status.code(), Some(1));
    assert!(home.read(CORE).contains("Older"));
    assert!(home.path(".claude/skills/termgate-tui/SKILL.md").is_file());
}

#[test]
fn skills_and_servers_are_not_put_in_at_once() {
    let home = User::new();
    for words in [
        "",
        "--client codex --skills",
        "--client codex --dir x",
        "--skills --read-only",
        "--skills --name x",
        "--skills --dir x --scope project",
        "--skills nobody",
    ] {
        assert_eq!(home.run(words).status.code(), Some(2), "{words}");
    }
}
