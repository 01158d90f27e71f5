//! Which shells are changed, and how; `tests/shell_marks.rs` has what comes of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::core::frame::Size;
use crate::core::ids::SessionId;

/// A directory with the scripts in it.
fn scripts() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in SCRIPTS {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn spec(program: &str, args: &[&str]) -> SpawnSpec {
    SpawnSpec {
        session: SessionId::from_random(Uuid::from_u128(7 << 80)),
        program: PathBuf::from(program),
        name: program.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: PathBuf::from("/"),
        environment: BTreeMap::from([("HOME".into(), "/home/ada".into())]),
        size: Size { rows: 24, cols: 80 },
        user: None,
        sandbox: Vec::new(),
    }
}

fn variable<'a>(spec: &'a SpawnSpec, name: &str) -> Option<&'a str> {
    spec.environment.get(OsStr::new(name)).map(|value| value.to_str().unwrap())
}

#[test]
fn a_shell_that_reads_commands_from_people_is_handed_a_nonce_of_its_own() {
    let scripts = scripts();
    let words: [&[&str]; 5] = [&[], &["-i"], &["-l"], &["--login"], &["-i", "-l"]];
    for program in ["/bin/bash", "/usr/bin/zsh", "/opt/fish/bin/fish"] {
        for args in words {
            let mut spec = spec(program, args);
            let nonce = prepare_own(&mut spec, scripts.path()).expect(program);
            assert_eq!(variable(&spec, "TERMGATE_SHELL_NONCE"), Some(nonce.as_str()));
            assert_eq!(nonce.as_str().parse(), Ok(nonce.clone()));
            let kept = args.iter().all(|arg| spec.args.contains(&OsString::from(arg)));
            assert!(kept, "{program} {:?}", spec.args);
            assert_ne!(prepare_own(&mut spec.clone(), scripts.path()), Some(nonce));
        }
    }
}

#[test]
fn what_is_not_surely_such_a_shell_is_started_as_it_is() {
    let scripts = scripts();
    let words: [(&str, &[&str]); 9] = [
        ("/bin/sh", &[]),
        ("/bin/dash", &["-i"]),
        ("/usr/bin/python3", &[]),
        ("/bin/bash", &["-c", "exit"]),
        ("/bin/bash", &["script.sh"]),
        ("/bin/bash", &["--norc"]),
        ("/bin/bash", &["-i", "--posix"]),
        ("/usr/bin/zsh", &["-f"]),
        ("/usr/bin/fish", &["--private"]),
    ];
    for (program, args) in words {
        let mut changed = spec(program, args);
        assert_eq!(prepare_own(&mut changed, scripts.path()), None, "{program} {args:?}");
        assert_eq!(changed, spec(program, args));
    }
}

#[test]
fn a_shell_whose_script_is_missing_is_started_as_it_is() {
    let empty = tempfile::tempdir().unwrap();
    let mut changed = spec("/bin/bash", &[]);
    assert_eq!(prepare_own(&mut changed, empty.path()), None);
    assert_eq!(changed, spec("/bin/bash", &[]));
}

#[test]
fn what_the_user_has_in_a_variable_that_is_needed_waits_under_another_name() {
    let scripts = scripts();
    for (program, name, aside) in [
        ("/bin/bash", "ENV", "TERMGATE_SHELL_ENV"),
        ("/bin/zsh", "ZDOTDIR", "TERMGATE_SHELL_ZDOTDIR"),
    ] {
        for own in [None, Some("/home/ada/own")] {
            let mut spec = spec(program, &["-l"]);
            spec.environment.extend(own.map(|own| (name.into(), own.into())));
            prepare_own(&mut spec, scripts.path()).unwrap();
            assert!(variable(&spec, name).unwrap().starts_with(scripts.path().to_str().unwrap()));
            assert_eq!(variable(&spec, aside), own);
        }
    }
}

#[test]
fn a_path_is_quoted_for_fish() {
    assert_eq!(fish_source(Path::new("/a'b\\c d")), r"source '/a\'b\\c d'");
}

#[test]
fn a_nonce_is_written_in_one_way_and_shown_in_none() {
    let nonce: Nonce = "0123456789abcdef0123456789abcdef".parse().unwrap();
    assert_eq!(format!("{nonce:?}"), "Nonce");
    for text in [
        "",
        "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef",
        "g123456789abcdef0123456789abcdef",
    ] {
        assert_eq!(text.parse::<Nonce>(), Err(NotANonce), "{text}");
    }
}
