//! A command that ran, and the part of its output that an answer has room for.

use std::sync::Arc;
use std::time::SystemTime;

use crate::core::counted::counted;
use crate::core::human_duration::measured;
use crate::core::ids::SessionId;
use crate::core::one_line::one_line;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::session::clock::Clock;
use crate::surface::answer::budget::{
    IN_LIST, TextBounds, abridged, cut, escaped_bytes, fitting, room_left,
};
use crate::wire::command::{CommandStatus, CommandWire};
use crate::wire::word;

/// How many bytes of one line an answer holds, and how many what is said of the others takes.
const LINE_BYTES_MAX: usize = 4_000;
const CUT_BYTES: usize = 60;

/// How many bytes the end of a line takes.
pub const LINE_END_BYTES: usize = 2;

/// What a command has that is told alone: its text whole, and a directory as long as they get.
pub const ALONE: TextBounds =
    TextBounds { title: 0, command: 6 * CommandRecord::TEXT_MAX, cwd: 4_096 };

/// Where the whole output of a command is.
pub fn output_uri(session: SessionId, id: CommandId) -> String {
    format!("termgate://session/{session}/command/{}/output", id.0)
}

impl CommandWire {
    /// The command as it is now.
    pub fn of(record: &CommandRecord, clock: &Clock) -> Self {
        let (now, wall) = clock.now_by_wall();
        let wall = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
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
            status: record.into(),
            exit_code: finish.and_then(|finish| finish.code),
            evidence: finish.map(|finish| finish.evidence.into()),
            full_screen: record.full_screen,
            cut: false,
        }
    }

    /// The same with so much of its text and of its directory.
    #[must_use]
    pub fn within(self, most: TextBounds) -> Self {
        let command = abridged(&self.command, most.command);
        let cwd = self.cwd.as_deref().map(|cwd| abridged(cwd, most.cwd));
        let cut = self.cut || command != self.command || cwd != self.cwd;
        Self { command, cwd, cut, ..self }
    }

    /// The command on one line.
    pub fn summary(&self) -> String {
        let code = match (self.status, self.exit_code) {
            (CommandStatus::Running, _) => "running".to_owned(),
            (_, Some(code)) => format!("exit {code}"),
            (status, None) => format!("{}, code unknown", word(&status)),
        };
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let cwd = self.cwd.as_ref().map_or_else(String::new, |cwd| {
            format!(" in {}", abridged(&one_line(cwd), IN_LIST.cwd))
        });
        let command = abridged(&one_line(&self.command), IN_LIST.command);
        format!("#{} {command} ({code}, {}{by}{cwd})", self.command_id, measured(self.duration_ms))
    }
}

/// How many lines of an output are wanted from its beginning and from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptLines {
    pub head: usize,
    pub tail: usize,
}

/// The part of an output that an answer has room for: its head and its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    pub lines_total: usize,
    pub lines_left_out: usize,
    /// Where the whole output is, when this is not.
    pub rest: Option<String>,
}

impl Excerpt {
    /// As many lines of head and tail as wanted, as far as they fit into `room` bytes of JSON; one
    /// line stands for the others.
    ///
    /// The whole output is at `uri`.
    pub fn of(lines: &[String], wanted: ExcerptLines, room: usize, uri: &str) -> Self {
        let line_max = LINE_BYTES_MAX.min(room / 4);
        let notice = |count: usize| format!("[… {} left out: {uri}]", counted(count, "line"));
        // It stands in the text, and the URI once more beside it.
        let room = room.saturating_sub(2 * escaped_bytes(&notice(usize::MAX)));
        let cost = |line: &String| escaped_bytes(line).min(line_max + CUT_BYTES) + LINE_END_BYTES;
        let total = lines.len();
        let all = wanted.head.saturating_add(wanted.tail) >= total
            && fitting(lines.iter().map(cost), room).count == total;
        let (first, last) = if all {
            (total, 0)
        } else {
            let tail = |from: usize| lines[from..].iter().rev().take(wanted.tail).map(cost);
            // What one end does not need of its half is the other's.
            let least = fitting(tail(0), room / 2).bytes;
            let head = fitting(lines.iter().take(wanted.head).map(cost), room - least);
            (head.count, fitting(tail(head.count), room - head.bytes).count)
        };
        let omitted = total - first - last;
        let mut shown: Vec<String> =
            lines[..first].iter().map(|line| cut(line, line_max)).collect();
        if omitted > 0 {
            shown.push(notice(omitted));
        }
        let told = lines[..first].iter().chain(&lines[total - last..]);
        let whole = omitted == 0 && told.clone().all(|line| escaped_bytes(line) <= line_max);
        shown.extend(lines[total - last..].iter().map(|line| cut(line, line_max)));
        Self {
            text: shown.join("\n"),
            lines_total: total,
            lines_left_out: omitted,
            rest: (!whole).then(|| uri.to_owned()),
        }
    }
}

