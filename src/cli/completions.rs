//! `completions`: prints the script with which a shell completes commands, options and session names.
//!
//! The script calls this program while the user types, so that completions fit this version and the
//! current sessions.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::env::{CompleteEnv, Shells};
use serde_json::json;

use crate::cli::CommandLine;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// The variable that a shell's script sets to the shell's name.
const ASKING: &str = "TERMGATE_COMPLETE";
/// The name of this program.
const PROGRAM: &str = "termgate";

/// Print the script that completes commands, options and session names in a shell
///
/// bash: add  source <(termgate completions bash)  to ~/.bashrc.
/// zsh: add  source <(termgate completions zsh)  to ~/.zshrc, after compinit.
/// fish: run  termgate completions fish > ~/.config/fish/completions/termgate.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

/// The shells there is a script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl Shell {
    fn word(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Elvish => "elvish",
            Self::Powershell => "powershell",
        }
    }
}

impl Completions {
    /// Runs the command; it needs no daemon.
    ///
    /// # Errors
    /// The shell has no script, or the working directory is gone.
    pub fn run(self) -> Result<Report, Failure> {
        let shells = Shells::builtins();
        let shell = shells.completer(self.shell.word());
        let shell = shell.ok_or_else(|| anyhow!("no script for {}", self.shell.word()))?;
        let mut script = Vec::new();
        shell
            .write_registration(ASKING, PROGRAM, PROGRAM, &own_name()?, &mut script)
            .context("cannot write the script")?;
        let script = String::from_utf8_lossy(&script).trim_end().to_owned();
        Ok(Report {
            data: json!({"shell": self.shell.word(), "script": script}),
            text: script,
            notes: Vec::new(),
            exit: Exit::Done,
            mcp_version: None,
        })
    }
}

/// How the script calls this program: as it was called, but with an absolute path.
fn own_name() -> anyhow::Result<String> {
    let called = env::args_os().next().unwrap_or_else(|| PROGRAM.into());
    let path = Path::new(&called);
    if path.components().count() < 2 {
        return Ok(called.to_string_lossy().into_owned());
    }
    let absolute = std::path::absolute(path).context("the current directory is gone")?;
    Ok(absolute.to_string_lossy().into_owned())
}

/// Answers a completion request of a shell's script. Returns whether this was such a request.
///
/// Call it before starting any thread, and outside any runtime.
///
/// # Errors
/// The shell is unknown, or the answer cannot be written.
pub fn answer(words: &[OsString]) -> anyhow::Result<bool> {
    let here = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(CommandLine::command).var(ASKING);
    asked.try_complete(words, here.as_deref()).context("cannot complete")
}
