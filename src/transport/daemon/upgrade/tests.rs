//! Programs that are tried: good ones and others, as scripts.

use super::*;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

const GOOD: &str = "case $1 in --version) echo termgate 9.8.7;; *) exit 0;; esac";

/// A script that stands where the program was.
fn program(script: &str, mode: u32) -> (TempDir, DaemonProgram) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("termgate");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    let words = vec!["termgate".into(), "serve".into()];
    (directory, DaemonProgram { path, words, check: vec!["config".into(), "check".into()] })
}

async fn trial(script: &str) -> Result<String, UpgradeError> {
    let (_directory, program) = program(script, 0o755);
    program.trial().await
}

#[tokio::test]
async fn a_program_that_says_its_version_and_takes_the_configuration_is_fit() {
    assert_eq!(trial(GOOD).await.unwrap(), "9.8.7");
}

#[tokio::test]
async fn a_program_that_refuses_the_configuration_is_not_and_its_words_are_told() {
    let script =
        "case $1 in --version) echo termgate 9.8.7;; *) echo no such key >&2; exit 2;; esac";
    let error = trial(script).await.unwrap_err();
    assert!(matches!(&error, UpgradeError::Failed { why, .. } if why == "no such key"), "{error}");
    assert!(error.to_string().contains("termgate config check` failed"), "{error}");
}

#[tokio::test]
async fn a_program_of_another_name_is_not_fit_whatever_it_takes() {
    let error = trial("echo other 1.0").await.unwrap_err();
    assert!(
        matches!(&error, UpgradeError::Stranger { said, .. } if said == "other 1.0"),
        "{error}"
    );
    let error = trial("exit 0").await.unwrap_err();
    assert!(matches!(&error, UpgradeError::Stranger { said, .. } if said.is_empty()), "{error}");
}

#[tokio::test]
async fn a_program_that_fails_without_a_word_is_told_with_its_exit_code() {
    let error = trial("exit 3").await.unwrap_err();
    assert!(error.to_string().contains("exit status: 3"), "{error}");
}

#[tokio::test]
async fn a_program_that_may_not_be_run_or_is_gone_is_not_fit() {
    let (directory, program) = program(GOOD, 0o644);
    let error = program.trial().await.unwrap_err();
    assert!(matches!(error, UpgradeError::Start { .. }), "{error}");
    drop(directory);
    let error = program.trial().await.unwrap_err();
    assert!(matches!(error, UpgradeError::Start { .. }), "{error}");
}

#[tokio::test]
async fn a_program_that_never_stops_talking_is_not_waited_for() {
    let error = trial("while :; do echo termgate 9.8.7; done").await.unwrap_err();
    assert!(matches!(error, UpgradeError::Failed { .. } | UpgradeError::TooSlow { .. }), "{error}");
}
