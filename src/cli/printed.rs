//! Reads the output of a command as it arrives, each line once.
//!
//! The output is a resource, which reports where to continue.

use serde::Deserialize as _;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::transport::client::ClientError;
use crate::wire::command::{CommandStatus, OutputFacts};

/// The member of `_meta` with the facts about an output.
const FACTS: &str = "dev.termgate/output";

/// The output of one command, with the position up to which it was shown.
#[derive(Clone, Debug)]
pub struct Printed {
    uri: String,
    next_row: u64,
    /// The facts about the command, as of the last read.
    facts: Option<OutputFacts>,
}

impl Printed {
    /// Starts at the beginning of a command's output.
    pub fn of(session: &str, command: u64) -> Self {
        let uri = format!("termgate://session/{session}/command/{command}/output");
        Self { uri, next_row: 0, facts: None }
    }

    /// The URI of its resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Shows all new, complete lines.
    ///
    /// # Errors
    /// The command is no longer known, or the output fails.
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
            // Without an await in between, so that cancelling here never shows lines twice.
            output.text(&text)?;
            self.next_row = facts.next_row.max(self.next_row);
            let more = facts.lines_left_out > 0;
            self.facts = Some(facts);
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether the command had ended at the last read.
    pub fn has_ended(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.status != CommandStatus::Running)
    }

    /// The exit code, if it is known.
    pub fn exit_code(&self) -> Option<i64> {
        self.facts.as_ref().and_then(|facts| facts.exit_code).map(i64::from)
    }
}
