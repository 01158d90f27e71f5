//! Reads asciicast files, version 3 and 2, of anybody: each line is checked, and bounded.

use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use serde::Deserialize;

use crate::core::frame::Size;
use crate::session::recording::asciicast::CastEvent;

/// The longest line, in bytes.
const LINE_MAX: u64 = 16 << 20;

/// The longest pause that is read, as longer ones are of no use to anybody.
const PAUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Why a file cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum CastError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is not a recording in asciicast format")]
    Foreign,
    #[error("it is in version {0} of the asciicast format, and versions 2 and 3 are known")]
    Version(u64),
    #[error("line {line}: {what}")]
    Broken { line: u64, what: &'static str },
}

/// An event, and when it happens after the begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    pub at: Duration,
    pub event: CastEvent,
}

/// What is needed of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastFacts {
    pub size: Size,
    pub title: Option<String>,
}

#[derive(Deserialize)]
struct HeaderLine {
    version: u64,
    width: Option<u64>,
    height: Option<u64>,
    term: Option<TermLine>,
    title: Option<String>,
}

#[derive(Deserialize)]
struct TermLine {
    cols: u64,
    rows: u64,
}

/// The events of a recording, in their order.
#[derive(Debug)]
pub struct CastReader<R> {
    input: R,
    facts: CastFacts,
    /// Times are of the begin, as in version 2.
    is_absolute: bool,
    line: u64,
    at: Duration,
    is_over: bool,
}

impl<R: BufRead> CastReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(mut input: R) -> Result<Self, CastError> {
        let line = line_of(&mut input, 1)?.ok_or(CastError::Foreign)?;
        let header: HeaderLine = serde_json::from_slice(&line).map_err(|_| CastError::Foreign)?;
        let (cols, rows) = match (header.version, header.term, header.width, header.height) {
            (3, Some(term), ..) => (term.cols, term.rows),
            (2, _, Some(width), Some(height)) => (width, height),
            (2 | 3, ..) => return Err(broken(1, "the size of the terminal is missing")),
            (version, ..) => return Err(CastError::Version(version)),
        };
        let size = checked(cols, rows).ok_or(broken(1, "no terminal has this size"))?;
        let facts = CastFacts { size, title: header.title };
        let is_absolute = header.version == 2;
        Ok(Self { input, facts, is_absolute, line: 1, at: Duration::ZERO, is_over: false })
    }

    pub fn facts(&self) -> &CastFacts {
        &self.facts
    }

    /// The next event of a kind that is known. A last line that was not written to its end is left out.
    fn read(&mut self) -> Result<Option<TimedEvent>, CastError> {
        loop {
            self.line += 1;
            let Some(line) = line_of(&mut self.input, self.line)? else { return Ok(None) };
            if line.starts_with(b"#") || line.trim_ascii().is_empty() {
                continue;
            }
            let is_whole = line.ends_with(b"\n");
            let read = serde_json::from_slice::<(f64, String, serde_json::Value)>(&line);
            let Ok((time, code, data)) = read else {
                return if is_whole { Err(broken(self.line, "not an event")) } else { Ok(None) };
            };
            let time = Duration::try_from_secs_f64(time.max(0.0));
            let time = time.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
            self.at = if self.is_absolute { time.max(self.at) } else { self.at + time };
            if let Some(event) = self.event(&code, &data)? {
                return Ok(Some(TimedEvent { at: self.at, event }));
            }
        }
    }

    fn event(&self, code: &str, data: &serde_json::Value) -> Result<Option<CastEvent>, CastError> {
        let wrong = |what| broken(self.line, what);
        let text = data.as_str();
        Ok(Some(match code {
            "o" => CastEvent::Output(text.ok_or(wrong("its output is no text"))?.to_owned()),
            "m" => CastEvent::Marker(text.unwrap_or_default().to_owned()),
            "r" => {
                let sides = text.and_then(|text| text.split_once('x'));
                let number = |side: &str| side.parse().ok();
                let size = sides.and_then(|(cols, rows)| checked(number(cols)?, number(rows)?));
                CastEvent::Resize(size.ok_or(wrong("no terminal has this size"))?)
            }
            "x" => {
                let code = text.map_or_else(|| data.as_i64(), |text| text.parse().ok());
                let code = code.and_then(|code| i32::try_from(code).ok());
                CastEvent::Exit(code.ok_or(wrong("its exit code is no number"))?)
            }
            // Input, and what players do not need to know.
            _ => return Ok(None),
        }))
    }
}

