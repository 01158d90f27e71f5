//! Shell integration: changes how a shell starts, so that it sends marks around prompts and commands.
//! The shell reads our script besides its user's files and sends the marks itself. See `docs/SHELL.md`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::core::shell::commands::mark::MarkNonces;
use crate::session::pty::command::SpawnSpec;
use crate::shim::program::SECRET;

pub mod nested;
pub mod shared;

/// The scripts: each path below the script directory, and its text.
pub const SCRIPTS: [(&str, &str); 5] = [
    (BASH, include_str!("../../../config/shell/termgate.bash")),
    (ZSH, include_str!("../../../config/shell/zsh/.zshenv")),
    (FISH, include_str!("../../../config/shell/termgate.fish")),
    (nested::POSIX, include_str!("../../../config/shell/termgate.sh")),
    (nested::FISH, include_str!("../../../config/shell/data/fish/vendor_conf.d/termgate.fish")),
];

const BASH: &str = "termgate.bash";
const ZSH: &str = "zsh/.zshenv";
const FISH: &str = "termgate.fish";

/// The variable that passes the nonce to a shell, by a descriptor that its script reads and closes.
const NONCE: &str = SECRET;

/// Variables with a different value until the shell has found its script. The second name holds the user's
/// value.
const ENV: (&str, &str) = ("ENV", "TERMGATE_SHELL_ENV");
const ZDOTDIR: (&str, &str) = ("ZDOTDIR", "TERMGATE_SHELL_ZDOTDIR");

/// A secret in the marks of one session's shell, so that other output cannot imitate a mark.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(Box<str>);

impl Nonce {
    /// The number of lower-case hexadecimal digits.
    pub const DIGITS: usize = 32;

    fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string().into())
    }

    /// The digits. Do not log them.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce")
    }
}

/// The text is not a nonce.
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

/// The shells that have a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkingShell {
    Bash,
    Zsh,
    Fish,
}

impl MarkingShell {
    /// The shell of this name. A bash that runs as `sh` does not count, because it reads other files.
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

/// The nonces of a session; none for shells that mark nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nonces {
    /// Of the shell that is started.
    pub own: Option<Nonce>,
    /// Of the shells that are started in it.
    pub nested: Option<Nonce>,
}

impl Nonces {
    /// What screens compare with.
    pub fn of_marks(&self) -> MarkNonces {
        let text = |nonce: &Option<Nonce>| nonce.as_ref().map(|nonce| Arc::from(nonce.as_str()));
        MarkNonces { own: text(&self.own), nested: text(&self.nested) }
    }
}

/// Has the shell that is started, and those inside of it, read their scripts below `scripts`.
pub fn prepare(spec: &mut SpawnSpec, scripts: &Path) -> Nonces {
    let nested = nested::prepare(spec, scripts);
    Nonces { own: prepare_own(spec, scripts), nested }
}

/// Makes a known interactive shell read its script below `scripts`. Returns the nonce for its marks.
///
/// Returns `None` and changes nothing for other programs, for shells with arguments that may mean a
/// non-interactive run, and if the script is missing. A shell that is sent to a missing file would not find
/// its user's files either.
fn prepare_own(spec: &mut SpawnSpec, scripts: &Path) -> Option<Nonce> {
    let shell = MarkingShell::of(&spec.program).filter(|_| interactive(&spec.args))?;
    let script = scripts.join(shell.script());
    if !script.is_file() {
        return None;
    }
    match shell {
        MarkingShell::Bash if is_login(&spec.args) => {
            // A login shell reads none of our files, but in POSIX mode it reads the file that `ENV` names.
            // The script leaves that mode at once.
            spec.args.insert(0, "--posix".into());
            put_aside(spec, ENV, &escaped(&script, b"\"$\\`"));
        }
        MarkingShell::Bash => {
            spec.args.splice(0..0, ["--rcfile".into(), script.into_os_string()]);
        }
        MarkingShell::Zsh => put_aside(spec, ZDOTDIR, script.parent()?.as_os_str()),
        MarkingShell::Fish => spec.args.extend(["--init-command".into(), fish_source(&script)]),
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

/// Sets a variable, and keeps the user's value under another name.
fn put_aside(spec: &mut SpawnSpec, (name, aside): (&str, &str), value: &OsStr) {
    if let Some(own) = spec.environment.insert(name.into(), value.into()) {
        spec.environment.insert(aside.into(), own);
    }
}

/// The fish command that reads a script.
fn fish_source(script: &Path) -> OsString {
    let mut line = OsString::from("source '");
    line.push(escaped(script, b"'\\"));
    line.push("'");
    line
}

/// The path with a backslash before each special byte.
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
