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
use serde::Serialize;
use serde_json::json;

use crate::cli::CommandLine;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::wire::word;

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
pub struct CompletionsCommand {
    #[arg(value_enum)]
    shell: CompletionShell,
}

/// The shells there is a script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl CompletionsCommand {
    pub fn run(self) -> Result<CommandReport, CliFailure> {
        let (name, shells) = (word(&self.shell).to_string(), Shells::builtins());
        let shell = shells.completer(&name);
        let shell = shell.ok_or_else(|| anyhow!("no script for {name}"))?;
        let mut script = Vec::new();
        shell
            .write_registration(ASKING, PROGRAM, PROGRAM, &own_name()?, &mut script)
            .context("cannot write the script")?;
        let script = String::from_utf8_lossy(&script).trim_end().to_owned();
        Ok(CommandReport::new(json!({"shell": name, "script": script}), script))
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
pub fn answer(words: &[OsString]) -> anyhow::Result<bool> {
    let here = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(CommandLine::command).var(ASKING);
    asked.try_complete(words, here.as_deref()).context("cannot complete")
}
