//! `integrate`: prints the line by which a shell that finds nothing of ours in its environment tells codes.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::session::pty::shell::nested::{NONCE, NestedShell};

/// Print the line that has a shell on another machine tell exit codes
///
/// Print it in a session, and enter it in the shell that ssh, sudo or a container started there. `run` in that shell
/// then has exit codes.
#[derive(Debug, Args)]
pub struct IntegrateCommand {
    /// The shell that is to read the line; sh for dash, ash and ksh
    #[arg(value_enum)]
    shell: IntegratedShell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum IntegratedShell {
    Bash,
    Zsh,
    Fish,
    Sh,
}

impl IntegrateCommand {
    pub fn run(self) -> Result<CommandReport, CliFailure> {
        let nonce = std::env::var(NONCE).ok().and_then(|nonce| nonce.parse().ok());
        let Some(nonce) = nonce else {
            let advice = "run it in a session of termgate, which has shell_marks on";
            return Err(CliFailure::Usage(format!("there is no {NONCE} here; {advice}")));
        };
        let shell = match self.shell {
            IntegratedShell::Bash => NestedShell::Bash,
            IntegratedShell::Zsh => NestedShell::Zsh,
            IntegratedShell::Fish => NestedShell::Fish,
            IntegratedShell::Sh => NestedShell::Posix,
        };
        let line = shell.integration(&nonce);
        Ok(CommandReport::new(json!({"shell": self.shell, "line": line}), line))
    }
}
