//! The state of repositories, a hostile one among them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// A repository with one commit.
struct Repository {
    directory: TempDir,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Self { directory };
        repository.git(&["init", "-q", "-b", "trunk"]);
        fs::write(repository.path("file"), "text\n").unwrap();
        repository.git(&["add", "file"]);
        repository.git(&["commit", "-q", "-m", "one"]);
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn git(&self, words: &[&str]) {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.directory.path());
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
        assert!(command.status().unwrap().success(), "{words:?}");
    }

    async fn state(&self) -> Value {
        state_of(self.directory.path().to_str().unwrap()).await
    }
}

#[tokio::test]
async fn a_repository_tells_its_branch_and_whether_anything_changed() {
    let repository = Repository::new();
    let state = repository.state().await;
    assert_eq!((&state["branch"], &state["dirty"]), (&json!("trunk"), &json!(false)));
    assert!(state["commit"].as_str().is_some_and(|commit| commit.len() >= 7), "{state}");
    fs::write(repository.path("file"), "changed\n").unwrap();
    assert_eq!(repository.state().await["dirty"], true);
    repository.git(&["checkout", "-q", "file"]);
    fs::write(repository.path("new"), "").unwrap();
    assert_eq!(repository.state().await["dirty"], true);
}

#[tokio::test]
async fn a_commit_without_a_branch_has_none() {
    let repository = Repository::new();
    repository.git(&["checkout", "-q", "--detach"]);
    let state = repository.state().await;
    assert_eq!((&state["branch"], state["commit"].is_string()), (&Value::Null, true));
}

#[tokio::test]
async fn outside_of_a_repository_there_is_no_state() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(state_of(directory.path().to_str().unwrap()).await, Value::Null);
    assert_eq!(state_of("/nowhere/at/all").await, Value::Null);
}

/// Has a repository name a program under a setting, and sees that it is not run although plain git
/// runs it.
async fn is_not_run(setting: &str) {
    let repository = Repository::new();
    let (sign, program) = (repository.path(".git/sign"), repository.path(".git/program"));
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", sign.display())).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(repository.path(".gitattributes"), "* filter=a=b\n").unwrap();
    repository.git(&["config", setting, program.to_str().unwrap()]);
    // As long as before, so that only its content tells that it changed.
    fs::write(repository.path("file"), "TEXT\n").unwrap();
    assert_eq!(repository.state().await["dirty"], true);
    assert!(!sign.exists(), "the program was run");
    repository.git(&["status", "--porcelain"]);
    assert!(sign.exists(), "plain git does not run it either");
}

#[tokio::test]
async fn a_filter_that_a_repository_names_is_not_run() {
    is_not_run("filter.a=b.clean").await;
}

#[tokio::test]
async fn a_monitor_that_a_repository_names_is_not_run() {
    is_not_run("core.fsmonitor").await;
}
