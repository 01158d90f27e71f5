//! `history`: rows of a session by their numbers, also those that scrolled off the screen.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::lost::lost;
use crate::cli::output::Report;

/// Print rows of a session, also those that scrolled off
#[derive(Debug, Args)]
pub struct History {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Begin with this row
    #[arg(long, value_name = "ROW", conflicts_with = "tail")]
    from: Option<u64>,
    /// Print the last so many rows
    #[arg(long, value_name = "ROWS")]
    tail: Option<u64>,
    /// Print so many rows at most, up to 500 [default: 100]
    #[arg(long, value_name = "ROWS")]
    count: Option<u64>,
}

impl History {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let arguments = json!({
            "session": self.session,
            "start_row": self.from,
            "tail": self.tail,
            "count": self.count,
        });
        let answer = context.daemon().await?.call("read_history", arguments).await?;
        let text = answer.text_at("/text");
        let (lost, more) = (lost(&answer.data), more(&answer.data));
        let mut report = answer.report(text);
        report.notes.extend(lost);
        report.notes.extend(more);
        Ok(report)
    }
}

/// How to go on, when rows are left.
fn more(rows: &Value) -> Option<String> {
    let (next, end) = (rows["next_row"].as_u64()?, rows["end_row"].as_u64()?);
    (next < end).then(|| format!("{} more rows; go on with --from {next}", end - next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_left_are_told_with_the_way_to_them() {
        let rows = json!({"first_row": 0, "next_row": 100, "end_row": 250});
        assert_eq!(more(&rows).as_deref(), Some("150 more rows; go on with --from 100"));
        assert_eq!(more(&json!({"next_row": 250, "end_row": 250})), None);
    }
}
