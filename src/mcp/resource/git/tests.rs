//! The state of repositories, hostile ones among them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::core::ids::TenantId;
use crate::surface::turns::Turns;

fn share() -> Share {
    Turns::default().share_of(&TenantId::of_uid(1))
}

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

    /// What git says to these words.
    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.directory.path());
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
        let answer = command.output().unwrap();
        assert!(answer.status.success(), "{words:?}: {answer:?}");
        String::from_utf8(answer.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    async fn state(&self) -> Value {
        state_at(self.directory.path()).await
    }
}

async fn state_at(directory: &Path) -> Value {
    state_of(directory.to_str().unwrap(), &share()).await
}

#[tokio::test]
async fn a_repository_tells_its_branch_and_its_commit_from_any_directory_in_it() {
    let repository = Repository::new();
    let expected = json!({"branch": "trunk", "commit": repository.commit()});
    assert_eq!(repository.state().await, expected);
    fs::create_dir_all(repository.path("a/b")).unwrap();
    assert_eq!(state_at(&repository.path("a/b")).await, expected);
    assert_eq!(state_at(&repository.path(".git")).await, expected);
    repository.git(&["checkout", "-q", "-b", "topic/one"]);
    assert_eq!(repository.state().await["branch"], "topic/one");
}

#[tokio::test]
async fn packed_references_tell_the_commit() {
    let repository = Repository::new();
    repository.git(&["tag", "-a", "-m", "first", "first"]);
    repository.git(&["pack-refs", "--all", "--prune"]);
    assert!(!repository.path(".git/refs/heads/trunk").exists());
    let expected = json!({"branch": "trunk", "commit": repository.commit()});
    assert_eq!(repository.state().await, expected);
}

#[tokio::test]
async fn a_commit_without_a_branch_has_none() {
    let repository = Repository::new();
    repository.git(&["checkout", "-q", "--detach"]);
    assert_eq!(repository.state().await, json!({"branch": null, "commit": repository.commit()}));
}

#[tokio::test]
async fn a_branch_before_its_first_commit_has_none() {
    let repository = Repository::new();
    repository.git(&["checkout", "-q", "--orphan", "new"]);
    assert_eq!(repository.state().await, json!({"branch": "new", "commit": null}));
}

#[tokio::test]
async fn another_working_tree_tells_its_own_branch() {
    let repository = Repository::new();
    let other = tempfile::tempdir().unwrap();
    let place = other.path().join("other");
    repository.git(&["worktree", "add", "-q", "-b", "side", place.to_str().unwrap()]);
    let expected = json!({"branch": "side", "commit": repository.commit()});
    assert_eq!(state_at(&place).await, expected);
}

#[tokio::test]
async fn outside_of_a_repository_there_is_no_state() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(state_at(directory.path()).await, Value::Null);
    assert_eq!(state_of("/nowhere/at/all", &share()).await, Value::Null);
}

#[tokio::test]
async fn what_the_files_do_not_say_is_unknown() {
    let repository = Repository::new();
    let head = repository.path(".git/HEAD");
    let long = format!("ref: refs/heads/{}\n", "x".repeat(8192));
    for text in ["", "nonsense\n", "ref: ../../etc/passwd\n", "ref: refs/heads/a\x1bb\n", &long] {
        fs::write(&head, text).unwrap();
        assert!(repository.state().await["unknown"].is_string(), "{text:?}");
    }
    fs::write(&head, "ref: refs/heads/.invalid\n").unwrap();
    fs::create_dir(repository.path(".git/reftable")).unwrap();
    assert!(repository.state().await["unknown"].is_string());
}

#[tokio::test]
async fn references_that_name_one_another_in_a_ring_are_unknown() {
    let repository = Repository::new();
    fs::write(repository.path(".git/refs/heads/trunk"), "ref: refs/heads/trunk\n").unwrap();
    assert!(repository.state().await["unknown"].is_string());
}

/// A pipe without a writer would keep whoever opens it, and the memory of a device never ends.
#[tokio::test]
async fn what_is_not_a_file_is_not_waited_for() {
    let repository = Repository::new();
    let head = repository.path(".git/HEAD");
    fs::remove_file(&head).unwrap();
    nix::unistd::mkfifo(&head, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(repository.state().await["unknown"].is_string());
    fs::write(repository.path(".git/refs/heads/trunk"), "").unwrap();
    let reference = repository.path(".git/refs/heads/zero");
    symlink("/dev/zero", reference).unwrap();
    fs::remove_file(&head).unwrap();
    fs::write(&head, "ref: refs/heads/zero\n").unwrap();
    assert!(repository.state().await["unknown"].is_string());
}

/// Has a repository name a program under a setting that plain git runs, and sees that it is not run.
async fn is_not_run(setting: &str) {
    let repository = Repository::new();
    let (sign, program) = (repository.path(".git/sign"), repository.path(".git/program"));
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", sign.display())).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(repository.path(".gitattributes"), "* filter=a=b\n").unwrap();
    repository.git(&["config", setting, program.to_str().unwrap()]);
    fs::write(repository.path("file"), "TEXT\n").unwrap();
    assert_eq!(repository.state().await["branch"], "trunk");
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
