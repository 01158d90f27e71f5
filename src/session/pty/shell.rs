//! Shells that tell where their prompts and commands begin and end: what is changed in how one is
//! started, so that it does.
//!
//! It writes and starts nothing, and knows nothing of what the marks are read for. The shells
//! themselves send them, by scripts of ours that they read besides the files of their user
//! (`docs/SHELL.md`).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::str::FromStr;

use uuid::Uuid;

use crate::session::pty::command::SpawnSpec;

/// What shells read at their start: the paths below the directory of scripts, and the texts.
pub const SCRIPTS: [(&str, &str); 3] = [
    (BASH, include_str!("../../../config/shell/termgate.bash")),
    (ZSH, include_str!("../../../config/shell/zsh/.zshenv")),
    (FISH, include_str!("../../../config/shell/termgate.fish")),
];

const BASH: &str = "termgate.bash";
const ZSH: &str = "zsh/.zshenv";
const FISH: &str = "termgate.fish";

/// What hands a shell its nonce; its script takes it out of the environment.
const NONCE: &str = "TERMGATE_SHELL_NONCE";

/// Variables that have another value until the shell has found its script, each with the name under
/// which the user's own waits.
const ENV: (&str, &str) = ("ENV", "TERMGATE_SHELL_ENV");
const ZDOTDIR: (&str, &str) = ("ZDOTDIR", "TERMGATE_SHELL_ZDOTDIR");

/// What the marks of one session's shell carry, so that nothing else that is written to its terminal
/// is taken for one.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(Box<str>);

impl Nonce {
    /// How many lower-case hexadecimal digits it has.
    pub const DIGITS: usize = 32;

    fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string().into())
    }

    /// The digits, which belong into no log.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce")
    }
}

/// A text is no nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a nonce is {} lower-case hexadecimal digits", Nonce::DIGITS)]
pub struct NotANonce;

impl FromStr for Nonce {
    type Err = NotANonce;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fine = text.len() == Self::DIGITS && text.bytes().all(digit);
        if fine { Ok(Self(text.into())) } else { Err(NotANonce) }
    }
}

/// The shells there is a script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// The shell of this name; a bash that is called `sh` is none, and reads other files.
    fn of(program: &Path) -> Option<Self> {
        match program.file_name()?.to_str()? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Bash => BASH,
            Self::Zsh => ZSH,
            Self::Fish => FISH,
        }
    }
}

/// Has an interactive shell that we know read its script below `scripts`, and gives back what its
/// marks will carry.
///
/// None, and nothing changed, for every other program, for a shell whose arguments may mean that it
/// does not read commands from people, and where the script is missing: a shell that is sent to a file
/// which is not there would not find those of its user either.
pub fn prepare(spec: &mut SpawnSpec, scripts: &Path) -> Option<Nonce> {
    let shell = Shell::of(&spec.program).filter(|_| interactive(&spec.args))?;
    let script = scripts.join(shell.script());
    if !script.is_file() {
        return None;
    }
    match shell {
        Shell::Bash if is_login(&spec.args) => {
            // A login shell reads no file of ours, but what POSIX says, which `ENV` names. Its script
            // leaves that mode at once.
            spec.args.insert(0, "--posix".into());
            put_aside(spec, ENV, &escaped(&script, b"\"$\\`"));
        }
        Shell::Bash => {
            spec.args.splice(0..0, ["--rcfile".into(), script.into_os_string()]);
        }
        Shell::Zsh => put_aside(spec, ZDOTDIR, script.parent()?.as_os_str()),
        Shell::Fish => spec.args.extend(["--init-command".into(), fish_source(&script)]),
    }
    let nonce = Nonce::random();
    spec.environment.insert(NONCE.into(), nonce.as_str().into());
    Some(nonce)
}

fn interactive(args: &[OsString]) -> bool {
    args.iter().all(|arg| arg == "-i" || is_login(std::slice::from_ref(arg)))
}

fn is_login(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "-l" || arg == "--login")
}

/// Gives a variable another value, and keeps that of the user, if there is one, under another name.
fn put_aside(spec: &mut SpawnSpec, (name, aside): (&str, &str), value: &OsStr) {
    if let Some(own) = spec.environment.insert(name.into(), value.into()) {
        spec.environment.insert(aside.into(), own);
    }
}

/// The command by which fish reads a script.
fn fish_source(script: &Path) -> OsString {
    let mut line = OsString::from("source '");
    line.push(escaped(script, b"'\\"));
    line.push("'");
    line
}

/// The path with a backslash before each of the bytes that a shell would not take as they are.
fn escaped(path: &Path, special: &[u8]) -> OsString {
    let mut escaped = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        escaped.extend(special.contains(byte).then_some(b'\\'));
        escaped.push(*byte);
    }
    OsString::from_vec(escaped)
}

#[cfg(test)]
mod tests;
