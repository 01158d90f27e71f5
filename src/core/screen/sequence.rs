//! Parses control strings: titles, reports, and queries with their fixed answers.
//!
//! termgate ignores changes of colours, which no frame shows. A program can write to the clipboard of people who
//! permit it, and never read one. Reports and links are unverified: any output can contain them, even a printed
//! file.

use std::collections::VecDeque;

use percent_encoding::percent_decode_str;

use crate::core::frame::line::Link;
use crate::core::invisible::seen;
use crate::core::screen::ScreenLimits;
use crate::core::screen::guard::ControlString;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    Title(String),
    Report(Report),
    Mark(String),
    /// A text for the clipboard, in Base64.
    Clipboard(String),
    /// The target of the text that follows; none ends a link.
    Link(Option<String>),
    Answers(Vec<String>),
}

impl Sequence {
    /// Parses the string, if it has a meaning here. `host` is the name of this machine.
    pub(crate) fn parse(
        string: ControlString<'_>,
        limits: &ScreenLimits,
        host: Option<&str>,
    ) -> Option<Self> {
        match string {
            ControlString::Command { text, end } => command(text, end, limits, host),
            // DECRQSS and XTGETTCAP: refused. vim reads a refusal of the cursor shape as keys, and does not
            // wait for an answer, so that query gets none.
            ControlString::Device(b"$q q") => None,
            ControlString::Device(head) if head.starts_with(b"$q") => refusal("\x1bP0$r\x1b\\"),
            ControlString::Device(head) if head.starts_with(b"+q") => refusal("\x1bP0+r\x1b\\"),
            ControlString::Device(_) => None,
        }
    }
}

fn refusal(answer: &str) -> Option<Sequence> {
    Some(Sequence::Answers(vec![answer.to_owned()]))
}

fn command(text: &[u8], end: &str, limits: &ScreenLimits, host: Option<&str>) -> Option<Sequence> {
    let text = clean(text);
    let (code, rest) = text.split_once(';')?;
    match code {
        "0" | "2" => {
            Some(Sequence::Title(rest.trim().chars().take(limits.title_characters_max).collect()))
        }
        "4" | "10" | "11" | "12" => {
            let answers = color_answers(code, rest, end);
            (!answers.is_empty()).then_some(Sequence::Answers(answers))
        }
        "7" => directory(rest, host).map(Sequence::Report),
        "8" => link(rest),
        "9" => match rest.strip_prefix("4;") {
            Some(progress) => self::progress(progress).map(Sequence::Report),
            None => {
                Some(Sequence::Report(Report::Notification { title: None, body: rest.to_owned() }))
            }
        },
        "52" => clipboard(rest),
        "133" => Some(Sequence::Mark(rest.to_owned())),
        "777" => notification(rest).map(Sequence::Report),
        _ => None,
    }
}

/// The text of a command, without invalid UTF-8, control characters and those that nobody sees.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let fit = seen(&text).filter(|(character, invisible)| !character.is_control() && !invisible);
    fit.map(|(character, _)| character).collect()
}

/// Parses `file://host/path`, or a bare path. A path of another machine is ignored, even if the same
/// path exists here.
fn directory(url: &str, this_host: Option<&str>) -> Option<Report> {
    let path = match url.strip_prefix("file://") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            is_here(host, this_host).then_some(path)?
        }
        None => url,
    };
    let path = percent_decode_str(path).decode_utf8().ok()?.into_owned();
    let usable = path.starts_with('/') && !path.chars().any(char::is_control);
    usable.then_some(Report::Directory(path))
}

fn is_here(host: &str, this_host: Option<&str>) -> bool {
    let host: Vec<u8> = percent_decode_str(host).collect();
    let is = |name: &str| host.eq_ignore_ascii_case(name.as_bytes());
    is("") || is("localhost") || this_host.is_some_and(is)
}

/// Parses `state;percent`.
fn progress(text: &str) -> Option<Report> {
    let (state, percent) = text.split_once(';').unwrap_or((text, "0"));
    let percent = percent.parse::<u8>().unwrap_or(0).min(100);
    let progress = match state {
        "0" => TaskProgress::Removed,
        "1" => TaskProgress::Running(percent),
        "2" => TaskProgress::Failed(percent),
        "3" => TaskProgress::Indeterminate,
        "4" => TaskProgress::Paused(percent),
        _ => return None,
    };
    Some(Report::Progress(progress))
}

/// Parses `parameters;target`. A target that no terminal may show ends a link.
fn link(text: &str) -> Option<Sequence> {
    let (_, target) = text.split_once(';')?;
    Some(Sequence::Link(Link::is_allowed(target).then(|| target.to_owned())))
}

