//! The part of a command's output that an answer has room for.

use std::borrow::Cow;

use crate::core::counted::counted;
use crate::core::shell::commands::output::Output;
use crate::surface::answer::budget::{cut, escaped_bytes, fitting};

/// How many bytes of one line an answer holds, and how many what is said of the others takes.
const LINE_BYTES_MAX: usize = 4_000;
const CUT_BYTES: usize = 60;

/// How many bytes the end of a line takes.
pub const LINE_END_BYTES: usize = 2;

/// How many bytes of a line are searched for words of trouble.
const SEARCHED_BYTES_MAX: usize = 1_000;

/// Words that name an error or a warning, the graver ones first, in lower case.
const TROUBLE: [&[&str]; 2] = [
    &["error", "fail", "fatal", "panic", "exception", "traceback", "undefined", "cannot", "denied"],
    &["warn"],
];

/// How many lines of an output are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptLines {
    /// From its beginning.
    pub head: usize,
    /// From its end.
    pub tail: usize,
    /// Of those between, lines that name an error or a warning.
    pub trouble: usize,
    /// Many equal lines that follow each other are told once.
    pub equal_once: bool,
}

impl ExcerptLines {
    /// So many lines, most of them from the end, where it is said how things went.
    pub fn of_result(lines: usize) -> Self {
        let (head, trouble) = ((lines / 8).max(usize::from(lines > 2)), lines / 4);
        Self { head, tail: lines - head - trouble, trouble, equal_once: true }
    }

    fn sum(&self) -> usize {
        self.head.saturating_add(self.tail).saturating_add(self.trouble)
    }
}

/// The part of an output that an answer has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// Of the lines that are kept, how many are not in the text.
    pub lines_left_out: u64,
    /// Where the whole output is, when this is not.
    pub rest: Option<String>,
}

impl Excerpt {
    /// As many lines as wanted, as far as they fit into `room` bytes of JSON. Lines from the middle stand with their
    /// numbers, from 1.
    ///
    /// The whole output is at `uri`.
    pub fn of(output: &Output, wanted: ExcerptLines, room: usize, uri: &str) -> Self {
        let text = output.text();
        let equal_max = if wanted.equal_once { EQUAL_MAX } else { usize::MAX };
        let lines = told_once(&text, output.lines_trimmed() + 1, equal_max);
        let whole = ToldLines { lines: &lines, line_max: LINE_BYTES_MAX, uri };
        let costs = lines.iter().map(|line| whole.cost(line));
        if wanted.sum() >= lines.len() && fitting(costs, room).count == lines.len() {
            return whole.told(lines.len(), &[], 0);
        }
        ToldLines { line_max: LINE_BYTES_MAX.min(room / 4), ..whole }.excerpt(wanted, room)
    }
}

/// A line as it is told.
struct Told<'a> {
    text: Cow<'a, str>,
    /// Its number, from 1.
    number: u64,
    /// For how many lines it stands.
    count: u64,
}

/// How many equal lines are told as they are; of more the first is, and their number.
const EQUAL_MAX: usize = 3;

/// The lines of a text. Where more than so many equal ones follow each other, the first of them and their number.
fn told_once(text: &str, first_number: u64, equal_max: usize) -> Vec<Told<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut told, mut number) = (Vec::new(), first_number);
    for equal in lines.chunk_by(|line, next| line == next) {
        let alone = if equal.len() <= equal_max { equal.len() } else { 1 };
        for line in &equal[..alone] {
            told.push(Told { text: Cow::Borrowed(line), number, count: 1 });
            number += 1;
        }
        let more = (equal.len() - alone) as u64;
        if more > 0 {
            let text = format!("[… the same line {more} more times]").into();
            told.push(Told { text, number, count: more });
            number += more;
        }
    }
    told
}

struct ToldLines<'a> {
    lines: &'a [Told<'a>],
    /// How many bytes of one line are told.
    line_max: usize,
    uri: &'a str,
}

