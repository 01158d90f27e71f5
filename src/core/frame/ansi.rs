//! Lines as escape sequences that paint them again.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::core::frame::line::{Attributes, Color, Line, Style};

/// The line as bytes that paint it again, ending in the plain style.
pub fn ansi(line: &Line) -> String {
    let mut out = String::with_capacity(line.text.len() + line.runs.len() * 16);
    let mut style = Style::default();
    let mut target = None;
    let mut column = 0;
    for glyph in line.glyphs() {
        change_style(&mut out, &mut style, line.style_at(glyph.column));
        change_link(&mut out, &mut target, line.link_at(glyph.column));
        out.push_str(glyph.text);
        column = glyph.column + glyph.columns;
    }
    change_link(&mut out, &mut target, None);
    let painted = line.runs.last().map_or(0, |run| run.column + run.columns);
    for column in column..painted {
        change_style(&mut out, &mut style, line.style_at(column));
        out.push(' ');
    }
    change_style(&mut out, &mut style, Style::default());
    out
}

/// Writes what changes the style of the characters that follow.
pub(crate) fn change_style(out: &mut String, from: &mut Style, to: Style) {
    if *from == to {
        return;
    }
    *from = to;
    out.push_str("\x1b[0");
    // The select-graphic-rendition parameter of each attribute, ECMA-48 8.3.117 and its extensions.
    const PARAMETERS: [(Attributes, &str); 10] = [
        (Attributes::BOLD, "1"),
        (Attributes::DIM, "2"),
        (Attributes::ITALIC, "3"),
        (Attributes::UNDERLINE, "4"),
        (Attributes::DOUBLE_UNDERLINE, "4:2"),
        (Attributes::CURLY_UNDERLINE, "4:3"),
        (Attributes::INVERSE, "7"),
        (Attributes::CONCEALED, "8"),
        (Attributes::STRIKE, "9"),
        (Attributes::BLINK, "5"),
    ];
    for (bit, parameter) in PARAMETERS {
        if to.attributes.contains(bit) {
            out.push(';');
            out.push_str(parameter);
        }
    }
    push_color(out, to.foreground, "38");
    push_color(out, to.background, "48");
    out.push('m');
}

/// Writes what opens or closes a link.
pub(crate) fn change_link<'a>(
    out: &mut String,
    from: &mut Option<&'a Arc<str>>,
    to: Option<&'a Arc<str>>,
) {
    if *from != to {
        *from = to;
        let _ = write!(out, "\x1b]8;;{}\x1b\\", to.map_or("", |target| target));
    }
}

fn push_color(out: &mut String, color: Color, kind: &str) {
    // Writing into a string cannot fail.
    let _ = match color {
        Color::Default => Ok(()),
        Color::Indexed(index) => write!(out, ";{kind};5;{index}"),
        Color::Rgb(red, green, blue) => write!(out, ";{kind};2;{red};{green};{blue}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::line::{Link, Run};

    fn styled(text: &str, column: u16, columns: u16, attributes: Attributes) -> Line {
        let style = Style { foreground: Color::Indexed(1), attributes, ..Style::default() };
        let runs = Box::new([Run { column, columns, style }]);
        Line { text: text.into(), runs, ..Line::default() }
    }

    #[test]
    fn escape_sequences_paint_the_run_and_return_to_plain() {
        let line = styled("abc", 1, 1, Attributes::BOLD);
        assert_eq!(ansi(&line), "a\x1b[0;1;38;5;1mb\x1b[0mc");
    }

    #[test]
    fn a_link_is_opened_and_closed_around_its_text() {
        let link = |column, target: &str| Link { column, columns: 1, target: target.into() };
        let links = Box::new([link(1, "http://b"), link(2, "http://c")]);
        let line = Line { text: "abcd".into(), links, ..Line::default() };
        let expected = "a\x1b]8;;http://b\x1b\\b\x1b]8;;http://c\x1b\\c\x1b]8;;\x1b\\d";
        assert_eq!(ansi(&line), expected);
    }
}
