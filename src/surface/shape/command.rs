//! A command that ran, on the wire, and the part of its output that an answer has room for.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::activity::Evidence;
use crate::core::commands::record::{CommandId, CommandRecord};
use crate::core::ids::SessionId;
use crate::session::clock::Clock;

/// How many bytes of output one answer holds.
pub const OUTPUT_BYTES_MAX: usize = 24_000;
/// How many bytes of one line an answer holds.
const LINE_BYTES_MAX: usize = 4_000;

/// Where the whole output of a command is.
pub fn output_uri(session: SessionId, id: CommandId) -> String {
    format!("termgate://session/{session}/command/{}/output", id.0)
}

/// One command.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CommandWire {
    pub command_id: u64,
    /// What was sent, or what the shell read; at most 1 KB.
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    pub duration_ms: u64,
    /// `running`, `completed`, `not_run` or `exited`.
    pub status: &'static str,
    /// Null where nobody said.
    pub exit_code: Option<i32>,
    /// How its end is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<&'static str>,
    /// It had the whole screen to itself for a while.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full_screen: bool,
}

impl CommandWire {
    /// The command as it is now.
    pub fn of(record: &CommandRecord, clock: &Clock) -> Self {
        let now = clock.now();
        let wall = clock.wall_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let finish = record.finish;
        let ended = finish.map_or(now, |finish| finish.at);
        let ago = u64::try_from(now.since(record.started).as_millis()).unwrap_or(u64::MAX);
        Self {
            command_id: record.id.0,
            command: record.text.to_string(),
            cwd: record.directory.as_deref().map(str::to_owned),
            by: record.by.as_deref().map(str::to_owned),
            started: unix_ms.saturating_sub(ago),
            duration_ms: ended.since(record.started).as_millis() as u64,
            status: status_word(record),
            exit_code: finish.and_then(|finish| finish.code),
            evidence: finish.map(|finish| finish.evidence.as_str()),
            full_screen: record.full_screen,
        }
    }

    /// The command on one line.
    pub fn summary(&self) -> String {
        let code = match (self.status, self.exit_code) {
            ("running", _) => "running".to_owned(),
            (_, Some(code)) => format!("exit {code}"),
            (status, None) => format!("{status}, code unknown"),
        };
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let cwd = self.cwd.as_ref().map_or_else(String::new, |cwd| format!(" in {cwd}"));
        let first = self.command.lines().next().unwrap_or_default();
        format!("#{} {first} ({code}, {} ms{by}{cwd})", self.command_id, self.duration_ms)
    }
}

/// How far a command got.
pub fn status_word(record: &CommandRecord) -> &'static str {
    match record.finish {
        None => "running",
        Some(finish) if !finish.ran => "not_run",
        Some(finish) => match finish.evidence {
            Evidence::Exit => "exited",
            Evidence::Osc133 | Evidence::Kernel | Evidence::Pattern | Evidence::Idle => "completed",
        },
    }
}

/// The part of an output that an answer has room for: its head and its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    pub lines_total: usize,
    pub lines_left_out: usize,
}

impl Excerpt {
    /// As many lines of head and tail as wanted, as far as they fit; `left_out` makes the line that
    /// stands for the others.
    pub fn of(
        lines: &[String],
        head: usize,
        tail: usize,
        left_out: impl Fn(usize) -> String,
    ) -> Self {
        let total = lines.len();
        // What is wanted whole and does not fit is told by its two ends.
        let half = OUTPUT_BYTES_MAX / 2;
        let whole = head + tail >= total;
        let (head, tail) = if whole { (total, total) } else { (head, tail) };
        let first = fitting(lines.iter().take(head), if whole { OUTPUT_BYTES_MAX } else { half });
        let (first, last) = if whole && first == total {
            (total, 0)
        } else {
            let first = fitting(lines.iter().take(head), half);
            (first, fitting(lines[first..].iter().rev().take(tail), half))
        };
        let omitted = total - first - last;
        let mut shown: Vec<String> = lines[..first].iter().map(|line| cut(line)).collect();
        if omitted > 0 {
            shown.push(left_out(omitted));
        }
        shown.extend(lines[total - last..].iter().map(|line| cut(line)));
        Self { text: shown.join("\n"), lines_total: total, lines_left_out: omitted }
    }
}

/// How many of the lines fit into so many bytes.
fn fitting<'a>(lines: impl Iterator<Item = &'a String>, bytes_max: usize) -> usize {
    let mut left = bytes_max;
    let fits = |line: &&String| {
        let bytes = line.len().min(LINE_BYTES_MAX) + 1;
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    lines.take_while(fits).count()
}

/// A line that one answer has room for.
fn cut(line: &str) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return line.to_owned();
    }
    let end = line.floor_char_boundary(LINE_BYTES_MAX);
    format!("{}[… {} more bytes of this line]", &line[..end], line.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(lines: &[String], head: usize, tail: usize) -> Excerpt {
        Excerpt::of(lines, head, tail, |count| format!("[{count}]"))
    }

    fn numbers(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn what_fits_is_told_whole() {
        let told = excerpt(&numbers(4), 2, 2);
        assert_eq!((told.text.as_str(), told.lines_left_out), ("0\n1\n2\n3", 0));
        assert_eq!(excerpt(&[], 10, 10).text, "");
    }

    #[test]
    fn of_more_the_head_and_the_tail_are_told_and_the_rest_is_counted() {
        let told = excerpt(&numbers(10), 1, 2);
        assert_eq!(told.text, "0\n[7]\n8\n9");
        assert_eq!((told.lines_total, told.lines_left_out), (10, 7));
    }

    #[test]
    fn an_answer_stays_within_its_bytes_whatever_was_asked_for() {
        let lines = vec!["x".repeat(10_000); 100];
        let told = excerpt(&lines, 1_000, 1_000);
        assert!(told.text.len() < OUTPUT_BYTES_MAX + 2_000, "{}", told.text.len());
        let shown = told.text.lines().filter(|line| line.starts_with('x')).count();
        assert_eq!(shown + told.lines_left_out, 100);
        assert!(told.text.lines().last().unwrap().ends_with("[… 6000 more bytes of this line]"));
    }
}
