//! Parses control strings: titles, reports, and queries with their fixed answers.
//!
//! termgate ignores clipboard, links and changes of colours: no frame shows them, and a program must
//! not read the clipboard.

use percent_encoding::percent_decode_str;

use crate::core::screen::ScreenLimits;
use crate::core::screen::guard::ControlString;
use crate::core::screen::palette;
use crate::core::screen::report::{Progress, Report};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    Title(String),
    Report(Report),
    /// The parameters of a shell integration mark.
    Mark(String),
    /// The answers to queries.
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
            let answers = palette::answers(code, rest, end);
            (!answers.is_empty()).then_some(Sequence::Answers(answers))
        }
        "7" => directory(rest, host).map(Sequence::Report),
        "9" => match rest.strip_prefix("4;") {
            Some(progress) => self::progress(progress).map(Sequence::Report),
            None => {
                Some(Sequence::Report(Report::Notification { title: None, body: rest.to_owned() }))
            }
        },
        "133" => Some(Sequence::Mark(rest.to_owned())),
        "777" => notification(rest).map(Sequence::Report),
        _ => None,
    }
}

/// The text of a command, without invalid UTF-8 and control characters.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|character| !character.is_control()).collect()
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
        "0" => Progress::Removed,
        "1" => Progress::Running(percent),
        "2" => Progress::Failed(percent),
        "3" => Progress::Indeterminate,
        "4" => Progress::Paused(percent),
        _ => return None,
    };
    Some(Report::Progress(progress))
}

/// Parses `notify;title;body`.
fn notification(text: &str) -> Option<Report> {
    let rest = text.strip_prefix("notify;")?;
    let (title, body) = rest.split_once(';').unwrap_or((rest, ""));
    Some(Report::Notification { title: Some(title.to_owned()), body: body.to_owned() })
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
        check("9;4;1;30", progress(Progress::Running(30)));
        check("9;4;1;200", progress(Progress::Running(100)));
        check("9;4;0", progress(Progress::Removed));
        check("9;4;3", progress(Progress::Indeterminate));
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
    fn the_clipboard_means_nothing() {
        check("52;c;?", None);
        check("52;c;aGk=", None);
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
}
