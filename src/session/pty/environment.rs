//! Builds the environment of a session's program from the daemon's and the caller's.
//! It drops variables of the daemon and of other terminals, so that no secret and no foreign setting reaches
//! a program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub type Environment = BTreeMap<OsString, OsString>;

/// The variable on every process of a session. Its value is the session's id.
pub const SESSION_MARK: &str = "TERMGATE_SESSION";

const OWN_PREFIX: &str = "TERMGATE_";

/// Variables of other terminals, of service managers, of shells themselves, and of `cargo run` and rustup.
const DROPPED: [&str; 51] = [
    "_",
    "CARGO",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PRIMARY_PACKAGE",
    "COLORFGBG",
    "COLUMNS",
    "CREDENTIALS_DIRECTORY",
    "FDSTORE",
    "GPG_TTY",
    "INSIDE_EMACS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "LINES",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "MAINPID",
    "MAINPIDFDID",
    "MANAGERPID",
    "MANAGERPIDFDID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "NOTIFY_SOCKET",
    "OLDPWD",
    "PWD",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
    "SHLVL",
    "SSH_TTY",
    "STY",
    "SYSTEMD_EXEC_PID",
    "TERMCAP",
    "TERMINAL_EMULATOR",
    "TERMINFO",
    "TERM_FEATURES",
    "TERM_SESSION_ID",
    "VTE_VERSION",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "WINDOW",
    "WINDOWID",
    "WT_PROFILE_ID",
    "WT_SESSION",
    "XTERM_VERSION",
];

const DROPPED_PREFIXES: [&str; 15] = [
    OWN_PREFIX,
    "ALACRITTY_",
    "CARGO_PKG_",
    "FOOT_",
    "GHOSTTY_",
    "GNOME_TERMINAL_",
    "ITERM_",
    "KITTY_",
    "KONSOLE_",
    "TERM_PROGRAM",
    "TMUX",
    "VSCODE_SHELL_",
    "WEZTERM_",
    "XTERM_",
    "ZELLIJ",
];

/// The variables that the command line or the bridge passes to a session: locale, PATH and SSH_AUTH_SOCK.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientEnvironment {
    vars: Environment,
}

impl ClientEnvironment {
    /// Keeps the variables of `vars` that a client may pass on.
    pub fn of(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = vars.into_iter().filter(|(name, value)| {
            is_handed_on(name) && check(&name.to_string_lossy(), value.as_bytes()).is_ok()
        });
        Self { vars: kept.collect() }
    }

    pub fn vars(&self) -> &Environment {
        &self.vars
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{name:?} cannot be the name of an environment variable")]
    BadName { name: String },
    #[error("the value of environment variable {name} contains a NUL byte")]
    BadValue { name: String },
    #[error("environment variable {name} is kept for the daemon")]
    Reserved { name: String },
}

/// Builds a session's environment: `base` without dropped variables, then `client`, then the terminal's
/// variables, then `own`. Later values win.
pub fn clean_environment(
    base: &Environment,
    client: &ClientEnvironment,
    own: &BTreeMap<String, String>,
) -> Result<Environment, EnvironmentError> {
    let kept = base.iter().filter(|(name, _)| !is_dropped(name));
    let mut environment: Environment =
        kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    if client.vars.keys().any(|name| is_locale(name)) {
        // A locale counts as a whole: the client's LANG has no effect beside the daemon's LC_ALL.
        environment.retain(|name, _| !is_locale(name));
    }
    environment.extend(client.vars.clone());
    let terminal = [
        ("TERM", "xterm-256color"),
        ("COLORTERM", "truecolor"),
        ("TERM_PROGRAM", "termgate"),
        ("TERM_PROGRAM_VERSION", env!("CARGO_PKG_VERSION")),
    ];
    environment.extend(terminal.map(|(name, value)| (name.into(), value.into())));
    for (name, value) in own {
        check(name, value.as_bytes())?;
        if name.starts_with(OWN_PREFIX) {
            return Err(EnvironmentError::Reserved { name: name.clone() });
        }
        environment.insert(name.into(), value.into());
    }
    if !environment.keys().any(|name| is_locale(name)) {
        // The terminal speaks UTF-8. Without a locale, a shell would treat input as single bytes.
        environment.insert("LANG".into(), "C.UTF-8".into());
    }
    Ok(environment)
}

/// The variables that a session gets as a child of this process would: all but those of other terminals and of
/// the session's own.
pub fn handed_down(
    vars: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let own = |name: &OsStr| name == "TERM" || name == "COLORTERM";
    vars.into_iter().filter(move |(name, value)| {
        let valid = check(&name.to_string_lossy(), value.as_bytes()).is_ok();
        !is_dropped(name) && !own(name) && valid
    })
}

fn is_dropped(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    DROPPED.iter().any(|dropped| bytes == dropped.as_bytes())
        || DROPPED_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
}

fn is_handed_on(name: &OsStr) -> bool {
    !is_dropped(name) && (is_locale(name) || name == "PATH" || name == "SSH_AUTH_SOCK")
}

fn is_locale(name: &OsStr) -> bool {
    name == "LANG" || name == "LANGUAGE" || name.as_bytes().starts_with(b"LC_")
}

fn check(name: &str, value: &[u8]) -> Result<(), EnvironmentError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(EnvironmentError::BadName { name: name.to_owned() });
    }
    if value.contains(&0) {
        return Err(EnvironmentError::BadValue { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
