//! What shells inside of a session's shell find in their environment, so that they tell codes as well.
//!
//! Their users' files are read first and win. What these shells send says with what code a command ended,
//! and no more, since any program of the session can send it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::session::pty::command::SpawnSpec;
use crate::session::pty::shell::{Nonce, put_aside};

pub(super) const POSIX: &str = "termgate.sh";
pub(super) const FISH: &str = "data/fish/vendor_conf.d/termgate.fish";
const DATA: &str = "data";

/// The variable that scripts and [`NestedShell::integration`] take the nonce from.
pub const NONCE: &str = "TERMGATE_NESTED_NONCE";
/// The command that bash runs before each prompt.
const BASH: &str = "TERMGATE_NESTED_BASH";
/// The file that POSIX shells read. The second name holds the user's value.
const ENV: (&str, &str) = ("ENV", "TERMGATE_NESTED_ENV");

/// bash expands this before it runs a command. Where it is no shell of our own, it comes by what makes it
/// tell the code, written where no terminal shows it.
const PS0: &str =
    "${__termgate_outer-\u{1b}]133;N;${PROMPT_COMMAND[8]:=$TERMGATE_NESTED_BASH}\u{7}}";

/// zsh expands this before each prompt; its own shell of the session sends what psvar holds instead.
fn eol_mark(nonce: &str) -> String {
    format!("%{{\u{1b}]133;%(97V.%97v.D;%?;nonce={nonce})\u{1b}\\%}}%B%S%#%s%b")
}

fn bash_command(nonce: &str) -> String {
    format!(r#"printf '\033]133;D;%s;nonce={nonce}\007' "$?""#)
}

/// Sets what shells look at; none and nothing if a script is missing.
pub(super) fn prepare(spec: &mut SpawnSpec, scripts: &Path) -> Option<Nonce> {
    let script = scripts.join(POSIX);
    if !script.is_file() {
        return None;
    }
    let nonce = Nonce::random();
    put_aside(spec, ENV, script.as_os_str());
    let text = nonce.as_str();
    let own: [(&str, OsString); 5] = [
        (NONCE, text.into()),
        (BASH, bash_command(text).into()),
        ("PS0", PS0.into()),
        ("PROMPT_EOL_MARK", eol_mark(text).into()),
        ("XDG_DATA_DIRS", data_directories(spec, scripts)),
    ];
    spec.environment.extend(own.map(|(name, value)| (name.into(), value)));
    Some(nonce)
}

/// Where fish looks for files of others, ours last; what stands for none is that of the XDG base directories.
fn data_directories(spec: &SpawnSpec, scripts: &Path) -> OsString {
    let known = spec.environment.get(OsStr::new("XDG_DATA_DIRS")).filter(|value| !value.is_empty());
    let mut all = known.cloned().unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    all.push(":");
    all.push(scripts.join(DATA));
    all
}

/// A shell that can be told by a line how it tells codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestedShell {
    Bash,
    Zsh,
    Fish,
    /// dash, ash and ksh.
    Posix,
}

impl NestedShell {
    /// The line that has this shell tell with what code each command ended, wherever it runs. It begins with a blank,
    /// which keeps it out of most histories.
    pub fn integration(self, nonce: &Nonce) -> String {
        let nonce = nonce.as_str();
        match self {
            // What the user has there sees the same code.
            Self::Bash => format!(
                r#" __termgate_d() {{ local code=$?; printf '\033]133;D;%s;nonce={nonce}\007' $code; return $code; }}; PROMPT_COMMAND="__termgate_d${{PROMPT_COMMAND:+; $PROMPT_COMMAND}}""#
            ),
            Self::Zsh => {
                format!(r" PROMPT_EOL_MARK=$'%{{\e]133;D;%?;nonce={nonce}\a%}}%B%S%#%s%b'")
            }
            Self::Fish => format!(
                r" function __termgate_d --on-event fish_prompt; printf '\e]133;D;%s;nonce={nonce}\a' $status; end"
            ),
            // ash counts the characters of a prompt but for those in brackets.
            Self::Posix => format!(
                r#" d=$(printf '\033]133;D;$?;nonce={nonce}\007'); case $PS1 in *\\*) PS1="\\[$d\\]$PS1";; *) PS1=$d$PS1;; esac"#
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use uuid::Uuid;

    use super::*;
    use crate::core::frame::Size;
    use crate::core::ids::SessionId;

    fn spec(environment: &[(&str, &str)]) -> SpawnSpec {
        let own = environment.iter().map(|(name, value)| (name.into(), value.into()));
        SpawnSpec {
            session: SessionId::from_random(Uuid::from_u128(7 << 80)),
            program: PathBuf::from("/bin/dash"),
            name: "dash".into(),
            args: Vec::new(),
            cwd: PathBuf::from("/"),
            environment: own.collect::<BTreeMap<_, _>>(),
            size: Size { rows: 24, cols: 80 },
        }
    }

    fn prepared(environment: &[(&str, &str)]) -> (BTreeMap<String, String>, Option<Nonce>) {
        let scripts = tempfile::tempdir().unwrap();
        std::fs::write(scripts.path().join(POSIX), "").unwrap();
        let mut spec = spec(environment);
        let nonce = prepare(&mut spec, scripts.path());
        let directory = scripts.path().to_str().unwrap().to_owned();
        let told = |text: &OsString| text.to_str().unwrap().replace(&directory, "SCRIPTS");
        (spec.environment.iter().map(|(name, value)| (told(name), told(value))).collect(), nonce)
    }

    #[test]
    fn what_the_user_has_stays_and_ours_comes_behind_it() {
        let (ours, nonce) = prepared(&[]);
        assert_eq!(ours["ENV"], "SCRIPTS/termgate.sh");
        assert_eq!(ours.get("TERMGATE_NESTED_ENV"), None);
        assert_eq!(ours["XDG_DATA_DIRS"], "/usr/local/share:/usr/share:SCRIPTS/data");
        assert_eq!(ours["TERMGATE_NESTED_NONCE"], nonce.unwrap().as_str());
        let (theirs, _) = prepared(&[("ENV", "$HOME/.shrc"), ("XDG_DATA_DIRS", "/data")]);
        assert_eq!(theirs["TERMGATE_NESTED_ENV"], "$HOME/.shrc");
        assert_eq!(theirs["XDG_DATA_DIRS"], "/data:SCRIPTS/data");
    }

    #[test]
    fn without_scripts_nothing_is_set() {
        let mut changed = spec(&[]);
        assert_eq!(prepare(&mut changed, Path::new("/nowhere")), None);
        assert_eq!(changed, spec(&[]));
    }
}
