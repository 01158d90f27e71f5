//! What shells inside of a session's shell find in their environment, so that they tell codes as well.
//!
//! What these shells send says with what code a command ended, and no more, since any program of the session
//! can send it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::session::pty::command::SpawnSpec;
use crate::session::pty::shell::{Nonce, interactive, put_aside};

pub(super) const POSIX: &str = "termgate.sh";
pub(super) const FISH: &str = "data/fish/vendor_conf.d/termgate.fish";
const DATA: &str = "data";
const POSIX_SHELLS: [&str; 7] = ["sh", "ash", "dash", "ksh", "ksh93", "lksh", "mksh"];

/// The variable that scripts and [`NestedShell::integration`] take the nonce from.
pub const NONCE: &str = "TERMGATE_NESTED_NONCE";
/// The command that bash runs before each prompt.
const BASH: &str = "TERMGATE_NESTED_BASH";
/// The file that a POSIX shell of the session reads, and gives back: programs have a use of their own for a
/// variable of this name. The second name holds the user's value.
const ENV: (&str, &str) = ("ENV", "TERMGATE_NESTED_ENV");

/// bash expands this before it runs a command, in an escape that no terminal shows. Where it is no shell of our
/// own, it comes by what makes it tell the code, unless an expansion might fail, since bash runs no command
/// then: where `PROMPT_COMMAND` is read-only, and under `set -u`. bash-preexec has to be the last one there.
const PS0: &str = concat!(
    "\u{1b}]7133;${__termgate_outer-${__bp_imported-",
    "${__termgate_r:=r}${__termgate_n:=${-##*u*}}",
    "${__termgate_n:+${__termgate_w:=${__termgate_r##*[_${PROMPT_COMMAND@a}]*}}}",
    "${__termgate_w:+${PROMPT_COMMAND[8]:=${TERMGATE_NESTED_BASH-}}}",
    "}}\u{7}"
);

/// zsh expands this before each prompt. The shell of the session has psvar hold something, and so tells the end
/// of output instead. In the first line that a shell reads, nothing has ended.
fn eol_mark(nonce: &str) -> String {
    format!("%{{\u{1b}]133;%(97V.E.D;%?;line=%i);nonce={nonce}\u{1b}\\%}}%B%S%#%s%b")
}

