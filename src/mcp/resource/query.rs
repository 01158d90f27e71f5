//! Parses the queries of resource URIs. Each error names its parameter.

use std::fmt::Display;
use std::str::FromStr;

use crate::surface::control::list_events::ListEvents;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::read_history::{HistoryFormat, ReadHistory};
use crate::wire::line::Format;

/// How many events a resource has unless its query says another number.
const EVENTS: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridQuery {
    pub since: Option<u64>,
    pub top: u16,
    pub rows: Option<u16>,
    pub format: Format,
}

impl GridQuery {
    /// Parses the text after the question mark.
    pub fn parse(query: &str) -> Result<Self, SurfaceError> {
        const FORMATS: [(&str, Format); 4] = [
            ("plain", Format::Plain),
            ("styled", Format::Styled),
            ("ansi", Format::Ansi),
            ("cells", Format::Cells),
        ];
        let mut grid = Self::default();
        for (name, value) in pairs(query) {
            match name {
                "since" => grid.since = Some(number(name, value, u64::MAX)?),
                "top" => grid.top = number(name, value, u16::MAX)?,
                "rows" => grid.rows = Some(number(name, value, u16::MAX)?),
                "format" => grid.format = word(name, value, &FORMATS)?,
                _ => return Err(unknown(name, &["since", "top", "rows", "format"])),
            }
        }
        Ok(grid)
    }
}

/// Parses the query of history, as the parameters of `read_history`.
pub(super) fn history(query: &str) -> Result<ReadHistory, SurfaceError> {
    const MODES: [(&str, HistoryFormat); 4] = [
        ("plain", HistoryFormat::Plain),
        ("ansi", HistoryFormat::Ansi),
        ("cells", HistoryFormat::Cells),
        ("json", HistoryFormat::Cells),
    ];
    let mut history = ReadHistory::default();
    for (name, value) in pairs(query) {
        match name {
            "start_row" => history.start_row = Some(number(name, value, u64::MAX)?),
            "count" => history.count = Some(number(name, value, u64::MAX)?),
            "mode" => history.format = word(name, value, &MODES)?,
            _ => return Err(unknown(name, &["start_row", "count", "mode"])),
        }
    }
    Ok(history)
}

/// Parses the query of events, as the parameters of `list_events`.
pub(super) fn events(query: &str) -> Result<ListEvents, SurfaceError> {
    let mut events = ListEvents { limit: EVENTS, ..ListEvents::default() };
    for (name, value) in pairs(query) {
        match name {
            "since" => events.since = Some(number(name, value, u64::MAX)?),
            "session" => events.session = Some(value.to_owned()),
            "kind" => events.kind = Some(value.to_owned()),
            "limit" => events.limit = number(name, value, usize::MAX)?,
            _ => return Err(unknown(name, &["since", "session", "kind", "limit"])),
        }
    }
    Ok(events)
}

/// Finds the value of the only parameter that a resource has.
pub(super) fn only<'a>(query: &'a str, known: &str) -> Result<Option<&'a str>, SurfaceError> {
    let mut given = None;
    for (name, value) in pairs(query) {
        if name != known {
            return Err(unknown(name, &[known]));
        }
        given = Some(value);
    }
    Ok(given)
}

/// The same, where it is a number.
pub(super) fn only_number(query: &str, known: &str) -> Result<Option<u64>, SurfaceError> {
    only(query, known)?.map(|value| number(known, value, u64::MAX)).transpose()
}

/// Rejects any query, for a resource without parameters.
pub(super) fn none(query: &str) -> Result<(), SurfaceError> {
    match pairs(query).next() {
        Some((name, _)) => Err(unknown(name, &[])),
        None => Ok(()),
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn number<T: FromStr + Display>(name: &str, value: &str, most: T) -> Result<T, SurfaceError> {
    let misfit = format!("`{value:.60}` is not a whole number from 0 to {most}");
    value.parse().map_err(|_| SurfaceError::argument(name, misfit))
}

fn word<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, SurfaceError> {
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meant)| *meant);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let problem = format!("`{value:.60}` is not one of {}", words.join(", "));
        SurfaceError::argument(name, problem)
    })
}

fn unknown(name: &str, names: &[&str]) -> SurfaceError {
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let name: String = name.chars().take(60).collect();
    SurfaceError::argument(name, format!("no such parameter; there are: {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(error: SurfaceError) -> String {
        let SurfaceError::Argument { parameter, .. } = error else { panic!("{error}") };
        parameter
    }

    #[test]
    fn parameters_are_read_by_their_names() {
        let query = GridQuery::parse("since=7&rows=3&&format=cells").unwrap();
        assert_eq!(
            query,
            GridQuery { since: Some(7), top: 0, rows: Some(3), format: Format::Cells }
        );
        let query = history("start_row=5&mode=json").unwrap();
        let format = HistoryFormat::Cells;
        let expected = ReadHistory { start_row: Some(5), format, ..ReadHistory::default() };
        assert_eq!(query, expected);
        assert_eq!(only_number("from_line=9", "from_line").unwrap(), Some(9));
        assert_eq!(only("after=b", "after").unwrap(), Some("b"));
        assert_eq!(GridQuery::parse("").unwrap(), GridQuery::default());
        assert!(none("").is_ok());
    }

    #[test]
    fn a_parameter_that_cannot_be_read_is_named() {
        for (query, parameter) in [
            ("since=abc", "since"),
            ("since", "since"),
            ("since=-1", "since"),
            ("top=65536", "top"),
            ("rows=1.5", "rows"),
            ("since=1&format=red", "format"),
            ("colour=1", "colour"),
        ] {
            assert_eq!(named(GridQuery::parse(query).unwrap_err()), parameter, "{query}");
        }
        for (query, parameter) in
            [("start_row=x", "start_row"), ("mode=", "mode"), ("since=1", "since")]
        {
            assert_eq!(named(history(query).unwrap_err()), parameter, "{query}");
        }
        assert_eq!(named(only_number("from_line=x", "from_line").unwrap_err()), "from_line");
        assert_eq!(named(only_number("since=1", "from_line").unwrap_err()), "since");
        assert_eq!(named(none("since=1").unwrap_err()), "since");
    }
}
