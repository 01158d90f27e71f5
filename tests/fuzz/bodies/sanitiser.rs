//! Texts of programs as models and people get them: nothing in them is hidden, ends a line or controls a terminal.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use termgate::core::frame::Size;
use termgate::core::frame::history::HistoryLimits;
use termgate::core::invisible::{seen, with_invisible_shown};
use termgate::core::moment::Moment;
use termgate::core::one_line::one_line;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};

/// What no text may have: tags, changes of reading order, and what has no width and joins nothing.
static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    let hidden = "[\u{ad}\u{61c}\u{180e}\u{200b}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2060}-\u{206f}\
                  \u{feff}\u{fe00}-\u{fe0d}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]";
    Regex::new(hidden).expect("the pattern is valid")
});

/// A joiner that joins nothing: at the start, after ASCII, or after another one.
static LONE_JOINER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "(?:\\A|[\\x00-\\x7f]|[\u{200c}\u{200d}])[\u{200c}\u{200d}]";
    Regex::new(pattern).expect("the pattern is valid")
});

pub fn check(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let hidden: Vec<bool> = seen(text).map(|(_, is_invisible)| is_invisible).collect();
    for ((character, is_invisible), found) in seen(text).zip(&hidden) {
        assert_eq!(is_invisible, *found);
        let is_hidden = HIDDEN.is_match(character.encode_utf8(&mut [0; 4]));
        assert!(!is_hidden || is_invisible, "{character:?} is hidden");
        assert!(!is_invisible || !character.is_ascii(), "{character:?} shows");
    }
    let count = hidden.iter().filter(|is_invisible| **is_invisible).count();

    let shown = with_invisible_shown(text);
    check_visible(&shown);
    assert_eq!(with_invisible_shown(&shown), shown, "twice is as once");
    // `\u{ad}` has five characters more than what it stands for, and `\u{e0001}` eight. Joiners behind those are written
    // out as well.
    let joiners = text.matches(['\u{200c}', '\u{200d}']).count();
    let added = shown.chars().count() - text.chars().count();
    assert!((5 * count..=8 * (count + joiners)).contains(&added), "{count} characters add {added}");
    assert_eq!(matches!(shown, Cow::Borrowed(_)), count == 0);

    let line = one_line(text);
    check_visible(&line);
    assert!(!line.contains(|it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')));
    assert_eq!(one_line(&line), line, "twice is as once");
    check_screen(text);
}

fn check_visible(text: &str) {
    assert!(!HIDDEN.is_match(text) && !LONE_JOINER.is_match(text), "{text:?}");
    assert!(!seen(text).any(|(_, is_invisible)| is_invisible), "{text:?}");
}

/// Checks what a screen shows of a text, and how many characters it says that it left out.
fn check_screen(text: &str) {
    let history = HistoryLimits { rows_max: 10_000, bytes_max: usize::MAX };
    let limits = ScreenLimits { history, ..ScreenLimits::default() };
    let mut screen = Screen::new(Size { rows: 4, cols: 40 }, limits, Origin::default());
    screen.feed(Moment::default(), text.as_bytes());
    let frame = screen.first_frame(Moment::default(), &Facts::default());
    let rows = frame.history.range(frame.history.first(), frame.history.end());
    let above: Vec<String> = rows.map(|(_, row)| row.text.to_owned()).collect();
    let lines = frame.lines.iter().map(|line| line.value.text.to_string());
    for row in above.into_iter().chain(lines) {
        assert!(!HIDDEN.is_match(&row), "{row:?}");
        assert!(!row.contains(char::is_control), "{row:?}");
    }
    assert!(!HIDDEN.is_match(&frame.title.value), "{:?}", frame.title.value);
    // Where no sequence takes characters, each hidden one is counted. Joiners depend on the cell before them.
    let is_plain = |it: char| !it.is_control() && !matches!(it, '\u{200c}' | '\u{200d}');
    if text.chars().all(is_plain) {
        let hidden = seen(text).filter(|(_, is_invisible)| *is_invisible).count();
        assert_eq!(screen.invisible(), hidden as u64, "{text:?}");
    }
}
