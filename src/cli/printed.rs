//! What a command printed, read piece by piece as it comes, each line once.
//!
//! It knows no tool: the output of a command is a resource, which says where to go on.

use serde_json::Value;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::lost::lost;
use crate::cli::output::Output;

/// Where a read says what the text of an output does not.
const FACTS: &str = "/dev.termgate~1output";

/// The output of one command, as far as it was shown.
#[derive(Clone, Debug)]
pub struct Printed {
    uri: String,
    next_row: u64,
    /// What is known of the command.
    facts: Value,
}

impl Printed {
    /// The output of a command of which nothing was shown yet.
    pub fn of(session: &str, command: u64) -> Self {
        let uri = format!("termgate://session/{session}/command/{command}/output");
        Self { uri, next_row: 0, facts: Value::Null }
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
            let (text, mut meta) = daemon.read_text(&uri).await?;
            let facts = meta.pointer_mut(FACTS).map(Value::take).unwrap_or_default();
            let count = |name: &str| facts[name].as_u64().unwrap_or_default();
            if count("rows_trimmed") > 0 {
                let rows = count("rows_trimmed");
                output.note(&format!("[{rows} rows were gone before they could be read]"));
            }
            lost(&facts).iter().for_each(|place| output.note(place));
            // Shown and noted without a pause between them, so that giving up in it doubles nothing.
            output.text(&text)?;
            self.next_row = count("next_row").max(self.next_row);
            let more = count("lines_left_out") > 0;
            self.facts = facts;
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether it has ended, when it was looked at last.
    pub fn has_ended(&self) -> bool {
        self.facts["status"].as_str().is_some_and(|status| status != "running")
    }

    /// The code it ended with, where anybody said.
    pub fn exit_code(&self) -> Option<i64> {
        self.facts["exit_code"].as_i64()
    }
}
