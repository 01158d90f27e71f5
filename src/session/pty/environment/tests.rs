//! Which variables reach a program, and which do not.

use super::*;

fn vars(vars: &[(&str, &str)]) -> Environment {
    vars.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn own(vars: &[(&str, &str)]) -> BTreeMap<String, String> {
    vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn clean(
    base: &[(&str, &str)],
    client: &[(&str, &str)],
    mine: &[(&str, &str)],
) -> Result<Environment, EnvironmentError> {
    clean_environment(&vars(base), &ClientEnvironment::of(vars(client)), &own(mine))
}

fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.get(OsStr::new(name)).and_then(|value| value.to_str())
}

#[test]
fn what_belongs_to_the_daemon_or_another_terminal_is_left_out() {
    let foreign = [
        "TERMGATE_TOKEN",
        "TERMGATE_SESSION",
        "TMUX",
        "TMUX_PANE",
        "STY",
        "COLUMNS",
        "LINES",
        "VTE_VERSION",
        "WINDOWID",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE",
        "ALACRITTY_LOG",
        "GHOSTTY_BIN_DIR",
        "ITERM_PROFILE",
        "NOTIFY_SOCKET",
        "LISTEN_FDNAMES",
        "LISTEN_FDS",
        "LISTEN_PID",
        "MEMORY_PRESSURE_WATCH",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "PWD",
        "CARGO",
        "CARGO_MANIFEST_DIR",
        "CARGO_PKG_NAME",
        "RUSTUP_TOOLCHAIN",
        "RUST_RECURSION_COUNT",
    ];
    let base: Vec<(&str, &str)> = foreign.iter().map(|name| (*name, "x")).collect();
    let environment = clean(&base, &[], &[]).unwrap();
    let left: Vec<_> = foreign.iter().filter(|name| value(&environment, name).is_some()).collect();
    assert_eq!(left, Vec::<&&str>::new());
}

#[test]
fn what_is_the_users_stays() {
    let base = [("HOME", "/home/u"), ("EDITOR", "vi"), ("CARGO_HOME", "/opt/cargo")];
    let environment = clean(&base, &[], &[]).unwrap();
    assert_eq!(value(&environment, "HOME"), Some("/home/u"));
    assert_eq!(value(&environment, "EDITOR"), Some("vi"));
    assert_eq!(value(&environment, "CARGO_HOME"), Some("/opt/cargo"));
}

#[test]
fn the_terminal_is_named_over_what_the_daemon_had() {
    let base = [("TERM", "dumb"), ("TERM_PROGRAM", "other"), ("TERM_PROGRAM_VERSION", "0")];
    let environment = clean(&base, &[], &[]).unwrap();
    assert_eq!(value(&environment, "TERM"), Some("xterm-256color"));
    assert_eq!(value(&environment, "COLORTERM"), Some("truecolor"));
    assert_eq!(value(&environment, "TERM_PROGRAM"), Some("termgate"));
    assert_eq!(value(&environment, "TERM_PROGRAM_VERSION"), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_client_hands_on_its_locale_path_and_agent_only() {
    let client = [
        ("LANG", "de_DE.UTF-8"),
        ("LC_TIME", "C"),
        ("PATH", "/opt/bin"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("LD_PRELOAD", "evil.so"),
        ("LC_TERMINAL", "iTerm2"),
    ];
    let handed = ClientEnvironment::of(vars(&client));
    let names: Vec<_> = handed.vars().keys().collect();
    assert_eq!(names, ["LANG", "LC_TIME", "PATH", "SSH_AUTH_SOCK"]);
}

#[test]
fn the_clients_path_wins_over_the_daemons() {
    let environment = clean(&[("PATH", "/bin")], &[("PATH", "/opt/bin")], &[]).unwrap();
    assert_eq!(value(&environment, "PATH"), Some("/opt/bin"));
}

#[test]
fn a_clients_locale_replaces_the_daemons_as_a_whole() {
    let environment = clean(&[("LC_ALL", "C")], &[("LANG", "de_DE.UTF-8")], &[]).unwrap();
    assert_eq!(value(&environment, "LC_ALL"), None);
    assert_eq!(value(&environment, "LANG"), Some("de_DE.UTF-8"));
}

#[test]
fn without_any_locale_the_terminal_is_utf_8() {
    assert_eq!(value(&clean(&[], &[], &[]).unwrap(), "LANG"), Some("C.UTF-8"));
    let given = clean(&[("LC_ALL", "POSIX")], &[], &[]).unwrap();
    assert_eq!(value(&given, "LANG"), None);
}

#[test]
fn what_the_caller_gives_wins() {
    let environment = clean(
        &[("EDITOR", "vi")],
        &[("PATH", "/opt/bin")],
        &[("EDITOR", "ed"), ("PATH", "/mine"), ("TERM", "vt100")],
    )
    .unwrap();
    assert_eq!(value(&environment, "EDITOR"), Some("ed"));
    assert_eq!(value(&environment, "PATH"), Some("/mine"));
    assert_eq!(value(&environment, "TERM"), Some("vt100"));
}

#[test]
fn a_name_that_is_none_is_refused() {
    for name in ["", "A=B", "A\0B"] {
        let expected = EnvironmentError::BadName { name: name.to_owned() };
        assert_eq!(clean(&[], &[], &[(name, "x")]), Err(expected));
    }
}

#[test]
fn a_value_with_a_nul_byte_is_refused() {
    let expected = EnvironmentError::BadValue { name: "A".to_owned() };
    assert_eq!(clean(&[], &[], &[("A", "x\0y")]), Err(expected));
}

#[test]
fn the_names_of_the_daemon_cannot_be_given() {
    let expected = EnvironmentError::Reserved { name: SESSION_MARK.to_owned() };
    assert_eq!(clean(&[], &[], &[(SESSION_MARK, "x")]), Err(expected));
}

#[test]
fn a_child_gets_all_but_what_belongs_to_terminals_and_to_us() {
    let given = ["EDITOR", "TERM", "TERMGATE_LEASE", "COLORTERM", "TMUX", "PWD", "SHELL"];
    let vars = given.map(|name| (OsString::from(name), OsString::from("x")));
    let handed: Vec<_> = handed_down(vars).map(|(name, _)| name).collect();
    assert_eq!(handed, ["EDITOR", "SHELL"]);
}
