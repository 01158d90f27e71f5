//! `search`: finds lines and commands in all sessions that the caller sees, also in those that are gone.

use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::human_duration::rough;
use crate::core::one_line::one_line;
use crate::core::wait::line_matcher::LineMatcher;
use crate::core::wait::pattern::Pattern;
use crate::session::clock::Clock;
use crate::session::registry::Registry;
use crate::store::index::hits::{CommandHit, IndexHit};
use crate::surface::answer::budget::{escaped_bytes, fitting, json_bytes, room_left};
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::searching::{SearchFindings, SearchScope};
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::surface::turns::Share;
use crate::wire::search::{FoundCommand, SearchHit, SearchResults};
use crate::wire::untrusted::Untrusted;

const LIMIT_MAX: u64 = 100;
const LIMIT_DEFAULT: u64 = 20;
/// How many bytes of a line are told, and how many of them stand before the match.
const SNIPPET_BYTES: usize = 200;
const BEFORE_BYTES: usize = 60;
/// How many bytes a list has between two hits, for programs and for models.
const BETWEEN_BYTES: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Search {
    query: String,
    session: Option<String>,
    /// Up to 100 (default 20)
    limit: Option<u64>,
    /// Unix ms
    since: Option<u64>,
    #[serde(default)]
    regex: bool,
    snippets: Option<bool>,
}

impl Tool for Search {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search";
    const DESCRIPTION: &'static str = "Find lines and commands in all sessions, ended ones too.";
    const ACCESS: ToolAccess = ToolAccess::Read;

    type Result = SearchResults;

    async fn call(self, call: Call) -> Result<Answer<SearchResults>, SurfaceError> {
        let limit = within("limit", self.limit.unwrap_or(LIMIT_DEFAULT), 1..=LIMIT_MAX)? as usize;
        let share = call.share();
        let scope = SearchScope {
            sessions: call.daemon.sessions.clone(),
            index: call.daemon.index.clone(),
            standing: call.standing,
            session: self.session.filter(|given| !given.is_empty()),
            since_ms: self.since.unwrap_or(0),
            hits_max: limit,
        };
        let (query, regex, snippets) = (self.query, self.regex, self.snippets.unwrap_or(true));
        let own = share.clone();
        let search = move || {
            let found = match regex {
                true => search_pattern(&scope, &query, &own)?,
                false => {
                    let words = LineMatcher::words(&query);
                    let mut words =
                        words.map_err(|error| SurfaceError::pattern("query", &error))?;
                    scope.search(&mut words)?
                }
            };
            Ok(told(found, &scope.sessions, limit, snippets))
        };
        share.turn().await.work(search).await
    }
}

fn search_pattern(
    scope: &SearchScope,
    query: &str,
    share: &Share,
) -> Result<SearchFindings, SurfaceError> {
    let pattern = Pattern::regex(query).map_err(|error| SurfaceError::pattern("query", &error))?;
    let _reserved = share.reserve(pattern.bytes(1))?;
    scope.search(&mut LineMatcher::pattern(&pattern))
}

/// The answer, with as many hits as there is room for.
fn told(
    found: SearchFindings,
    sessions: &Registry,
    limit: usize,
    snippets: bool,
) -> Answer<SearchResults> {
    let now_ms = unix_ms(sessions.clock());
    let SearchFindings { hits, rows_skipped, incomplete } = found;
    let all = hits.len();
    let mut hits: Vec<SearchHit> =
        hits.into_iter().take(limit).map(|hit| hit_of(hit, sessions, snippets)).collect();
    let bytes =
        |hit: &SearchHit| json_bytes(hit) + escaped_bytes(&line_of(hit, now_ms)) + BETWEEN_BYTES;
    let around = (&incomplete, incomplete.as_deref().unwrap_or_default());
    let room = room_left(around.0, around.1).saturating_sub(100);
    hits.truncate(fitting(hits.iter().map(bytes), room).count);
    let more = hits.len() < all;
    let result = SearchResults { hits, more, rows_skipped, incomplete, untrusted: Untrusted };
    let mut lines: Vec<String> = result.hits.iter().map(|hit| line_of(hit, now_ms)).collect();
    if lines.is_empty() {
        lines.push("nothing found".to_owned());
    }
    lines.extend(result.remarks("limit").into_iter().map(|remark| format!("[{remark}]")));
    Answer { text: lines.join("\n"), result }
}

fn hit_of(hit: IndexHit, sessions: &Registry, snippets: bool) -> SearchHit {
    let IndexHit { session, name, row, at_ms, text, found, command } = hit;
    let command = command.map(|command| {
        let CommandHit { number, exit_code, directory, by, duration_ms } = command;
        FoundCommand { command_id: number, exit_code, duration_ms, cwd: directory, by }
    });
    SearchHit {
        session: session.to_string(),
        name,
        row,
        at: at_ms,
        snippet: snippets.then(|| snippet(&text, found.start)),
        command,
        gone: sessions.known_by_id(session).is_none(),
    }
}

/// The line around a match.
fn snippet(text: &str, at: usize) -> String {
    if text.len() <= SNIPPET_BYTES {
        return one_line(text).into_owned();
    }
    let last_start = text.len() - SNIPPET_BYTES;
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES).min(last_start));
    let end = text.floor_char_boundary(start + SNIPPET_BYTES);
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{}{after}", one_line(&text[start..end]))
}

fn line_of(hit: &SearchHit, now_ms: u64) -> String {
    let SearchHit { session, name, row, at, .. } = hit;
    let gone = if hit.gone { ", gone" } else { "" };
    let ago = rough(now_ms.saturating_sub(*at));
    let command = hit.command.as_ref().map_or_else(String::new, |command| {
        let code = command.exit_code.map_or_else(|| "?".to_owned(), |code| code.to_string());
        format!(" command {} (exit {code})", command.command_id)
    });
    let text = hit.snippet.as_deref().map_or_else(String::new, |text| format!(": {text}"));
    format!("{name} ({session}{gone}) row {row}, {ago} ago{command}{text}")
}

fn unix_ms(clock: &Clock) -> u64 {
    let since = clock.wall_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_the_match_of_a_long_line() {
        let text = format!("{}needle{}", "é".repeat(300), "x".repeat(300));
        let shown = snippet(&text, 600);
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("needle"), "{shown}");
        assert!(shown.len() <= SNIPPET_BYTES + 2 * '…'.len_utf8(), "{}", shown.len());
        let at_end = snippet(&format!("{}needle", "x".repeat(300)), 300);
        assert!(at_end.ends_with("needle"), "{at_end}");
        assert_eq!(snippet("short\u{1b}line", 0), "short\\u{1b}line");
    }
}
