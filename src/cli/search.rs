//! `search`: prints lines and commands of all sessions, also of those that are gone.

use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis, parse_duration};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::core::human_duration::rough;
use crate::wire::search::{SearchHit, SearchResults};

const HEAD: [&str; 5] = ["SESSION", "ROW", "SINCE", "EXIT", "TEXT"];

/// Search the output and the commands of all sessions
///
/// Removed sessions are included. A line matches if it has all words, in any order and case; a word also matches the
/// beginning of a longer one.
#[derive(Debug, Args)]
pub struct SearchCommand {
    /// The words to search for
    #[arg(required = true)]
    words: Vec<String>,
    /// Only in this session: id, unique prefix of one, or name
    #[arg(long, add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// Print at most this many hits, up to 100 [default: 20]
    #[arg(long, value_name = "COUNT", value_parser = number::<u64>)]
    limit: Option<u64>,
    /// Only what is at most this old
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Search for a regular expression
    #[arg(long)]
    regex: bool,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("query", "WORDS"), ("session", "--session"), ("limit", "--limit"), ("since", "--since")];

impl SearchCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let now = context.output.clock().wall_time().duration_since(UNIX_EPOCH);
        let now_ms = millis(now.unwrap_or_default());
        let arguments = json!({
            "query": self.words.join(" "),
            "session": self.session,
            "limit": self.limit,
            "since": self.since.map(|since| now_ms.saturating_sub(millis(since))),
            "regex": self.regex,
        });
        let answer = context.daemon().await?.call("search", arguments).await?;
        let results: SearchResults = answer.read()?;
        let nothing = results.hits.is_empty().then(|| "nothing found".to_owned());
        let notes = nothing.into_iter().chain(results.remarks("--limit")).collect();
        Ok(CommandReport { notes, ..answer.report(table(&results.hits, now_ms)) })
    }
}

/// A table of the hits; empty when there are none.
fn table(hits: &[SearchHit], now_ms: u64) -> String {
    let rows: Vec<_> = hits.iter().map(|hit| cells(hit, now_ms)).collect();
    if rows.is_empty() { String::new() } else { render(HEAD, &rows) }
}

fn cells(hit: &SearchHit, now_ms: u64) -> [String; 5] {
    // Names of sessions that are gone may belong to others by now.
    let session = if hit.gone { &hit.session } else { &hit.name };
    let code = hit.command.as_ref().map_or_else(String::new, |command| {
        command.exit_code.map_or_else(|| "?".to_owned(), |code| code.to_string())
    });
    [
        session.clone(),
        hit.row.to_string(),
        format!("{} ago", rough(now_ms.saturating_sub(hit.at))),
        code,
        hit.snippet.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::search::FoundCommand;

    #[test]
    fn a_hit_is_one_line() {
        let line = SearchHit {
            session: "00000000000a".to_owned(),
            name: "build".to_owned(),
            row: 12,
            at: 1_000,
            snippet: Some("error: no".to_owned()),
            command: None,
            gone: false,
        };
        assert_eq!(cells(&line, 62_000), ["build", "12", "1m1s ago", "", "error: no"]);
        let command =
            FoundCommand { command_id: 3, exit_code: None, duration_ms: 5, cwd: None, by: None };
        let gone = SearchHit { gone: true, command: Some(command), ..line };
        assert_eq!(cells(&gone, 62_000), ["00000000000a", "12", "1m1s ago", "?", "error: no"]);
        assert_eq!(table(&[], 0), "");
    }
}
