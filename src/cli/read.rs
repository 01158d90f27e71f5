//! `read`: the screen of a session.

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::lost::lost;
use crate::cli::output::Report;
use crate::cli::rows::numbered;
use crate::core::frame::Size;

/// Print the screen of a session
#[derive(Debug, Args)]
pub struct Read {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// How to print it; styled and cells are one JSON object a row
    #[arg(long, value_enum, default_value_t = Format::Plain)]
    format: Format,
    /// Only the rows that changed after this watermark, each with its number
    #[arg(long, value_name = "WATERMARK")]
    since: Option<u64>,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Plain,
    Styled,
    Ansi,
    Cells,
}

impl Format {
    fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Styled => "styled",
            Self::Ansi => "ansi",
            Self::Cells => "cells",
        }
    }

    fn text(self, screen: &Value) -> String {
        let lines = &screen["lines"];
        match self {
            Self::Plain | Self::Ansi => {
                screen["text"].as_str().map_or_else(|| numbered(lines), str::to_owned)
            }
            Self::Styled | Self::Cells => {
                let lines = lines.as_array().map(Vec::as_slice).unwrap_or_default();
                lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Read {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let arguments = json!({
            "session": self.session,
            "format": self.format.word(),
            "since": self.since,
            // As much as one answer can hold.
            "count": Size::SIDE_MAX,
        });
        let answer = context.daemon().await?.call("read_screen", arguments).await?;
        let text = self.format.text(&answer.data);
        let (lost, left_out) = (lost(&answer.data), left_out(&answer.data));
        let mut report = answer.report(text);
        report.notes.extend(lost);
        report.notes.extend(left_out);
        Ok(report)
    }
}

/// How to go on, where the screen is larger than an answer.
fn left_out(screen: &Value) -> Option<String> {
    let (rows, top) = (screen["rows_left_out"].as_u64()?, screen["next_top"].as_u64()?);
    let session = screen["session"].as_str()?;
    Some(format!(
        "{rows} more rows: `termgate call read_screen session={session} top={top} --json` goes on"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_screen_is_printed_as_it_stands() {
        let screen = json!({"text": "a\nb", "watermark": 4});
        assert_eq!(Format::Plain.text(&screen), "a\nb");
    }

    #[test]
    fn rows_that_no_answer_has_room_for_are_told_with_the_way_to_them() {
        let screen = json!({"session": "0a", "rows_left_out": 30, "next_top": 70});
        let told = left_out(&screen).unwrap();
        assert!(told.starts_with("30 more rows: ") && told.contains("session=0a top=70"), "{told}");
        assert_eq!(left_out(&json!({"session": "0a"})), None);
    }

    #[test]
    fn what_changed_is_printed_with_row_numbers() {
        let screen = json!({"lines": [{"row": 3, "text": "c"}], "watermark": 4});
        assert_eq!(Format::Plain.text(&screen), "3: c");
    }

    #[test]
    fn what_is_more_than_text_is_printed_as_one_object_a_row() {
        let lines = json!([{"row": 3, "text": "c"}, {"row": 4, "text": "d"}]);
        let text = Format::Styled.text(&json!({"lines": lines}));
        let rows: Vec<Value> = text.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(json!(rows), lines);
    }
}
