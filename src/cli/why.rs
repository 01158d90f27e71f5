//! `why`: what an error code means.

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// Explain an error code and what to do about it
#[derive(Debug, Args)]
pub struct Why {
    /// The code, such as lease_held
    code: String,
}

impl Why {
    /// Runs the command.
    ///
    /// # Errors
    /// That there is no such code.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let arguments = json!({"code": self.code});
        Ok(context.daemon().await?.call("why", arguments).await?.report_as_told())
    }
}
