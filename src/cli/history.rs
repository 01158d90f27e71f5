//! `history`: prints rows of a session by number, including rows that scrolled off the screen.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::wire::rows::HistoryRows;
use crate::wire::session::GapWire;

/// Print rows of a session, including those that scrolled off the screen
#[derive(Debug, Args)]
pub struct HistoryCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Start with this row
    #[arg(long, value_name = "ROW", conflicts_with = "tail")]
    from: Option<u64>,
    /// Print this many rows from the end
    #[arg(long, value_name = "ROWS")]
    tail: Option<u64>,
    /// Print at most this many rows, up to 500 [default: 100]
    #[arg(long, value_name = "ROWS")]
    count: Option<u64>,
}

impl HistoryCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({
            "session": self.session,
            "start_row": self.from,
            "tail": self.tail,
            "count": self.count,
        });
        let answer = context.daemon().await?.call("read_history", arguments).await?;
        let rows: HistoryRows = answer.read()?;
        let notes = rows.lost_output.iter().map(GapWire::remark).chain(more(&rows)).collect();
        Ok(CommandReport { notes, ..answer.report(rows.text.unwrap_or_default()) })
    }
}

/// How to read the remaining rows.
fn more(rows: &HistoryRows) -> Option<String> {
    let (next, end) = (rows.next_row, rows.end_row);
    (next < end).then(|| format!("{} more rows; go on with --from {next}", end - next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_left_are_counted_with_the_way_to_them() {
        let rows = |next_row| HistoryRows {
            session: "0a".to_owned(),
            first_row: 0,
            end_row: 250,
            next_row,
            dropped_rows: 0,
            lost_output: Vec::new(),
            watermark: 1,
            text: None,
            lines: None,
        };
        assert_eq!(more(&rows(100)).as_deref(), Some("150 more rows; go on with --from 100"));
        assert_eq!(more(&rows(250)), None);
    }
}