impl ToldLines<'_> {
    fn excerpt(&self, wanted: ExcerptLines, room: usize) -> Excerpt {
        let total = self.lines.len();
        // What stands for the others is in the text, and the URI once more beside it.
        let room = room.saturating_sub(2 * escaped_bytes(&self.notice(u64::MAX)));
        let (head, tail) = self.ends(wanted, room);
        let trouble = self.trouble(head..total - tail, wanted.trouble);
        if trouble.is_empty() {
            // Nothing there is of interest, so more of the end is.
            let tail = wanted.tail.saturating_add(wanted.trouble);
            let (head, tail) = self.ends(ExcerptLines { tail, ..wanted }, room);
            return self.told(head, &[], tail);
        }
        let (head, tail) = self.ends(wanted, room / 3 * 2);
        let mut left = room / 3;
        let trouble = self.trouble(head..total - tail, wanted.trouble).into_iter();
        let mut fit: Vec<usize> = trouble
            .take_while(|index| {
                let line = &self.lines[*index];
                let cost = self.cost(line) + numbered(line).len();
                let fits = cost <= left;
                left = left.saturating_sub(cost);
                fits
            })
            .collect();
        fit.sort_unstable();
        self.told(head, &fit, tail)
    }

    /// How many lines of head and of tail fit.
    fn ends(&self, wanted: ExcerptLines, room: usize) -> (usize, usize) {
        let tail = |from: usize| {
            let lines = self.lines[from..].iter().rev().take(wanted.tail);
            lines.map(|line| self.cost(line))
        };
        // What one end does not need of its half is the other's.
        let least = fitting(tail(0), room / 2).bytes;
        let lines = self.lines.iter().take(wanted.head).map(|line| self.cost(line));
        let head = fitting(lines, room - least);
        (head.count, fitting(tail(head.count), room - head.bytes).count)
    }

    /// The first lines of these that name trouble, the graver first.
    fn trouble(&self, among: std::ops::Range<usize>, count_max: usize) -> Vec<usize> {
        let named = |index: &usize, words: &[&str]| names_any(&self.lines[*index].text, words);
        let [errors, warnings] = TROUBLE;
        let graver = among.clone().filter(|index| named(index, errors));
        let others = among.filter(|index| named(index, warnings) && !named(index, errors));
        graver.chain(others).take(count_max).collect()
    }

    fn told(&self, head: usize, trouble: &[usize], tail: usize) -> Excerpt {
        let (first, last) = (&self.lines[..head], &self.lines[self.lines.len() - tail..]);
        let trouble: Vec<&Told<'_>> = trouble.iter().map(|index| &self.lines[*index]).collect();
        let counts = |lines: &[Told<'_>]| lines.iter().map(|line| line.count).sum::<u64>();
        let among = trouble.iter().map(|line| line.count).sum::<u64>();
        let omitted = counts(self.lines) - counts(first) - counts(last) - among;
        let told = |line: &Told<'_>| cut(&line.text, self.line_max);
        let mut shown: Vec<String> = first.iter().map(told).collect();
        if omitted > 0 {
            shown.push(self.notice(omitted));
        }
        if !trouble.is_empty() {
            let all = self.trouble(head..self.lines.len() - tail, usize::MAX).len();
            let some = match all > trouble.len() {
                true => format!("{all} name errors or warnings, such as"),
                false => "these name errors or warnings".to_owned(),
            };
            shown.push(format!("[of the lines between, {some}:]"));
            shown.extend(trouble.iter().map(|line| numbered(line) + &told(line)));
            shown.push(format!("[the last {}:]", counted(counts(last), "line")));
        }
        shown.extend(last.iter().map(told));
        let is_cut = |line: &Told<'_>| escaped_bytes(&line.text) > self.line_max;
        let whole = omitted == 0 && !first.iter().chain(trouble).chain(last).any(is_cut);
        Excerpt {
            text: shown.join("\n"),
            lines_left_out: omitted,
            rest: (!whole).then(|| self.uri.to_owned()),
        }
    }

    fn cost(&self, line: &Told<'_>) -> usize {
        escaped_bytes(&line.text).min(self.line_max + CUT_BYTES) + LINE_END_BYTES
    }

    fn notice(&self, count: u64) -> String {
        format!("[… {} left out: {}]", counted(count, "line"), self.uri)
    }
}

fn numbered(line: &Told<'_>) -> String {
    format!("{}: ", line.number)
}