fn bash_command(nonce: &str) -> String {
    format!(r#"printf '\033]133;D;%s;nonce={nonce}\007' "$?" >&2"#)
}

/// Sets what shells look at; none and nothing if a script is missing.
pub(super) fn prepare(spec: &mut SpawnSpec, scripts: &Path) -> Option<Nonce> {
    let script = scripts.join(POSIX);
    if !script.is_file() {
        return None;
    }
    let nonce = Nonce::random();
    if is_posix(spec) {
        put_aside(spec, ENV, script.as_os_str());
    }
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

/// Whether a POSIX shell is started that certainly reads the file: one that runs a script reads none, and so would
/// never give the variable back.
fn is_posix(spec: &SpawnSpec) -> bool {
    let (name, args) = match (spec.program.file_name(), spec.args.split_first()) {
        (Some(name), Some((applet, args))) if name == "busybox" => (Some(applet.as_os_str()), args),
        (name, _) => (name, spec.args.as_slice()),
    };
    let named = name.and_then(OsStr::to_str).is_some_and(|name| POSIX_SHELLS.contains(&name));
    named && interactive(args)
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
    /// The line that has this shell tell with what code each command ended, wherever it runs. It begins with a
    /// blank, which keeps it out of most histories.
    pub fn integration(self, nonce: &Nonce) -> String {
        let nonce = nonce.as_str();
        match self {
            // What the user has there sees the same code, unless a code would end the shell.
            Self::Bash => format!(
                r#" __termgate_d() {{ local code=$?; printf '\033]133;D;%s;nonce={nonce}\007' $code >&2; [[ $- == *e* ]] || return $code; }}; PROMPT_COMMAND="__termgate_d${{PROMPT_COMMAND:+; $PROMPT_COMMAND}}""#
            ),
            Self::Zsh => {
                format!(r" PROMPT_EOL_MARK=$'%{{\e]133;D;%?;nonce={nonce}\a%}}%B%S%#%s%b'")
            }
            Self::Fish => format!(
                r" function __termgate_d --on-event fish_prompt; printf '\e]133;D;%s;nonce={nonce}\a' $status >&2; end"
            ),
            // ash counts the characters of a prompt but for those in brackets.
            Self::Posix => format!(
                r#" __termgate_d=$(printf '\033]133;D;$?;nonce={nonce}\007'); case $(readlink /proc/$$/exe) in */busybox*) PS1="\\[$__termgate_d\\]${{PS1-}}";; *) PS1=$__termgate_d${{PS1-}};; esac"#
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

    fn spec(program: &str, environment: &[(&str, &str)]) -> SpawnSpec {
        let own = environment.iter().map(|(name, value)| (name.into(), value.into()));
        SpawnSpec {
            session: SessionId::from_random(Uuid::from_u128(7 << 80)),
            program: PathBuf::from(program),
            name: program.into(),
            args: Vec::new(),
            cwd: PathBuf::from("/"),
            environment: own.collect::<BTreeMap<_, _>>(),
            size: Size { rows: 24, cols: 80 },
            user: None,
            sandbox: Vec::new(),
        }
    }

    fn prepared(
        program: &str,
        environment: &[(&str, &str)],
    ) -> (BTreeMap<String, String>, Option<Nonce>) {
        let scripts = tempfile::tempdir().unwrap();
        std::fs::write(scripts.path().join(POSIX), "").unwrap();
        let mut spec = spec(program, environment);
        let nonce = prepare(&mut spec, scripts.path());
        let directory = scripts.path().to_str().unwrap().to_owned();
        let told = |text: &OsString| text.to_str().unwrap().replace(&directory, "SCRIPTS");
        (spec.environment.iter().map(|(name, value)| (told(name), told(value))).collect(), nonce)
    }

    #[test]
    fn what_the_user_has_stays_and_ours_comes_behind_it() {
        let (ours, nonce) = prepared("/bin/dash", &[]);
        assert_eq!(ours["ENV"], "SCRIPTS/termgate.sh");
        assert_eq!(ours.get("TERMGATE_NESTED_ENV"), None);
        assert_eq!(ours["XDG_DATA_DIRS"], "/usr/local/share:/usr/share:SCRIPTS/data");
        assert_eq!(ours["TERMGATE_NESTED_NONCE"], nonce.unwrap().as_str());
        let (theirs, _) =
            prepared("/bin/dash", &[("ENV", "$HOME/.shrc"), ("XDG_DATA_DIRS", "/data")]);
        assert_eq!(theirs["TERMGATE_NESTED_ENV"], "$HOME/.shrc");
        assert_eq!(theirs["XDG_DATA_DIRS"], "/data:SCRIPTS/data");
    }

    #[test]
    fn a_variable_that_programs_use_as_well_is_left_to_them() {
        assert_eq!(prepared("/bin/bash", &[]).0.get("ENV"), None);
        assert_eq!(prepared("/bin/zsh", &[("ENV", "production")]).0["ENV"], "production");
        let shell = |program: &str, args: &[&str]| {
            let args = args.iter().map(OsString::from).collect();
            is_posix(&SpawnSpec { args, ..spec(program, &[]) })
        };
        assert!(shell("/bin/sh", &["-i"]) && shell("/bin/busybox", &["ash", "-l"]));
        for (program, args) in [
            ("/bin/sh", &["-c", "npm start"][..]),
            ("/bin/dash", &["script"]),
            ("/bin/busybox", &["ash", "-c", "x"]),
            ("/bin/busybox", &["ls"]),
        ] {
            assert!(!shell(program, args), "{program} {args:?}");
        }
    }

    #[test]
    fn without_scripts_nothing_is_set() {
        let mut changed = spec("/bin/dash", &[]);
        assert_eq!(prepare(&mut changed, Path::new("/nowhere")), None);
        assert_eq!(changed, spec("/bin/dash", &[]));
    }
}