/// Parses `selection;base64` if it writes to the clipboard. A question and other selections mean nothing.
fn clipboard(text: &str) -> Option<Sequence> {
    let (selection, data) = text.split_once(';')?;
    let is_clipboard = selection.is_empty() || selection.contains(['c', 's']);
    let letters = data.trim_end_matches('=');
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let is_base64 = data.len().is_multiple_of(4) && data.len() - letters.len() < 3;
    let is_text = !letters.is_empty() && is_base64 && letters.bytes().all(fine);
    (is_clipboard && is_text).then(|| Sequence::Clipboard(data.to_owned()))
}

/// Parses `notify;title;body`.
fn notification(text: &str) -> Option<Report> {
    let rest = text.strip_prefix("notify;")?;
    let (title, body) = rest.split_once(';').unwrap_or((rest, ""));
    Some(Report::Notification { title: Some(title.to_owned()), body: body.to_owned() })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The working directory (OSC 7), an absolute path.
    Directory(String),
    /// A text for the person at the terminal (OSC 9 and 777).
    Notification { title: Option<String>, body: String },
    /// How far a task is (OSC 9;4).
    Progress(TaskProgress),
}

impl Report {
    /// The working directory, if it tells that.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Notification { .. } | Self::Progress(_) => None,
        }
    }

    /// The most reports that wait in the queue; the oldest are dropped first.
    pub const QUEUED_MAX: usize = 256;
}

/// Reports that wait to be taken.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportQueue {
    waiting: VecDeque<Report>,
    /// Notifications that were dropped.
    dropped: u64,
}

impl ReportQueue {
    pub(super) fn push(&mut self, report: Report) {
        if self.waiting.len() == Report::QUEUED_MAX
            && let Some(Report::Notification { .. }) = self.waiting.pop_front()
        {
            self.dropped += 1;
        }
        self.waiting.push_back(report);
    }