/// Whether one of these words, in lower case, is in the beginning of the line.
fn names_any(line: &str, words: &[&str]) -> bool {
    let line = &line.as_bytes()[..line.len().min(SEARCHED_BYTES_MAX)];
    let begins = |at: usize, word: &&str| {
        let part = line.get(at..at + word.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    (0..line.len()).any(|at| words.iter().any(|word| begins(at, word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::answer::budget::json_bytes;

    const URI: &str = "uri";
    const ROOM: usize = 12_000;

    fn excerpt(lines: &[String], head: usize, tail: usize) -> Excerpt {
        of(lines, ExcerptLines { head, tail, trouble: 0, equal_once: false }, ROOM)
    }

    fn of(lines: &[String], wanted: ExcerptLines, room: usize) -> Excerpt {
        let mut output = Output::default();
        lines.iter().for_each(|line| output.append(&format!("{line}\n")));
        Excerpt::of(&output, wanted, room, URI)
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
        assert_eq!(told.lines_left_out, 7);
        assert_eq!(told.rest.as_deref(), Some(URI));
    }

    #[test]
    fn an_answer_stays_within_its_bytes_whatever_was_asked_for_and_whatever_stands_in_it() {
        for line in ["x", "\"", "\\\"", "漢", "\u{1}"] {
            let lines: Vec<String> =
                (0..100).map(|number| format!("{}{number}", line.repeat(10_000))).collect();
            let told = excerpt(&lines, 1_000, 1_000);
            assert!(json_bytes(&told.text) < ROOM, "{line}: {}", told.text.len());
            let shown = told.text.lines().filter(|it| it.starts_with(line)).count();
            assert!(shown >= 2, "{line}: {shown}");
            assert_eq!(shown + told.lines_left_out as usize, 100);
            assert!(told.text.ends_with(" more bytes of this line]"));
        }
    }

    #[test]
    fn a_line_that_is_cut_is_somewhere_whole() {
        let told = excerpt(&["x".repeat(10_000)], 10, 10);
        assert_eq!((told.lines_left_out, told.rest.as_deref()), (0, Some(URI)));
        assert!(told.text.ends_with("x[… 6000 more bytes of this line]"), "{}", told.text);
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
    fn of_a_long_result_lines_that_name_trouble_are_told_with_their_numbers() {
        let mut lines = numbers(2_000);
        lines[700] = "warning: unused variable".to_owned();
        lines[900] = "src/main.rs:3: Error: no such field".to_owned();
        lines[1_999] = "build FAILED".to_owned();
        let told = of(&lines, ExcerptLines::of_result(40), 2_700);
        assert!(told.text.len() <= 2_700, "{}", told.text.len());
        assert!(told.text.starts_with("0\n1\n2\n3\n4\n[… "), "{}", told.text);
        assert!(told.text.contains("\n701: warning: unused variable\n901: src/main.rs:3: Error:"));
        assert!(told.text.ends_with("1998\nbuild FAILED"));
        let shown = told.text.lines().count() - 3;
        assert_eq!(shown + told.lines_left_out as usize, 2_000);
    }

    #[test]
    fn where_there_are_many_errors_no_warning_takes_their_place() {
        let named = |text: &str| (0..500).map(|n| format!("{text} {n}")).collect::<Vec<_>>();
        let mut lines = [named("warning"), named("an error")].concat();
        lines.extend(numbers(100));
        let told = of(&lines, ExcerptLines::of_result(40), 2_700);
        assert_eq!(told.text.matches(": an error").count(), 10, "{}", told.text);
        assert!(told.text.contains(" name errors or warnings, such as:]"), "{}", told.text);
        assert_eq!(told.text.matches(": warning").count(), 0);
    }

    #[test]
    fn equal_lines_are_told_once_and_counted() {
        let mut lines = vec!["y".to_owned(); 30];
        lines.push("end".to_owned());
        let told = of(&lines, ExcerptLines::of_result(40), 2_700);
        assert_eq!(told.text, "y\n[… the same line 29 more times]\nend");
        assert_eq!((told.lines_left_out, told.rest), (0, None));
        let few = of(&lines[28..], ExcerptLines::of_result(40), 2_700);
        assert_eq!(few.text, "y\ny\nend");
    }

    #[test]
    fn a_single_long_line_is_told_whole_where_there_is_room() {
        let told = of(&["x".repeat(2_500)], ExcerptLines::of_result(40), 2_600);
        assert_eq!((told.text.len(), told.rest), (2_500, None));
    }

    #[test]
    fn without_trouble_more_of_the_end_is_told() {
        let told = of(&numbers(1_000), ExcerptLines::of_result(40), 2_700);
        assert_eq!(told.text.lines().count(), 41, "{}", told.text);
        assert!(told.text.ends_with("\n999"));
    }
}
