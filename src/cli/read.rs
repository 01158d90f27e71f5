//! `read`: prints the screen of a session.

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde::Serialize;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::cli::table::numbered;
use crate::core::counted::counted;
use crate::core::frame::Size;
use crate::wire::screen::ScreenWire;
use crate::wire::session::GapWire;

/// Print the screen of a session
#[derive(Debug, Args)]
pub struct ReadCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// The format of rows; styled and cells print one JSON object per row
    #[arg(long, value_enum, default_value_t = ReadFormat::Plain)]
    format: ReadFormat,
    /// Print only the rows that changed after this watermark, with their numbers
    #[arg(long, value_name = "WATERMARK", value_parser = number::<u64>)]
    since: Option<u64>,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReadFormat {
    Plain,
    Styled,
    Ansi,
    Cells,
}

impl ReadFormat {
    fn text(self, screen: &ScreenWire) -> String {
        let lines = screen.lines.as_deref().unwrap_or_default();
        match self {
            Self::Plain | Self::Ansi => screen.text.clone().unwrap_or_else(|| numbered(lines)),
            Self::Styled | Self::Cells => {
                lines.iter().map(|line| json!(line).to_string()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("session", "SESSION"), ("format", "--format"), ("since", "--since")];

impl ReadCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({
            "session": self.session,
            "format": self.format,
            "since": self.since,
            // The most that one answer can contain.
            "count": Size::SIDE_MAX,
        });
        let answer = context.daemon().await?.call("read_screen", arguments).await?;
        let screen: ScreenWire = answer.read()?;
        let notes = screen.lost_output.iter().map(GapWire::remark).chain(left_out(&screen));
        Ok(CommandReport { notes: notes.collect(), ..answer.report(self.format.text(&screen)) })
    }
}

/// How to read the remaining rows of a screen that is larger than one answer.
fn left_out(screen: &ScreenWire) -> Option<String> {
    let (rows, top, session) = (screen.rows_left_out?, screen.next_top?, &screen.session);
    Some(format!(
        "{}: `termgate call read_screen session={session} top={top} --json` reads the rest",
        counted(rows, "more row")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn screen(more: Value) -> ScreenWire {
        let mut screen = json!({
            "session": "0a", "watermark": 4, "reset": false, "cols": 80, "rows": 24, "base_row": 0,
            "cursor": {"row": 0, "col": 0, "visible": true}, "mode": "normal", "title": "",
            "activity": {"state": "prompt", "evidence": "osc133", "echo": true, "canonical": true},
        });
        screen.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(screen).unwrap()
    }

    #[test]
    fn the_whole_screen_is_printed_as_it_stands() {
        assert_eq!(ReadFormat::Plain.text(&screen(json!({"text": "a\nb"}))), "a\nb");
    }

    #[test]
    fn rows_that_no_answer_has_room_for_are_counted_with_the_way_to_them() {
        let left = left_out(&screen(json!({"rows_left_out": 30, "next_top": 70}))).unwrap();
        assert!(left.starts_with("30 more rows: ") && left.contains("session=0a top=70"), "{left}");
        assert_eq!(left_out(&screen(json!({}))), None);
    }

    #[test]
    fn changes_are_printed_with_row_numbers() {
        let screen = screen(json!({"lines": [{"row": 3, "text": "c"}]}));
        assert_eq!(ReadFormat::Plain.text(&screen), "3: c");
    }

    #[test]
    fn styled_rows_are_printed_as_one_object_a_row() {
        let lines = json!([{"row": 3, "text": "c"}, {"row": 4, "text": "d"}]);
        let text = ReadFormat::Styled.text(&screen(json!({"lines": lines})));
        let rows: Vec<Value> = text.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(json!(rows), lines);
    }
}
