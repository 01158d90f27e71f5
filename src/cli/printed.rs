//! What a command printed, read piece by piece as it comes, each line once.
//!
//! It knows no tool: the output of a command is a resource, which says where to go on.

use serde::Deserialize as _;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::transport::client::ClientError;
use crate::wire::command::{CommandStatus, OutputFacts};

/// The member of `_meta` that says what the text of an output does not.
const FACTS: &str = "dev.termgate/output";

/// The output of one command, as far as it was shown.
#[derive(Clone, Debug)]
pub struct Printed {
    uri: String,
    next_row: u64,
    /// What is known of the command.
    facts: Option<OutputFacts>,
}

impl Printed {
    /// The output of a command of which nothing was shown yet.
    pub fn of(session: &str, command: u64) -> Self {
        let uri = format!("termgate://session/{session}/command/{command}/output");
        Self { uri, next_row: 0, facts: None }
    }

    /// Its resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Shows the lines that are new and whole.
    ///
    /// # Errors
    /// That the command is not known any more, or that nothing can be shown.
    pub async fn show(&mut self, daemon: &Daemon, output: &Output) -> Result<(), Failure> {
        loop {
            let uri = format!("{}?from_row={}", self.uri, self.next_row);
            let (text, meta) = daemon.read_text(&uri).await?;
            let facts = OutputFacts::deserialize(&meta[FACTS]);
            let facts = facts.map_err(|_| ClientError::Malformed)?;
            if facts.rows_trimmed > 0 {
                let rows = facts.rows_trimmed;
                output.note(&format!("[{rows} rows were gone before they could be read]"));
            }
            facts.lost_output.iter().for_each(|gap| output.note(&gap.remark()));
            // Shown and noted without a pause between them, so that giving up in it doubles nothing.
            output.text(&text)?;
            self.next_row = facts.next_row.max(self.next_row);
            let more = facts.lines_left_out > 0;
            self.facts = Some(facts);
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether it has ended, when it was looked at last.
    pub fn has_ended(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.status != CommandStatus::Running)
    }

    /// The code it ended with, where that is known.
    pub fn exit_code(&self) -> Option<i64> {
        self.facts.as_ref().and_then(|facts| facts.exit_code).map(i64::from)
    }
}
