//! Asks the person at the terminal before something is done.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::cli::failure::CliFailure;
use crate::cli::output::{CommandOutput, OutputForm};

/// Whether the person agrees to what was shown.
///
/// # Errors
/// [`CliFailure::Usage`] with this `why` where nobody can be asked.
pub fn confirmed(
    output: &CommandOutput,
    shown: &str,
    question: &str,
    why: &str,
) -> Result<bool, CliFailure> {
    if !io::stdin().is_terminal() || output.form() != OutputForm::People {
        return Err(CliFailure::Usage(why.to_owned()));
    }
    output.note(shown);
    let mut terminal = io::stderr();
    let mut answer = String::new();
    write!(terminal, "{question} [y/N] ").and_then(|()| terminal.flush()).context("cannot ask")?;
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
