//! Resolves what a client wants to run to a program on disk.
//! It starts nothing, so that the client gets an error before anything exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, Uid, User, faccessat};

use crate::core::frame::Size;
use crate::core::ids::SessionId;
use crate::session::pty::environment::Environment;
use crate::shim::user::ProgramUser;

pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Shells to fall back to, best first.
const KNOWN_SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// The shells of accounts without login.
const NO_SHELLS: [&str; 2] = ["false", "nologin"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The user's shell, interactive.
    Shell,
    /// A line that the user's shell runs before it exits.
    Line(String),
    /// A program, by name or path, with its arguments.
    Program { name: String, args: Vec<String> },
}

impl Launch {
    /// Interprets `create_session`'s `command` and `args`. No command means the shell. A command without
    /// `args` is a shell line, unless that only names a shell; with `args`, even empty ones, it is a program.
    pub fn new(command: Option<String>, args: Option<Vec<String>>) -> Result<Self, CommandError> {
        match (command, args) {
            (None, None) => Ok(Self::Shell),
            (Some(line), None) => Ok(interactive_shell(&line).unwrap_or(Self::Line(line))),
            (Some(name), Some(args)) => Ok(Self::Program { name, args }),
            (None, Some(_)) => Err(CommandError::NoCommand),
        }
    }
}

/// The shell that a line starts as it is, without a program between: it would be the shell's own, and no shell inside
/// of another.
fn interactive_shell(line: &str) -> Option<Launch> {
    const SHELLS: [&str; 8] = ["bash", "zsh", "fish", "sh", "dash", "ash", "ksh", "mksh"];
    let mut words = line.split_whitespace().map(str::to_owned);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let name = words.next().filter(|name| name.chars().all(plain))?;
    let known = SHELLS.contains(&name.rsplit('/').next()?);
    let args: Vec<_> = words.collect();
    let interactive = args.iter().all(|arg| matches!(&**arg, "-i" | "-l" | "--login"));
    (known && interactive).then_some(Launch::Program { name, args })
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("there are arguments but no command")]
    NoCommand,
    #[error("program not found: {name:?}{}", searched.as_ref().map(|it| format!(", searched in {it}")).unwrap_or_default())]
    NotFound { name: String, searched: Option<String> },
    #[error("{path} is not a file that can be executed")]
    NotExecutable { path: PathBuf },
    #[error("{path} is not a directory that can be entered")]
    BadDirectory { path: PathBuf },
    #[error("{path} is not a directory that user {user} can enter")]
    BadDirectoryOf { path: PathBuf, user: String },
    #[error("an argument contains a NUL byte")]
    NulByte,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnSpec {
    /// The session. Every process in it has this id in its environment.
    pub session: SessionId,
    /// An absolute path.
    pub program: PathBuf,
    /// The value of `argv[0]`.
    pub name: OsString,
    pub args: Vec<OsString>,
    /// An absolute path.
    pub cwd: PathBuf,
    pub environment: Environment,
    pub size: Size,
    /// `None` for the daemon's user.
    pub user: Option<ProgramUser>,
    /// The command line that makes its sandbox. None without a sandbox.
    pub sandbox: Vec<OsString>,
}

impl SpawnSpec {
    /// Finds the program for `launch`, using this directory and environment.
    pub fn resolve(
        launch: Launch,
        session: SessionId,
        cwd: PathBuf,
        environment: Environment,
        size: Size,
    ) -> Result<Self, CommandError> {
        check_directory(&cwd)?;
        let (program, name, args) = match launch {
            Launch::Shell => {
                let shell = user_shell(&environment);
                let name = base_name(&shell);
                (shell, name, Vec::new())
            }
            Launch::Line(line) => {
                let shell = user_shell(&environment);
                let name = base_name(&shell);
                (shell, name, vec!["-c".to_owned(), line])
            }
            Launch::Program { name, args } => {
                (find_program(&name, &cwd, &environment)?, OsString::from(name), args)
            }
        };
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(CommandError::NulByte);
        }
        let args = args.into_iter().map(OsString::from).collect();
        let (user, sandbox) = (None, Vec::new());
        Ok(Self { session, program, name, args, cwd, environment, size, user, sandbox })
    }
}

/// The user's shell: a usable `SHELL` from the environment, else the account's shell, else bash or sh.
pub fn user_shell(environment: &Environment) -> PathBuf {
    let from_environment = environment.get(OsStr::new("SHELL")).map(PathBuf::from);
    let from_account = || User::from_uid(Uid::effective()).ok().flatten().map(|user| user.shell);
    from_environment
        .filter(|path| is_shell(path))
        .or_else(|| from_account().filter(|path| is_shell(path)))
        .or_else(|| KNOWN_SHELLS.iter().map(PathBuf::from).find(|path| is_executable(path)))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

fn is_shell(path: &Path) -> bool {
    let refuses = NO_SHELLS.iter().any(|name| path.file_name() == Some(OsStr::new(name)));
    path.is_absolute() && !refuses && is_executable(path)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && may_execute(path)
}

/// By the rights of this thread, which may be those of another user.
fn may_execute(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

fn base_name(path: &Path) -> OsString {
    path.file_name().unwrap_or(path.as_os_str()).to_owned()
}

fn check_directory(path: &Path) -> Result<(), CommandError> {
    let usable = path.is_absolute() && path.is_dir() && may_execute(path);
    if usable { Ok(()) } else { Err(CommandError::BadDirectory { path: path.to_owned() }) }
}

/// Finds a program as `execvp` does. A name with a slash is a path relative to `cwd`. Any other name is
/// searched in PATH, where an empty entry means `cwd`.
pub fn find_program(
    name: &str,
    cwd: &Path,
    environment: &Environment,
) -> Result<PathBuf, CommandError> {
    if name.contains('\0') {
        return Err(CommandError::NulByte);
    }
    let path = environment.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), |path| path);
    let directories: Vec<&OsStr> = if name.contains('/') {
        vec![OsStr::new("")]
    } else {
        path.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes).collect()
    };
    let mut candidates = directories.iter().map(|directory| cwd.join(directory).join(name));
    let not_found = || CommandError::NotFound {
        name: name.to_owned(),
        searched: (!name.starts_with('/'))
            .then(|| if name.contains('/') { cwd.as_os_str() } else { path }.display().to_string()),
    };
    if name.is_empty() {
        return Err(not_found());
    }
    let mut refused = None;
    for candidate in candidates.by_ref() {
        if is_executable(&candidate) {
            return Ok(candidate);
        }
        if refused.is_none() && candidate.exists() {
            refused = Some(candidate);
        }
    }
    Err(refused.map_or_else(not_found, |path| CommandError::NotExecutable { path }))
}

#[cfg(test)]
mod tests;