/// The newest of these commands whose sizes fit into one result, at most so many, oldest first.
pub fn newest_that_fit<'a>(
    records: impl DoubleEndedIterator<Item = &'a Arc<CommandRecord>>,
    limit: usize,
    clock: &Clock,
    bytes: impl Fn(&CommandWire) -> usize,
) -> Vec<CommandWire> {
    let newest = records.rev().take(limit);
    let mut commands: Vec<_> =
        newest.map(|record| CommandWire::of(record, clock).within(IN_LIST)).collect();
    let room = room_left(&"", "");
    commands.truncate(fitting(commands.iter().map(bytes), room).count);
    commands.reverse();
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::answer::budget::json_bytes;

    const URI: &str = "uri";
    const ROOM: usize = 12_000;

    fn excerpt(lines: &[String], head: usize, tail: usize) -> Excerpt {
        Excerpt::of(lines, ExcerptLines { head, tail }, ROOM, URI)
    }

    fn numbers(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn what_fits_is_told_whole() {
        let told = excerpt(&numbers(4), 2, 2);
        assert_eq!((told.text.as_str(), told.lines_left_out), ("0\n1\n2\n3", 0));
        assert_eq!(told.rest, None);
        assert_eq!(excerpt(&[], 10, 10).text, "");
        assert_eq!(excerpt(&numbers(4), 0, 2_000).text, "0\n1\n2\n3");
    }

    #[test]
    fn of_more_the_head_and_the_tail_are_told_and_the_rest_is_counted() {
        let told = excerpt(&numbers(10), 1, 2);
        assert_eq!(told.text, "0\n[… 7 lines left out: uri]\n8\n9");
        assert_eq!((told.lines_total, told.lines_left_out), (10, 7));
        assert_eq!(told.rest.as_deref(), Some(URI));
    }

    #[test]
    fn an_answer_stays_within_its_bytes_whatever_was_asked_for_and_whatever_stands_in_it() {
        for line in ["x", "\"", "\\\"", "漢", "\u{1}"] {
            let lines = vec![line.repeat(10_000); 100];
            let told = excerpt(&lines, 1_000, 1_000);
            assert!(json_bytes(&told.text) < ROOM, "{line}: {}", told.text.len());
            let shown = told.text.lines().filter(|it| it.starts_with(line)).count();
            assert!(shown >= 2, "{line}: {shown}");
            assert_eq!(shown + told.lines_left_out, 100);
            assert!(told.text.ends_with(" more bytes of this line]"));
        }
    }

    #[test]
    fn a_line_that_is_cut_is_somewhere_whole() {
        let told = excerpt(&["x".repeat(10_000)], 10, 10);
        assert_eq!((told.lines_left_out, told.rest.as_deref()), (0, Some(URI)));
        assert!(told.text.ends_with("x[… 7000 more bytes of this line]"), "{}", told.text);
    }

    #[test]
    fn of_an_output_without_room_whoever_wants_one_end_is_told_that_end_alone() {
        let lines: Vec<String> = (0..200).map(|number| format!("{number:0100}")).collect();
        let tail = excerpt(&lines, 0, 2_000);
        assert!(tail.text.starts_with("[… "), "{}", tail.text);
        assert!(tail.text.ends_with(&lines[199]));
        assert!(json_bytes(&tail.text) > ROOM * 9 / 10, "all room is for it");
        let head = excerpt(&lines, 2_000, 0);
        assert!(head.text.starts_with(&lines[0]) && head.text.ends_with(" lines left out: uri]"));
        assert!(json_bytes(&head.text) > ROOM * 9 / 10, "all room is for it");
    }

    #[test]
    fn what_one_end_does_not_need_is_room_for_the_other() {
        let lines: Vec<String> = (0..200).map(|number| format!("{number:0100}")).collect();
        for (head, tail) in [(1, 2_000), (2_000, 1)] {
            let told = excerpt(&lines, head, tail);
            assert!(json_bytes(&told.text) > ROOM * 9 / 10, "{head}, {tail}: {}", told.text.len());
            assert!(told.text.starts_with(&lines[0]) && told.text.ends_with(&lines[199]));
        }
    }

    #[test]
    fn a_command_and_its_directory_stand_on_one_line() {
        let told = CommandWire {
            command_id: 1,
            command: "true\nfalse".to_owned(),
            cwd: Some("/a\u{2028}b".to_owned()),
            by: None,
            started: 0,
            duration_ms: 5,
            status: CommandStatus::Exited,
            exit_code: Some(0),
            evidence: None,
            full_screen: false,
            cut: false,
        };
        assert_eq!(told.summary(), r"#1 true\nfalse (exit 0, 5ms in /a\u{2028}b)");
    }
}
