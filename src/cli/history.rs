//! `history`: prints rows of a session by number, including rows that scrolled off the screen.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::cli::table::numbered;
use crate::core::counted::counted;
use crate::wire::rows::HistoryRows;
use crate::wire::session::GapWire;

/// Print rows of a session, including those that scrolled off the screen
#[derive(Debug, Args)]
pub struct HistoryCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Start with this row
    #[arg(long, value_name = "ROW", conflicts_with = "tail", value_parser = number::<u64>)]
    from: Option<u64>,
    /// Print this many rows from the end, up to 500
    #[arg(long, value_name = "ROWS", value_parser = number::<u64>)]
    tail: Option<u64>,
    /// Print at most this many rows, up to 500 [default: 100]
    #[arg(long, value_name = "ROWS", value_parser = number::<u64>)]
    count: Option<u64>,
    /// Print only rows that match this regular expression, with their numbers, from the first row on
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("start_row", "--from"), ("tail", "--tail"), ("count", "--count"), ("grep", "--grep")];

impl HistoryCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({
            "session": self.session,
            "start_row": self.from,
            "tail": self.tail,
            "count": self.count,
            "grep": self.grep,
        });
        let answer = context.daemon().await?.call("read_history", arguments).await?;
        let rows: HistoryRows = answer.read()?;
        let notes = rows.lost_output.iter().map(GapWire::remark);
        let notes = notes.chain(none(&rows)).chain(more(&rows)).collect();
        let text = rows.text.unwrap_or_else(|| numbered(rows.lines.iter().flatten()));
        Ok(CommandReport { notes, ..answer.report(text) })
    }
}

/// Says that there is no row where the command looked.
fn none(rows: &HistoryRows) -> Option<String> {
    let last = rows.end_row.checked_sub(1).filter(|last| *last >= rows.dropped_rows);
    (rows.first_row >= rows.end_row).then(|| match last {
        Some(last) => format!("no rows there; the last one is {last}"),
        None => "no rows yet".to_owned(),
    })
}

/// How to read the remaining rows.
fn more(rows: &HistoryRows) -> Option<String> {
    let (next, end) = (rows.next_row, rows.end_row);
    (next < end)
        .then(|| format!("{}; continue with --from {next}", counted(end - next, "more row")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(next_row: u64) -> HistoryRows {
        HistoryRows {
            untrusted: crate::wire::untrusted::Untrusted,
            session: "0a".to_owned(),
            first_row: 0,
            end_row: 250,
            next_row,
            dropped_rows: 0,
            lost_output: Vec::new(),
            watermark: 1,
            text: None,
            lines: None,
        }
    }

    #[test]
    fn rows_that_are_not_there_are_noted() {
        let rows = |first_row, end_row| HistoryRows { first_row, end_row, ..rows(end_row) };
        assert_eq!(none(&rows(4, 4)).as_deref(), Some("no rows there; the last one is 3"));
        assert_eq!(none(&rows(0, 0)).as_deref(), Some("no rows yet"));
        assert_eq!(none(&rows(3, 4)), None);
    }

    #[test]
    fn rows_that_are_left_are_counted_with_the_way_to_them() {
        assert_eq!(more(&rows(100)).as_deref(), Some("150 more rows; continue with --from 100"));
        assert_eq!(more(&rows(250)), None);
    }
}
