//! What a client's words lead to, over a directory made for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

const SIZE: Size = Size { rows: 24, cols: 80 };

/// A directory with one program, one file that is none, and a directory named like a program.
fn a_bin() -> TempDir {
    let bin = TempDir::new().unwrap();
    for (name, mode) in [("tool", 0o755), ("notes", 0o644)] {
        let path = bin.path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(bin.path().join("folder")).unwrap();
    bin
}

fn environment(vars: &[(&str, &str)]) -> Environment {
    vars.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn resolve(launch: Launch, cwd: &Path, env: &Environment) -> Result<SpawnSpec, CommandError> {
    let session = SessionId::from_random(uuid::Uuid::nil());
    SpawnSpec::resolve(launch, session, cwd.to_owned(), env.clone(), SIZE)
}

fn program(name: &str, args: &[&str]) -> Launch {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Launch::Program { name: name.to_owned(), args }
}

#[test]
fn command_and_arguments_say_what_is_meant() {
    let word = || Some("word".to_owned());
    assert_eq!(Launch::new(None, None), Ok(Launch::Shell));
    assert_eq!(Launch::new(word(), None), Ok(Launch::Line("word".to_owned())));
    assert_eq!(Launch::new(word(), Some(Vec::new())), Ok(program("word", &[])));
    assert_eq!(Launch::new(None, Some(Vec::new())), Err(CommandError::NoCommand));
}

#[test]
fn a_line_that_only_names_a_shell_starts_it() {
    let line = |line: &str| Launch::new(Some(line.to_owned()), None).unwrap();
    assert_eq!(line("bash"), program("bash", &[]));
    assert_eq!(line(" /usr/bin/zsh  -l "), program("/usr/bin/zsh", &["-l"]));
    for other in ["bash -c ls", "bash; ls", "exec bash", "bash --norc", "crash", "", " "] {
        assert_eq!(line(other), Launch::Line(other.to_owned()));
    }
}

#[test]
fn a_program_is_found_in_the_path_of_the_session() {
    let bin = a_bin();
    let path = format!("/nonexistent:{}", bin.path().display());
    let spec = resolve(program("tool", &["-v"]), Path::new("/"), &environment(&[("PATH", &path)]))
        .unwrap();
    assert_eq!(spec.program, bin.path().join("tool"));
    assert_eq!((spec.name, spec.args), ("tool".into(), vec!["-v".into()]));
}

#[test]
fn a_program_with_a_slash_is_a_path_from_the_directory_of_the_session() {
    let bin = a_bin();
    let spec = resolve(program("./tool", &[]), bin.path(), &environment(&[])).unwrap();
    assert_eq!(spec.program, bin.path().join("./tool"));
}

#[test]
fn an_empty_element_of_the_path_is_the_directory_of_the_session() {
    let bin = a_bin();
    let env = environment(&[("PATH", "/nonexistent:")]);
    let spec = resolve(program("tool", &[]), bin.path(), &env).unwrap();
    assert_eq!(spec.program, bin.path().join("tool"));
}

#[test]
fn an_unknown_program_is_not_found_and_the_places_are_named() {
    let refused =
        resolve(program("nothing", &[]), Path::new("/"), &environment(&[("PATH", "/nonexistent")]));
    let expected = CommandError::NotFound {
        name: "nothing".to_owned(),
        searched: Some("/nonexistent".to_owned()),
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn a_name_without_letters_is_not_found() {
    let refused = resolve(program("", &[]), Path::new("/"), &environment(&[]));
    assert!(matches!(refused, Err(CommandError::NotFound { .. })), "{refused:?}");
}

#[test]
fn a_file_without_the_right_to_execute_is_told_apart_from_none() {
    let bin = a_bin();
    for name in ["./notes", "./folder"] {
        let refused = resolve(program(name, &[]), bin.path(), &environment(&[]));
        assert_eq!(refused, Err(CommandError::NotExecutable { path: bin.path().join(name) }));
    }
}

#[test]
fn a_directory_that_is_missing_relative_or_a_file_is_refused() {
    let bin = a_bin();
    for cwd in [bin.path().join("gone"), bin.path().join("tool"), PathBuf::from("tmp")] {
        let refused = resolve(Launch::Shell, &cwd, &environment(&[]));
        assert_eq!(refused, Err(CommandError::BadDirectory { path: cwd }));
    }
}

#[test]
fn a_shell_line_goes_to_the_shell_of_the_user() {
    let bin = a_bin();
    let shell = bin.path().join("tool");
    let env = environment(&[("SHELL", shell.to_str().unwrap())]);
    let spec = resolve(Launch::Line("a | b".to_owned()), Path::new("/"), &env).unwrap();
    assert_eq!(spec.program, shell);
    assert_eq!(spec.args, ["-c", "a | b"]);
}

#[test]
fn the_shell_is_called_by_its_plain_name_so_that_it_is_no_login_shell() {
    let bin = a_bin();
    let shell = bin.path().join("tool");
    let env = environment(&[("SHELL", shell.to_str().unwrap())]);
    let spec = resolve(Launch::Shell, Path::new("/"), &env).unwrap();
    assert_eq!((spec.program, spec.name, spec.args), (shell, "tool".into(), Vec::new()));
}

#[test]
fn a_shell_that_cannot_be_used_is_passed_over() {
    for shell in ["tool", "/nonexistent/sh", "/bin/false", ""] {
        let found = user_shell(&environment(&[("SHELL", shell)]));
        assert!(found.is_absolute() && is_executable(&found), "{shell:?} led to {found:?}");
        assert!(!found.ends_with("false"), "{shell:?} led to {found:?}");
    }
}

#[test]
fn a_nul_byte_is_refused_wherever_it_stands() {
    let env = environment(&[("PATH", "/bin")]);
    for launch in [program("sh\0", &[]), program("sh", &["\0"]), Launch::Line("\0".to_owned())] {
        assert_eq!(resolve(launch, Path::new("/"), &env), Err(CommandError::NulByte));
    }
}