impl<R: BufRead> Iterator for CastReader<R> {
    type Item = Result<TimedEvent, CastError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = self.read().transpose();
        self.is_over = !matches!(read, Some(Ok(_)));
        read
    }
}

fn broken(line: u64, what: &'static str) -> CastError {
    CastError::Broken { line, what }
}

fn checked(cols: u64, rows: u64) -> Option<Size> {
    Size::checked(u16::try_from(rows).ok()?, u16::try_from(cols).ok()?, Size::CELLS_MAX)
}

/// A line with its end; `None` at the end of the file.
fn line_of(input: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>, CastError> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
    if line.len() as u64 == LINE_MAX && !line.ends_with(b"\n") {
        return Err(broken(number, "it is too long"));
    }
    Ok((!line.is_empty()).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"version":3,"term":{"cols":80,"rows":24},"title":"t"}"#;

    fn read(text: &str) -> Result<Vec<TimedEvent>, CastError> {
        CastReader::open(text.as_bytes())?.collect()
    }

    fn at(millis: u64, event: CastEvent) -> TimedEvent {
        TimedEvent { at: Duration::from_millis(millis), event }
    }

    #[test]
    fn times_of_version_3_add_up_and_comments_and_unknown_events_are_skipped() {
        let text = format!(
            "{HEADER}\n[0.25, \"o\", \"a\"]\n# remark\n[0.5, \"i\", \"secret\"]\n\
             [0.25, \"r\", \"100x30\"]\n[0, \"m\", \"$ ls\"]\n[1, \"x\", \"3\"]\n"
        );
        let size = Size { rows: 30, cols: 100 };
        let expected = [
            at(250, CastEvent::Output("a".to_owned())),
            at(1_000, CastEvent::Resize(size)),
            at(1_000, CastEvent::Marker("$ ls".to_owned())),
            at(2_000, CastEvent::Exit(3)),
        ];
        assert_eq!(read(&text).unwrap(), expected);
    }

    #[test]
    fn times_of_version_2_count_from_the_begin() {
        let text =
            "{\"version\":2,\"width\":80,\"height\":24}\n[0.5,\"o\",\"a\"]\n[0.75,\"o\",\"b\"]\n";
        let times: Vec<_> = read(text).unwrap().iter().map(|event| event.at.as_millis()).collect();
        assert_eq!(times, [500, 750]);
    }

    #[test]
    fn a_last_line_that_was_cut_is_left_out_and_any_other_is_an_error() {
        let whole = format!("{HEADER}\n[0.5,\"o\",\"a\"]\n");
        assert_eq!(read(&format!("{whole}[0.7,\"o\",\"b")).unwrap().len(), 1);
        let broken = read(&format!("{whole}[0.7,\"o\",\"b\n[0,\"o\",\"c\"]\n")).unwrap_err();
        assert_eq!(broken.to_string(), "line 3: not an event");
    }

    #[test]
    fn what_is_no_recording_is_refused_with_the_reason() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        for foreign in ["", "hello\n", "{}\n", "[1,2]\n", "\u{1b}ELF\n"] {
            assert_eq!(said(foreign), "it is not a recording in asciicast format", "{foreign}");
        }
        assert!(said("{\"version\":1}\n").contains("version 1"));
        assert!(said("{\"version\":3}\n").contains("the size of the terminal is missing"));
        let huge = HEADER.replace("80", "100000");
        assert_eq!(said(&huge), "line 1: no terminal has this size");
        let resized = format!("{HEADER}\n[0,\"r\",\"0x0\"]\n");
        assert_eq!(said(&resized), "line 2: no terminal has this size");
    }

    #[test]
    fn no_time_is_too_long_or_runs_backwards() {
        let text = format!("{HEADER}\n[1e300,\"o\",\"a\"]\n[-5,\"o\",\"b\"]\n");
        let times: Vec<_> = read(&text).unwrap().iter().map(|event| event.at).collect();
        assert_eq!(times, [PAUSE_MAX, PAUSE_MAX]);
    }
}
