//! The environment of a session's program: the daemon's own, cleaned, and what the caller adds.
//!
//! It reads no process's environment itself. What belongs to the daemon or to another terminal is
//! left out, so that no secret of ours and no foreign terminal's habits reach a program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Names and values, in the order of the names.
pub type Environment = BTreeMap<OsString, OsString>;

/// The name that marks every process of a session; its value is the session's id.
pub const SESSION_MARK: &str = "TERMGATE_SESSION";

/// What every name of the daemon's own begins with.
const OWN_PREFIX: &str = "TERMGATE_";

/// Names of other terminals, of service managers and of what a shell keeps for itself.
const DROPPED: [&str; 42] = [
    "_",
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

/// Beginnings of such names.
const DROPPED_PREFIXES: [&str; 14] = [
    OWN_PREFIX,
    "ALACRITTY_",
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

/// What the command line or the bridge hands on of its own environment: locale, PATH and
/// SSH_AUTH_SOCK, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientEnvironment {
    vars: Environment,
}

impl ClientEnvironment {
    /// Keeps of `vars` what a client may hand on.
    pub fn of(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = vars.into_iter().filter(|(name, value)| {
            is_handed_on(name) && check(&name.to_string_lossy(), value.as_bytes()).is_ok()
        });
        Self { vars: kept.collect() }
    }

    /// What was kept.
    pub fn vars(&self) -> &Environment {
        &self.vars
    }
}

/// Says why a variable cannot be set for a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{name:?} cannot be the name of an environment variable")]
    BadName { name: String },
    #[error("the value of environment variable {name} contains a NUL byte")]
    BadValue { name: String },
    #[error("environment variable {name} is kept for the daemon")]
    Reserved { name: String },
}

/// Puts a session's environment together: `base` without what belongs to the daemon and to other
/// terminals, then what says which terminal this is, then `client`, then `own`, which wins.
///
/// # Errors
/// The first variable of `own` that cannot be set.
pub fn clean_environment(
    base: &Environment,
    client: &ClientEnvironment,
    own: &BTreeMap<String, String>,
) -> Result<Environment, EnvironmentError> {
    let kept = base.iter().filter(|(name, _)| !is_dropped(name));
    let mut environment: Environment =
        kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    if client.vars.keys().any(|name| is_locale(name)) {
        // A locale counts as a whole: the client's LANG means nothing beside the daemon's LC_ALL.
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
        // The terminal speaks UTF-8; without any locale a shell would take it for single bytes.
        environment.insert("LANG".into(), "C.UTF-8".into());
    }
    Ok(environment)
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