    pub(super) fn take(&mut self) -> (Vec<Report>, u64) {
        (self.waiting.drain(..).collect(), std::mem::take(&mut self.dropped))
    }
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskProgress {
    /// The task is finished or removed.
    Removed,
    /// The task is running, 0 to 100 per cent done.
    Running(u8),
    /// The task failed at this percentage.
    Failed(u8),
    /// The task is running without a known percentage.
    Indeterminate,
    /// The task is paused at this percentage.
    Paused(u8),
}

/// The default foreground and cursor.
const FOREGROUND: [u8; 3] = [0xd8, 0xd8, 0xd8];
const BACKGROUND: [u8; 3] = [0, 0, 0];

const NAMED: [u32; 16] = [
    0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5,
    0x7f_7f7f, 0xff_0000, 0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
];

/// The most queries that one sequence may hold.
const QUERIES_MAX: usize = 16;

/// Answers the queries in a colour command (OSC 4, 10, 11, 12), each with the query's terminator.
fn color_answers(code: &str, arguments: &str, end: &str) -> Vec<String> {
    let arguments = arguments.split(';');
    if code == "4" {
        let arguments: Vec<&str> = arguments.take(2 * QUERIES_MAX).collect();
        let asked = arguments.chunks_exact(2).filter(|pair| pair[1] == "?");
        let index = asked.filter_map(|pair| pair[0].parse::<u8>().ok());
        return index.map(|index| answer(&format!("4;{index}"), indexed(index), end)).collect();
    }
    // Each further argument asks for the next of the three colours.
    let dynamic = [("10", FOREGROUND), ("11", BACKGROUND), ("12", FOREGROUND)];
    let asked = dynamic.into_iter().skip_while(|(name, _)| *name != code).zip(arguments);
    let asked = asked.filter(|(_, argument)| *argument == "?");
    asked.map(|((name, color), _)| answer(name, color, end)).collect()
}

fn answer(name: &str, [red, green, blue]: [u8; 3], end: &str) -> String {
    format!("\x1b]{name};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}")
}

/// The colour with this index of 256: sixteen named ones, a cube of six steps a side, and greys.
pub fn indexed(index: u8) -> [u8; 3] {
    match index {
        0..=15 => {
            let [_, rgb @ ..] = NAMED[usize::from(index)].to_be_bytes();
            rgb
        }
        16..=231 => {
            let place = index - 16;
            let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            [step(place / 36), step(place / 6 % 6), step(place % 6)]
        }
        232..=255 => [8 + 10 * (index - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Sequence>) {
        let string = ControlString::Command { text: text.as_bytes(), end: "\x07" };
        assert_eq!(
            Sequence::parse(string, &ScreenLimits::default(), Some("here")),
            expected,
            "{text}"
        );
    }

    fn body(body: &str) -> Report {
        Report::Notification { title: None, body: body.to_owned() }
    }

    #[test]
    fn a_title_is_cut_after_256_characters() {
        check(&format!("2;{}", "ä".repeat(256)), Some(Sequence::Title("ä".repeat(256))));
        check(&format!("0;{}", "ä".repeat(257)), Some(Sequence::Title("ä".repeat(256))));
    }

    #[test]
    fn a_directory_is_an_absolute_path_with_its_escapes_resolved() {
        let directory = |path: &str| Some(Sequence::Report(Report::Directory(path.to_owned())));
        check("7;file://here/a%20b/%C3%A4", directory("/a b/ä"));
        check("7;file:///tmp/100%", directory("/tmp/100%"));
        check("7;/plain", directory("/plain"));
        check("7;relative", None);
        check("7;file://host", None);
        check("7;file:///a%0ab", None);
        check("7;file:///%ff", None);
    }

    #[test]
    fn a_directory_of_another_machine_is_not_believed() {
        let tmp = Some(Sequence::Report(Report::Directory("/tmp".to_owned())));
        for ours in ["", "localhost", "here", "HERE", "%68ere"] {
            check(&format!("7;file://{ours}/tmp"), tmp.clone());
        }
        for theirs in ["there", "here.example", "her", "localhost.example"] {
            check(&format!("7;file://{theirs}/tmp"), None);
        }
        let string = ControlString::Command { text: b"7;file://here/tmp", end: "\x07" };
        assert_eq!(Sequence::parse(string, &ScreenLimits::default(), None), None);
    }

    #[test]
    fn progress_is_told_apart_from_a_notification() {
        let progress = |progress| Some(Sequence::Report(Report::Progress(progress)));
        check("9;4;1;30", progress(TaskProgress::Running(30)));
        check("9;4;1;200", progress(TaskProgress::Running(100)));
        check("9;4;0", progress(TaskProgress::Removed));
        check("9;4;3", progress(TaskProgress::Indeterminate));
        check("9;4;9;1", None);
        check("9;done", Some(Sequence::Report(body("done"))));
    }

    #[test]
    fn a_notification_may_have_a_title() {
        let report = Report::Notification { title: Some("a".to_owned()), body: "b;c".to_owned() };
        check("777;notify;a;b;c", Some(Sequence::Report(report)));
        check("777;other;a", None);
    }

    #[test]
    fn the_clipboard_is_written_with_text_and_never_read() {
        for fine in ["52;c;aGk=", "52;;aGk=", "52;pc;aGk="] {
            check(fine, Some(Sequence::Clipboard("aGk=".to_owned())));
        }
        for other in ["52;c;?", "52;c;", "52;p;aGk=", "52;c;aGk", "52;c;aG-=", "52;c;a===", "52;c"]
        {
            check(other, None);
        }
    }

    #[test]
    fn a_link_has_a_target_that_a_terminal_may_show() {
        let link = |target: &str| Some(Sequence::Link(Some(target.to_owned())));
        check("8;;https://example.org/a;b", link("https://example.org/a;b"));
        check("8;id=1:x=y;FILE:///tmp/a%20b", link("FILE:///tmp/a%20b"));
        let longest = format!("http:{}", "a".repeat(Link::BYTES_MAX - 5));
        check(&format!("8;;{longest}"), link(&longest));
        let targets = [
            "",
            "javascript:alert(1)",
            "example.org",
            "http://a b",
            "http://ä",
            &format!("{longest}a"),
        ];
        for none in targets {
            check(&format!("8;;{none}"), Some(Sequence::Link(None)));
        }
        check("8;", None);
    }

    #[test]
    fn requests_for_settings_and_capabilities_are_refused_without_repeating_them() {
        let limits = ScreenLimits::default();
        let answers = |head| Sequence::parse(ControlString::Device(head), &limits, None);
        let refused = |text: &str| Some(Sequence::Answers(vec![text.to_owned()]));
        assert_eq!(answers(b"$qm"), refused("\x1bP0$r\x1b\\"));
        assert_eq!(answers(b"+q544e"), refused("\x1bP0+r\x1b\\"));
        assert_eq!(answers(b"1;2q"), None);
        assert_eq!(answers(b"$q q"), None, "vim would take the refusal for keys");
    }

    #[test]
    fn a_palette_query_names_its_index_and_ends_like_the_query() {
        assert_eq!(color_answers("4", "1;?", "\x07"), ["\x1b]4;1;rgb:cdcd/0000/0000\x07"]);
        assert_eq!(color_answers("4", "231;?", "\x1b\\"), ["\x1b]4;231;rgb:ffff/ffff/ffff\x1b\\"]);
        assert_eq!(color_answers("4", "255;?", "\x07"), ["\x1b]4;255;rgb:eeee/eeee/eeee\x07"]);
    }

    #[test]
    fn setting_a_colour_is_not_answered() {
        assert!(color_answers("4", "1;#ff0000", "\x07").is_empty());
        assert!(color_answers("4", "256;?", "\x07").is_empty());
        assert!(color_answers("11", "black", "\x07").is_empty());
    }

    #[test]
    fn further_questions_ask_for_the_next_dynamic_colour() {
        let both = color_answers("10", "?;?", "\x07");
        assert_eq!(both, ["\x1b]10;rgb:d8d8/d8d8/d8d8\x07", "\x1b]11;rgb:0000/0000/0000\x07"]);
    }
}
