//! The order of the places, and the limit of the kernel.

use super::*;

use uuid::Uuid;

fn chosen(variables: &[(&str, &str)]) -> Result<RuntimePaths, PathError> {
    RuntimePaths::from_environment(|name| {
        let found = variables.iter().find(|(given, _)| *given == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn root(variables: &[(&str, &str)]) -> PathBuf {
    chosen(variables).unwrap().root().to_owned()
}

const RUN: (&str, &str) = ("XDG_RUNTIME_DIR", "/run/user/7");
const STATE: (&str, &str) = ("XDG_STATE_HOME", "/state");
const HOME: (&str, &str) = ("HOME", "/home/ann");

#[test]
fn the_best_place_that_the_environment_names_is_taken() {
    assert_eq!(root(&[HOME, STATE, RUN, (RUNTIME_DIR, "/own")]), Path::new("/own"));
    assert_eq!(root(&[HOME, STATE, RUN]), Path::new("/run/user/7/termgate"));
    assert_eq!(root(&[HOME, STATE]), Path::new("/state/termgate/run"));
    assert_eq!(root(&[HOME]), Path::new("/home/ann/.local/state/termgate/run"));
}

#[test]
fn an_empty_or_relative_place_of_the_system_is_passed_over() {
    let empty = ("XDG_RUNTIME_DIR", "");
    let relative = ("XDG_STATE_HOME", "state");
    let own = (RUNTIME_DIR, "");
    let expected = Path::new("/home/ann/.local/state/termgate/run");
    assert_eq!(root(&[own, empty, relative, HOME]), expected);
}

#[test]
fn nothing_falls_back_to_a_place_that_everybody_shares() {
    assert_eq!(chosen(&[("TMPDIR", "/tmp")]), Err(PathError::NoPlace));
    assert_eq!(chosen(&[("HOME", "ann")]), Err(PathError::NoPlace));
}

#[test]
fn a_relative_place_of_our_own_is_an_error_that_names_the_variable() {
    let error = chosen(&[HOME, (RUNTIME_DIR, "run")]).unwrap_err();
    assert_eq!(error.to_string(), "TERMGATE_RUNTIME_DIR must be an absolute path, not \"run\"");
}

#[test]
fn every_door_has_its_name() {
    let paths = RuntimePaths::at("/r".into()).unwrap();
    let id = SessionId::from_random(Uuid::from_u128(0x0123_4567_89ab << 80));
    assert_eq!(paths.gateway(), Path::new("/r/gateway.sock"));
    assert_eq!(paths.gateway_read_only(), Path::new("/r/gateway.ro.sock"));
    assert_eq!(paths.operator(), Path::new("/r/operator.sock"));
    assert_eq!(paths.session(id), Path::new("/r/s/0123456789ab.sock"));
    assert_eq!(paths.session_read_only(id), Path::new("/r/s/0123456789ab.ro.sock"));
    assert_eq!(paths.lock(), Path::new("/r/daemon.lock"));
}

#[test]
fn the_longest_socket_of_a_session_must_fit() {
    // `/s/0123456789ab.ro.sock` takes 23 of the 107 bytes.
    let fits = format!("/{}", "r".repeat(83));
    let paths = RuntimePaths::at(fits.into()).unwrap();
    let longest = paths.session_read_only(SessionId::from_random(Uuid::nil()));
    assert_eq!(longest.as_os_str().len(), SOCKET_PATH_MAX);

    let error = RuntimePaths::at(format!("/{}", "r".repeat(84)).into()).unwrap_err();
    let PathError::TooLong { path, length, setting } = &error else { panic!("{error}") };
    assert_eq!(path.as_os_str().len(), 108);
    assert_eq!((*length, *setting), (108, "TERMGATE_RUNTIME_DIR"));
    assert!(error.to_string().ends_with(
        ".ro.sock has 108 bytes, 107 is the most; set TERMGATE_RUNTIME_DIR to a shorter path"
    ));
}

#[test]
fn a_gateway_elsewhere_leaves_the_other_doors_where_they_are() {
    let paths = RuntimePaths::at("/r".into()).unwrap();
    let moved = paths.clone().with_gateway("/elsewhere/t.sock".into()).unwrap();
    assert_eq!(moved.gateway(), Path::new("/elsewhere/t.sock"));
    assert_eq!(moved.operator(), paths.operator());
    assert_eq!(moved.lock(), paths.lock());
}

#[test]
fn a_gateway_that_is_too_long_or_relative_blames_the_flag() {
    let paths = RuntimePaths::at("/r".into()).unwrap();
    let long = PathBuf::from(format!("/{}", "g".repeat(107)));
    let expected = PathError::TooLong { path: long.clone(), length: 108, setting: "--socket" };
    assert_eq!(paths.clone().with_gateway(long), Err(expected));
    let relative = PathBuf::from("t.sock");
    let expected = PathError::NotAbsolute { path: relative.clone(), setting: "--socket" };
    assert_eq!(paths.with_gateway(relative), Err(expected));
}

#[test]
fn bytes_count_and_not_characters() {
    // 42 characters of two bytes are 84 bytes, one too many beside the slash.
    let error = RuntimePaths::at(format!("/{}", "é".repeat(42)).into()).unwrap_err();
    assert!(matches!(error, PathError::TooLong { length: 108, .. }), "{error}");
}
